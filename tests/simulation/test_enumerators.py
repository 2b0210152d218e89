"""Enumerators that raise in whole jobs: the splits they lost thereby are dealt out again."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.connectors.collection import CollectionSource, CollectionSplit, CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import simulate

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "execution.checkpointing.interval": "5 ms",
    "parallelism.default": "2",
}
VALUES, SPLITS = list(range(10)), 6


class _Forgetful(PendingSplits):
    """Loses one split once, and says so."""

    raises_at: int

    def handle_split_request(self, subtask: int) -> None:
        if len(self._splits) == type(self).raises_at:
            type(self).raises_at = -1
            del self._splits[0]
            raise OSError("the list of splits cannot be read")
        super().handle_split_request(subtask)


class _Dealt(Source):
    """The same values once for each split, and two readers that are regions of their own."""

    boundedness = Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return _Forgetful(ctx, [CollectionSplit()] * SPLITS)

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return _Forgetful(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return CollectionSource(VALUES).create_reader(ctx)


@pytest.mark.parametrize("seed", range(6))
def test_an_enumerator_that_raises_begins_anew_with_all_readers(seed: int) -> None:
    _Forgetful.raises_at = 1 + seed % SPLITS
    env = StreamExecutionEnvironment.get_execution_environment(OPTIONS)
    env.from_source(_Dealt(), source_name="dealt").map(lambda value: value).sink_to(CollectSink())
    assert sorted(simulate(env.get_job_graph(), seed).collected()) == sorted(VALUES * SPLITS)
    assert _Forgetful.raises_at == -1
