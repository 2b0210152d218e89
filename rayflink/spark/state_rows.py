"""Rows of DataFrames as keyed state: each is sent to its key group, and a key group's rows become its content.

What stands here runs in Spark's Python workers, and needs no Spark.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import RayflinkError
from rayflink.state.descriptors import StateDescriptor
from rayflink.state.errors import SerializationError, StateError
from rayflink.state.group_content import Content
from rayflink.state.handles import convert_of
from rayflink.state.keys import canonical_key
from rayflink.state.keys.key_columns import hash_keys
from rayflink.state.keys.key_groups import key_groups_of
from rayflink.state.schema.state_summary import SAMPLES, StateSummary, summary_of
from rayflink.state_processor.rows import EXPIRING, TIMERS, StateRow, stored_rows
from rayflink.state_processor.tables import Column, rows_of

if TYPE_CHECKING:
    import pyarrow

_GROUP_BITS = 15
PROBLEM = -1
"""The place of a row that is an error: it comes before all others."""
PLACED = "place int, state int, row binary"
"""Rows on their way to their key group."""


class DuplicateRowError(StateError):
    """A DataFrame has several rows for one value of a state, and nothing says which counts.

    Args:
        state: its name.
        place: whose value it is: the key, and the window or the key of the map.
        actual: two of the values.
    """

    def __init__(self, state: str, place: str, actual: str) -> None:
        super().__init__(state, place, actual)
        self.state, self.place, self.actual = state, place, actual

    def __str__(self) -> str:
        return (
            f"state {self.state!r} is given several rows for {self.place}: found {self.actual}, wanted one; rows of a "
            "DataFrame have no order: name the column by which the last counts, as in with_state(..., order_by='at'), "
            "or aggregate them before"
        )


@dataclass(frozen=True)
class GivenState:
    """A description of a state to be made of the rows of a DataFrame.

    Args:
        operator: number of the operator in the savepoint.
        descriptor: of the state; `TimersDescriptor` of timers.
        key, value: the columns, as in `Savepoint.with_state`.
        order_by: columns by which the rows of one key are ordered.
        max_parallelism: key groups of the operator.
        now_ms: the last access of rows that tell none.
    """

    operator: int
    descriptor: StateDescriptor
    key: Column
    value: Column
    order_by: tuple[str, ...]
    max_parallelism: int
    now_ms: int

    @property
    def expires(self) -> bool:
        """Return whether the state has a time to live."""
        return self.descriptor.expiry is not None

    def summary(self, rows: Iterable[StateRow] = ()) -> StateSummary:
        """Return the savepoint's summary of the state, derived from some of its rows."""
        seen = () if self.descriptor.kind == TIMERS else (row.value for row in islice(rows, SAMPLES))
        return summary_of(self.descriptor, self.descriptor.stored_kind, seen)

    def rows(self, batch: pyarrow.RecordBatch) -> Iterator[StateRow]:
        """Yield its rows in a batch.

        Raises:
            ColumnError: a column is missing.
        """
        import pyarrow as pa

        convert, where = convert_of(self.descriptor.type_info), f"state {self.descriptor.name!r}"
        for row in rows_of(pa.Table.from_batches([batch]), self.key, self.value, self.summary()):
            if self.expires and row.last_access is None:
                row = row._replace(last_access=self.now_ms)
            yield row if convert is None else row._replace(value=convert(row.value, where))


def placed(batches: Iterable[pyarrow.RecordBatch], number: int, state: GivenState) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a DataFrame, each as bytes with its operator and key group.

    What is wrong with the rows is a row, too, so that Spark does not try it again.

    Args:
        number: of the state.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        try:
            rows = [(row, order) for row, order in zip(state.rows(batch), _orders(batch, state), strict=True)]
            keys = [canonical_key(row.key) for row, _ in rows]
            groups = key_groups_of(hash_keys(keys), state.max_parallelism).tolist()
            packed = [_packed(row, order, state) for row, order in rows]
        except RayflinkError as error:
            yield _batch([PROBLEM], number, [pickle.dumps(error)])
            return
        yield _batch([state.operator << _GROUP_BITS | group for group in groups], number, packed)


