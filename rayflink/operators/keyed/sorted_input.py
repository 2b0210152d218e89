"""Batch mode on keyed streams: all input is sorted by key first, so that state is that of few keys at a time.

Watermarks are not looked at while the input comes. Behind the last record of a key event time jumps to its end, so that
nothing is late and all timers of the key fire, those of processing time too. Of rolling aggregates the last result of
each key is given, and no other.

Source: apache/flink SortingDataInput, BatchExecutionInternalTimeService, BatchGroupedReduceOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    ArrowBatch,
    Batch,
    Element,
    RowBatch,
    Watermark,
    WatermarkStatus,
    rows_of,
)
from rayflink.state.keys import encode_key

from ..base import Operator
from ..capabilities import BroadcastInput, EventHandler
from ..external_sort import Entry
from ..sorted_operator import SortedOperator
from ..user_function import list_of, timestamps_of
from .keyed_operator import KeyedOperator

CHUNK_ROWS = 4096
"""Most records that are worked together: of many keys where only their last results count, else of one key."""


class SortedInput:
    """Makes another factory's operator, behind a sort of its input; travels in a program.

    Args:
        factory: makes a keyed operator.
    """

    def __init__(self, factory: Callable[[], Operator]) -> None:
        self._factory = factory

    def __call__(self) -> Operator:
        operator = self._factory()
        return SortedInputOperator(operator) if isinstance(operator, KeyedOperator) else operator


class SortedInputOperator(SortedOperator[KeyedOperator], EventHandler):
    """Gives a keyed operator its records key by key, by time within a key, once all are there.

    Args:
        inner: the operator.
    """

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert not self._is_drained, "a record came after the end of event time"
        keyed, values = self._inner, list_of(batch)
        if isinstance(keyed, BroadcastInput) and input_index == keyed.broadcast_input:
            return keyed.process(batch, input_index)  # before all that is sorted
        keys = keyed.keys_of_input(batch, input_index)
        encoded = [encode_key(keyed.canonical(key, value)) for key, value in zip(keys, values, strict=True)]
        stamps = timestamps_of(batch)
        times = [MIN_TIMESTAMP] * len(values) if stamps is None else stamps
        self._sort.add(encoded, times, [(input_index, value) for value in values])
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp == MAX_TIMESTAMP:
            yield from self.drain()
            yield watermark

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return ()

    def process_sorted(self) -> Iterator[Element]:
        has_keys = False
        for chunk, ends_keys in _chunks(self._sort.sorted(), CHUNK_ROWS if self._inner.gives_running_results else 1):
            has_keys = True
            yield from self._process_chunk(chunk, ends_keys)
            if ends_keys:
                yield from self._inner.end_of_keys()
        if not has_keys:  # what a broadcast input leaves to the end of a key happens in each subtask
            yield from self._inner.end_of_keys()

    def _process_chunk(self, chunk: list[Entry], ends_keys: bool) -> Iterator[Element]:
        keyed = self._inner
        for position, run in _runs_of_one_input(chunk):
            values = [entry[3][1] for entry in run]
            times = [entry[1] for entry in run]
            batch = RowBatch(values, None if all(time == MIN_TIMESTAMP for time in times) else times)
            results = keyed.process(batch, run[0][3][0])
            if keyed.gives_running_results:
                yield from _last_of_keys(results, chunk, position, len(run), ends_keys)
            else:
                yield from results


def _chunks(entries: Iterator[Entry], least: int) -> Iterator[tuple[list[Entry], bool]]:
    """Yield (entries, whether their last key ends with them): whole keys, `least` rows at least, or pieces of a large
    one.
    """
    chunk: list[Entry] = []
    last_key_at = 0
    for entry in entries:
        is_new = bool(chunk) and entry[0] != chunk[-1][0]
        if is_new and len(chunk) >= least:
            yield chunk, True
            chunk = []
        elif len(chunk) >= CHUNK_ROWS:
            if last_key_at:
                yield chunk[:last_key_at], True
                chunk, last_key_at = chunk[last_key_at:], 0
            else:
                yield chunk, False
                chunk = []
        if is_new or not chunk:
            last_key_at = len(chunk)
        chunk.append(entry)
    if chunk:
        yield chunk, True


def _runs_of_one_input(chunk: list[Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """Yield (position in the chunk, entries that follow each other and are of one input)."""
    start = 0
    for stop in range(1, len(chunk) + 1):
        if stop == len(chunk) or chunk[stop][3][0] != chunk[start][3][0]:
            yield start, chunk[start:stop]
            start = stop


def _last_of_keys(
    results: Iterable[Element], chunk: list[Entry], first: int, count: int, ends_keys: bool
) -> Iterator[Element]:
    """Return the results of each key's last record, given one result a record from position `first` of the chunk on."""
    values: list[Any] = []
    times: list[int] = []
    for element in results:
        assert isinstance(element, RowBatch | ArrowBatch), f"a rolling aggregate gave {element!r}"
        values += rows_of(element)
        times += timestamps_of(element) or [MIN_TIMESTAMP] * (len(values) - len(times))
    assert len(values) == count, f"a rolling aggregate gave {len(values)} results for {count} records"
    last = [
        index
        for index in range(count)
        if (ends_keys if first + index + 1 == len(chunk) else chunk[first + index + 1][0] != chunk[first + index][0])
    ]
    if last:
        last_times = [times[index] for index in last]
        has_times = any(time != MIN_TIMESTAMP for time in last_times)
        yield RowBatch([values[index] for index in last], last_times if has_times else None)


__all__ = ["SortedInput", "SortedInputOperator"]
