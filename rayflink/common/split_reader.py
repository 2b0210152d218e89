"""A reader that works its splits one after the other; a connector supplies the cursor that reads one split."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Any, Protocol

from .source import END, PENDING, Polled, SourceReader


class SplitCursor(Protocol):
    """Reads one split from its position on."""

    def read(self, max_records: int) -> Polled | None:
        """The next records, at most about `max_records`; PENDING when there are none yet; None at the split's end."""
        ...

    def position(self) -> Any:
        """The split with the position up to which `read` gave records out."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


class OneByOneReader(SourceReader):
    """Reads its splits in the order in which they came."""

    def __init__(self) -> None:
        self._splits: deque[Any] = deque()
        self._cursor: SplitCursor | None = None
        self._no_more = False

    @abstractmethod
    def open_split(self, split: Any) -> SplitCursor:
        """Start to read a split, at the position it carries."""

    def add_splits(self, splits: list[Any]) -> None:
        self._splits.extend(splits)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def needs_split(self) -> bool:
        return not self._splits and not self._no_more

    def poll(self, max_records: int) -> Polled:
        while self._splits:
            if self._cursor is None:
                self._cursor = self.open_split(self._splits[0])
            answer = self._cursor.read(max_records)
            if answer is not None:
                return answer
            self._finish_split()
        return END if self._no_more else PENDING

    def _finish_split(self) -> None:
        cursor, self._cursor = self._cursor, None
        self._splits.popleft()
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