def contents(
    batches: Iterable[pyarrow.RecordBatch], states: list[GivenState]
) -> Iterator[tuple[int, int, Content, list[StateSummary]]]:
    """Yield (operator, key group, its content, descriptions of its states) of rows from `placed`, sorted by place.

    Only the rows of one key group are in memory at a time.

    Args:
        states: by number.

    Raises:
        RayflinkError: what `placed` found to be wrong.
        DuplicateRowError: there are several rows for one value.
    """
    for place, parts in groupby(_unpacked(batches), key=itemgetter(0)):
        rows_by_state: dict[int, list[tuple[StateRow, Any]]] = {}
        for _, number, row in parts:
            if place == PROBLEM:
                problem: RayflinkError = pickle.loads(row)
                raise problem
            fields, order = pickle.loads(row)
            rows_by_state.setdefault(number, []).append((StateRow(*fields), order))
        content: Content = {"tables": {}, "timers": {}}
        summaries = []
        for number in sorted(rows_by_state):
            state, expires = states[number], states[number].expires
            descriptor = state.descriptor
            try:
                rows = chosen(rows_by_state.pop(number), state)
                stored = stored_rows(rows, descriptor.kind, expires)
            except (TypeError, ValueError) as error:
                raise StateError(f"rows of state {descriptor.name!r} cannot be stored: {error}") from error
            if descriptor.kind == TIMERS:
                content["timers"][descriptor.name] = stored
            else:
                content["tables"][descriptor.name] = (EXPIRING if expires else "") + descriptor.kind, stored
            summaries.append(state.summary(rows))
        yield place >> _GROUP_BITS, place & (1 << _GROUP_BITS) - 1, content, summaries


def chosen(rows: list[tuple[StateRow, Any]], state: GivenState) -> list[StateRow]:
    """Return the rows that count, in the order of their columns of order: of lists all, of others one for each value.

    Args:
        rows: of one key group, and what they are ordered by; sorted in place.

    Raises:
        DuplicateRowError: there are several for a value, and none is the last.
    """
    kind, name = state.descriptor.kind, state.descriptor.name
    if state.order_by:
        rows[:] = sorted(((row, _comparable(order)) for row, order in rows), key=itemgetter(1))
    if kind == "list":
        return [row for row, _ in rows]
    last: dict[Any, tuple[StateRow, Any]] = {}
    tied: dict[Any, tuple[StateRow, StateRow]] = {}
    for row, order in rows:
        what = row.value if kind == TIMERS else row.part
        place = canonical_key(row.key), row.namespace, what
        try:
            before = last.get(place)
        except TypeError as error:
            remedy = "give strings, numbers, or tuples of these"
            raise StateError(
                f"state {name!r} has a key of a map or a namespace {place[1:]!r:.100}; {remedy}"
            ) from error
        if before is not None and before[1] == order:
            tied[place] = before[0], row
        else:
            tied.pop(place, None)
        last[place] = row, order
    if kind != TIMERS:
        for first, second in tied.values():
            parts = {"key": first.key, "namespace": first.namespace, "map key": first.part}
            address = ", ".join(f"{part} {value!r:.100}" for part, value in parts.items() if value is not None)
            raise DuplicateRowError(name, address or "key None", f"{first.value!r:.100} and {second.value!r:.100}")
    return [row for row, _ in last.values()]


def _orders(batch: pyarrow.RecordBatch, state: GivenState) -> Iterable[Any]:
    if not state.order_by:
        return [None] * batch.num_rows
    return zip(*(batch.column(column).to_pylist() for column in state.order_by), strict=True)


def _comparable(order: tuple[Any, ...]) -> tuple[tuple[int, Any], ...]:
    """Return a value that compares like Spark's order: nulls first, NaN last."""
    return tuple(
        (0, 0) if value is None else (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)
        for value in order
    )


def _packed(row: StateRow, order: Any, state: GivenState) -> bytes:
    try:
        return pickle.dumps((tuple(row), order), 5)
    except Exception as error:  # a user's class may raise anything while it is pickled
        problem = (
            f"a value of state {state.descriptor.name!r} of key {row.key!r:.100} ({type(error).__name__}: {error})"
        )
        raise SerializationError("a savepoint", problem, "keep in state only values that can be pickled") from error


def _batch(places: list[int], number: int, rows: list[bytes]) -> pyarrow.RecordBatch:
    import pyarrow as pa

    columns = [pa.array(places, pa.int32()), pa.array([number] * len(rows), pa.int32()), pa.array(rows, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["place", "state", "row"])


def _unpacked(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    for batch in batches:
        rows = batch.column("row")
        numbers = zip(batch.column("place").to_pylist(), batch.column("state").to_pylist(), strict=True)
        for index, (place, number) in enumerate(numbers):
            yield place, number, rows[index].as_py()


__all__ = ["PLACED", "DuplicateRowError", "GivenState", "chosen", "contents", "placed"]
