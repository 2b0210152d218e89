"""A buffer for the results of user functions, for the main and the side outputs, emitted as batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from rayflink.common.output_tag import OutputTag
from rayflink.common.records.aliasing import detached
from rayflink.common.records.batches import MIN_TIMESTAMP, Element, RowBatch, Tagged
from rayflink.common.records.immutability import IMMUTABLE_TYPES
from rayflink.common.user_code.iterate_results import iterate_results


class OutputBuffer:
    """Records to be emitted. Timestamps are epoch milliseconds, or None for records that have none."""

    __slots__ = ("_side", "_stamps", "_values", "count")

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._stamps: list[int | None] = []
        self._side: dict[str, tuple[list[Any], list[int | None]]] = {}
        self.count = 0

    def add(self, value: Any, stamp: int | None) -> None:
        """Add a record to the main output."""
        self._values.append(value)
        self._stamps.append(stamp)
        self.count += 1

    def extend(self, values: list[Any], stamp: int | None) -> None:
        """Add records to the main output; the caller gives up the objects."""
        self._values += values
        self._stamps += [stamp] * len(values)
        self.count += len(values)

    def add_side(self, tag_id: str, value: Any, stamp: int | None) -> None:
        """Add a record to a side output."""
        values, stamps = self._side.setdefault(tag_id, ([], []))
        values.append(value)
        stamps.append(stamp)
        self.count += 1

    def add_results(self, results: Iterable[Any] | None, stamp: int | None, record: Any = None) -> None:
        """Add all results of a process function for the record `record`."""
        if results is not None:
            self.fill(iterate_results(results), stamp, record, sys.maxsize)

    def draw(self, results: Iterator[Any], stamp: int | None, most: int = 16) -> bool:
        """Add up to `most` further results of a process function; return whether there were fewer."""
        before = self.count
        self.fill(islice(results, most), stamp, None, sys.maxsize)
        return self.count - before < most

    def fill(self, results: Iterator[Any], stamp: int | None, record: Any, limit: int) -> bool:
        """Add results of a process function until the buffer has `limit` records.

        Args:
            results: records, and (tag, record) for side outputs.
            stamp: the timestamp of the results.
            record: the record that the function was called with; a result that refers to it is copied.

        Returns: whether all results are in the buffer; otherwise `take` the records, and call again.
        """
        immutable, values, stamps = IMMUTABLE_TYPES, self._values, self._stamps
        for result in results:
            kind = type(result)
            if kind is tuple and len(result) == 2 and isinstance(result[0], OutputTag):
                self.add_side(result[0].tag_id, detached(result[1], record), stamp)
            else:
                values.append(result if kind in immutable else detached(result, record))
                stamps.append(stamp)
                self.count += 1
            if self.count >= limit:
                return False
        return True

    def take(self) -> list[Element]:
        """Remove and return the buffered records as batches; a batch without any timestamp has none."""
        elements: list[Element] = []
        if self._values:
            elements.append(_batch(self._values, self._stamps))
            self._values, self._stamps = [], []
        for tag_id, (values, stamps) in self._side.items():
            elements.append(Tagged(tag_id, _batch(values, stamps)))
        self._side = {}
        self.count = 0
        return elements


def _batch(values: list[Any], stamps: list[int | None]) -> RowBatch:
    if None not in stamps:
        return RowBatch(values, stamps)  # type: ignore[arg-type]
    if all(stamp is None for stamp in stamps):
        return RowBatch(values)
    return RowBatch(values, [MIN_TIMESTAMP if stamp is None else stamp for stamp in stamps])
