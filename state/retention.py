"""Which checkpoints and files are kept. Plain deciders: they name what is to be deleted, and delete nothing."""

from __future__ import annotations

from collections.abc import Iterable

from .manifest import METADATA, CheckpointManifest, checkpoint_folder, is_shared, metadata_path


class Retained:
    """The newest complete checkpoints of a job.

    Args:
        most: how many are kept, at least 1.

    >>> retained = Retained(2)
    >>> retained.add(5), retained.add(6), retained.add(8)
    ((), (), (5,))
    >>> retained.ids
    (6, 8)
    """

    def __init__(self, most: int) -> None:
        assert most >= 1, f"found {most} checkpoints to keep, wanted 1 at least"
        self._most = most
        self._ids: list[int] = []

    @property
    def ids(self) -> tuple[int, ...]:
        """Those that are kept, oldest first."""
        return tuple(self._ids)

    def add(self, checkpoint_id: int) -> tuple[int, ...]:
        """A checkpoint is complete: those that are kept no longer."""
        self._ids = sorted({*self._ids, checkpoint_id})
        subsumed, self._ids = self._ids[: -self._most], self._ids[-self._most :]
        return tuple(subsumed)

    def drop(self, checkpoint_id: int) -> None:
        """Forget one that was deleted or is damaged."""
        if checkpoint_id in self._ids:
            self._ids.remove(checkpoint_id)


class SharedFiles:
    """Who refers to the files that several checkpoints may share; a file nobody needs is named for deletion, once.

    A checkpoint is begun when it is triggered, completed or discarded later. One that is begun may refer to any file of
    a checkpoint that was complete then. So a file is named only when all checkpoints that were under way when its last
    one was discarded have ended, and none of them refers to it. A task may build on no checkpoint that was discarded
    before the one it works on was begun.

    >>> files = SharedFiles()
    >>> files.begin(1), files.register(1, ["shared/a", "shared/b"]), files.complete(1)
    (None, None, ())
    >>> files.begin(2), files.register(2, ["shared/b", "shared/c"]), files.complete(2)
    (None, None, ())
    >>> files.discard(1)
    ('shared/a',)
    """

    def __init__(self) -> None:
        self._files: dict[int, set[str]] = {}
        self._users: dict[str, set[int]] = {}
        self._under_way: set[int] = set()
        self._waiting: dict[str, set[int]] = {}

    def begin(self, checkpoint_id: int) -> None:
        """A checkpoint is triggered: what is complete now may be needed by it."""
        self._under_way.add(checkpoint_id)

    def register(self, checkpoint_id: int, paths: Iterable[str]) -> None:
        """A checkpoint refers to files; each acknowledgement may bring some, also one that comes too late.

        Register those of a late acknowledgement and discard the checkpoint again: then what it has stored is named.
        """
        files = self._files.setdefault(checkpoint_id, set())
        for path in paths:
            files.add(path)
            self._users.setdefault(path, set()).add(checkpoint_id)
            self._waiting.pop(path, None)

    def complete(self, checkpoint_id: int) -> tuple[str, ...]:
        """A checkpoint is complete and kept: the files to delete."""
        return self._ended(checkpoint_id)

    def discard(self, checkpoint_id: int) -> tuple[str, ...]:
        """A checkpoint has failed or is kept no longer: the files to delete, sorted."""
        for path in self._files.pop(checkpoint_id, ()):
            users = self._users[path]
            users.discard(checkpoint_id)
            if not users:
                del self._users[path]
                self._waiting[path] = set(self._under_way)
        return self._ended(checkpoint_id)

    @property
    def needed(self) -> frozenset[str]:
        """The files that may not be deleted yet."""
        return frozenset((*self._users, *self._waiting))

    def _ended(self, checkpoint_id: int) -> tuple[str, ...]:
        """The files that wait for no checkpoint any more."""
        self._under_way.discard(checkpoint_id)
        for waits_for in self._waiting.values():
            waits_for.discard(checkpoint_id)
        free = sorted(path for path, waits_for in self._waiting.items() if not waits_for)
        for path in free:
            del self._waiting[path]
        return tuple(free)


def abandoned_files(paths: Iterable[str], kept: Iterable[CheckpointManifest]) -> tuple[str, ...]:
    """Files of a job's base that no kept checkpoint refers to: what failed checkpoints and killed processes left.

    Only for one who knows that nobody writes there: a coordinator before it triggers its first checkpoint. The folder
    of a complete checkpoint that is not among the kept ones, such as one that cannot be read, is left alone.

    Args:
        paths: all files below the base.
        kept: the checkpoints that are kept.

    >>> abandoned_files(["chk-3/_metadata", "chk-3/a", "chk-4/b", "shared/c", "notes.txt"], [])
    ('chk-4/b', 'shared/c')
    """
    manifests, listed = list(kept), list(paths)
    needed = {path for manifest in manifests for path in manifest.files()}
    needed |= {metadata_path(manifest.checkpoint_id) for manifest in manifests}
    folders = {checkpoint_folder(manifest.checkpoint_id) for manifest in manifests}
    complete = {path.removesuffix(f"/{METADATA}") for path in listed if path.endswith(f"/{METADATA}")}

    def is_abandoned(path: str) -> bool:
        folder = path.partition("/")[0]
        is_ours = is_shared(path) or (folder.startswith("chk-") and folder != path)
        return is_ours and path not in needed and (folder in folders or folder not in complete)

    return tuple(sorted(filter(is_abandoned, listed)))


__all__ = ["Retained", "SharedFiles", "abandoned_files"]
