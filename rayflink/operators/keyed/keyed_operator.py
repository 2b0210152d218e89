"""The common part of operators on keyed streams: keys, the state backend, snapshots, and event time.

The watermark is part of an operator's snapshot, though Flink leaves it out: what was late before a failure is late
after it too, so that a restored job gives the results of one that never failed. The last watermark of all (end of
input) is left out, for a job that was drained may be fed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from rayflink.common.errors import TypeMismatch
from rayflink.common.functions.function_classes import (
    KeyBy,
    KeyedStateStore,
    RuntimeContext,
    UserFunction,
    as_key_selector,
)
from rayflink.common.metrics.metric_group import Counter
from rayflink.common.metrics.metric_names import NUM_PROCESSING_TIMERS_DROPPED
from rayflink.common.options.registry import TTL_SWEEP_RATE
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element, Watermark
from rayflink.common.records.row_columns import RowColumns, objects
from rayflink.common.text_output.logs import get_logger
from rayflink.state.backend import KeyContext, KeyedBackend
from rayflink.state.errors import InvalidKeyError
from rayflink.state.expiry import SLICE_MS, SLICE_SECONDS
from rayflink.state.handles import StateStore
from rayflink.state.keys import canonical_key
from rayflink.state.keys.key_forms import too_deep
from rayflink.state.schema.state_summary import merge_summaries

from ..base import OperatorContext, OperatorSnapshot, shortened
from ..capabilities import CheckpointListener, ProcessingTimers, StatePrefetch, Upkeep
from ..key_failures import KeyExtractionError, RefusedKeyError, extraction_cause
from ..list_loops import ensure_all_taken, record_at
from ..restored_state import evolution_of, restore_keyed
from ..user_function import FunctionOperator, UserCode, list_of
from .keyed_backends import keyed_backend

log = get_logger(__name__)
_HASHABLE = frozenset({str, int, bytes, float, bool, type(None)})
"""Types of keys that every dict takes."""
_WATERMARK_ENTRY = "_watermark"
EXPIRED_METRIC = "numStateEntriesExpired"
"""Entries of a state that were forgotten since their time to live was over."""


class KeyedOperator(FunctionOperator, Upkeep, StatePrefetch, CheckpointListener):
    """An operator on a keyed stream, with state by key.

    Args:
        key_selector: what the stream was partitioned by: a KeySelector, a callable, or the KeyBy that holds one; called
            once a record, and once more where state is read ahead of it.
        function: the user's function with its life cycle.
    """

    create_backend: Callable[[OperatorContext], KeyedBackend] = staticmethod(keyed_backend)
    gives_running_results = False
    """True if the operator emits one result a record, of which the last of a key includes all earlier ones."""

    def __init__(self, key_selector: Any, function: UserFunction) -> None:
        super().__init__(function)
        self._key_by = KeyBy.of(key_selector)
        self._selector = as_key_selector(key_selector)
        self._key_of = self._selector.call
        self.watermark = MIN_TIMESTAMP
        self._has_backend = False
        self._prepare_at: int | None = None

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.backend = self.create_backend(self.ctx)
        self._has_backend = True
        self.context = KeyContext(lambda: int(self.ctx.clock.now_ms()), self._counter_of_expired)
        rate = TTL_SWEEP_RATE.read(self.ctx.config.get(TTL_SWEEP_RATE.key, TTL_SWEEP_RATE.default))
        self._swept_a_slice = -(-rate * SLICE_MS // 1000)
        evolution = evolution_of(self.ctx, snapshots)
        self.context.restored_summaries = evolution.keyed
        self.declare_state()
        reserved = {state.name for state in self.backend.summaries() if state.kind != "timers"}
        restore_keyed(self.backend, snapshots, evolution, self.ctx)
        store = StateStore(self.backend, self.context, self.ctx.label, reserved=reserved)
        self.keyed_state = cast(KeyedStateStore, store)
        super().initialize_state(snapshots)
        entries = [entry for s in snapshots for entry in s.lists.get(_WATERMARK_ENTRY, ("union", ()))[1]]
        own_entries = [entry for entry in entries if entry[8:] == self._subtask_bytes]
        self.watermark = min(
            (int.from_bytes(e[:8], "big", signed=True) for e in own_entries or entries), default=MIN_TIMESTAMP
        )
        if self.watermark == MAX_TIMESTAMP:  # it comes again from those whose data is over
            self.watermark = MIN_TIMESTAMP

    @property
    def _subtask_bytes(self) -> bytes:
        """Return subtask and parallelism as bytes: where barriers overtake watermarks, a subtask restored unchanged
        goes on with its own.
        """
        return self.ctx.subtask.to_bytes(4, "big") + self.ctx.parallelism.to_bytes(4, "big")

    def declare_state(self) -> None:
        """Create the tables and timer queues the operator itself uses; called before they are restored."""

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        functions = super().snapshot_state(checkpoint_id) or OperatorSnapshot()
        lists = dict(functions.lists)
        lists[_WATERMARK_ENTRY] = "union", (self.watermark.to_bytes(8, "big", signed=True) + self._subtask_bytes,)
        restored = self.context.restored_summaries.values()
        states = merge_summaries((*functions.states, *self.backend.summaries(), *restored))
        capture = self.backend.capture(checkpoint_id)
        self._prepare_at = None
        return OperatorSnapshot({}, lists, functions.raw_keyed, capture=capture, states=states)

    def announce(self, checkpoint_id: int) -> None:
        """Prepare the capture for a checkpoint that comes soon, in `upkeep`."""
        self.backend.announce(checkpoint_id)
        self._prepare_at = 0

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.backend.confirm(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.backend.abort(checkpoint_id)

    def open(self) -> None:
        with UserCode(self.ctx, "open of the key selector"):
            self._selector.open(RuntimeContext(self.ctx))
        super().open()

    def close(self) -> None:
        opened = self._opened
        try:
            super().close()
        finally:
            if self._has_backend:
                self._has_backend = False
                self.backend.close()
            if opened:
                with UserCode(self.ctx, "close of the key selector"):
                    self._selector.close()

    def next_upkeep_ms(self) -> int | None:
        """Return when to prepare an announced capture further, or to continue the sweep of state with a time to
        live.
        """
        due = [] if self._prepare_at is None else [self._prepare_at]
        if self._swept_a_slice:
            due += (state.sweep_at for state in self.context.swept if state.sweep_at is not None)
        return min(due, default=None)

    def upkeep(self, now_ms: int) -> None:
        """Do a slice of the work on an announced capture, and of the sweep of each state that is due."""
        monotonic = self.ctx.clock.monotonic
        until = monotonic() + SLICE_SECONDS
        if self._prepare_at is not None and self._prepare_at <= now_ms:
            after_ms = self.backend.prepare(lambda: monotonic() < until)
            self._prepare_at = None if after_ms is None else now_ms + after_ms
            until = monotonic() + SLICE_SECONDS
        for state in self.context.swept:
            if state.sweep_at is not None and state.sweep_at <= now_ms:
                state.sweep(now_ms, self._swept_a_slice, lambda: monotonic() < until)

    def _counter_of_expired(self, state: str) -> Callable[[int], None]:
        if self.ctx.metrics is None:
            return lambda entries: None
        counter: Counter = self.ctx.metrics.add_group("state", state).counter(EXPIRED_METRIC)
        return counter.inc

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        """Advance event time, fire what is due by then, and pass the watermark on."""
        if watermark.timestamp > self.watermark:
            self.watermark = watermark.timestamp
            yield from self.on_event_time(watermark.timestamp)
        yield watermark

    def on_event_time(self, until: int) -> Iterable[Element]:
        """Fire event-time timers up to and including `until`."""
        return ()

    def keys_of(self, batch: Batch) -> list[Any]:
        """Return the records' keys as the selector gives them; those that no dict takes, such as lists, in the form of
        state.

        Raises:
            UserCodeError: the selector failed, or what it gave cannot be a key.
        """
        if isinstance(batch, RowColumns) and batch.key_column is not None:
            keys = objects(batch.columns[batch.key_column])
            self.check_keys(keys, batch)
            return keys
        values = list_of(batch)
        iterator: Iterator[Any] = iter(values)
        try:
            keys = list(map(self._key_of, iterator))
            ensure_all_taken(iterator)
        except KeyExtractionError:
            raise  # it names the step already
        except Exception as error:
            key_by, record = self._named(), record_at(values, iterator)
            raise KeyExtractionError.of(key_by, record) from extraction_cause(key_by, error)
        self.check_keys(keys, batch)
        if not _HASHABLE.issuperset(map(type, keys)):
            try:
                deque(map(hash, keys), maxlen=0)
            except (TypeError, RecursionError):
                return [self.canonical(key, value) for key, value in zip(keys, values, strict=True)]
        return keys

    @property
    def reads_ahead(self) -> int:
        return self.backend.reads_ahead

    def read_ahead(self, batch: Batch, input_index: int) -> None:
        self.backend.prefetch(self.keys_of_input(batch, input_index))

    def keys_of_input(self, batch: Batch, input_index: int) -> list[Any]:
        """Return the keys of a batch of that input; see `keys_of`."""
        return self.keys_of(batch)

    @property
    def waiting_timers(self) -> int:
        """Return the number of registered processing-time timers."""
        return 0

    def finish(self) -> Iterable[Element]:
        """Drop and count processing-time timers that are not due yet: at the end they do not fire, as in Flink."""
        waiting = self.waiting_timers
        if waiting and self.ctx.metrics is not None:
            self.ctx.metrics.counter(NUM_PROCESSING_TIMERS_DROPPED).inc(waiting)
        return ()

    def end_of_keys(self) -> Iterable[Element]:
        """Fire all timers of the keys processed so far, then forget these keys; batch mode calls it as they never
        recur.

        Timers that are set meanwhile would fire at once, again and again: they are counted and not set, as in Flink.
        """
        self.watermark = MAX_TIMESTAMP
        self.backend.refuse_timers()
        yield from self.on_event_time(MAX_TIMESTAMP)
        if isinstance(self, ProcessingTimers):
            yield from self.on_processing_time(MAX_TIMESTAMP)
        self._note_refused_timers(self.backend.refused_timers)
        self.backend.clear()
        self.watermark = MIN_TIMESTAMP

    def _note_refused_timers(self, count: int) -> None:
        if not count:
            return
        counter = self.ctx.metrics.counter("numTimersIgnored")
        if not counter.get_count():
            log.warning(
                "%s sets timers while the last timers of a key fire; in batch mode nothing comes after them, and they "
                "are ignored (numTimersIgnored counts them)",
                self.ctx.operator_name,
            )
        counter.inc(count)

    def check_keys(self, keys: list[Any], batch: Batch) -> None:
        """Check keys against the type the program declared, if it did; where they are the records', one is named.

        Raises:
            RefusedKeyError: one is not of the type.
        """
        key_type, site = self._key_by.key_type, self._key_by.call_site
        if key_type is None:
            return
        try:
            key_type.check_batch(keys, "key", site)
        except TypeMismatch:
            for key, value in zip(keys, list_of(batch), strict=False):
                try:
                    key_type.check(key, "key", site)
                except TypeMismatch as error:
                    raise RefusedKeyError.of(self._named(), shortened(value)) from error
            raise

    def canonical(self, key: Any, value: Any) -> Any:
        """Return the key in the form it has in state; needed for a key that is not found there.

        Raises:
            UserCodeError: it cannot be a key.
        """
        try:
            return canonical_key(key)
        except InvalidKeyError as error:
            raise RefusedKeyError.of(self._named(), shortened(value)) from error
        except RecursionError:
            raise RefusedKeyError.of(self._named(), shortened(value)) from too_deep(key)

    def _named(self) -> KeyBy:
        """Return the step at fault for a key: the one that partitioned the records, or this operator where it is
        unknown.
        """
        if self._key_by.call_site:
            return self._key_by
        return replace(self._key_by, step=self.ctx.operator_name, call_site=self.ctx.call_site)


__all__ = ["KeyedOperator"]
