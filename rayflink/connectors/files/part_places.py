"""Places of part files: a local folder or one in an object store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rayflink.user_types import UserValue

from ..file_systems.object_paths import is_object_address
from ..file_systems.object_store import ObjectStores
from .object_parts import ObjectCommitter, ObjectPart, ObjectPlace, PendingObject
from .part_files import LocalPlace, PartFile, PendingFile, Renamer


class PartPlace(Protocol):
    """The folder of a sink, in which part files are written and become visible later."""

    def ensure_writable(self) -> None:
        """Check that the folder can be written to, as far as that is known without a file."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a visible file is there."""
        ...

    def open_part(self, folder: str, name: str, attempt: tuple[int, int], now_ms: int) -> PartFile | ObjectPart:
        """Return a new file in the folder or below it.

        Raises:
            FileExistsError: another attempt of that number has this file.
        """
        ...

    def settle(self, folder: str) -> None:
        """Make the names of new files durable."""
        ...

    def discard(self, pending: UserValue) -> None:
        """Delete a file that will not be visible."""
        ...

    def remove_leftovers(
        self, names: tuple[str, str], firsts: Mapping[int, int], before: tuple[int, int] | None, subtask: int
    ) -> None:
        """Delete what earlier attempts of some subtasks began and no checkpoint knows."""
        ...

    def close(self) -> None:
        """Release what the place has opened."""
        ...


def place_of(folder: str, stores: ObjectStores) -> PartPlace:
    """Return the place that a folder is."""
    return ObjectPlace(stores.path(folder)) if is_object_address(folder) else LocalPlace(folder)


def committer_of(folder: str, stores: ObjectStores) -> Renamer | ObjectCommitter:
    """Return the committer of files in a folder."""
    return ObjectCommitter(stores) if is_object_address(folder) else Renamer()


__all__ = ["PartPlace", "PendingFile", "PendingObject", "committer_of", "place_of"]
