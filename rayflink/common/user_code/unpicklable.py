"""The value of a function that cannot be sent to another process, and the way there: function, variable, element."""

from __future__ import annotations

import dis
import functools
import io
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

import cloudpickle

from ..errors import described

_DEEPEST = 30
_OURS = "rayflink."


def cause(value: object, error: Exception) -> str:
    """Return the way to the value that fails, its type and its error: ``scaled -> global LOCK, a lock: ...``."""
    way: list[str] = []
    seen: set[int] = set()
    while len(seen) < _DEEPEST:
        seen.add(id(value))
        failing_part = _failing_part(value, seen)
        if failing_part is None:
            break
        name, value, error = failing_part
        if name:
            way.append(name)
    if not way:
        return described(error)
    return f"{' -> '.join(way)}, a {type(value).__qualname__}: {described(error)}"


def failure_of(value: object) -> Exception | None:
    """Return the error that pickling it by itself raises."""
    try:
        cloudpickle.Pickler(io.BytesIO(), protocol=5).dump(value)
    except Exception as error:  # __reduce__ of a user's class may raise anything
        return error
    return None


def _failing_part(value: object, seen: set[int]) -> tuple[str, Any, Exception] | None:
    """Return name, value and error of the first part that fails by itself; the name is empty inside our own objects."""
    if isinstance(value, (list, tuple, set, frozenset)):
        items = list(value)
        index = _failing_index(items)
        parts = iter([(f"[{index}]" if isinstance(value, list) else "", items[index])] if index is not None else [])
    elif isinstance(value, Mapping):
        pairs = list(value.items())
        index = _failing_index(pairs)
        parts = iter([(f"[{pairs[index][0]!r}]", pairs[index][1])] if index is not None else [])
    else:
        parts = _parts(value)
    for name, part in parts:
        failure = None if id(part) in seen else failure_of(part)
        if failure is not None:
            return name, part, failure
    return None


def _failing_index(items: Sequence[Any]) -> int | None:
    """Find the index by halving: a pickle of each element by itself would take long where there are many."""
    start, end = 0, len(items)
    while end - start > 1:
        middle = (start + end) // 2
        start, end = (start, middle) if failure_of(items[start:middle]) is not None else (middle, end)
    return start if start < end and failure_of(items[start]) is not None else None


def _parts(value: object) -> Iterator[tuple[str, Any]]:
    """Return the parts that are pickled with an object that is no collection."""
    if isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, MethodType):
        yield "", value.__self__
        yield "", value.__func__
    elif isinstance(value, functools.partial):
        yield "", value.func
        yield "", value.args
        yield "", value.keywords
    elif isinstance(value, (staticmethod, classmethod)):
        yield "", value.__func__
    elif isinstance(value, type):
        for name, member in vars(value).items():
            shown = isinstance(member, (FunctionType, staticmethod, classmethod))
            yield "" if shown else f"{value.__qualname__}.{name}", member
    else:
        ours = type(value).__module__.startswith(_OURS)
        for name, attribute in _attributes(value):
            yield "" if ours else f"{type(value).__qualname__}.{name}", attribute
        yield "", type(value)


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    where = function.__qualname__
    for name in _globals(function.__code__):
        if name in function.__globals__:
            yield f"{where} -> global {name}", function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{where} -> variable {name}", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield f"{where} -> a default", function.__defaults__
    yield f"{where} -> a default", function.__kwdefaults__
    for name, attribute in vars(function).items():
        yield f"{where}.{name}", attribute


def _globals(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:
            yield name, getattr(value, name, None)
