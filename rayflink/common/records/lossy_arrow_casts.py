"""Values that Arrow would put into a column by cutting off a part of them, without a word."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..errors import shorten

if TYPE_CHECKING:
    import pyarrow

_WHOLE = frozenset({int, type(None)})
_COARSE_US = {"s": 1_000_000, "ms": 1_000}
"""Microseconds in the units of time that are coarser than Python's."""


def refuse_losses(values: Sequence[Any], kind: pyarrow.DataType, path: str) -> None:
    """Check that no value loses a part of itself in a column of a type: 15.1 in int32, microseconds in ms, 5 a.m.

    What Arrow refuses by itself is not looked for.

    >>> import pyarrow
    >>> refuse_losses([[1, 2], [3.5]], pyarrow.list_(pyarrow.int32()), "counts")
    Traceback (most recent call last):
    ...
    ValueError: counts[]: found float 3.5, wanted int32; give whole numbers, or declare a type that has the fraction

    Args:
        path: the field, for the message.

    Raises:
        ValueError: one does; names the field, the value, the type and the remedy.
    """
    import pyarrow

    types = pyarrow.types
    if types.is_integer(kind) or types.is_temporal(kind):
        _refuse_fractions(values, kind, path)
    if types.is_date(kind):
        _refuse_moments(values, kind, path)
    if (types.is_timestamp(kind) or types.is_time32(kind)) and kind.unit in _COARSE_US:
        _refuse_fine_times(values, kind, path)
    elif types.is_struct(kind):
        for index, field in enumerate(kind):
            refuse_losses(_parts(values, field.name, index), field.type, f"{path}.{field.name}")
    elif types.is_map(kind):
        pairs = list(chain.from_iterable(_pairs(value) for value in values))
        refuse_losses([key for key, _ in pairs], kind.key_type, f"{path}.key")
        refuse_losses([item for _, item in pairs], kind.item_type, f"{path}[]")
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        refuse_losses(list(chain.from_iterable(map(_elements, values))), kind.value_type, f"{path}[]")


def _refuse_fractions(values: Sequence[Any], kind: pyarrow.DataType, path: str) -> None:
    kinds = set(map(type, values))
    if kinds <= _WHOLE:
        return
    broken = tuple(python_type for python_type in kinds if _may_be_broken(python_type))
    for value in values if broken else ():
        if isinstance(value, broken):
            remedy = "give whole numbers, or declare a type that has the fraction"
            raise ValueError(f"{path}: found {type(value).__name__} {shorten(value, 80)}, wanted {kind}; {remedy}")


def _may_be_broken(kind: type) -> bool:
    return issubclass(kind, (numbers.Real, Decimal)) and not issubclass(kind, numbers.Integral)


def _refuse_fine_times(values: Sequence[Any], kind: pyarrow.DataType, path: str) -> None:
    coarse_us = _COARSE_US[kind.unit]
    for value in values:
        if isinstance(value, (datetime.datetime, datetime.time)) and value.microsecond % coarse_us:
            remedy = "round it, or declare a finer unit"
            raise ValueError(f"{path}: found {type(value).__name__} {value}, wanted {kind}; {remedy}")


def _refuse_moments(values: Sequence[Any], kind: pyarrow.DataType, path: str) -> None:
    for value in values:
        if isinstance(value, datetime.datetime) and (value.time() != datetime.time.min or value.tzinfo is not None):
            remedy = "give its date(), or declare a type that has the time of day"
            raise ValueError(f"{path}: found {type(value).__name__} {value}, wanted {kind}; {remedy}")


def _parts(values: Iterable[Any], name: str, index: int) -> list[Any]:
    """Return a field of each value; Arrow takes structs as dicts or tuples."""
    parts = []
    for value in values:
        if isinstance(value, dict):
            parts.append(value.get(name))
        elif isinstance(value, tuple) and index < len(value):
            parts.append(value[index])
    return parts


def _pairs(value: object) -> Iterable[tuple[Any, Any]]:
    """Return a map's pairs; Arrow takes dicts or pairs."""
    if isinstance(value, dict):
        return value.items()
    return [pair for pair in _elements(value) if isinstance(pair, tuple) and len(pair) == 2]


def _elements(value: object) -> Iterable[Any]:
    """Return a list's elements; an array that holds whole numbers only has none to look at."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") in "biu":
        return ()
    return value if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else ()


__all__ = ["refuse_losses"]
