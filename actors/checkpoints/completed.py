"""The complete checkpoints a job can start from, and when their files go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rayflink.state.storage.manifest import CheckpointManifest, checkpoint_folder

from ..messages.commands import DiscardFiles

MOST_REMEMBERED = 100_000
"""Deleted shared files whose names are remembered."""


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A checkpoint or savepoint that exists.

    Args:
        base: address to which the paths of its files are relative; "": there are no files.
        is_owned: the job deletes it when it is not needed any more; not so savepoints and what other jobs made.
    """

    base: str
    manifest: CheckpointManifest
    is_owned: bool = True

    @property
    def checkpoint_id(self) -> int:
        """Its number."""
        return self.manifest.checkpoint_id

    @property
    def folder(self) -> str:
        """Its own below the base; "" where that is the base itself."""
        return "" if self.manifest.own_base else checkpoint_folder(self.checkpoint_id)

    @property
    def path(self) -> str:
        """What one restores from; "" where it is in memory."""
        return f"{self.base}/{self.folder}".rstrip("/") if self.base else ""


class CompletedCheckpoints:
    """Keeps the newest ones, by number.

    A file several checkpoints refer to goes when no kept one refers to it, and all those are decided that were under
    way when the last such one went: a task may have built its part on a checkpoint that is kept no more.

    Args:
        base: of the job's own checkpoints; "": they have no files.
        retained: how many are kept; at least 1.
    """

    def __init__(self, base: str, retained: int) -> None:
        self._base, self._retained = base, retained
        self._kept: list[CompletedCheckpoint] = []
        self._unreferenced: dict[str, set[int]] = {}
        self._gone: dict[str, None] = {}

    @property
    def kept(self) -> tuple[CompletedCheckpoint, ...]:
        """From the oldest to the newest."""
        return tuple(self._kept)

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """The newest; None when there is none."""
        return self._kept[-1] if self._kept else None

    def start(self, completed: Sequence[CompletedCheckpoint]) -> None:
        """Keep what was there before; what of it is too much goes when one is added."""
        self._kept = sorted(completed, key=lambda c: c.checkpoint_id)

    def add(self, completed: CompletedCheckpoint, under_way: Collection[int]) -> list[CompletedCheckpoint]:
        """Keep one more; those that are too many are not kept any more, and are given back."""
        self._kept = sorted([*self._kept, completed], key=lambda c: c.checkpoint_id)
        gone, self._kept = self._kept[: -self._retained], self._kept[-self._retained :]
        for old in gone:
            if old.is_owned:
                self.dereference(old.manifest.shared_files(), under_way)
        return gone

    def drop(self, checkpoint_id: int) -> None:
        """One cannot be read: it is kept no more, and its files stay for who wants to know why."""
        self._kept = [kept for kept in self._kept if kept.checkpoint_id != checkpoint_id]

    def by_owner(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CompletedCheckpoint, ...]]:
        """Those that the job does not delete, and its own; each from the oldest to the newest."""
        own = tuple(kept for kept in self._kept if kept.is_owned)
        return tuple(kept for kept in self._kept if not kept.is_owned), own

    def clear(self) -> list[CompletedCheckpoint]:
        """Keep none."""
        gone, self._kept = self._kept, []
        return gone

    def dereference(self, shared: Iterable[str], under_way: Collection[int]) -> None:
        """A checkpoint went that referred to these files; the numbers are of those that are still undecided."""
        if self._base:
            for path in shared:
                if path not in self._gone:
                    self._unreferenced[path] = set(under_way)

    def sweep(self, under_way: Mapping[int, Collection[str]]) -> list[DiscardFiles]:
        """Delete shared files nobody will refer to any more.

        Args:
            under_way: of those that are undecided, the files that parts refer to which were given already.
        """
        if not self._unreferenced:
            return []
        referenced = self._shared()
        gone = []
        for path, awaited in list(self._unreferenced.items()):
            awaited &= under_way.keys()
            awaited |= {number for number, paths in under_way.items() if path in paths}
            if path in referenced:
                del self._unreferenced[path]  # a later one refers to it, and lets go of it in its turn
            elif not awaited:
                del self._unreferenced[path]
                gone.append(path)
        self._gone |= dict.fromkeys(gone)
        for path in list(self._gone)[: max(0, len(self._gone) - MOST_REMEMBERED)]:
            del self._gone[path]
        return [DiscardFiles(self._base, tuple(sorted(gone)))] if gone else []

    def is_outdated(self, paths: Iterable[str]) -> bool:
        """Whether one of these files is deleted: a task did not know yet that what it built on is kept no more."""
        return any(path in self._gone for path in paths)

    def unneeded(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the paths that belong to no kept checkpoint."""
        needed = {path for kept in self._kept if kept.base == self._base for path in kept.manifest.files()}
        return tuple(sorted(set(paths) - needed))

    def _shared(self) -> set[str]:
        return {path for kept in self._kept if kept.is_owned for path in kept.manifest.shared_files()}


__all__ = ["CompletedCheckpoint", "CompletedCheckpoints"]
