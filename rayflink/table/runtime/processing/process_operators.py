"""The operators of process table functions: of rows by themselves, and of the rows of partitions.

Source: apache/flink ProcessRowTableOperator and ProcessSetTableOperator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from rayflink.common.functions.callables import UserFunction
from rayflink.common.records.batches import MIN_TIMESTAMP, Batch, Element, Watermark
from rayflink.common.records.row_kinds import without_kinds
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.event_time.pacing import paced
from rayflink.operators.keyed.keyed_operator import KeyedOperator
from rayflink.operators.user_function import UserCode
from rayflink.state.backend import NO_KEY
from rayflink.state.keys import canonical_key
from rayflink.user_types import UserKey

from ...user_functions.function_classes import FunctionContext
from ..key_columns import columns_key
from ..windows.input_rows import local_ms, rows_in
from .process_calls import FunctionCalls, ProcessCall, rows_of
from .process_spec import ProcessSpec
from .process_states import ProcessStates
from .process_timers import PartitionTimers
from .result_rows import Leading, ResultRows

SLICE_ROWS = 1024
"""Rows whose states are at hand together."""


class ProcessRowOperator(Operator):
    """Calls a function for each row of a table.

    Args:
        spec: of the function.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        self._spec = spec

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._watermark_ms: int | None = None
        self._call = ProcessCall(self._spec, (), lambda: self._watermark_ms)
        self._calls = FunctionCalls(self._spec, self._call)

    def open(self) -> None:
        with UserCode(self.ctx, "open of the function"):
            self._spec.kernel.open(FunctionContext.of(self.ctx))

    def close(self) -> None:
        with UserCode(self.ctx, "close of the function"):
            self._spec.kernel.close()

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        data = rows_in(batch, self._spec.rows[0])
        out = ResultRows(self._spec, _passed_on(self._spec, data, 0))
        with UserCode(self.ctx, self._spec.kernel.name):
            yield from paced(self._results(data, out), out, self.ctx.clock)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._watermark_ms = watermark.timestamp
        return (watermark,)

    def _results(self, data: pa.RecordBatch, out: ResultRows) -> Iterator[None]:
        times = _times(self._spec, data, 0)
        for place, row in enumerate(rows_of(data, self._spec.rows[0].fields)):
            self._call.time_ms = None if times is None else times[place]
            out.add(place, self._calls.eval(0, row, ()), self._call.time_ms)
            yield


