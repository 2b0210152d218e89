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
        """Return the checkpoint's number."""
        return self.manifest.checkpoint_id

    @property
    def folder(self) -> str:
        """Return the checkpoint's own folder below the base; "" if it is the base itself."""
        return "" if self.manifest.own_base else checkpoint_folder(self.checkpoint_id)

    @property
    def path(self) -> str:
        """Return the path to restore from; "" if the checkpoint is in memory."""
        return f"{self.base}/{self.folder}".rstrip("/") if self.base else ""


class CompletedCheckpoints:
    """The newest completed checkpoints of a job, by number.

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
        """Return the retained checkpoints, oldest first."""
        return tuple(self._kept)

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """Return the newest checkpoint; None when there is none."""
        return self._kept[-1] if self._kept else None

    def start(self, completed: Sequence[CompletedCheckpoint]) -> None:
        """Retain checkpoints that existed before; surplus ones are dropped when the next is added."""
        self._kept = sorted(completed, key=lambda c: c.checkpoint_id)

    def add(self, completed: CompletedCheckpoint, under_way: Collection[int]) -> list[CompletedCheckpoint]:
        """Retain one more checkpoint, and return those that are no longer retained."""
        self._kept = sorted([*self._kept, completed], key=lambda c: c.checkpoint_id)
        gone, self._kept = self._kept[: -self._retained], self._kept[-self._retained :]
        for old in gone:
            if old.is_owned:
                self.dereference(old.manifest.shared_files(), under_way)
        return gone

    def drop(self, checkpoint_id: int) -> None:
        """Drop a checkpoint that cannot be read; its files stay for diagnosis."""
        self._kept = [kept for kept in self._kept if kept.checkpoint_id != checkpoint_id]

    def by_owner(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CompletedCheckpoint, ...]]:
        """Return the checkpoints that the job does not delete, and its own; each oldest first."""
        own = tuple(kept for kept in self._kept if kept.is_owned)
        return tuple(kept for kept in self._kept if not kept.is_owned), own

    def clear(self) -> list[CompletedCheckpoint]:
        """Retain none."""
        gone, self._kept = self._kept, []
        return gone

    def dereference(self, shared: Iterable[str], under_way: Collection[int]) -> None:
        """Drop the references of a checkpoint that is gone; those `under_way` may still refer to the files."""
        if self._base:
            for path in shared:
                if path not in self._gone:
                    self._unreferenced[path] = set(under_way)

    def sweep(self, under_way: Mapping[int, Collection[str]]) -> list[DiscardFiles]:
        """Return the shared files that no checkpoint will refer to any more.

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
        """Return whether one of these files is deleted already: the task built on a checkpoint that is no longer
        retained.
        """
        return any(path in self._gone for path in paths)

    def unneeded(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the paths that belong to no retained checkpoint."""
        needed = {path for kept in self._kept if kept.base == self._base for path in kept.manifest.files()}
        return tuple(sorted(set(paths) - needed))

    def _shared(self) -> set[str]:
        return {path for kept in self._kept if kept.is_owned for path in kept.manifest.shared_files()}


__all__ = ["CompletedCheckpoint", "CompletedCheckpoints"]
