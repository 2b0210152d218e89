"""A copy of a user's function with all that it holds, as if it had travelled to a process of its own.

Classes, modules and functions that hold nothing are not copied: there is one of each in a process; nor are columns of
Arrow, which cannot be changed. What a closure has captured, an instance's attributes, the object of a bound method and
default arguments are.
"""

from __future__ import annotations

import io
import pickle
import sys
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import cloudpickle

T = TypeVar("T")

_SHARED = (type, ModuleType, BuiltinFunctionType)


def own_copy(value: T) -> T:
    """Return a copy that shares nothing with `value` that either could change.

    >>> seen = []
    >>> def remember(n): seen.append(n); return n
    >>> own_copy(remember) is remember  # a global: there is one in a process
    True
    >>> class Counter:
    ...     def __init__(self): self.seen = []
    ...     def call(self, n): self.seen.append(n)
    >>> counter = Counter()
    >>> own_copy(counter.call)(5), counter.seen
    (None, [])

    Raises:
        Exception: whatever an object that refuses to be copied raises, TypeError as a rule.
    """
    file = io.BytesIO()
    shared: list[Any] = []
    _Pickler(file, shared).dump(value)
    file.seek(0)
    copied: T = _Unpickler(file, shared).load()
    return copied


class _Original:
    """Stands for a function itself, whose copy is being made."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file, protocol=5)
        self._shared = shared

    def persistent_id(self, obj: object) -> int | None:
        if isinstance(obj, _Original):
            self._shared.append(obj.function)
        elif isinstance(obj, _SHARED) or _is_columns(obj) or (type(obj) is FunctionType and not _holds_anything(obj)):
            self._shared.append(obj)
        else:
            return None
        return len(self._shared) - 1

    def reducer_override(self, obj: object) -> Any:
        if type(obj) is FunctionType:
            cells = obj.__closure__ or ()
            contents = [[cell.cell_contents] if _is_filled(cell) else [] for cell in cells]
            state = (obj.__defaults__, obj.__kwdefaults__, obj.__dict__, contents)
            return _function_like, (_Original(obj), cells), state, None, None, _fill
        if isinstance(obj, CellType):
            return CellType, ()
        if isinstance(obj, MethodType):
            return MethodType, (obj.__func__, obj.__self__)
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, pid: Any) -> Any:
        return self._shared[pid]


def _is_columns(obj: object) -> bool:
    arrow = sys.modules.get("pyarrow")  # who has columns has imported it
    if arrow is None:
        return False
    try:
        kinds = (arrow.RecordBatch, arrow.Table, arrow.Array, arrow.ChunkedArray)
    except AttributeError:  # another thread is importing it, so there are no columns yet
        return False
    return isinstance(obj, kinds)


def _holds_anything(function: FunctionType) -> bool:
    return bool(function.__closure__ or function.__defaults__ or function.__kwdefaults__ or function.__dict__)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name of the enclosing function that has no value yet
        return False


def _function_like(original: FunctionType, cells: tuple[CellType, ...]) -> FunctionType:
    copied = FunctionType(original.__code__, original.__globals__, original.__name__, None, cells)
    for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
        setattr(copied, name, getattr(original, name))
    return copied


def _fill(function: FunctionType, state: tuple[Any, ...]) -> None:
    function.__defaults__, function.__kwdefaults__, attributes, contents = state
    function.__dict__.update(attributes)
    for cell, content in zip(function.__closure__ or (), contents, strict=True):
        if content:
            cell.cell_contents = content[0]


__all__ = ["own_copy"]