class ProcessSetOperator(KeyedOperator):
    """Calls a function for the rows of partitions, in the order in which they come, and for their timers.

    Rows that are late are worked like others, as in Flink; a timer in the past fires with the next watermark.

    Args:
        spec: of the function.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        self._spec, kernel = spec, spec.kernel
        names = [[row.fields[column].name for column in table.partition]
                 for table, row in zip(spec.tables, spec.rows, strict=True)]  # fmt: skip
        function = UserFunction(
            kernel.declaration.function.eval, lambda context: kernel.open(FunctionContext(context)), kernel.close
        )
        super().__init__(columns_key(names[0]), function)

    # life cycle

    def declare_state(self) -> None:
        self._queue = self.backend.timers("process-timers/event")

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        declaration, store = self._spec.kernel.declaration, self.keyed_state
        assert store is not None, "a keyed operator has state"
        self._states = ProcessStates(declaration.states, store, self._spec.ttl_ms, self._spec.kernel.name)
        self._call = ProcessCall(self._spec, self._states.names, self._last_watermark)
        if declaration.has_timers and self._spec.has_time:
            self._call.timers = PartitionTimers(self._queue, store, self.context)
        self._calls = FunctionCalls(self._spec, self._call)

    def _last_watermark(self) -> int | None:
        return None if self.watermark == MIN_TIMESTAMP else self.watermark

    # rows

    def keys_of_input(self, batch: Batch, input_index: int) -> list[UserKey]:
        return self._keys(rows_in(batch, self._spec.rows[input_index]), input_index)

    def _keys(self, data: pa.RecordBatch, table: int) -> list[UserKey]:
        """Return the keys of rows, as the exchange has partitioned them."""
        columns = [data.column(column).to_pylist() for column in self._spec.tables[table].partition]
        if not columns:
            return [()] * data.num_rows
        keys: list[UserKey] = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        canonical = {}
        for key in keys:
            if key not in canonical:
                canonical[key] = canonical_key(key)
        return [canonical[key] for key in keys]

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        rows = rows_in(batch, self._spec.rows[input_index])
        with UserCode(self.ctx, self._spec.kernel.name):
            for first in range(0, rows.num_rows, SLICE_ROWS):
                data = rows.slice(first, SLICE_ROWS)
                out = ResultRows(self._spec, _passed_on(self._spec, data, input_index))
                yield from paced(self._results(data, input_index, out), out, self.ctx.clock)

    def _results(self, data: pa.RecordBatch, table: int, out: ResultRows) -> Iterator[None]:
        times, call, context = _times(self._spec, data, table), self._call, self.context
        rows, evaluate, states_of = rows_of(data, self._spec.rows[table].fields), self._calls.eval, self._states.of
        for place, (key, row) in enumerate(zip(self._keys(data, table), rows, strict=True)):
            context.key = key
            call.time_ms = None if times is None else times[place]
            out.add(place, evaluate(table, row, states_of(key)), call.time_ms)
            if call.cleared:
                self._clear_states(key)
            yield
        yield from self._states.save(self._enter)
        self._enter(NO_KEY)

    def _enter(self, key: UserKey) -> None:
        self.context.key = key

    def _clear_states(self, key: UserKey) -> None:
        self._states.clear(key, self._call.cleared)
        self._call.cleared.clear()

    # timers

    def on_event_time(self, until: int) -> Iterable[Element]:
        if self._call.timers is None:
            return
        keys: list[UserKey] = []
        out = ResultRows(self._spec, lambda places: self._key_columns([keys[place] for place in places]))
        with UserCode(self.ctx, self._spec.kernel.name):
            yield from paced(self._firings(until, keys, out), out, self.ctx.clock)

    def _firings(self, until: int, keys: list[UserKey], out: ResultRows) -> Iterator[None]:
        """Work the timers that are due; `keys` gets the key of each."""
        timers = self._call.timers
        assert timers is not None, "there are timers"
        for time_ms, key, namespace in self._queue.due(until):
            name = namespace if isinstance(namespace, str) else None
            self._enter(key)
            timers.note_firing(time_ms, name)
            self._call.time_ms, self._call.timer = time_ms, name
            out.add(len(keys), self._calls.on_timer(self._states.of(key), time_ms, key), time_ms)
            keys.append(key)
            self._clear_states(key)
            if not len(keys) % SLICE_ROWS:
                yield from self._states.save(self._enter)
            self._call.timer = None
            yield
        yield from self._states.save(self._enter)
        self._enter(NO_KEY)

    def _key_columns(self, keys: Sequence[UserKey]) -> list[pa.Array]:
        """Return the columns of PARTITION BY of each table, for keys."""
        columns: list[pa.Array] = []
        for table in self._spec.tables:
            width = len(table.partition)
            values = [keys] if width == 1 else [[key[place] for key in keys] for place in range(width)]
            first = len(columns)
            columns += [pa.array(column, self._spec.schema.types[first + place])
                        for place, column in enumerate(values[:width])]  # fmt: skip
        return columns


def _times(spec: ProcessSpec, data: pa.RecordBatch, table: int) -> list[int] | None:
    """Return the times of rows in milliseconds; None: the call has no `on_time`."""
    column = spec.tables[table].time
    if column is None:
        return None
    times: list[int] = local_ms(data.column(column), "UTC", data.schema.names[column]).tolist()
    return times


def _passed_on(spec: ProcessSpec, data: pa.RecordBatch, table: int) -> Leading:
    """Return the columns of the rows of calls that are passed on; those of other tables have the same key."""
    plain = without_kinds(data)
    own = spec.tables[table]
    numbers = [column
               for other in spec.tables
               for column in (own.partition if other is not own else own.columns(plain.num_columns))]  # fmt: skip

    def columns(places: Sequence[int]) -> list[pa.Array]:
        taken = pa.array(np.array(places, np.int64))
        return [plain.column(number).take(taken) for number in numbers]

    return columns


__all__ = ["SLICE_ROWS", "ProcessRowOperator", "ProcessSetOperator"]
