"""PyFlink's public names, read from an unzipped wheel as syntax trees; nothing of it is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

AREAS = ("common", "datastream", "metrics", "table")
ENUMS = frozenset({"Enum", "IntEnum", "Flag", "IntFlag"})


@dataclass(frozen=True)
class Parameter:
    """A parameter of PyFlink; `default` is its source text, "" where there is none, and `stars` is "", "*" or "**"."""

    name: str
    default: str = ""
    stars: str = ""
    keyword_only: bool = False
    type: str = ""

    def __str__(self) -> str:
        return f"{self.stars}{self.name}" + (f"={self.default}" if self.default else "")


@dataclass(frozen=True)
class Name:
    """A public name of PyFlink.

    Args:
        module: without the package: "common.typeinfo".
        path: within the module: "Types.STRING".
        kind: class, function, method, staticmethod, classmethod, property, attribute, member (of an enum), constant or
            export (of a name that another module defines).
        parameters: without self; of a class those of its constructor; None where it has none of its own.
        overridden: it is abstract: users write it and the runtime calls it, so the names of its parameters are free.
        exported: the module's `__all__` holds the name it belongs to, or there is no `__all__`.
        bases: of a class, the names of the classes it is made from, without their modules and type parameters.
        wanted: of a class, the methods it leaves to those who derive from it.
        returns: of a function, method or property, the annotation of its result.
        defined_by: of a name that a class inherits, the full name of the class that defines it.
    """

    module: str
    path: str
    kind: str
    parameters: tuple[Parameter, ...] | None = None
    overridden: bool = False
    exported: bool = True
    bases: tuple[str, ...] = ()
    wanted: frozenset[str] = frozenset()
    returns: str = ""
    defined_by: str = ""

    @property
    def full(self) -> str:
        """Module and path, without the package."""
        return f"{self.module}.{self.path}"

    @property
    def takes_java(self) -> bool:
        """Whether a call needs an object of the JVM, or gives one."""
        if self.path.rpartition(".")[2].startswith(("get_java_", "j_")):
            return True
        return any("JavaObject" in p.type or (p.name.startswith("j_") and not p.default) for p in self.parameters or ())


def pyflink_names(root: Path) -> list[Name]:
    """All public names below `root`/pyflink, in the order of their modules.

    Raises:
        FileNotFoundError: there is no PyFlink.
    """
    found: list[Name] = []
    for area in AREAS:
        folder = root / "pyflink" / area
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(root / "pyflink").with_suffix("").parts
            if "tests" not in parts and not parts[-1].startswith("_") or parts[-1] == "__init__":
                module = ".".join(part for part in parts if part != "__init__")
                found += names_of_module(module, ast.parse(path.read_text(encoding="utf-8")), parts[-1] == "__init__")
    return found


def inherited_names(names: list[Name]) -> list[Name]:
    """What classes inherit from other classes of PyFlink, as names of the classes that inherit.

    >>> tree = ast.parse("class A:\\n def f(self): ...\\nclass B(A): ...\\nclass C(B):\\n def f(self): ...")
    >>> [(name.path, name.defined_by) for name in inherited_names(names_of_module("m", tree))]
    [('B.f', 'm.A')]
    """
    classes = {name.full: name for name in names if name.kind == "class"}
    members: dict[str, dict[str, Name]] = {}
    for name in names:
        members.setdefault(name.full.rpartition(".")[0], {})[name.path.rpartition(".")[2]] = name
    inherited = []
    for full, cls in classes.items():
        own = dict(members.get(full, {}))
        above = _classes_above(cls, classes)
        while above:
            base = above.pop(0)
            for last, member in members.get(base.full, {}).items():
                if last not in own and member.kind != "class":
                    own[last] = member
                    path = f"{cls.path}.{last}"
                    inherited.append(replace(member, module=cls.module, path=path, defined_by=base.full))
            above = [*_classes_above(base, classes), *above]
    return inherited


def _classes_above(cls: Name, classes: dict[str, Name]) -> list[Name]:
    """The bases of a class that are PyFlink's: of its own class body or module, else the only one of that name."""
    within = cls.path.rpartition(".")[0]
    above = []
    for base in cls.bases:
        near = [f"{cls.module}.{within}.{base}" if within else f"{cls.module}.{base}", f"{cls.module}.{base}"]
        there = [classes[full] for full in near if full in classes and full != cls.full]
        there = there or [other for full, other in classes.items() if other.path == base and full != cls.full]
        above += there[:1]
    return above


