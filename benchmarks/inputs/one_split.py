"""A source of one split, which its cursor reads: what the sources of benchmarks with one reader share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor


class OneSplitSource(Source):
    """Bounded, and read by one reader; the split is how much of it has been given out."""

    max_parallelism = 1

    @abstractmethod
    def cursor(self, given: int) -> SplitCursor:
        """Read on behind what has been given out; 0 at first."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [0])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> OneByOneReader:
        return _Reader(self)


class _Reader(OneByOneReader):
    def __init__(self, source: OneSplitSource) -> None:
        super().__init__()
        self._source = source

    def open_split(self, split: int) -> SplitCursor:
        return self._source.cursor(split)
