"""Which types have values that never change."""

from __future__ import annotations

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
"""Exact types whose values hold no mutable part, nor records in them."""

_verdicts: dict[type, bool] = dict.fromkeys(IMMUTABLE_TYPES, True)


def is_immutable(kind: type) -> bool:
    """True for exact types whose values cannot change and contain nothing that can; False for tuples and the like."""
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
