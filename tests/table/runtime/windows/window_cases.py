"""Words for tests of window aggregation: rows, aggregations, and a slow model that goes row by row."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.datastream.streams.selectors import NamedField, NamedFields
from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind, result_type
from rayflink.table.runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from rayflink.table.types import DataType, DataTypes
from rayflink.testing.elements import Columns, columns

ROWS = DataTypes.ROW(
    list(
        zip(
            ("word", "n", "ts", "ok"),
            (DataTypes.STRING(), DataTypes.BIGINT(), DataTypes.TIMESTAMP(3), DataTypes.BOOLEAN()),
            strict=True,
        )
    )
)
WORD, N, TS, OK = range(4)
SIZE = 10


def schema_of(row: DataType) -> pa.Schema:
    return pa.schema([one.type.to_arrow_field(one.name) for one in row.fields])


def rows(*values: tuple[Any, ...], of: DataType = ROWS) -> Columns:
    """Rows as columns; those that are shorter end with nulls."""
    schema = schema_of(of)
    whole = [(*value, *(None,) * (len(schema) - len(value))) for value in values]
    data = [pa.array([value[at] for value in whole], kind) for at, kind in enumerate(schema.types)]
    return columns(ArrowBatch(pa.RecordBatch.from_arrays(data, schema=schema)))


def aggregate(name: str, argument: int | None = None, of: DataType = ROWS, **how: Any) -> Aggregate:
    kind = AggregateKind(name)
    given = None if argument is None else of.fields[argument].type
    return Aggregate(kind, argument, result_type(kind, given, how.get("filter") is not None), **how)


def tumble(size_ms: int = SIZE, **how: Any) -> WindowSpec:
    return WindowSpec(WindowKind.TUMBLE, size_ms=size_ms, time_column=TS, **how)


def hop(size_ms: int = 30, slide_ms: int = 10, **how: Any) -> WindowSpec:
    return WindowSpec(WindowKind.HOP, size_ms=size_ms, slide_ms=slide_ms, time_column=TS, **how)


def cumulate(size_ms: int = 30, step_ms: int = 10, **how: Any) -> WindowSpec:
    return WindowSpec(WindowKind.CUMULATE, size_ms=size_ms, slide_ms=step_ms, time_column=TS, **how)


def session(gap_ms: int = 5, **how: Any) -> WindowSpec:
    return WindowSpec(WindowKind.SESSION, gap_ms=gap_ms, time_column=TS, **how)


def by_word(window: WindowSpec, *aggregates: Aggregate, keys: Sequence[int] = (WORD,)) -> WindowAggregation:
    return WindowAggregation(ROWS, tuple(keys), tuple(aggregates), window)


def key_of(aggregation: WindowAggregation) -> Any:
    """The selector that deals rows of the input as partial rows are dealt."""
    names = [aggregation.input.fields[key].name for key in aggregation.keys]
    return NamedField(*names) if len(names) == 1 else NamedFields(*names)


# the model


def windows_of(spec: WindowSpec, time: int) -> list[tuple[int, int]]:
    """All windows that have a time: (start, end)."""
    if spec.kind is WindowKind.CUMULATE:
        start = (time - spec.offset_ms) // spec.size_ms * spec.size_ms + spec.offset_ms
        ends = range(start + spec.slide_ms, start + spec.size_ms + 1, spec.slide_ms)
        return [(start, end) for end in ends if end > time]
    step = spec.slide_ms or spec.size_ms
    last = (time - spec.offset_ms) // step * step + spec.offset_ms
    return [(at, at + spec.size_ms) for at in range(last, time - spec.size_ms, -step)][::-1]


@dataclass
class Model:
    """A window aggregation row by row, with contents as lists of rows.

    Args:
        spec: windows in UTC that are not sessions.
        keys: columns of the key.
    """

    spec: WindowSpec
    keys: Sequence[int] = (WORD,)
    late: int = 0
    watermark: int = -(2**63)
    open: dict[tuple[int, int], dict[Any, list[tuple[Any, ...]]]] = field(default_factory=dict)

    def add(self, row: tuple[Any, ...]) -> None:
        time = row[TS]
        windows = windows_of(self.spec, time)
        live = [window for window in windows if window[1] - 1 > self.watermark]
        self.late += not live
        key = tuple(row[at] for at in self.keys)
        for window in live:
            self.open.setdefault(window, {}).setdefault(key, []).append(row)

    def advance(self, watermark: int) -> Iterable[tuple[tuple[int, int], Any, list[tuple[Any, ...]]]]:
        """(window, key, rows) of what fires."""
        self.watermark = max(watermark, self.watermark)
        for window in sorted(self.open, key=lambda window: (window[1], window[0])):
            if window[1] - 1 <= self.watermark:
                for key, held in self.open.pop(window).items():
                    yield window, key, held


class SessionModel:
    """Sessions row by row; arguments and methods as of `Model`."""

    def __init__(self, spec: WindowSpec, keys: Sequence[int] = (WORD,)) -> None:
        self.spec, self.keys, self.late, self.watermark = spec, keys, 0, -(2**63)
        self.arrived = 0
        self.open: dict[Any, list[tuple[int, int, list[Any]]]] = {}

    def add(self, row: tuple[Any, ...]) -> None:
        start, end = row[TS], row[TS] + self.spec.gap_ms
        held = self.open.setdefault(tuple(row[at] for at in self.keys), [])
        met = [one for one in held if one[0] <= end and start <= one[1]]
        start, end = min([start, *(one[0] for one in met)]), max([end, *(one[1] for one in met)])
        self.arrived += 1
        if end - 1 <= self.watermark:
            self.late += 1
            return
        for one in met:
            held.remove(one)
        held.append((start, end, sorted([(self.arrived, row), *(entry for one in met for entry in one[2])])))

    def advance(self, watermark: int) -> Iterable[tuple[tuple[int, int], Any, list[tuple[Any, ...]]]]:
        self.watermark = max(watermark, self.watermark)
        fired = []
        for key, held in self.open.items():
            fired += [(one, key) for one in held if one[1] - 1 <= self.watermark]
            held[:] = [one for one in held if one[1] - 1 > self.watermark]
        fired.sort(key=lambda one: (one[0][1], one[0][2][0][0]))
        return [((one[0], one[1]), key, [row for _, row in one[2]]) for one, key in fired]


def value_of(one: Aggregate, held: Sequence[tuple[Any, ...]]) -> Any:
    """An aggregate of rows, in the order in which they came."""
    chosen = [row for row in held if one.filter is None or row[one.filter] is True]
    if one.argument is None:
        return len(chosen)
    name = one.kind.value
    values = [row[one.argument] for row in chosen if row[one.argument] is not None or name == "ARRAY_AGG"]
    if one.distinct:
        values = list(dict.fromkeys(values))
    if name == "COUNT":
        return len(values)
    if name == "COLLECT":
        return sorted(Counter(values).items())
    if not values:
        return None
    if name in ("MIN", "MAX", "SUM"):
        return {"MIN": min, "MAX": max, "SUM": sum}[name](values)
    if name == "AVG":
        return abs(sum(values)) // len(values) * (1 if sum(values) >= 0 else -1)
    if name == "ARRAY_AGG":
        return values
    if name == "LISTAGG":
        return one.separator.join(values)
    if name in ("FIRST_VALUE", "LAST_VALUE"):
        return values[0 if name == "FIRST_VALUE" else -1]
    moment = {"VAR_POP": statistics.pvariance, "STDDEV_POP": statistics.pstdev}[name]
    return math.trunc(moment(map(Fraction, values)))
