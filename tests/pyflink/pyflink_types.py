"""Annotations of PyFlink against rayflink's: what PyFlink says it takes is taken here, what it returns is returned.

PyFlink's annotations are text; its names stand for classes of rayflink of the same name. rayflink's are evaluated in
their module, with what that imports for type checkers alone. Annotations that cannot be resolved say nothing.
"""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
import datetime
import decimal
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

TAKES = {
    bool: (int, float),
    int: (float,),
    bytearray: (bytes,),
    tuple: (collections.abc.Sequence,),
}
"""Built-in type -> types that take its values too, beside those above it."""
WORDS: dict[str, type] = {
    "List": list, "Tuple": tuple, "Dict": dict, "Set": set, "Callable": collections.abc.Callable,
    "Iterable": collections.abc.Iterable, "Iterator": collections.abc.Iterator, "Type": type,
    "Decimal": decimal.Decimal, "timedelta": datetime.timedelta, "None": type(None),
}  # fmt: skip
"""Name in PyFlink's annotations -> type."""
BUILT_IN = ("bool", "int", "float", "str", "bytes", "bytearray", "list", "tuple", "set", "dict", "object")

Lookup = Callable[[str], Sequence[type]]
"""Name of a class of PyFlink -> the classes of rayflink with that name."""


def alternatives(annotation: str) -> set[str]:
    """The types between which an annotation of PyFlink's chooses, without their modules and parameters.

    >>> sorted(alternatives("Optional[Union[List[str], 'Row']]"))
    ['List', 'None', 'Row']
    """
    return _alternatives(ast.parse(annotation, mode="eval").body)


def _alternatives(node: ast.expr) -> set[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _alternatives(node.left) | _alternatives(node.right)
    if isinstance(node, ast.Constant):
        return alternatives(node.value) if isinstance(node.value, str) else {str(node.value)}
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value).rpartition(".")[2]
        if name == "Optional":
            return _alternatives(node.slice) | {"None"}
        if name == "Union":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return set().union(*map(_alternatives, parts))
        return {name}
    return {ast.unparse(node).rpartition(".")[2]}


def types_of(annotation: Any, function: Any) -> set[Any]:
    """The types between which an annotation of rayflink's chooses; empty where it cannot be resolved."""
    if annotation is inspect.Parameter.empty:
        return set()
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, {**_imports_for_types(function.__module__), **function.__globals__})
        except (NameError, TypeError, AttributeError, SyntaxError):
            return set()
    return set(_members(annotation))


def _members(annotation: Any) -> Iterator[Any]:
    if annotation is None:
        yield type(None)
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _members(member)
    elif isinstance(annotation, (str, typing.ForwardRef)):
        yield Any  # a name within an alias
    else:
        yield typing.get_origin(annotation) or annotation


@cache
def _imports_for_types(module: str | None) -> dict[str, Any]:
    """The names that a module imports for type checkers alone."""
    loaded = sys.modules.get(module)
    if loaded is None or not getattr(loaded, "__file__", None):
        return {}  # it has no source
    names: dict[str, Any] = {}
    tree = ast.parse(inspect.getsource(loaded))
    package = module if hasattr(loaded, "__path__") else module.rpartition(".")[0]
    for node in (n for test in tree.body if isinstance(test, ast.If) for n in ast.walk(test)):
        if isinstance(node, ast.ImportFrom):
            source = import_module("." * node.level + (node.module or ""), package)
            names |= {each.asname or each.name: getattr(source, each.name, Any) for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {each.asname or each.name: import_module(each.name) for each in node.names}
    return names


def _is_open(kind: Any) -> bool:
    """Whether values of any type are of this one, or nothing is known of it."""
    if kind in (Any, object) or not isinstance(kind, type):
        return True
    return bool(getattr(kind, "_is_protocol", False))


def _takes(here: Any, there: type) -> bool:
    return _is_open(here) or issubclass(there, (here, *_also(there, here)))


def _also(there: type, here: type) -> tuple[type, ...]:
    return (there,) if any(issubclass(wide, here) for wide in TAKES.get(there, ())) else ()


def _named(name: str, lookup: Lookup) -> Sequence[type]:
    if name in BUILT_IN:
        return [getattr(builtins, name)]
    return [WORDS[name]] if name in WORDS else lookup(name)


def not_taken(there: str, here: set[Any], lookup: Lookup = lambda name: ()) -> list[str]:
    """Types that PyFlink's annotation of a parameter has, whose values rayflink's does not take.

    >>> not_taken("Union[int, str]", {int}), not_taken("List[str]", {collections.abc.Sequence})
    (['str'], [])
    """
    if not there or not here:
        return []
    names = sorted(alternatives(there) - {"None", "object"})
    return [name for name in names if (known := _named(name, lookup)) and not any(
        _takes(kind, wanted) for kind in here for wanted in known
    )]  # fmt: skip


def not_returned(there: str, here: set[Any], lookup: Lookup = lambda name: ()) -> list[str]:
    """Types that rayflink's annotation of a result has, and PyFlink's has not; None is often missing there.

    >>> not_returned("List[str]", {dict}), not_returned("int", {bool}), not_returned("str", {str, type(None)})
    (['dict'], [], [])
    """
    if there in ("", "None") or not here:
        return []
    wanted = [_named(name, lookup) for name in alternatives(there)]
    if not all(wanted) or any(kind is object for known in wanted for kind in known):
        return []
    known = tuple(kind for kinds in wanted for kind in kinds)
    return sorted(kind.__name__ for kind in here if not _is_open(kind) and not issubclass(kind, (*known, type(None))))


__all__ = ["alternatives", "not_returned", "not_taken", "types_of"]
