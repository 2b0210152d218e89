"""The base of sources that only one reader can read, such as a connection or an iterator."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rayflink.common.connector_base.source import EnumeratorContext, PendingSplits, Source, SplitEnumerator
from rayflink.common.functions.type_variables import Output
from rayflink.user_types import EnumeratorState


class SingleSplitSource(Source[Output]):
    """A source with one split and so with one reader, whatever the job's parallelism."""

    @abstractmethod
    def first_split(self) -> Any:
        """Return the split of a job that starts without a snapshot."""

    @property
    def max_parallelism(self) -> int:
        return 1

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [self.first_split()])

    def restore_enumerator(self, ctx: EnumeratorContext, state: EnumeratorState) -> SplitEnumerator:
        return PendingSplits(ctx, state)


__all__ = ["SingleSplitSource"]
