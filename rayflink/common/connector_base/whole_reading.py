"""Reads a bounded source as a whole, by one reader in one thread: for tables that are kept in memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rayflink.state.clock import SystemClock

from ..metrics.metric_group import MetricGroup
from ..records.batches import ArrowBatch, RowBatch, Tagged
from .source import END, PENDING, Boundedness, ReaderContext, Source, SourceReader

_Answer = TypeVar("_Answer")
MOST_RECORDS = 1 << 16
_PAUSE_S = 0.002


class _OneReader:
    """The services of the coordinator for the enumerator of one reader, which is beside it.

    Args:
        reader: takes all splits.
    """

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader
        self._later: deque[Callable[[], None]] = deque()
        self.is_asked = False
        """Whether a split was asked for that has not come yet."""

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        self.is_asked = False
        for splits in assignment.values():
            self._reader.add_splits(list(splits))

    def signal_no_more_splits(self, subtask: int) -> None:
        self._reader.notify_no_more_splits()

    def current_parallelism(self) -> int:
        return 1

    def call_async(
        self,
        work: Callable[[], _Answer],
        then: Callable[[_Answer | None, Exception | None], None],
        period_ms: int | None = None,
    ) -> None:
        def run() -> None:
            try:
                answer = work()
            except Exception as error:
                then(None, error)
            else:
                then(answer, None)

        self._later.append(run)

    def run_later(self) -> None:
        """Do the work that the enumerator has asked for."""
        while self._later:
            self._later.popleft()()


def read_whole(
    source: Source, config: Mapping[str, object], metrics: MetricGroup, is_cancelled: Callable[[], bool] = lambda: False
) -> Iterator[ArrowBatch | RowBatch]:
    """Yield all records of a bounded source, and wait where it needs time.

    Args:
        config: the job's options, key -> value.
        is_cancelled: asked between batches; then no more are read.

    Raises: what keeps the source from being read.
    """
    assert source.boundedness is Boundedness.BOUNDED, f"{source!r} has no end"
    source = source.configured(config)
    source.check()
    clock = SystemClock()
    reader = source.create_reader(ReaderContext(clock=clock, metrics=metrics, config=config,
                                                send_source_event=lambda event: events.append(event)))  # fmt: skip
    events: deque[object] = deque()
    services = _OneReader(reader)
    enumerator = source.create_enumerator(services)
    try:
        enumerator.start()
        reader.start()
        enumerator.add_reader(0)
        while not is_cancelled():
            services.run_later()
            while events:
                enumerator.handle_source_event(0, events.popleft())
            if not services.is_asked and reader.needs_split():
                services.is_asked = True
                enumerator.handle_split_request(0)
                services.run_later()
            polled = reader.poll(MOST_RECORDS)
            if polled is END:
                return
            if polled is PENDING:
                time.sleep(_PAUSE_S)
            elif isinstance(polled, (ArrowBatch, RowBatch)):
                yield polled
            elif isinstance(polled, Tagged):
                continue  # records that could not be read, which the source counts
    finally:
        reader.close()
        enumerator.close()


__all__ = ["read_whole"]
