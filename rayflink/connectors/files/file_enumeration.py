"""The choice of files, their division into splits, and the assignment of splits to readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rayflink.common.connector_base.source import EnumeratorContext, SplitEnumerator

from .file_blocks import FileSplit, find_files, size_of


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
        is_listed: the files there at the start were found; where they were not, a restored job looks for them.
    """

    splits: tuple[FileSplit, ...] = ()
    seen: frozenset[str] = frozenset()
    is_listed: bool = True


class FileEnumerator(SplitEnumerator):
    """Lists files beside the coordinator's decisions, and assigns their splits to readers that ask.

    Watching, it lists again at an interval; readers that asked before wait. A path is read once, with the bytes it has
    when it is found; an empty file is found when it has some.

    Args:
        ctx: the coordinator.
        list_files: gives the files there are.
        divide: paths, parallelism -> splits.
        choose: splits, subtask -> index of the one to give.
        discovery_ms: pause between two listings; None: there is one.
        restored: what `snapshot_state` gave; None: the job starts afresh.
    """

    def __init__(
        self,
        ctx: EnumeratorContext,
        list_files: Callable[[], list[str]],
        divide: Callable[[Sequence[str], int], list[FileSplit]],
        choose: Callable[[Sequence[FileSplit], int], int],
        discovery_ms: int | None,
        restored: FileEnumeratorState | None,
    ) -> None:
        self._ctx, self._choose, self._discovery_ms = ctx, choose, discovery_ms
        state = restored or FileEnumeratorState(is_listed=False)
        self._splits, self._seen, self._is_listed = list(state.splits), set(state.seen), state.is_listed
        self._waiting: dict[int, None] = {}
        """Readers that asked and got nothing yet, in the order in which they asked."""
        known = None if discovery_ms is None else set(state.seen)
        self._listing = _Listing(list_files, divide, ctx.current_parallelism(), known)

    def start(self) -> None:
        if self._discovery_ms is not None or not self._is_listed:
            self._ctx.call_async(self._listing.look, self._discovered, self._discovery_ms)

    def handle_split_request(self, subtask: int) -> None:
        self._waiting[subtask] = None
        self._assign()

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        self._splits[:0] = splits
        self._assign()

    def pending_bytes(self) -> int:
        return sum(split.stop - split.start for split in self._splits)

    def snapshot_state(self) -> FileEnumeratorState:
        return FileEnumeratorState(tuple(self._splits), frozenset(self._seen), self._is_listed)

    def _discovered(self, discovery: tuple[list[str], list[FileSplit]] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert discovery is not None
        paths, splits = discovery
        if self._discovery_ms is not None:
            self._seen.update(paths)
        self._splits += splits
        self._is_listed = True
        self._assign()

    def _assign(self) -> None:
        for reader in list(self._waiting):
            if self._splits:
                self._ctx.assign_splits({reader: [self._splits.pop(self._choose(self._splits, reader))]})
            elif self._discovery_ms is None and self._is_listed:
                self._ctx.signal_no_more_splits(reader)
            else:
                return
            del self._waiting[reader]


class _Listing:
    """A listing of files; its own thread calls it, so nothing of the enumerator is in it.

    Args:
        known: paths that are not new any more, which grows; None: each listing finds all.
    """

    def __init__(
        self,
        list_files: Callable[[], list[str]],
        divide: Callable[[Sequence[str], int], list[FileSplit]],
        parallelism: int,
        known: set[str] | None,
    ) -> None:
        self._list_files, self._divide, self._parallelism, self._known = list_files, divide, parallelism, known

    def look(self) -> tuple[list[str], list[FileSplit]]:
        """Return the new files and their splits."""
        paths = self._list_files()
        if self._known is None:
            return paths, self._divide(paths, self._parallelism)
        new = [path for path in paths if path not in self._known and _has_bytes(path)]
        splits = self._divide(new, self._parallelism)
        self._known.update(map(str, new))
        return list(map(str, new)), splits


def _has_bytes(path: str) -> bool:
    try:
        return size_of(path) > 0
    except FileNotFoundError:  # taken away between the listing and this look: it was never found
        return False