def names_of_module(module: str, tree: ast.Module, is_package: bool = False) -> list[Name]:
    """The public names that a module defines, or passes on."""
    listed = _listed(tree)
    found: dict[str, Name] = {}
    for statement in tree.body:
        for name in _names_of_statement(module, statement, "", False):
            found[name.path] = name
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("pyflink"):
            for alias in statement.names:
                shown = alias.asname or alias.name
                if _is_public(shown) and (is_package or shown in (listed or ())):
                    found[shown] = Name(module, shown, "export")
    for shown in _installed(tree):
        found[shown] = Name(module, shown, "export")
    if listed is None:
        return list(found.values())
    return [replace(name, exported=path.partition(".")[0] in listed) for path, name in found.items()]


def _names_of_statement(module: str, node: ast.stmt, within: str, of_enum: bool) -> Iterator[Name]:
    if isinstance(node, ast.ClassDef) and _is_public(node.name):
        yield from _names_of_class(module, node, within)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_public(node.name):
        marks = {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}
        if not marks & {"setter", "deleter"}:
            kinds = [k for k in ("staticmethod", "classmethod", "property") if k in marks]
            kind = kinds[0] if kinds else "method" if within else "function"
            taken = _parameters(node.args, bound=bool(within) and kind != "staticmethod")
            overridden = bool(marks & {"abstractmethod", "abstractproperty"})
            parameters, returns = None if kind == "property" else taken, _text(node.returns)
            yield Name(module, within + node.name, kind, parameters, overridden, returns=returns)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and not _is_type_variable(node.value):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and _is_public(target.id):
                yield Name(module, within + target.id, "member" if of_enum else "constant")


def _names_of_class(module: str, node: ast.ClassDef, within: str) -> Iterator[Name]:
    path = within + node.name
    constructor = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    taken = None if constructor is None else _parameters(constructor.args, bound=True)
    bases = tuple(ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases)
    held = [
        name for n in node.body for name in _names_of_statement(module, n, f"{path}.", bool(ENUMS.intersection(bases)))
    ]
    wanted = frozenset(name.path.rpartition(".")[2] for name in held if name.overridden)
    subscripted = ("Generic",) if any(isinstance(base, ast.Subscript) for base in node.bases) else ()
    yield Name(module, path, "class", taken, bases=(*bases, *subscripted), wanted=wanted)
    yield from held
    for attribute in sorted(attributes_set(node)):
        if all(name.path != f"{path}.{attribute}" for name in held):
            yield Name(module, f"{path}.{attribute}", "attribute")


def _parameters(arguments: ast.arguments, bound: bool) -> tuple[Parameter, ...]:
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [""] * (len(plain) - len(arguments.defaults)) + [ast.unparse(d) for d in arguments.defaults]
    taken = [Parameter(a.arg, d, type=_text(a.annotation)) for a, d in zip(plain, defaults, strict=True)][bound:]
    if arguments.vararg:
        taken.append(Parameter(arguments.vararg.arg, stars="*"))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        taken.append(Parameter(argument.arg, _text(default), keyword_only=True, type=_text(argument.annotation)))
    if arguments.kwarg:
        taken.append(Parameter(arguments.kwarg.arg, stars="**"))
    return tuple(taken)


def attributes_set(function: ast.AST | None) -> set[str]:
    """The public `x` of every `self.x = ...` in a function or class."""
    if function is None:
        return set()
    stored = (n for n in _nodes_within(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self" and _is_public(n.attr)}


def _nodes_within(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below a node but those of classes within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.ClassDef):
            yield child
            yield from _nodes_within(child)


def _installed(tree: ast.Module) -> Iterator[str]:
    """The names that a package's `_install` puts into it by `setattr`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and len(node.args) == 3:
            if isinstance(node.args[1], ast.Constant):
                yield str(node.args[1].value)


def _listed(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


def _is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in {"TypeVar", "NewType"}


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _text(node: ast.AST | None) -> str:
    return "" if node is None else ast.unparse(node)
