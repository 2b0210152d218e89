"""Copies on the node of the files of a subtask's newest checkpoints, so that a restart there need not fetch them.

A copy is a hard link to the file that was stored, under the name it has in the storage: it costs no space while the
database still has the file. It is a convenience only: what is missing, or not as it was written, is read from the
storage.

Source: apache/flink TaskLocalStateStore.
"""

from __future__ import annotations

import os
import shutil
import threading
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..private_folders import make_private
from ..snapshots import FileSlice

_READ_AT_ONCE = 16 << 20


class LocalCopies:
    """The copies of one subtask; may be used by several threads.

    Args:
        folder: where they are; it may outlive the process, and is made when the first is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._needed: dict[int, set[str]] = {}
        self._changing = threading.Lock()
        self.used = 0
        """Number of files that a restart took from here."""

    def keep(self, checkpoint_id: int, path: str, local: Path) -> None:
        """Link a local file that is stored under this name for a checkpoint; if that fails, there is no copy."""
        with self._changing:  # it needs the file from now on, though an older one may become complete
            self._needed.setdefault(checkpoint_id, set()).add(path)
        with suppress(OSError):
            make_private(self._folder)
            os.link(local, self._place(path))

    def take(self, part: FileSlice, target: Path) -> bool:
        """Put a whole stored file at `target`, which does not exist; False where it is not here as it was written."""
        place = self._place(part.path)
        try:
            if part.offset or place.stat().st_size != part.length or _checksum_of(place) != part.checksum:
                return False
            os.link(place, target)
        except OSError:
            return False
        self.used += 1
        return True

    def refers(self, checkpoint_id: int, paths: Iterable[str]) -> None:
        """Note that a checkpoint was written that refers to these files."""
        with self._changing:
            self._needed[checkpoint_id] = set(paths)

    def aborted(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete."""
        with self._changing:
            self._needed.pop(checkpoint_id, None)

    def complete(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete, and delete copies that only older ones refer to."""
        with self._changing:
            self._needed = {number: paths for number, paths in self._needed.items() if number >= checkpoint_id}
            needed = {self._place(path).name for paths in self._needed.values() for path in paths}
            with suppress(OSError):
                for place in self._folder.iterdir():
                    if place.name not in needed:
                        place.unlink(missing_ok=True)

    def clear(self) -> None:
        """Keep nothing."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _place(self, path: str) -> Path:
        return self._folder / path.replace("/", "-")


def _checksum_of(place: Path) -> int:
    checksum = 0
    with place.open("rb") as source:
        while data := source.read(_READ_AT_ONCE):
            checksum = zlib.crc32(data, checksum)
    return checksum


__all__ = ["LocalCopies"]
