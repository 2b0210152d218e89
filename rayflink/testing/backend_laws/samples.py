"""Sample keys, windows and functions for the laws."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from rayflink.operators.windows.window import CountWindow, GlobalWindow, TimeWindow, Window

NOON = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)


class Colour(Enum):
    RED = 1
    GREEN = 2


class Level(IntEnum):
    HIGH = 77


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class User:
    name: str
    age: Any
    seen: int = field(default=0, compare=False)


class Point(NamedTuple):
    x: int
    y: int


KEYS: tuple[Any, ...] = (
    None, "", "a", "ab", "a\x00", "a\x00b", "x" * 300, "\u00e4\u20ac\U0001f600", b"", b"a", b"\x00", b"\xff\xff",
    0, 1, -1, 255, 256, 2**63 - 1, -(2**63), 2**63, 2**70 + 1, -(2**70) - 1, 10**400,
    0.5, -0.5, 1e-300, float("inf"), float("-inf"), float("nan"), Decimal("0.1"), Decimal("1E-400"),
    date(2024, 2, 29), datetime(2024, 2, 29, 12), NOON, time(3), timedelta(days=-1), UUID(int=1),
    (), (1,), (1, "a"), ((1,), "a"), (None,), Colour.RED, Colour.GREEN, Right.READ | Right.WRITE,
    User("a", 1), User("a", (1, 2)),
)  # fmt: skip
"""Keys of all kinds, no two of them equal."""

EQUAL_KEYS: tuple[tuple[Any, ...], ...] = (
    (1, True, 1.0, Decimal("1.0"), np.int64(1)),
    (0, False, 0.0, -0.0),
    (float("nan"), float("-nan"), Decimal("NaN"), np.float64("nan")),
    (2**70, float(2**70), Decimal(2**70)),
    ("m", np.str_("m")),
    (77, Level.HIGH),
    ((1, 2), Point(1, 2), (True, 2.0)),
    (NOON, NOON.astimezone(timezone(timedelta(hours=2)))),
    (User("a", 1), User("a", True, seen=9)),
)
"""Keys that are one key, in each tuple."""


class Shift(Window):
    """A window of a user's own."""

    def __init__(self, place: str, crew: str) -> None:
        self.place, self.crew = place, crew

    def max_timestamp(self) -> int:
        """Return the greatest timestamp that belongs to the window."""
        return len(self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shift) and (other.place, other.crew) == (self.place, self.crew)

    def __hash__(self) -> int:
        return hash((self.place, self.crew))

    def __repr__(self) -> str:
        return f"Shift({self.place!r}, {self.crew!r})"


def namespaces() -> list[Any]:
    """Return namespaces of all kinds, no two of them equal; new objects at each call, so that equality alone can
    count.
    """
    north = "".join(("nor", "th"))
    return [
        None, TimeWindow(0, 10), TimeWindow(5, 15), TimeWindow(-10, 0), GlobalWindow(), CountWindow(3), CountWindow(4),
        Shift("south", "a"), Shift(north, north), Shift("north", "".join(("no", "rth", "b"))), "text", ("of", 1),
    ]  # fmt: skip


class Gather:
    """An AggregateFunction whose accumulator, the list of values, is changed in place."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return accumulator

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        return a + b


def join(a: list[Any], b: list[Any]) -> list[Any]:
    """Reduce two lists by extending the first, as a function that changes its argument."""
    a.extend(b)
    return a


def add(a: Any, b: Any) -> Any:
    """Reduce two values to their sum."""
    return a + b
