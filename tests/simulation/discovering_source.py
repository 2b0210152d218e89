"""A source whose splits are discovered one by one, by work that blocks, and whose reader is notified of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, share_of
from rayflink.common.records.batches import RowBatch

NOTIFIED: dict[str, list[tuple[int, int]]] = {}
"""Name of a source -> checkpoint id and number of splits in it, of all its readers."""


@dataclass(frozen=True)
class Range:
    """The numbers from `position` to `end`."""

    position: int
    end: int

    @property
    def split_id(self) -> str:
        return str(self.end)


class DiscoveringSource(Source[int]):
    """Discovers `splits` ranges of `size` numbers, one every `period_ms`; `fails_at` is a discovery that raises."""

    def __init__(
        self, splits: int, size: int = 10, period_ms: int = 20, fails_at: int | None = None, name: str = ""
    ) -> None:
        self.splits, self.size, self.period_ms, self.fails_at, self.name = splits, size, period_ms, fails_at, name

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return _Enumerator(ctx, self, _State())

    def restore_enumerator(self, ctx: EnumeratorContext, state: _State) -> SplitEnumerator:
        return _Enumerator(ctx, self, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _Reader(self.name)


@dataclass(frozen=True)
class _State:
    found: int = 0
    unassigned: tuple[Range, ...] = ()


class _Enumerator(SplitEnumerator):
    def __init__(self, ctx: EnumeratorContext, source: DiscoveringSource, state: _State) -> None:
        self._ctx, self._source = ctx, source
        self._found, self._unassigned = state.found, list(state.unassigned)
        self._waiting: list[int] = []

    def start(self) -> None:
        self._ctx.call_async(self._list_next, self._discovered, self._source.period_ms)

    def _list_next(self) -> Range | None:
        if self._found == self._source.fails_at:
            raise ConnectionError("the listing failed")
        size = self._source.size
        return None if self._found == self._source.splits else Range(self._found * size, (self._found + 1) * size)

    def _discovered(self, answer: Range | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        if answer is not None:
            self._found += 1
            self._unassigned.append(answer)
        self._assign()

    def _assign(self) -> None:
        while self._waiting and self._unassigned:
            self._ctx.assign_splits({self._waiting.pop(0): [self._unassigned.pop(0)]})
        if self._found == self._source.splits and not self._unassigned:
            for subtask in self._waiting:
                self._ctx.signal_no_more_splits(subtask)
            self._waiting = []

    def handle_split_request(self, subtask: int) -> None:
        if subtask not in self._waiting:
            self._waiting.append(subtask)
        self._assign()

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        self._unassigned += splits

    def snapshot_state(self) -> _State:
        return _State(self._found, tuple(self._unassigned))


class _Reader(OneByOneReader):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def open_split(self, split: Range) -> _Cursor:
        return _Cursor(split)

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[Any]) -> None:
        NOTIFIED.setdefault(self._name, []).append((checkpoint_id, len(splits)))


class _Cursor:
    def __init__(self, split: Range) -> None:
        self._split = split

    def read(self, max_records: int) -> RowBatch | None:
        start, end = self._split.position, self._split.end
        if start == end:
            return None
        behind = start + share_of(end - start, max_records)
        self._split = replace(self._split, position=min(behind, end))
        return RowBatch(list(range(start, min(behind, end))))

    def position(self) -> Range:
        return self._split

    def close(self) -> None:
        pass
