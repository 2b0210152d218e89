"""Which tests may be skipped when they run, read from the syntax trees of all modules below tests/ and benchmarks/.

A test may be skipped when it, a mark, its module, a fixture or a function it uses calls `pytest.skip` or
`pytest.importorskip`, or bears `skipif`, however many steps away. Names are followed through imports of both;
a class stands for all its methods. What is computed at run time (a method of a value, a hook) is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
SKIPS = {"skip", "importorskip", "skipif"}
PYTEST = {"pytest", "pytest.mark", "mark"}
FOLDERS = {"tests": "", "benchmarks": "../benchmarks/"}
"""What is imported from each folder at the root -> its path, relative to tests/."""


@dataclass(frozen=True)
class Module:
    """One module below tests/: its definitions and what it imports from other modules there."""

    path: str
    tree: ast.Module = field(repr=False, compare=False)

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """Functions, classes and assignments at the top of the module, by name."""
        found: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, (Function, ast.ClassDef)):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Local name to module path and name there; the second is empty for a module."""
        found: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                root, *parts = (node.module or "").split(".")
                if root not in FOLDERS:
                    continue
                folder = FOLDERS[root] + "/".join(parts)
                for name in node.names:
                    found[name.asname or name.name] = (folder, name.name)
        return found

    @cached_property
    def skipped_at_import(self) -> str:
        """Where the module skips itself: a call outside functions and classes, or its pytestmark."""
        for node in self.tree.body:
            if isinstance(node, (Function, ast.ClassDef)):
                continue
            is_mark = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
            line = skip_line(node)
            if line and (is_mark or "skipif" not in ast.unparse(node)):
                return f"{self.path}:{line}"
        return ""

    @cached_property
    def autouse(self) -> list[str]:
        """Names of fixtures that every test of the module, or of the folder of a conftest.py, uses."""
        return [
            name
            for name, node in self.definitions.items()
            if isinstance(node, Function) and any("autouse=True" in ast.unparse(mark) for mark in node.decorator_list)
        ]


def skip_line(node: ast.AST) -> int:
    """The line of a call of pytest's that skips, somewhere in a node; 0 without one."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in SKIPS and ast.unparse(inner.value) in PYTEST:
            return inner.lineno
    return 0


class Skips:
    """Find for any test where it may be skipped.

    Args:
        modules: text of each module below tests/, by its path relative to tests/.
    """

    def __init__(self, modules: dict[str, str]) -> None:
        self._texts = modules
        self._parsed: dict[str, Module] = {}
        self._known: dict[ast.AST, tuple[int, list[tuple[Module, ast.AST]]]] = {}

    @classmethod
    def below(cls, folder: Path) -> Skips:
        """Those of all modules below a folder, and of the benchmarks beside it."""
        sources = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.py")}
        beside = folder.parent / "benchmarks"
        sources |= {f"../{path.relative_to(folder.parent)}": path.read_text("utf-8") for path in beside.rglob("*.py")}
        return cls(sources)

    def text(self, path: str) -> str:
        """The text of a module."""
        return self._texts[path]

    def module(self, path: str) -> Module | None:
        """The module of a path relative to tests/, parsed when first asked for; None where there is none."""
        if path not in self._parsed and path in self._texts:
            self._parsed[path] = Module(path, ast.parse(self._texts[path], filename=path))
        return self._parsed.get(path)

    def where(self, path: str, test: str) -> str:
        """`path:line` of what may skip a test, the nearest first; empty when nothing does.

        Args:
            path: its module, relative to tests/.
            test: its name; for a method with its class before it, as in `TestGroup::test_one`.
        """
        module = self.module(path)
        assert module, path
        if module.skipped_at_import:
            return module.skipped_at_import
        nodes: list[ast.AST] = [module.definitions[test.split("::")[0]]]
        if isinstance(nodes[0], ast.ClassDef):
            nodes = _parts_of_method(nodes[0], test.split("::")[1])
        fixtures = [name for each in self._scope(module) for name in each.autouse]
        return self._search(module, nodes, fixtures)

    def _search(self, module: Module, nodes: list[ast.AST], fixtures: list[str]) -> str:
        seen: set[ast.AST] = set()
        queue: list[tuple[Module, ast.AST]] = [(module, node) for node in nodes]
        queue += [found for name in fixtures if (found := self._fixture(module, name))]
        while queue:
            here, node = queue.pop(0)
            if node not in self._known:
                self._known[node] = (skip_line(node), list(self._used(here, node)))
            line, used = self._known[node]
            if line:
                return f"{here.path}:{line}"
            for there, definition in used:
                if there.skipped_at_import:
                    return there.skipped_at_import
                if definition not in seen:
                    seen.add(definition)
                    queue.append((there, definition))
        return ""

    def _used(self, module: Module, node: ast.AST) -> Iterator[tuple[Module, ast.AST]]:
        """Definitions that a node names: by itself, through an import, as a parameter or in `usefixtures`."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and (found := self._named(module, inner.id)):
                yield found
            elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
                if found := self._attribute(module, inner.value.id, inner.attr):
                    yield found
            elif isinstance(inner, Function) and _takes_fixtures(inner):
                for argument in [*inner.args.args, *inner.args.kwonlyargs]:
                    if found := self._fixture(module, argument.arg):
                        yield found
            elif isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") == "usefixtures":
                for literal in inner.args:
                    if isinstance(literal, ast.Constant) and (found := self._fixture(module, str(literal.value))):
                        yield found

    def _named(self, module: Module, name: str) -> tuple[Module, ast.AST] | None:
        if name in module.definitions:
            return module, module.definitions[name]
        if name in module.imports:
            folder, imported = module.imports[name]
            there = self.module(f"{folder}.py") or self.module(f"{folder}/__init__.py")
            if there and there is not module:
                return self._named(there, imported)
        return None

    def _attribute(self, module: Module, owner: str, name: str) -> tuple[Module, ast.AST] | None:
        folder, imported = module.imports.get(owner, ("", ""))
        there = self.module(f"{folder}/{imported}.py".lstrip("/")) if imported else None
        return self._named(there, name) if there else None

    def _scope(self, module: Module) -> list[Module]:
        """The module and the conftest.py of its folder and of those above."""
        parts = module.path.split("/")[:-1]
        paths = ["/".join([*parts[:depth], "conftest.py"]) for depth in range(len(parts), -1, -1)]
        return [module, *(found for path in paths if path != module.path and (found := self.module(path)))]

    def _fixture(self, module: Module, name: str) -> tuple[Module, ast.AST] | None:
        for each in self._scope(module):
            found = self._named(each, name)
            if found and isinstance(found[1], Function) and "fixture" in _marks(found[1]):
                return found
        return None


def _parts_of_method(group: ast.ClassDef, method: str) -> list[ast.AST]:
    marks = [node for node in group.body if isinstance(node, ast.Assign)]
    methods = [node for node in group.body if isinstance(node, Function) and node.name == method]
    return [*group.decorator_list, *marks, *methods]


def _marks(function: Function) -> str:
    return " ".join(ast.unparse(mark) for mark in function.decorator_list)


def _takes_fixtures(function: Function) -> bool:
    return function.name.startswith("test") or "fixture" in _marks(function)
