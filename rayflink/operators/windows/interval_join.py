"""Joins each record of one keyed stream with those of another whose time lies in an interval around its own.

Each side keeps its records for as long as a record of the other side that is not late may still match one of them. It
keeps them in buckets by time, an eighth of the interval wide: a record looks at nine buckets of the other side at most,
however many records are kept, and a bucket goes as a whole, by one timer, once none of its records can match.

A record is late where its time is before the watermark, as in Flink. Other than there, a record at the very watermark
still finds all its partners.

Source: apache/flink IntervalJoinOperator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from rayflink.common.functions.join_functions import ProcessJoinFunction, as_process_join
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.state.backend import NO_KEY
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.value_isolation import isolated

from ..base import OperatorSnapshot, shortened
from ..event_time.pacing import FIRING_RECORDS, paced
from ..keyed.keyed_two_input import TwoKeyedInputs
from ..output_buffer import OutputBuffer
from ..user_function import list_of, timestamps_of
from .window_operator import LATE_METRIC

_BUCKETS = 8
_BOUNDS = "_interval"
_time_of = itemgetter(0)


@dataclass(frozen=True)
class Interval:
    """The bounds of an interval join and its late outputs: lower <= time of the right - time of the left <= upper.

    Args:
        lower_ms, upper_ms: both inclusive.
        late_tags: side outputs of late records, one a side; None: they are dropped and counted.

    Raises:
        ValueError: the lower bound is above the upper one.
    """

    lower_ms: int
    upper_ms: int
    late_tags: tuple[str | None, str | None] = (None, None)

    def __post_init__(self) -> None:
        if self.lower_ms > self.upper_ms:
            raise ValueError(f"an interval from {self.lower_ms} ms to {self.upper_ms} ms holds no moment")


class IntervalJoinOperator(TwoKeyedInputs):
    """Gives each pair to the function as soon as both of its records are there.

    A record meets its partners in order of their time, those of one time in order of arrival. Results carry the
    greater timestamp of the pair.

    Args:
        key_selector1, key_selector2: one a stream, each a KeySelector or a callable.
        function: a ProcessJoinFunction, or a callable of both records, or of both and the context.
        interval: which records match.
    """

    def __init__(self, key_selector1: Any, key_selector2: Any, function: Any, interval: Interval) -> None:
        self._function = as_process_join(function)
        super().__init__(key_selector1, key_selector2, self._function)
        lower, upper = interval.lower_ms, interval.upper_ms
        self._late_tags = interval.late_tags
        self._bounds = f"{lower} {upper}".encode()
        self._reaches = (lower, upper), (-upper, -lower)  # from a record of each side to its partners
        self._bucket_ms = -(-(upper - lower + 1) // _BUCKETS)

    def declare_state(self) -> None:
        names = "left", "right"
        self._buffers = [self.backend.table(ListStateDescriptor(f"interval-join/{name}")) for name in names]
        self._timers = [self.backend.timers(f"interval-join/{name}") for name in names]

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        written = {entry for snapshot in snapshots for entry in snapshot.lists.get(_BOUNDS, ("union", ()))[1]}
        if written - {self._bounds}:
            self._sort_anew()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        snapshot = super().snapshot_state(checkpoint_id)
        assert snapshot is not None, "keyed state has a snapshot"
        return replace(snapshot, lists={**snapshot.lists, _BOUNDS: ("union", (self._bounds,))})

    def open(self) -> None:
        metrics = self.ctx.metrics
        self._late_dropped = None if metrics is None else metrics.counter(LATE_METRIC)
        super().open()

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        keys, stamps = self.keys_of_input(batch, input_index), self._stamps(batch)
        out, pair, call = OutputBuffer(), _Pair(), self._function.call
        for key, value, stamp in zip(keys, list_of(batch), stamps, strict=True):
            if stamp < self.watermark:
                self._emit_late(value, stamp, input_index, out)
                continue
            self.context.key = key = self.canonical(key, value)
            self._keep(key, value, stamp, input_index)
            for partner_stamp, partner in self._partners(key, stamp, input_index):
                if input_index:
                    pair.left_stamp, left, pair.right_stamp, right = partner_stamp, partner, stamp, value
                else:
                    pair.left_stamp, left, pair.right_stamp, right = stamp, value, partner_stamp, partner
                try:
                    results = call(isolated(left), isolated(right), pair)
                    if type(results) is tuple or type(results) is list:
                        out.add_results(results, max(stamp, partner_stamp))
                    elif results is not None:
                        yield from _emit_all(results, max(stamp, partner_stamp), out)
                except Exception as error:
                    raise self.failure("process_element", f"{shortened(left)} and {shortened(right)}") from error
                if out.count >= FIRING_RECORDS:
                    yield from out.take()
        self.context.key = NO_KEY
        yield from out.take()

    def on_event_time(self, until: int) -> Iterator[Element]:
        return paced(self._forget(until), OutputBuffer(), self.ctx.clock)

    def _stamps(self, batch: Batch) -> list[int]:
        stamps = timestamps_of(batch)
        if len(batch) and (stamps is None or MIN_TIMESTAMP in stamps):
            value = list_of(batch)[0 if stamps is None else stamps.index(MIN_TIMESTAMP)]
            error = ValueError(
                "an interval join needs records with timestamps, and this one has none; call "
                "assign_timestamps_and_watermarks(strategy) on both streams before key_by, where the strategy has "
                "with_timestamp_assigner(...)"
            )
            raise self.failure("interval_join", shortened(value)) from error
        return stamps or []

    def _keep(self, key: Any, value: Any, stamp: int, side: int) -> None:
        """Keep a record for partners that are still to come, unless those would be late."""
        if stamp + self._reaches[side][1] >= self.watermark:
            bucket = stamp // self._bucket_ms
            self._buffers[side].append(key, (stamp, value), bucket)
            self._timers[side].register(self._over(bucket, side), key, bucket)

    def _over(self, bucket: int, side: int) -> int:
        """Return the first watermark at which no record of the bucket can match."""
        return min((bucket + 1) * self._bucket_ms + self._reaches[side][1], MAX_TIMESTAMP)

    def _sort_anew(self) -> None:
        """Move records of another interval into the buckets of this one; the old timers remain and do nothing."""
        for side, buffer in enumerate(self._buffers):
            buckets = [(key, bucket, buffer.get(key, bucket)) for key, bucket in dict.fromkeys(buffer.walk())]
            for key, bucket, _ in buckets:
                buffer.remove(key, bucket)
            for key, _, entries in buckets:
                for stamp, value in entries:
                    self._keep(key, value, stamp, side)

    def _partners(self, key: Any, stamp: int, side: int) -> list[tuple[int, Any]]:
        """Return the matching (timestamp, record) pairs of the other side."""
        nearest, farthest = self._reaches[side]
        first, last = stamp + nearest, stamp + farthest
        buffer, width = self._buffers[1 - side], self._bucket_ms
        partners: list[tuple[int, Any]] = []
        for bucket in range(first // width, last // width + 1):
            entries = buffer.get(key, bucket)
            if entries is not None:
                partners += [entry for entry in entries if first <= entry[0] <= last]
        partners.sort(key=_time_of)
        return partners

    def _emit_late(self, value: Any, stamp: int, side: int, out: OutputBuffer) -> None:
        tag = self._late_tags[side]
        if tag is not None:
            out.add_side(tag, value, stamp)
        elif self._late_dropped is not None:
            self._late_dropped.inc(1)

    def _forget(self, until: int) -> Iterator[None]:
        """Drop the buckets whose time has come."""
        for side, (buffer, timers) in enumerate(zip(self._buffers, self._timers, strict=True)):
            for timestamp, bucket, keys in timers.due_keys(until, FIRING_RECORDS):
                if timestamp == self._over(bucket, side):
                    buffer.remove_all(keys, bucket)
                yield


def _emit_all(results: Any, stamp: int, out: OutputBuffer) -> Iterator[Element]:
    """Gather the results of a function for a pair; results that exceed the buffer are emitted."""
    remaining = iterate_results(results)
    while not out.draw(remaining, stamp, FIRING_RECORDS):
        yield from out.take()


class _Pair(ProcessJoinFunction.Context):
    """The context of a pair for which the function is called."""

    left_stamp = right_stamp = MIN_TIMESTAMP

    def get_left_timestamp(self) -> int:
        return self.left_stamp

    def get_right_timestamp(self) -> int:
        return self.right_stamp

    def get_timestamp(self) -> int:
        return max(self.left_stamp, self.right_stamp)


__all__ = ["Interval", "IntervalJoinOperator"]
