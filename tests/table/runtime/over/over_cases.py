"""Words for tests of functions OVER rows: rows with a time, operators, and a model that looks at each frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from rayflink.common.types import Row
from rayflink.operators.base import Operator
from rayflink.table.plan.over import Frame
from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind
from rayflink.table.runtime.groups.distinct_values import WEIGHT, DistinctValuesOperator
from rayflink.table.runtime.groups.group_changes import GroupSpec, distinct_arguments
from rayflink.table.runtime.over.over_operator import OverOperator
from rayflink.table.runtime.over.over_spec import OverSpec, RowFunction
from rayflink.testing import rec
from rayflink.testing.elements import Columns, Record, columns

from ..groups.group_cases import EVERY, LISTED, ROWS, SCHEMA, value_of

WORD, N, X, D, OK, TS = range(6)
KINDS = (*SCHEMA.types, pa.timestamp("ms"))
NAMES = (*SCHEMA.names, "ts")
INPUT = pa.schema(list(zip(NAMES, KINDS, strict=True)))
Values = tuple[Any, ...]
UNTIL_ROW, ALL_BEFORE = Frame(False, None, 0), Frame(True, None, 0)
EPOCH = datetime(1970, 1, 1)


def row(word: str | None, n: int | None = None, ms: int = 0, x: float | None = None) -> Values:
    return (word, n, x, None, True, EPOCH + timedelta(milliseconds=ms))


def rows(*values: Values) -> Columns:
    data = [pa.array([one[at] for one in values], kind) for at, kind in enumerate(KINDS)]
    return columns(pa.RecordBatch.from_arrays(data, schema=INPUT))


@dataclass(frozen=True)
class Over:
    """Functions OVER rows of `INPUT`.

    Args:
        functions: what is computed.
        frame: the rows of each row.
        keys: numbers of columns.
    """

    functions: tuple[Aggregate | RowFunction, ...]
    frame: Frame = UNTIL_ROW
    keys: tuple[int, ...] = (WORD,)
    is_event_time: bool = True
    ttl_ms: int = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        kinds = [one.result if isinstance(one, RowFunction) else one.result.to_arrow() for one in self.functions]
        return pa.schema([*INPUT, *((f"o{number}", kind) for number, kind in enumerate(kinds))])

    def operators(self) -> list[Operator]:
        """Return the operators of it."""
        spec = OverSpec(
            KINDS, self.keys, ((TS, False, True),), self.frame, self.functions, self.is_event_time, self.ttl_ms, "rows"
        )
        arguments = []
        if self.frame.first is None:
            arguments = distinct_arguments(GroupSpec(KINDS, self.keys, tuple(spec.aggregates)))
        weights = [pa.field(f"{WEIGHT}{number}", pa.int8()) for number in range(sum(map(len, arguments)))]
        over = OverOperator(spec, [*INPUT, *weights], self.schema)
        if not arguments:
            return [over]
        sort = OverOperator(
            OverSpec(KINDS, self.keys, spec.order, self.frame, (), self.is_event_time, 0, "rows"), list(INPUT), INPUT
        )
        distinct = [DistinctValuesOperator(KINDS, self.keys, argument, self.ttl_ms, False, f"{number}")
                    for number, argument in enumerate(arguments)]  # fmt: skip
        return [sort, *distinct, over]

    def out(self, values: Values, *results: Any) -> Record:
        """A row of the result."""
        return rec(Row(*self.schema.names)(*values, *results))


def values_of(output: Iterable[Any]) -> list[Values]:
    """Return the rows among what an operator emitted."""
    return [tuple(one.value) for one in output if isinstance(one, Record)]


@dataclass
class OverModel:
    """Computes functions over rows in lists, each frame by itself."""

    over: Over
    waiting: list[Values] = field(default_factory=list)
    known: dict[Values, list[Values]] = field(default_factory=dict)

    def advance(self, watermark_ms: int) -> Iterator[Values]:
        """Yield the results of the rows up to a time."""
        until = EPOCH + timedelta(milliseconds=watermark_ms)
        due = sorted((one for one in self.waiting if one[TS] <= until), key=lambda one: one[TS])
        self.waiting = [one for one in self.waiting if one[TS] > until]
        places = []
        for one in due:
            of_key = self.known.setdefault(tuple(one[at] for at in self.over.keys), [])
            places.append((of_key, len(of_key)))
            of_key.append(one)
        for one, (of_key, place) in zip(due, places, strict=True):
            yield (*one, *(self._result(function, of_key, place) for function in self.over.functions))

    def _result(self, function: Aggregate | RowFunction, of_key: list[Values], place: int) -> Any:
        frame = self.frame_of(of_key, place)
        if isinstance(function, RowFunction):
            return self._of_place(function, of_key, place, frame)
        if function.filter is not None:
            frame = [one for one in frame if one[function.filter]]
        if function.argument is None:
            return len(frame)
        values = [one[function.argument] for one in frame]
        if function.kind is not AggregateKind.ARRAY_AGG:
            values = [value for value in values if value is not None]
        return value_of(function, values)

    def _of_place(self, function: RowFunction, of_key: list[Values], place: int, frame: list[Values]) -> Any:
        times = [one[TS] for one in of_key]
        number = function.number
        functions: dict[str, Callable[[], Any]] = {
            "ROW_NUMBER": lambda: place + 1,
            "RANK": lambda: times.index(times[place]) + 1,
            "DENSE_RANK": lambda: len(set(times[: place + 1])),
            "LAG": lambda: of_key[place - number][function.argument] if place >= number else
            None if function.default is None else of_key[place][function.default],
            "NTH_VALUE": lambda: frame[number - 1][function.argument] if len(frame) >= number else None,
        }  # fmt: skip
        return functions[function.name]()

    def frame_of(self, of_key: list[Values], place: int) -> list[Values]:
        """Return the rows of a frame."""
        frame = self.over.frame
        if frame.by_rows:
            first = 0 if frame.first is None else max(place + frame.first, 0)
            return of_key[first : max(place + frame.last + 1, 0)]
        low = datetime.min if frame.first is None else of_key[place][TS] + timedelta(milliseconds=frame.first)
        high = of_key[place][TS] + timedelta(milliseconds=frame.last)
        return [one for one in of_key if low <= one[TS] <= high]


def lag(argument: int, number: int = 1, default: int | None = None) -> RowFunction:
    return RowFunction("LAG", KINDS[argument], argument, number, default)


def nth(argument: int, number: int) -> RowFunction:
    return RowFunction("NTH_VALUE", KINDS[argument], argument, number)


RANKS = tuple(RowFunction(name, pa.int64()) for name in ("ROW_NUMBER", "RANK", "DENSE_RANK"))
FUNCTIONS: Sequence[Aggregate | RowFunction] = (*EVERY, *LISTED, *RANKS, lag(N), lag(WORD, 3), lag(X, 2, X))
__all__ = ["FUNCTIONS", "INPUT", "ROWS", "Over", "OverModel", "row", "rows", "values_of"]
