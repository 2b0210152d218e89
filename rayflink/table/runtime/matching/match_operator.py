"""The operator of MATCH_RECOGNIZE.

In event time rows wait as columns until the watermark has reached them. Then those that are due are sorted by key and
order, and kernels compute which conditions each meets. Only rows that may begin a match, or whose key may have a
partial match, become Python values and go through the automaton. Matches become columns again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.cep.conditions import ConditionContext
from rayflink.cep.nfa.matcher import Matcher, MatchSoFar
from rayflink.cep.nfa.partial_matches import KeyMatches, Node
from rayflink.cep.pattern_meaning import ROW_MATCHES, meaning_entry, meaning_of_rows
from rayflink.cep.runtime.match_metrics import MatchMetrics
from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers, Upkeep
from rayflink.operators.user_function import UserCode
from rayflink.user_types import UserRecord

from ...plan.matching import MatchRecognize
from ...plan.typed import Session
from ...types import DataType
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_numpy
from ..function_calls import OwnFunctions
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, restored_sides
from ..keyed_state.key_rows import take_rows
from ..keyed_state.waiting_rows import WaitingRows
from ..progress import progress_entry, restored_progress
from ..ranks.first_of_key import EXPIRED
from ..ranks.ordering import order_numbers, order_of
from ..windows.input_rows import local_ms, rows_in
from .match_program import MatchProgram, automaton_of
from .row_masks import RowMasks, rows_that_matter
from .rows_before import NO_ROWS, UNKNOWN_MS, LastRows, RowsBefore

if TYPE_CHECKING:
    from numpy.typing import NDArray

Key = tuple[Any, ...]
MATCHES = 4096
"""Matches that become one batch."""
EXPIRED_AT_ONCE = 10_000
"""Keys whose last rows are dropped between two elements."""
_ARRIVAL = pa.field("$arrival", pa.int64())
"""In a snapshot, the order in which rows came."""
_STATE = pa.field(ROW_MATCHES, pa.large_binary())
"""In a snapshot, the partial matches of a key."""


class MatchOperator(Operator, ProcessingTimers, Upkeep):
    """Emits the matches of a row pattern.

    Args:
        plan: the pattern; its input has the schema of the rows that come in.
        input: type of these rows.
        schema: of the result.
        session: what evaluation depends on in addition to rows.
        state_identity: which rows and pattern the state belongs to; other state is refused on restore.
        ttl_ms: how long the last rows of a key are stored for PREV, from the last one on; 0: for ever.
    """

    def __init__(
        self,
        plan: MatchRecognize,
        input: DataType,
        schema: pa.Schema,
        session: Session,
        state_identity: str,
        ttl_ms: int = 0,
    ) -> None:
        self._plan, self._input, self._session = plan, input, session
        self._program = MatchProgram(plan, schema)
        self._functions = OwnFunctions(self._program.exprs)
        self._masks = RowMasks(self._program.row_conditions)
        self._matcher = Matcher(automaton_of(plan), self)
        self._time = plan.order[0][0]
        self._has_times = not plan.is_whole or plan.within_ms is not None
        fields = [field.type.to_arrow_field(field.name) for field in input.fields]
        self._state_order = [*plan.partition, *(index for index in range(len(fields)) if index not in plan.partition)]
        """Numbers of the columns in a snapshot, where those of the key come first."""
        self._forms = KeyForms([fields[index].type for index in plan.partition])
        self._fields = fields
        keys = [fields[index].with_name(f"k{number}") for number, index in enumerate(plan.partition)]
        in_order = [fields[index].with_name(f"c{index}") for index in self._state_order]
        self._row_schema = pa.schema([*in_order, _ARRIVAL], {ABOUT: f"rows that wait: {state_identity}".encode()})
        about = {ABOUT: f"partial matches: {state_identity}".encode()}
        self._match_schema = pa.schema([*keys, _STATE], about)
        stored = pa.schema(self._program.stored_columns)
        self._meaning = meaning_entry([meaning_of_rows(self._matcher.automaton, stored)])
        self._before = RowsBefore(plan.fields, ttl_ms)
        self._waiting = WaitingRows([field.type for field in fields], plan.partition)
        self._matches: dict[Key, KeyMatches] = {}
        self._deadlines: list[tuple[int, int, Key]] = []
        self._deadline_of: dict[Key, int] = {}
        self._progress = MIN_TIMESTAMP
        self._number = 0

    # the evaluator of the matcher

    def unit(self, index: int, event: UserRecord) -> bool:
        return self._masks.evaluate(index, self._program.fields_of(event), self._session)

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        assert isinstance(context, MatchSoFar)
        return self._program.test(index, event, context.last_node)

    def now_ms(self) -> int:
        return int(self.ctx.clock.now_ms())

    # life cycle

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._session = self._functions.set_up(ctx, self._session)
        self._program.compile_tests(self._session)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)
        self._metrics = MatchMetrics(ctx.metrics, self._matcher.automaton, self._masks, self._matcher)
        self._memory = FrameMemory(ctx)
        self._waiting.open(self._memory)
        if ctx.metrics is not None and self._before.expires:
            self._before.expired = ctx.metrics.counter(EXPIRED).inc

    def open(self) -> None:
        self._functions.open()

    def close(self) -> None:
        self._memory.release()
        self._functions.close()

    def next_upkeep_ms(self) -> int | None:
        return self._before.over_at

    def upkeep(self, now_ms: int) -> None:
        self._before.expire(now_ms, EXPIRED_AT_ONCE)

    # rows and time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if not rows.num_rows:
            return ()
        columns = list(rows.columns[: len(self._fields)])
        if self._plan.is_processing_time:
            now = self.now_ms()
            return self._match_until(now, [(columns, np.full(rows.num_rows, now, dtype=np.int64))])
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

    def _times(self, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        if not self._has_times:
            return np.zeros(len(columns[0]), dtype=np.int64)
        column = columns[self._time]
        with UserCode(self.ctx, "MATCH_RECOGNIZE"):
            return local_ms(column, "UTC", self._plan.input.names[self._time])

    def process_watermark(self, watermark: Watermark) -> Iterator[Element]:
        is_due = not self._plan.is_processing_time
        if self._plan.is_whole:
            is_due = watermark.timestamp == MAX_TIMESTAMP
        if is_due and watermark.timestamp > self._progress:
            self._progress = watermark.timestamp
            yield from self._match_until(watermark.timestamp, self._waiting.take_due(watermark.timestamp))
        yield watermark

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the earliest deadline, when no further row of its time can come."""
        is_timed = self._plan.is_processing_time and self._deadlines
        return self._deadlines[0][0] + 1 if is_timed else None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if not self._plan.is_processing_time:
            return ()
        return self._results(self._time_out(now_ms - 1))

    # matching

    def _match_until(self, until: int, due: Iterable[tuple[Columns, NDArray[np.int64]]]) -> Iterator[Element]:
        """Match rows that are due, and let time pass.

        Args:
            until: no further row of this time or an earlier one can come.
            due: (columns, times) of rows, where all rows of a key are together.
        """
        for columns, times in due:
            yield from self._match(columns, times)
        if self._deadlines:
            yield from self._results(self._time_out(until))

    def _match(self, columns: Columns, times: NDArray[np.int64]) -> Iterator[Element]:
        """Match rows that are due."""
        rows, plan = len(times), self._plan
        keys = self._forms.encode([columns[index] for index in plan.partition])
        groups = grouped(keys, rows)
        numbers = [groups.codes.astype(np.int64)]
        if not plan.is_processing_time:
            numbers += order_numbers(columns, plan.order)
        order = order_of(numbers, rows)
        codes, times = groups.codes[order], times[order]
        columns = take_rows(columns, order)
        key_tuples: list[Key] = list(zip(*(key.to_pylist() for key in groups.keys), strict=True)) if keys else [()]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
        begins = np.repeat(starts, np.diff(np.append(starts, rows)))
        keys_in_order = [key_tuples[code] for code in codes[starts].tolist()]
        now_ms = self.now_ms() if self._before.expires else UNKNOWN_MS
        fields = self._before.fields(columns, starts, keys_in_order, now_ms)
        with UserCode(self.ctx, "DEFINE"):
            masks = self._masks.masks(fields, rows, self._session)
        has_matches = np.zeros(groups.count, dtype=np.bool_)
        if self._matches:
            has_matches[:] = [key in self._matches for key in key_tuples]
        chosen = np.flatnonzero(rows_that_matter(self._matcher, masks, begins, has_matches[codes]))
        self._metrics.skipped += rows - len(chosen)
        values = self._program.rows(fields, columns, chosen)
        events = zip(codes[chosen].tolist(), values, times[chosen].tolist(), masks[chosen].tolist(), strict=True)
        yield from self._results(self._matched(events, key_tuples))

    def _matched(self, events: Iterable[tuple[int, Any, int, int]], keys: list[Key]) -> Iterator[Node]:
        """Yield the last nodes of matches.

        Args:
            events: (number of the key, values, time, mask), in the order of keys and times.
        """
        matcher, has_deadlines = self._matcher, self._plan.within_ms is not None
        may_start, process, known = matcher.may_start, matcher.process, self._matches
        current, matches = -1, None
        with UserCode(self.ctx, "MATCH_RECOGNIZE"):
            for code, values, stamp, mask in events:
                if code != current:
                    if matches is not None:
                        self._store(keys[current], matches)
                    current, matches = code, known.get(keys[code])
                if matches is None:
                    if not may_start(mask):
                        continue
                    matches = KeyMatches()
                elif has_deadlines:
                    yield from self._pass_time(matches, stamp)
                yield from process(matches, values, stamp, mask)
        if matches is not None:
            self._store(keys[current], matches)

    def _store(self, key: Key, matches: KeyMatches) -> None:
        if matches.is_empty:
            self._matches.pop(key, None)
            self._deadline_of.pop(key, None)
            return
        self._matches[key] = matches
        if self._plan.within_ms is None:
            return
        deadline = self._matcher.next_deadline(matches)
        if deadline is not None and deadline != self._deadline_of.get(key):
            self._deadline_of[key] = deadline
            self._number += 1
            heappush(self._deadlines, (deadline, self._number, key))

    def _pass_time(self, matches: KeyMatches, until: int) -> Iterator[Node]:
        """Let the time of a key pass; yield the matches that are certain by then."""
        deadline = self._matcher.next_deadline(matches)
        while deadline is not None and deadline <= until:
            nodes, timed_out = self._matcher.advance(matches, deadline)
            for match in timed_out:
                self._metrics.timed_out += 1
                self._metrics.timed_out_in[match.state] += 1
            yield from nodes
            deadline = self._matcher.next_deadline(matches)

    def _time_out(self, until: int) -> Iterator[Node]:
        """Let time pass for all keys with a deadline up to it."""
        while self._deadlines and self._deadlines[0][0] <= until:
            deadline, _, key = heappop(self._deadlines)
            if self._deadline_of.get(key) != deadline:
                continue
            matches = self._matches[key]
            yield from self._pass_time(matches, until)
            self._store(key, matches)

    def _results(self, nodes: Iterator[Node]) -> Iterator[Element]:
        """Yield matches as batches of rows."""
        pending: list[Node] = []
        for node in nodes:
            pending.append(node)
            if len(pending) == MATCHES:
                yield self._batch(pending)
                pending = []
        if pending:
            yield self._batch(pending)

    def _batch(self, nodes: list[Node]) -> ArrowBatch:
        self._metrics.matches += len(nodes)
        return ArrowBatch(self._program.results(nodes))

    # snapshots

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._progress = restored_progress(snapshots, self.ctx)
        for side, _, frame in restored_sides(snapshots, [self._row_schema, self._match_schema], self.ctx):
            if side == 0:
                self._restore_rows(frame)
            else:
                self._restore_matches(frame)
        self._before.sort()
        heapify(self._deadlines)

    def _restore_rows(self, frame: pa.RecordBatch) -> None:
        frame = frame.take(pa.array(np.argsort(to_numpy(frame.column(_ARRIVAL.name)), kind="stable")))
        columns = [frame.column(self._state_order.index(index)) for index in range(len(self._fields))]
        self._waiting.add(columns, self._times(columns))

    def _restore_matches(self, frame: pa.RecordBatch) -> None:
        encoded = self._forms.encode(frame.columns[:-1])
        keys: list[Key] = list(zip(*(key.to_pylist() for key in encoded), strict=True)) if encoded else [()]
        for key, data in zip(keys, frame.column(_STATE.name).to_pylist(), strict=True):
            matches, before, *accessed = pickle.loads(data)
            accessed_ms = accessed[0] if accessed and accessed[0] != UNKNOWN_MS else self.now_ms()
            self._before.restore(key, LastRows(before, accessed_ms))
            if matches is not None:
                self._store(key, matches)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames: list[tuple[int, Callable[[], pa.RecordBatch]]] = []
        if pieces := self._waiting.pieces():
            frames.append((self._progress, partial(self._frame_of_rows, pieces)))
        states = {key: _copy(matches) for key, matches in self._matches.items()}
        before = self._before.snapshot()
        if states or before:
            frames.append((self._progress, partial(self._frame_of_matches, states, before)))
        groups = FrozenFrames(frames, len(self._plan.partition), self.ctx.max_parallelism)
        return OperatorSnapshot(lists={**progress_entry(self._progress, self.ctx), **self._meaning}, raw_keyed=groups)

    def _frame_of_rows(self, pieces: list[Columns]) -> pa.RecordBatch:
        columns = concatenated(pieces)
        arrival = pa.array(np.arange(len(columns[0])))
        in_order = [columns[index] for index in self._state_order]
        in_order = [column if column.type == field.type else column.cast(field.type)
                    for column, field in zip(in_order, self._row_schema, strict=False)]  # fmt: skip
        return pa.RecordBatch.from_arrays([*in_order, arrival], schema=self._row_schema)

    def _frame_of_matches(self, states: dict[Key, KeyMatches], before: dict[Key, LastRows]) -> pa.RecordBatch:
        keys = list(dict.fromkeys([*states, *before]))
        data = pa.array([pickle.dumps((states.get(key), *before.get(key, NO_ROWS))) for key in keys], _STATE.type)
        empty = [pa.array([], self._fields[index].type) for index in self._plan.partition]
        kinds = [column.type for column in self._forms.encode(empty)]
        encoded = [pa.array([key[index] for key in keys], kind) for index, kind in enumerate(kinds)]
        return pa.RecordBatch.from_arrays([*self._forms.decode(encoded), data], schema=self._match_schema)


def _copy(matches: KeyMatches) -> KeyMatches:
    """Return the partial matches as they are now; the list of those that are not completed is never changed."""
    return KeyMatches(matches.partial, list(matches.completed), matches.next_number)


__all__ = ["MATCHES", "MatchOperator"]
