"""A reader that works its splits one after the other; a connector supplies the cursor that reads one split."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Collection
from typing import Any, Protocol

from rayflink.user_types import SourceSplit

from .source import END, PENDING, Polled, SourceReader


class SplitCursor(Protocol):
    """Reads one split from its position on."""

    def read(self, max_records: int) -> Polled | None:
        """Return the next records, about `max_records` at most; PENDING: none are there yet; None: the split's end."""
        ...

    def position(self) -> Any:
        """Return the split with the position up to which `read` gave records out."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def share_of(left: int, max_records: int) -> int:
    """Return how many of `left` records that are there already to give at once: all, rather than leave a short rest."""
    return left if left < 2 * max_records else max_records


class OneByOneReader(SourceReader):
    """Reads its splits in the order in which they came; those that are paused wait behind the others."""

    def __init__(self) -> None:
        self._splits: deque[Any] = deque()
        self._ids: deque[str] = deque()
        self._named: tuple[str, ...] | None = ()
        self._current = ""
        self._paused: set[str] = set()
        self._cursor: SplitCursor | None = None
        self._no_more = False

    @abstractmethod
    def open_split(self, split: SourceSplit) -> SplitCursor:
        """Start to read a split, at the position it carries."""

    def add_splits(self, splits: list[Any]) -> None:
        self._splits.extend(splits)
        self._ids.extend(map(split_id, splits))
        self._named = None

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def needs_split(self) -> bool:
        return not self._splits and not self._no_more

    def poll(self, max_records: int) -> Polled:
        while self._splits:
            if self._paused and not self._find_unpaused():
                return PENDING
            if self._cursor is None:
                self._cursor = self.open_split(self._splits[0])
            self._current = self._ids[0]
            answer = self._cursor.read(max_records)
            if answer is not None:
                return answer
            self._finish_split()
        return END if self._no_more else PENDING

    def split_ids(self) -> Collection[str]:
        if self._named is None:
            self._named = tuple(self._ids)
        return self._named

    def current_split(self) -> str:
        return self._current

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)

    def put_back(self) -> None:
        """Leave the split being read where it is, and read the next one."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            self._splits[0] = cursor.position()
            cursor.close()
        self._splits.rotate(-1)
        self._ids.rotate(-1)

    def _find_unpaused(self) -> bool:
        for _ in range(len(self._ids)):
            if self._ids[0] not in self._paused:
                return True
            if len(self._ids) > 1 and not self._paused.issuperset(self._ids):
                self.put_back()
        return False

    def _finish_split(self) -> None:
        cursor, self._cursor = self._cursor, None
        self._splits.popleft()
        self._paused.discard(self._ids.popleft())
        self._named = None
        if cursor is not None:
            cursor.close()

    def snapshot_state(self) -> list[Any]:
        splits = list(self._splits)
        if self._cursor is not None:
            splits[0] = self._cursor.position()
        return splits

    def close(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()


def split_id(split: SourceSplit) -> str:
    """Return the split's `split_id`, else its repr; the same for all positions in it where it has one."""
    identity = getattr(split, "split_id", None)
    return repr(split)[:200] if identity is None else str(identity() if callable(identity) else identity)
