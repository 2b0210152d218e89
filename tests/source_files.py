"""The project's own Python files as module names and syntax trees, for tests that read the code."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("rayflink", "actors", "state")
EVERYTHING = (*PRODUCT, "tests", "benchmarks", "examples")
LINKED = {"actors": "rayflink.actors", "state": "rayflink.state"}


@dataclass(frozen=True)
class SourceFile:
    """One Python file.

    `module` is the name it is imported by (`rayflink.actors.task.task` for actors/task/task.py); `package` is the name
    that its relative imports start from.
    """

    path: Path
    module: str
    package: str

    @property
    def name(self) -> str:
        """The path from the root, for messages."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return _parse(self.path)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, as `ast.walk` gives them."""
        return _nodes(self.path)

    @property
    def imports(self) -> tuple[Import, ...]:
        """All imports of the file."""
        return _imports(self)

    def text(self) -> str:
        """The file's content."""
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Import:
    """One imported name: `module` as absolute name, where it stands, and whether inside a function."""

    module: str
    line: int
    in_function: bool


@cache
def _parse(path: Path) -> ast.Module:
    """Parse a file; no garbage collection of a later test looks at the trees, which have millions of nodes."""
    _collect_first()
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    gc.freeze()
    return tree


@cache
def _collect_first() -> None:
    gc.collect()


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parse(path)))


@cache
def _imports(file: SourceFile) -> tuple[Import, ...]:
    return tuple(imports_of(file.tree, file.package))


@cache
def source_files(folders: tuple[str, ...]) -> tuple[SourceFile, ...]:
    """All Python files below the folders, sorted, each once: symlinked folders are not entered twice."""
    paths = sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.parents)
    )
    return tuple(_source_file(path) for path in paths)


def _source_file(path: Path) -> SourceFile:
    top, *rest = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join([LINKED.get(top, top), *rest])
    if path.name == "__init__.py":
        package = name.removesuffix(".__init__")
        return SourceFile(path, package, package)
    return SourceFile(path, name, name.rpartition(".")[0])


def imports_of(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import statement and every `import_module("...")` with a literal name, wherever it stands.

    `from a import b` gives `a` and `a.b`, as b may be a module.

    Args:
        tree: the module.
        package: what relative imports start from.
    """
    yield from _imports_below(tree, package, in_function=False)


def _imports_below(node: ast.AST, package: str, in_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child.module, child.level, package)
            for name in (base, *(f"{base}.{alias.name}" for alias in child.names)):
                yield Import(name, child.lineno, in_function)
        elif isinstance(child, ast.Call) and (name := _dynamic_import(child)):
            yield Import(name, child.lineno, in_function)
        inside = in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from _imports_below(child, package, inside)


def _absolute(module: str | None, level: int, package: str) -> str:
    if not level:
        return module or ""
    parents = package.split(".")
    base = parents[: len(parents) - level + 1]
    return ".".join([*base, *([module] if module else [])])


def _dynamic_import(call: ast.Call) -> str:
    function = call.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    if name in {"import_module", "__import__"} and call.args and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value)
    return ""
