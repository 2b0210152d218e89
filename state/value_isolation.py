"""Isolation of values in state: the stored object is never the one that user code holds.

A backend that serialises gives every reader a fresh object: changing one in place without `update()` changes nothing.
A backend that keeps objects must show the same, so it copies what can be changed, and shares what cannot.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import fractions
import ipaddress
import pathlib
import re
import types
import uuid
import zoneinfo
from enum import Enum
from typing import TypeVar

T = TypeVar("T")

IMMUTABLE_TYPES: frozenset[type] = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented),
        datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, zoneinfo.ZoneInfo,
        decimal.Decimal, fractions.Fraction, uuid.UUID, re.Pattern, re.Match,
        pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()),
        ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
        types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type,
    }
)  # fmt: skip
"""Types whose values hold no mutable part, nor records in them; exactly these, for a subclass may carry attributes."""

_verdicts: dict[type, bool] = dict.fromkeys(IMMUTABLE_TYPES, True)


def isolated(value: T) -> T:
    """Return `value` itself where it is immutable, else a deep copy.

    >>> name, rows = ("a", 1), ("a", [1])
    >>> isolated(name) is name, isolated(rows) is rows
    (True, False)
    """
    if is_immutable(value):
        return value
    try:
        return copy.deepcopy(value)
    except TypeError as error:
        remedy = "keep plain data, and make what does not copy in open()"
        raise TypeError(f"a value of type {type(value).__name__} cannot be kept: {error}; {remedy}") from error


def is_immutable(value: object) -> bool:
    """Return whether `value` is of an immutable type, or a tuple or frozenset of such values."""
    cls = value.__class__
    if cls in IMMUTABLE_TYPES:
        return True
    if cls is tuple or cls is frozenset:
        for item in value:  # type: ignore[attr-defined]
            if item.__class__ not in IMMUTABLE_TYPES and not is_immutable(item):
                return False
        return True
    return is_immutable_type(type(value))


def is_immutable_type(kind: type) -> bool:
    """Return True for exact types whose values cannot change and contain nothing that can: int, but not tuple."""
    verdict = _verdicts.get(kind)
    if verdict is None:
        verdict = _verdicts[kind] = _judge(kind)
    return verdict


def _judge(kind: type) -> bool:
    if issubclass(kind, (Enum, type)):
        return True
    module = kind.__module__.partition(".")[0]
    if module == "numpy":
        return any(base.__name__ == "generic" for base in kind.__mro__) and kind.__name__ not in ("void", "object_")
    return module == "pyarrow" and kind.__name__ not in ("Buffer", "MutableBuffer", "Tensor")
