"""The choice of files, their division into splits, and the assignment of splits to readers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rayflink.common.connector_base.source import EnumeratorContext, SplitEnumerator

from .file_blocks import FileSplit, find_files


@dataclass(frozen=True)
class AskLater:
    """In place of a split: there is none now, and the reader shall ask again after the discovery interval."""


class FileEnumeratorProvider:
    """Says which files paths name and how these are split; override `list_files` to choose among them.

    Args:
        divides: large files of a divisible format become several splits.
    """

    def __init__(self, divides: bool = True) -> None:
        self.divides = divides

    def list_files(self, paths: Sequence[str], watching: bool) -> list[str]:
        """Return the files to read, in order; hidden ones (`.`, `_`) are left out.

        Args:
            watching: later files are found too, so that a pattern may have no match yet.
        """
        return find_files(paths, may_be_empty=watching)

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return an enumerator of all files, large ones in several splits where format and compression allow it."""
        return FileEnumeratorProvider()

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Return an enumerator of all files, each in one split."""
        return FileEnumeratorProvider(divides=False)


class FileSplitAssignerProvider:
    """Says which of the waiting splits a reader gets; override `choose` for an order of your own."""

    def choose(self, splits: Sequence[FileSplit], subtask: int) -> int:
        """Return the index in `splits` (never empty) of the split for this reader."""
        return 0

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Return an assigner that follows the order of name and position: every node reaches every file equally
        well.
        """
        return FileSplitAssignerProvider()


@dataclass(frozen=True)
class FileEnumeratorState:
    """The enumerator's state, from which a restored job continues.

    Args:
        splits: not assigned yet.
        seen: paths found so far, where folders are watched.
    """

    splits: tuple[FileSplit, ...] = ()
    seen: frozenset[str] = frozenset()


class FileEnumerator(SplitEnumerator):
    """Lists files, and assigns their splits to readers that ask.

    Watching, it lists again when a reader asks and nothing is left. A path is read once, with the bytes it has when it
    is found; an empty file is found when it has some.

    Args:
        ctx: the coordinator.
        list_files: gives the files there are.
        divide: paths, parallelism -> splits.
        choose: splits, subtask -> index of the one to give.
        watching: more files may come.
        restored: what `snapshot_state` gave; None: the job starts afresh.
    """

    def __init__(
        self,
        ctx: EnumeratorContext,
        list_files: Callable[[], list[str]],
        divide: Callable[[Sequence[str], int], list[FileSplit]],
        choose: Callable[[Sequence[FileSplit], int], int],
        watching: bool,
        restored: FileEnumeratorState | None,
    ) -> None:
        self._ctx, self._list_files, self._divide = ctx, list_files, divide
        self._choose, self._watching, self._fresh = choose, watching, restored is None
        state = restored or FileEnumeratorState()
        self._splits, self._seen = list(state.splits), set(state.seen)
        self._idle: set[int] = set()

    def start(self) -> None:
        if self._fresh:
            self._discover()

    def handle_split_request(self, subtask: int) -> None:
        if not self._splits and self._watching:
            self._discover()
        if not self._splits:
            if self._watching:
                self._idle.add(subtask)
                self._ctx.assign_splits({subtask: [AskLater()]})
            else:
                self._ctx.signal_no_more_splits(subtask)
            return
        self._idle.discard(subtask)
        for reader in (subtask, *sorted(self._idle)):
            if self._splits:
                self._idle.discard(reader)
                self._ctx.assign_splits({reader: [self._splits.pop(self._choose(self._splits, reader))]})

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        self._splits[:0] = splits

    def snapshot_state(self) -> FileEnumeratorState:
        return FileEnumeratorState(tuple(self._splits), frozenset(self._seen))

    def _discover(self) -> None:
        found = self._list_files()
        if self._watching:
            found = [path for path in found if path not in self._seen and _has_bytes(path)]
            self._seen.update(found)
        self._splits += self._divide(found, self._ctx.current_parallelism())


def _has_bytes(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except FileNotFoundError:  # taken away between the listing and this look: it was never found
        return False
