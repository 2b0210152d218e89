"""Keys for the tests: classes that may be keys, and strategies that often draw equal keys of different types."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import strategies as st


class Colour(Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(str, Enum):
    METRE = "m"


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class User:
    name: str
    age: Any
    seen: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Device:
    name: str
    age: Any


Point = namedtuple("Point", "x y")

numbers = st.one_of(
    st.integers(-2, 3),
    st.booleans(),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e300, 2.0**63, -(2.0**63), 2.0**70, float("inf"), 0.1]),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**70, 2**70 + 1, 10**300, 10**400]),
    st.sampled_from([Decimal(t) for t in ("0", "-0.00", "1", "1.0", "1E+300", "0.5", "0.10", "0.1", "-0.1", "1E-400")]),
    st.sampled_from([Decimal(2**70), Decimal(0.1), Decimal(1e300), Decimal("Infinity"), Decimal(10**400)]),
    st.sampled_from([Level.LOW, np.int64(1), np.uint8(2), np.float64(0.5), np.float32(0.5), np.bool_(True)]),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, min_value=-(10**40), max_value=10**40),
)
offsets = st.sampled_from(
    [None, timezone.utc, timezone(timedelta(hours=2)), timezone(-timedelta(hours=23, minutes=59))]
)
datetimes = st.builds(
    lambda t, z: t.replace(tzinfo=z), st.sampled_from([datetime.min, datetime(2024, 2, 29, 12)]), offsets
)
datetimes |= st.builds(
    lambda t, h: t + h * timedelta(hours=2), datetimes.filter(lambda t: t.year > 1), st.integers(0, 1)
)
times = st.builds(
    lambda t, z: t.replace(tzinfo=z), st.sampled_from([time(0), time(1), time(3), time(23, 59, 59, 9)]), offsets
)
others = st.one_of(
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["m", "1", "\ud83d\ude00", "\U0001f600", "", "x" * 200, Unit.METRE, np.str_("m")]),
    st.sampled_from([b"", b"m", b"1", np.bytes_(b"m")]),
    st.sampled_from([date(2024, 2, 29), date.min, np.datetime64("2024-02-29"), np.datetime64("2024-02-29T12:00", "s")]),
    datetimes,
    times,
    st.sampled_from([timedelta(0), timedelta.max, timedelta.min, timedelta(days=1), timedelta(hours=24)]),
    st.sampled_from([np.timedelta64(24, "h"), UUID(int=1), UUID(int=2)]),
    st.sampled_from([Colour.RED, Colour.CRIMSON, Colour.GREEN, Right.READ, Right.READ | Right.WRITE]),
)
plain_keys = numbers | others
keys = st.recursive(
    plain_keys,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(User, st.sampled_from("ab"), inner, st.integers(0, 2)),
        st.builds(Device, st.sampled_from("ab"), inner),
    ),
    max_leaves=4,
)
