"""Sorts what a process function yields into the main output and its side outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rayflink.common.output_tag import OutputTag
from rayflink.common.records.aliasing import detached
from rayflink.common.records.batches import Element, RowBatch, Tagged
from rayflink.common.records.immutability import IMMUTABLE_TYPES
from rayflink.common.user_code.iterate_results import iterate_results

CHUNK_RECORDS = 4096


class Outputs:
    """Collects results until there are enough for a batch.

    Order is kept within each output.

    Args:
        stamped: whether records carry timestamps.
        limit: results after which they are handed on.
    """

    def __init__(self, stamped: bool, limit: int = CHUNK_RECORDS) -> None:
        self._stamped, self._limit = stamped, limit
        self._count = 0
        self._values: dict[str | None, list[Any]] = {None: []}
        self._stamps: dict[str | None, list[int]] = {None: []}

    def collect(self, results: Any, given: Any, timestamp: int) -> Iterator[Element]:
        """Take the results of one call (an iterable or None); yields batches as they become full."""
        if results is None:
            return
        immutable = IMMUTABLE_TYPES
        for result in iterate_results(results):
            tag = None
            if type(result) not in immutable:
                if type(result) is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                    tag_object, result = result
                    tag = tag_object.tag_id
                result = detached(result, given)
            if tag not in self._values:
                self._values[tag], self._stamps[tag] = [], []
            self._values[tag].append(result)
            if self._stamped:
                self._stamps[tag].append(timestamp)
            self._count += 1
            if self._count >= self._limit:
                yield from self.drain()

    def drain(self) -> Iterator[Element]:
        """Hand on all that was collected."""
        values, stamps = self._values, self._stamps
        self._values, self._stamps, self._count = {None: []}, {None: []}, 0
        for tag, records in values.items():
            if not records:
                continue
            batch = RowBatch(records, stamps[tag] if self._stamped else None)
            yield batch if tag is None else Tagged(tag, batch)
