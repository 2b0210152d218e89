"""Lists in, lists out: a source of given records and a sink that hands its records back to the program."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.errors import NotSerializable
from rayflink.common.functions.accumulators import ListAccumulator
from rayflink.common.functions.type_variables import Output
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.records.immutability import is_immutable
from rayflink.common.user_code.call_sites import call_site
from rayflink.common.user_code.unpicklable import cause, failure_of
from rayflink.user_types import EnumeratorState


@dataclass(frozen=True)
class CollectionSplit:
    """Elements [position, end of the collection)."""

    position: int = 0
    split_id = "collection"


def check_elements(values: list[Any]) -> None:
    """Refuse elements that cannot be sent to another process, as far as one of each type shows.

    Raises:
        NotSerializable: one cannot.
    """
    for value in {type(value): value for value in values}.values():
        failure = None if is_immutable(type(value)) else failure_of(value)
        if failure is not None:
            raise NotSerializable("the collection", cause(values, failure), call_site())


class CollectionSource(Source[Output]):
    """Emits the elements of a collection in their order, from one reader.

    Args:
        values: the records.
        timestamps: epoch milliseconds, one a record, or None.

    Raises:
        ValueError: records and timestamps differ in number.
    """

    def __init__(self, values: Iterable[Output], timestamps: Iterable[int] | None = None) -> None:
        self._values = list(values)
        self._timestamps = None if timestamps is None else list(timestamps)
        if self._timestamps is not None and len(self._timestamps) != len(self._values):
            raise ValueError(f"{len(self._values)} records need as many timestamps, found {len(self._timestamps)}")

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def max_parallelism(self) -> int:
        return 1

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [CollectionSplit()])

    def restore_enumerator(self, ctx: EnumeratorContext, state: EnumeratorState) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _CollectionReader(self._values, self._timestamps)


class _CollectionReader(OneByOneReader):
    def __init__(self, values: list[Any], timestamps: list[int] | None) -> None:
        super().__init__()
        self._values, self._timestamps = values, timestamps

    def open_split(self, split: CollectionSplit) -> SplitCursor:
        return _CollectionCursor(split, self._values, self._timestamps)


class _CollectionCursor:
    def __init__(self, split: CollectionSplit, values: list[Any], timestamps: list[int] | None) -> None:
        self._split, self._values, self._timestamps = split, values, timestamps

    def read(self, max_records: int) -> Batch | None:
        start = self._split.position
        values = self._values[start : start + max_records]
        if not values:
            return None
        self._split = replace(self._split, position=start + len(values))
        if not all(map(is_immutable, set(map(type, values)))):
            values = [copy.deepcopy(value) for value in values]  # the program's own objects, one of them maybe twice
        stamps = self._timestamps
        return RowBatch(values, None if stamps is None else stamps[start : start + len(values)])

    def position(self) -> CollectionSplit:
        return self._split

    def close(self) -> None:
        pass


class CollectSink(Sink):
    """Gives its records back to the program, as a list in the job's result.

    Records of one subtask keep their order; those of several are put one after the other.

    Args:
        accumulator_name: under which the list stands in `JobExecutionResult.get_accumulator_result`.
    """

    name = "Sink: Collect"

    def __init__(self, accumulator_name: str = "collect") -> None:
        self.accumulator_name = accumulator_name

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _CollectWriter(ctx, self.accumulator_name)


class _CollectWriter(SinkWriter):
    def __init__(self, ctx: WriterContext, accumulator_name: str) -> None:
        accumulator = ctx.accumulators.setdefault(accumulator_name, ListAccumulator())
        if not isinstance(accumulator, ListAccumulator):
            raise TypeError(
                f"accumulator {accumulator_name!r} is a {type(accumulator).__name__}; give the sink another name"
            )
        self._accumulator = accumulator
        for rows in ctx.restored:
            accumulator.extend(rows)

    def write(self, batch: Batch) -> None:
        self._accumulator.extend(rows_of(batch))

    def flush(self, end_of_input: bool) -> None:
        pass

    def snapshot_state(self) -> Any:
        return self._accumulator.get_local_value()

    def close(self) -> None:
        pass
