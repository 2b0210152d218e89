"""Values on their way into and out of state: what is stored is never the object user code goes on holding.

A backend that serialises gives every reader a fresh object: changing one in place without `update()` changes nothing.
A backend that keeps objects must show the same, so it copies what can be changed, and shares what cannot.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import uuid
from typing import TypeVar

T = TypeVar("T")

IMMUTABLE_TYPES: frozenset[type] = frozenset(
    {
        int, float, complex, bool, str, bytes, type(None), type(...), range, decimal.Decimal, uuid.UUID,
        datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone,
    }
)  # fmt: skip
"""Types whose instances nobody can change; exactly these classes, for a subclass may carry attributes."""


def isolated(value: T) -> T:
    """`value` itself where nobody can change it, else a deep copy.

    >>> name, rows = ("a", 1), ("a", [1])
    >>> isolated(name) is name, isolated(rows) is rows
    (True, False)
    """
    return value if is_immutable(value) else copy.deepcopy(value)


def is_immutable(value: object) -> bool:
    """Whether `value` is of an immutable type, or a tuple or frozenset of such values."""
    cls = value.__class__
    if cls in IMMUTABLE_TYPES:
        return True
    if cls is tuple or cls is frozenset:
        for item in value:  # type: ignore[attr-defined]
            if item.__class__ not in IMMUTABLE_TYPES and not is_immutable(item):
                return False
        return True
    return False
