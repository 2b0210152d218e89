"""The operator of functions OVER the rows of a stream up to each row.

In event time rows wait as columns until the watermark has reached them. Those that are due are put into the order of
their keys and times, and each function is computed for all of them at once (`running_results`) from what is stored of
their keys. In processing time rows are worked as they come; frames of a length in time wait until their millisecond is
over, since rows of one millisecond are in the frames of each other.

Source: apache/flink RowTimeRangeBoundedPrecedingFunction and the functions beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers
from rayflink.state.keys.key_columns import hash_columns

from ..aggregates.aggregates import Aggregate
from ..aggregates.own_aggregates import OwnAggregates
from ..aggregates.partial_aggregates import concatenated
from ..groups.group_accumulators import GroupAccumulators
from ..groups.segments import Segments, first_of_runs
from ..groups.table_state import FoundKeys, TableState
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import FrozenFrames, restored_sides
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_table import SWEEP_MS
from ..keyed_state.stored_table import StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from ..keyed_state.waiting_rows import WaitingRows
from ..progress import progress_entry, restored_progress
from ..ranks.ordering import order_numbers, order_of
from ..windows.input_rows import local_ms
from .over_spec import OverSpec, RowFunction
from .running_results import OrderedRows, RowsBefore, RunningAggregates, RunningRanks, RunningResults

if TYPE_CHECKING:
    from .frame_spans import Numbers

BLOCK_ROWS = 1 << 16
"""Rows in a batch of results at most."""
LISTED_ROWS = 512
"""Rows that are worked together, those of one time with them, where each result contains the values of its frame."""
MOST_STORED = 1 << 22
"""Stored rows that are read together, about."""
MOST_SWEEPS = 64
"""Slices of a sweep by event time between two watermarks."""


class RunningFunctions:
    """The functions of an OVER step over a stream, with what is stored of each key.

    Args:
        spec: the functions, at least one.
    """

    def __init__(self, spec: OverSpec) -> None:
        self._functions, frame = spec.functions, spec.frame
        self._parts: list[tuple[list[int], RunningResults]] = []
        """Numbers of the functions, and what computes them."""
        is_bounded, with_peers = frame.first is not None, spec.is_event_time and not frame.by_rows
        aggregates = self._numbers_of(lambda function: isinstance(function, Aggregate))
        ranks = self._numbers_of(lambda function: isinstance(function, RowFunction) and function.argument is None)
        before = self._numbers_of(lambda function: isinstance(function, RowFunction) and function.argument is not None)
        if is_bounded:
            before, aggregates = sorted([*aggregates, *before]), []
        if aggregates:
            self._parts.append((aggregates, RunningAggregates(spec.aggregates, spec.columns, with_peers)))
        if ranks:
            chosen = [function for function in self._functions
                      if isinstance(function, RowFunction) and function.argument is None]  # fmt: skip
            self._parts.append((ranks, RunningRanks(chosen, spec.is_event_time)))
        if before:
            chosen_before = [self._functions[number] for number in before]
            self._parts.append((before, RowsBefore(chosen_before, spec.columns, frame if is_bounded else None)))
        self.is_listed = bool(spec.aggregates) and GroupAccumulators(spec.aggregates, spec.columns, False).is_listed
        """True if a result contains all values of a frame."""
        widths = accumulate((len(part.types) for _, part in self._parts), initial=0)
        self._bounds = list(pairwise(widths))
        self.types = [kind for _, part in self._parts for kind in part.types]
        """Types of the columns of the state."""

    def stored_rows(self, base: Columns) -> int:
        """Return the number of rows that are stored of some keys."""
        parts = zip(self._parts, self._bounds, strict=True)
        return sum(part.stored_rows(base[first:stop]) for (_, part), (first, stop) in parts)

    def _numbers_of(self, is_wanted: Callable[[Aggregate | RowFunction], bool]) -> list[int]:
        return [number for number, function in enumerate(self._functions) if is_wanted(function)]

    def describe(self) -> str:
        """Describe the state without column numbers, which differ between plans."""
        return ", ".join(part.describe() for _, part in self._parts)

    def run(self, base: Columns, rows: OrderedRows) -> tuple[Columns, Columns]:
        """Return the results of each row, and the state behind each segment.

        Args:
            base: the state before each segment.
        """
        results: dict[int, pa.Array] = {}
        state: Columns = []
        for (numbers, part), (first, stop) in zip(self._parts, self._bounds, strict=True):
            columns, after = part.run(base[first:stop], rows)
            results.update(zip(numbers, columns, strict=True))
            state += after
        return [results[number] for number in range(len(self._functions))], state


class OverOperator(KeyedTableOperator, ProcessingTimers):
    """Adds to each row the results of functions over the rows up to it.

    Rows of which the watermark has passed are dropped and counted.

    Args:
        spec: the functions; without any, rows are put into the order of their times.
        fields: of the rows that come in: the columns of `spec`, and behind them the weights of DISTINCT values.
        schema: of the result: the columns of `spec`, then the results; without functions `fields`.
    """

    def __init__(self, spec: OverSpec, fields: Sequence[pa.Field], schema: pa.Schema) -> None:
        self._spec, self._fields, self._schema = spec, list(fields), schema
        self._functions = RunningFunctions(spec) if spec.functions else None
        self._user = OwnAggregates(spec.functions)
        frame = spec.frame
        self._reach_ms = frame.reach_ms
        """How far before a row its frame begins, where that is a length in time; then state expires by that time."""
        self._waits = spec.is_event_time or self._reach_ms is not None
        keys = [spec.columns[key] for key in spec.partition]
        ttl_ms = spec.ttl_ms if self._reach_ms is None else self._reach_ms + 1
        self._state: TableState | None = None
        if self._functions is not None:
            about = f"over {self._functions.describe()}: {spec.state_identity}"
            self._state = TableState(keys, [], self._functions.types, ttl_ms, about)
        about_rows = f"rows that wait for their time: {spec.state_identity}"
        self._waiting = WaitingRows([field.type for field in self._fields], spec.partition, about_rows)
        self._progress = self._until = MIN_TIMESTAMP
        self._due_ms = MIN_TIMESTAMP
        """When rows that wait by processing time are due."""
        self._stored_a_key = 0
        """Rows that were stored of a key, on average, when keys were last read."""

    # life cycle

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)
        self._memory = FrameMemory(ctx)
        self._waiting.open(self._memory)
        self._user.open_in(ctx)

    @property
    def stored(self) -> StoredTables:
        return StoredTables([] if self._state is None else [self._state.stored])

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._progress = restored_progress(snapshots, self.ctx)
        for _, _, frame in restored_sides(snapshots, [self._waiting.schema], self.ctx):
            self._waiting.add_frame(frame)
        if self._state is not None:
            self._state.open(self.ctx)
            if self._reach_ms is not None:
                self._state.table.expired = lambda count: None  # rows that no frame reaches are no loss
        super().initialize_state(snapshots)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames, width = self._waiting.frames(self._progress), len(self._spec.partition)
        groups = FrozenFrames(frames, width, self.ctx.max_parallelism)
        tables = super().snapshot_state(checkpoint_id)
        return replace(tables, lists=progress_entry(self._progress, self.ctx), raw_keyed=groups)

    def next_upkeep_ms(self) -> int | None:
        """Return when keys expire by the clock; those of frames of a length in time expire by event time."""
        return super().next_upkeep_ms() if self._reach_ms is None else None

    def close(self) -> None:
        self._memory.release()
        if self._state is not None:
            self._state.close()
        self._user.close()

    # rows and time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        rows = batch.data
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(rows.columns, self._fields, strict=True)]  # fmt: skip
        if not rows.num_rows:
            return ()
        if not self._spec.is_event_time:
            now_ms = int(self.ctx.clock.now_ms())
            times = np.full(rows.num_rows, now_ms, dtype=np.int64)
            if not self._waits:
                return self._results(columns, times, now_ms)
            if not self._waiting:
                self._due_ms = now_ms + 1
            self._waiting.add(columns, times)
            return ()
        times = self._times(columns)
        is_late = times <= self._progress
        if is_late.any():
            if self._late is not None:
                self._late.inc(int(is_late.sum()))
            places = np.flatnonzero(~is_late)
            columns, times = take_rows(columns, places), times[places]
        if len(times):
            self._waiting.add(columns, times)
        return ()

    def _times(self, columns: Columns) -> Numbers:
        index = self._spec.order[0][0]
        return local_ms(columns[index], "UTC", self._fields[index].name)

    def process_watermark(self, watermark: Watermark) -> Iterator[Element]:
        if self._spec.is_event_time and watermark.timestamp > self._progress:
            self._progress = watermark.timestamp
            yield from self._work_due(watermark.timestamp)
        yield watermark

    def next_processing_time(self) -> int | None:
        """Return the millisecond behind that of the first rows that wait."""
        is_timed = self._waits and not self._spec.is_event_time
        return self._due_ms if is_timed and self._waiting else None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        self._due_ms = now_ms + 1  # of rows that came in this millisecond
        return self._work_due(now_ms - 1)

    def finish(self) -> Iterable[Element]:
        return () if self._spec.is_event_time else self._work_due(MAX_TIMESTAMP)

    def _work_due(self, until: int) -> Iterator[Element]:
        """Yield the results of rows up to a time."""
        for columns, times in self._waiting.take_due(until):
            self._until = max(self._until, int(times.max())) if until == MAX_TIMESTAMP else until
            yield from self._results(columns, times, self._until)
        self._sweep(until)

    def _sweep(self, until: int) -> None:
        """Drop the keys of which no later frame reaches a row."""
        if self._reach_ms is None or self._state is None or until == MAX_TIMESTAMP:
            return
        table = self._state.table
        for _ in range(MOST_SWEEPS):
            if table.sweep_at is None or table.sweep_at > until + SWEEP_MS:
                break
            table.sweep(until + 1)

    def _results(self, columns: Columns, times: Numbers, until: int) -> Iterator[Element]:
        """Yield rows with their results, in the order of time and further keys, and equal ones as they came."""
        order = np.argsort(times, kind="stable")
        if len(self._spec.order) > 1:
            order = order_of([times, *order_numbers(columns, self._spec.order[1:])], len(times))
        columns, times = take_rows(columns, order), times[order]
        bounds = [0, len(times)]
        if self._functions is not None and self._functions.is_listed:
            ends = np.append(np.flatnonzero(np.diff(times)) + 1, len(times))
            wanted = np.searchsorted(ends, np.arange(LISTED_ROWS, len(times), LISTED_ROWS))
            bounds = [0, *np.unique(np.append(ends[wanted], len(times))).tolist()]
        for first, stop in pairwise(bounds):
            yield from self._worked([column.slice(first, stop - first) for column in columns], times[first:stop], until)

    def _worked(self, columns: Columns, times: Numbers, until: int) -> Iterator[Element]:
        """Yield rows that are in the order of time with their results."""
        if self._functions is not None:
            columns = [*columns[: len(self._spec.columns)], *self._computed(columns, times, until)]
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(columns, self._schema, strict=True)]  # fmt: skip
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        for first in range(0, batch.num_rows, BLOCK_ROWS):
            yield ArrowBatch(batch.slice(first, BLOCK_ROWS))

    def _computed(self, columns: Columns, times: Numbers, until: int) -> Columns:
        """Return the results of rows that are in the order of time; where much is stored of keys, by parts of them."""
        partition = [columns[key] for key in self._spec.partition]
        parts = len(times) * self._stored_a_key // MOST_STORED + 1
        if parts == 1 or not partition:
            return self._computed_together(columns, times, until)
        numbers = hash_columns(partition) % parts
        chosen = [rows for part in range(parts) if len(rows := np.flatnonzero(numbers == part))]
        pieces = [self._computed_together(take_rows(columns, rows), times[rows], until) for rows in chosen]
        return take_rows(concatenated(pieces), np.argsort(np.concatenate(chosen)))

    def _computed_together(self, columns: Columns, times: Numbers, until: int) -> Columns:
        """Return the results of rows that are in the order of time."""
        assert self._functions is not None and self._state is not None, "there are functions"
        state, rows = self._state, len(times)
        now_ms, written_ms = (state.now_ms,) * 2 if self._reach_ms is None else (int(times[0]), until)
        keys = state.find(state.keys_of([columns[key] for key in self._spec.partition], rows), rows, now_ms)
        order = np.argsort(keys.codes, kind="stable")
        codes = keys.codes[order]
        segments = Segments(first_of_runs(codes))
        batch = pa.RecordBatch.from_arrays(take_rows(columns, order), names=[f"c{n}" for n in range(len(columns))])
        horizon = MIN_TIMESTAMP if self._reach_ms is None else until + 1 - self._reach_ms
        ordered = OrderedRows(batch, times[order], segments, horizon)
        self._stored_a_key = self._functions.stored_rows(keys.stored) // len(segments)
        results, after = self._functions.run(_base(keys, codes[segments.starts]), ordered)
        places = np.empty(len(segments), dtype=np.int64)
        places[codes[segments.starts]] = np.arange(len(segments))
        state.store(keys, np.ones(len(segments), dtype=np.bool_), take_rows(after, places), written_ms)
        back = np.empty(rows, dtype=np.int64)
        back[order] = np.arange(rows)
        return take_rows(results, back)


def _base(keys: FoundKeys, wanted: Numbers) -> Columns:
    """Return what is stored of some keys, nulls where nothing is."""
    has_any = keys.rows[wanted] >= 0
    numbers = np.cumsum(keys.rows >= 0) - 1
    places = np.where(has_any, numbers[wanted], 0)
    return [column.take(pa.array(places, mask=~has_any)) for column in keys.stored]


__all__ = ["OverOperator"]
