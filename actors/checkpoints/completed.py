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

    A shared file is deleted when no retained checkpoint refers to it, and all those are decided that were under way
    when the last one that did was dropped: a task may have built its part on a checkpoint that is no longer retained.

    Args:
        base: of the job's own checkpoints; "": they have no files.
        retained: how many of them there are at most; at least 1.
    """

    def __init__(self, base: str, retained: int) -> None:
        self._base, self._retained = base, retained
        self._checkpoints: list[CompletedCheckpoint] = []
        self._unreferenced: dict[str, set[int]] = {}
        self._deleted: dict[str, None] = {}

    @property
    def retained(self) -> tuple[CompletedCheckpoint, ...]:
        """Return the retained checkpoints, oldest first."""
        return tuple(self._checkpoints)

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """Return the newest checkpoint; None when there is none."""
        return self._checkpoints[-1] if self._checkpoints else None

    def start(self, completed: Sequence[CompletedCheckpoint]) -> None:
        """Retain checkpoints that existed before; surplus ones are dropped when the next is added."""
        self._checkpoints = sorted(completed, key=lambda c: c.checkpoint_id)

    def add(self, completed: CompletedCheckpoint, under_way: Collection[int]) -> list[CompletedCheckpoint]:
        """Retain one more checkpoint, and return those that are no longer retained."""
        self._checkpoints = sorted([*self._checkpoints, completed], key=lambda c: c.checkpoint_id)
        dropped, self._checkpoints = self._checkpoints[: -self._retained], self._checkpoints[-self._retained :]
        for old in dropped:
            if old.is_owned:
                self.dereference(old.manifest.shared_files(), under_way)
        return dropped

    def drop(self, checkpoint_id: int) -> None:
        """Drop a checkpoint that cannot be read; its files stay for diagnosis."""
        self._checkpoints = [
            checkpoint for checkpoint in self._checkpoints if checkpoint.checkpoint_id != checkpoint_id
        ]

    def by_owner(self) -> tuple[tuple[CompletedCheckpoint, ...], tuple[CompletedCheckpoint, ...]]:
        """Return the checkpoints that the job does not delete, and its own; each oldest first."""
        own = tuple(checkpoint for checkpoint in self._checkpoints if checkpoint.is_owned)
        return tuple(checkpoint for checkpoint in self._checkpoints if not checkpoint.is_owned), own

    def clear(self) -> list[CompletedCheckpoint]:
        """Retain none."""
        dropped, self._checkpoints = self._checkpoints, []
        return dropped

    def dereference(self, shared: Iterable[str], under_way: Collection[int]) -> None:
        """Drop the references of a checkpoint that is gone; those `under_way` may still refer to the files."""
        if self._base:
            for path in shared:
                if path not in self._deleted:
                    self._unreferenced[path] = set(under_way)

    def sweep(self, under_way: Mapping[int, Collection[str]]) -> list[DiscardFiles]:
        """Return the shared files that no checkpoint will refer to any more.

        Args:
            under_way: of those that are undecided, the files that parts refer to which were given already.
        """
        if not self._unreferenced:
            return []
        referenced = self._shared()
        unreferenced = []
        for path, awaited in list(self._unreferenced.items()):
            awaited &= under_way.keys()
            awaited |= {number for number, paths in under_way.items() if path in paths}
            if path in referenced:
                del self._unreferenced[path]  # a later one refers to it, and lets go of it in its turn
            elif not awaited:
                del self._unreferenced[path]
                unreferenced.append(path)
        self._deleted |= dict.fromkeys(unreferenced)
        for path in list(self._deleted)[: max(0, len(self._deleted) - MOST_REMEMBERED)]:
            del self._deleted[path]
        return [DiscardFiles(self._base, tuple(sorted(unreferenced)))] if unreferenced else []

    def is_outdated(self, paths: Iterable[str]) -> bool:
        """Return whether one of these files is deleted already: the task built on a checkpoint that is no longer
        retained.
        """
        return any(path in self._deleted for path in paths)

    def unneeded(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the paths that belong to no retained checkpoint."""
        needed = {path for known in self._checkpoints if known.base == self._base for path in known.manifest.files()}
        return tuple(sorted(set(paths) - needed))

    def _shared(self) -> set[str]:
        return {path for known in self._checkpoints if known.is_owned for path in known.manifest.shared_files()}


__all__ = ["CompletedCheckpoint", "CompletedCheckpoints"]
