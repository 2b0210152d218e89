"""Words for tests of joins: rows, joins of them, and slow models that go pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.types import Row
from rayflink.datastream.streams.selectors import NamedField
from rayflink.table.plan.joins import JoinKind
from rayflink.table.plan.typed import Call, Column, Expr, Session, named
from rayflink.table.runtime.joins.interval_bounds import IntervalBounds, SideTime
from rayflink.table.runtime.joins.interval_join import TimeIntervalJoinOperator
from rayflink.table.runtime.joins.join_rows import JoinSide, JoinSpec
from rayflink.table.runtime.joins.window_join import WindowJoinOperator
from rayflink.table.types import DataTypes
from rayflink.testing import rec
from rayflink.testing.elements import Columns, Record, columns

LEFT = pa.schema([("n", pa.int64()), ("word", pa.string()), ("s", pa.timestamp("ms")), ("ts", pa.timestamp("ms"))])
"""`ts` is the time, or the end of the window whose start is `s`."""
RIGHT = pa.schema([("ts0", pa.timestamp("ms")), ("word0", pa.string()), ("s0", pa.timestamp("ms")), ("m", pa.int64())])
BOUNDS = ((2, 3), (2, 0))
BY_WORD = (NamedField("word"), NamedField("word0"))
LESS = Call(DataTypes.BOOLEAN(), named("<"), (Column(DataTypes.BIGINT(), 0, "n"), Column(DataTypes.BIGINT(), 7, "m")))
"""n < m."""


def spec(kind: JoinKind, condition: Expr | None = LESS, nulls_match: bool = False, keyed: bool = True) -> JoinSpec:
    keys = (1,) if keyed else ()
    left, right = JoinSide(LEFT, keys, keys), JoinSide(RIGHT, keys, keys)
    result = LEFT if kind.is_of_left else pa.schema([*LEFT, *RIGHT])
    return JoinSpec(kind, left, right, (nulls_match,) * len(keys), condition, result, Session())


def window_join(kind: JoinKind, **how: Any) -> Any:
    return lambda: WindowJoinOperator(spec(kind, **how), BOUNDS, "UTC")


def interval(lower: int, upper: int, left_shift: int = 0, right_shift: int = 0) -> IntervalBounds:
    return IntervalBounds(SideTime(3, left_shift), SideTime(0, right_shift), lower, upper)


def interval_join(kind: JoinKind, lower: int, upper: int, **how: Any) -> Any:
    return lambda: TimeIntervalJoinOperator(spec(kind, **how), interval(lower, upper), True)


Given = tuple[int | None, str | None, int, int]
"""(number, word, start, end), of either side."""


def left(*values: Given) -> Columns:
    return _columns(LEFT, [(n, word, s, ts) for n, word, s, ts in values])


def right(*values: Given) -> Columns:
    return _columns(RIGHT, [(ts, word, s, m) for m, word, s, ts in values])


def timed(*values: tuple[int | None, str | None, int]) -> Columns:
    """Rows of the left side with their times alone."""
    return left(*((n, word, ts, ts) for n, word, ts in values))


def timed2(*values: tuple[int | None, str | None, int]) -> Columns:
    """Rows of the right side with their times alone."""
    return right(*((m, word, ts, ts) for m, word, ts in values))


def _columns(schema: pa.Schema, values: Sequence[tuple[Any, ...]]) -> Columns:
    data = [pa.array([value[at] for value in values], kind) for at, kind in enumerate(schema.types)]
    return columns(ArrowBatch(pa.RecordBatch.from_arrays(data, schema=schema)))


def pair(one: Given | None, other: Given | None) -> Record:
    """A row of the result."""
    values = [None] * 4 if one is None else [one[0], one[1], ms(one[2]), ms(one[3])]
    values += [None] * 4 if other is None else [ms(other[3]), other[1], ms(other[2]), other[0]]
    return rec(Row(*LEFT.names, *RIGHT.names)(*values))


def alone(one: Given) -> Record:
    """A row of the left side as a result."""
    return rec(Row(*LEFT.names)(one[0], one[1], ms(one[2]), ms(one[3])))


def ms(value: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=value)


def matches(one: Given, other: Given, nulls_match: bool = False, less: bool = True) -> bool:
    """Whether the words are equal, and n < m."""
    equal = one[1] == other[1] and (nulls_match or one[1] is not None)
    is_less = not less or (one[0] is not None and other[0] is not None and one[0] < other[0])
    return equal and is_less


def joined(kind: JoinKind, lefts: Sequence[Given], rights: Sequence[Given], found: Iterable[tuple[int, int]],
           ) -> list[Record]:  # fmt: skip
    """The rows of a join of which these pairs of numbers match."""
    pairs = list(found)
    met, met_right = {one for one, _ in pairs}, {other for _, other in pairs}
    if kind.is_of_left:
        return [alone(one) for at, one in enumerate(lefts) if (at in met) is (kind is JoinKind.SEMI)]
    rows = [pair(lefts[one], rights[other]) for one, other in pairs]
    rows += [pair(one, None) for at, one in enumerate(lefts) if at not in met and kind.keeps_left]
    return rows + [pair(None, one) for at, one in enumerate(rights) if at not in met_right and kind.keeps_right]
