"""Reads a source to its end with a coordinator of a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rayflink.common.connector_base.source import END, PENDING, ReaderContext, Source, SourceReader
from rayflink.common.records.batches import rows_of
from tests.operators.running import FixedClock


class Coordinator:
    """Carries splits from one enumerator to readers of one source."""

    def __init__(self, source: Source, parallelism: int = 1, state: Any = None, clock: Any = None) -> None:
        self.parallelism, self._clock = parallelism, clock or FixedClock()
        self._repeated: list[tuple[int, Any, Any, int]] = []
        contexts = [ReaderContext(index, parallelism, self._clock) for index in range(parallelism)]
        if state is None:
            self.enumerator = source.create_enumerator(self)
        else:
            self.enumerator = source.restore_enumerator(self, state)
        self.enumerator.start()
        self.readers: list[SourceReader] = [source.create_reader(ctx) for ctx in contexts]
        for reader in self.readers:
            reader.start()

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        for subtask, splits in assignment.items():
            self.readers[subtask].add_splits(list(splits))

    def signal_no_more_splits(self, subtask: int) -> None:
        self.readers[subtask].notify_no_more_splits()

    def call_async(self, work: Any, then: Any, period_ms: int | None = None) -> None:
        """Does the work at once; it is repeated when a reader is polled after the pause."""
        try:
            answer, error = work(), None
        except Exception as failure:
            answer, error = None, failure
        if period_ms is not None:
            self._repeated.append((self._clock.now_ms() + period_ms, work, then, period_ms))
        then(answer, error)

    def current_parallelism(self) -> int:
        return self.parallelism

    def poll(self, subtask: int = 0, max_records: int = 1000) -> Any:
        due = [call for call in self._repeated if call[0] <= self._clock.now_ms()]
        self._repeated = [call for call in self._repeated if call not in due]
        for _, work, then, period_ms in due:
            self.call_async(work, then, period_ms)
        reader = self.readers[subtask]
        if reader.needs_split():
            self.enumerator.handle_split_request(subtask)
        return reader.poll(max_records)

    def read_all(self, max_records: int = 1000) -> list[list[Any]]:
        """The records of each reader, the readers taking turns."""
        out: list[list[Any]] = [[] for _ in self.readers]
        running = set(range(self.parallelism))
        idle = 0
        while running:
            for subtask in sorted(running):
                answer = self.poll(subtask, max_records)
                idle = idle + 1 if answer is PENDING else 0
                assert idle < 1000, "a bounded source gives nothing and does not end"
                if answer is END:
                    running.discard(subtask)
                elif answer is not PENDING:
                    out[subtask] += rows_of(answer)
        self.close()
        return out

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        self.enumerator.close()


def read(source: Source, parallelism: int = 1, max_records: int = 1000) -> list[Any]:
    """All records, those of each reader together."""
    return [record for part in Coordinator(source, parallelism).read_all(max_records) for record in part]


def read_with_restores(source: Source, after_polls: int, max_records: int) -> list[Any]:
    """All records of a single reader that is thrown away and restored from its snapshot every few polls."""
    out: list[Any] = []
    coordinator = Coordinator(source)
    while True:
        for _ in range(after_polls):
            answer = coordinator.poll(0, max_records)
            if answer is END:
                coordinator.close()
                return out
            if answer is not PENDING:
                out += rows_of(answer)
        splits, state = coordinator.readers[0].snapshot_state(), coordinator.enumerator.snapshot_state()
        coordinator.close()
        coordinator = Coordinator(source, state=state)
        coordinator.readers[0].add_splits(splits)
