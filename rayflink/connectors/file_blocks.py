"""Files cut into byte ranges that several readers take at the same time, each line read by exactly one of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass

from .compression import UNPACK_ERRORS, is_compressed, open_bytes

BLOCK_BYTES = 1 << 20
"""Read at a time."""
SPLIT_BYTES = 16 << 20
"""Largest split of a file; a file is cut smaller so that every reader gets a part, but not below a block."""
TO_THE_END = 2**63 - 1
"""The stop of a split that goes on to the end of its file, wherever that is."""


@dataclass(frozen=True)
class FileSplit:
    """The lines of a file whose first byte lies in [start, stop).

    Args:
        path: of the file.
        offset: where reading goes on, as the format counts: for lines the first byte of one; None: not begun.
        skip: records from `offset` on that were given out already.
    """

    path: str
    start: int
    stop: int
    offset: int | None = None
    skip: int = 0


def find_files(paths: Sequence[str], may_be_empty: bool = False) -> list[str]:
    """Files named by `paths`: a file, a folder (all in it, hidden ones left out, in order of name) or a glob pattern.

    Args:
        may_be_empty: a pattern may have no match.

    Raises:
        FileNotFoundError: a path names nothing.
        ValueError: a path names a pipe, socket or device, whose bytes can be read only once and have no size.
    """
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if name[0] not in "._")
                shown = [os.path.join(folder, name) for name in sorted(names) if name[0] not in "._"]
                for path_in_folder in shown:
                    refuse_special(path_in_folder)
                found += shown
        elif os.path.exists(path):
            refuse_special(path)
            found.append(path)
        elif matches := sorted(glob.glob(path, recursive=True)):
            found += find_files(matches)
        elif not (may_be_empty and glob.has_magic(path)):
            here = f"no file, folder or match for {path!r} (working directory {os.getcwd()})"
            raise FileNotFoundError(f"{here}; correct the path, or put the file there on every node")
    return list(dict.fromkeys(found))


def refuse_special(path: str) -> None:
    """Check that what `path` names here, if anything, is a regular file, a folder or a pattern.

    Raises:
        ValueError: it is a pipe, socket or device, whose bytes can be read only once and have no size.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        remedy = "write what comes from it to a file first, or read it in a function given to add_source()"
        raise ValueError(f"{path!r} is a pipe, socket or device, a regular file is wanted; {remedy}")


def splits_of(paths: Sequence[str], parallelism: int, divisible: bool = True) -> list[FileSplit]:
    """Splits of files, in order of path and position; empty files have none.

    Args:
        paths: of files.
        parallelism: readers that should each get a part of a large file.
        divisible: False makes each file one split.
    """
    splits = []
    for path in paths:
        size = os.path.getsize(path)
        if not size:
            continue
        if not divisible or is_compressed(path):
            splits.append(FileSplit(path, 0, TO_THE_END))
            continue
        width = max(BLOCK_BYTES, min(SPLIT_BYTES, -(-size // parallelism)))
        splits += [FileSplit(path, start, min(start + width, size)) for start in range(0, size, width)]
    return splits


def line_number(path: str, offset: int) -> int:
    """The number, from 1, of the line that begins at byte `offset`; the file is read up to there."""
    lines = 1
    with open_bytes(path) as file:
        while offset > 0 and (block := file.read(min(BLOCK_BYTES, offset))):
            lines += block.count(b"\n")
            offset -= len(block)
    return lines


class LineBlocks:
    """Reads a split in blocks of whole lines.

    Raises:
        FileNotFoundError: the file is gone.
        ValueError: it cannot be unpacked.
    """

    def __init__(self, split: FileSplit, block_bytes: int = BLOCK_BYTES) -> None:
        self._path = split.path
        self._file = open_bytes(split.path)
        self._stop, self._block_bytes = split.stop, block_bytes
        try:
            if split.offset is not None:
                self._file.seek(split.offset)
            elif split.start:
                self._file.seek(split.start - 1)  # a line that begins exactly at start is this split's
                self._file.readline()
            self.offset = self._file.tell()
            """Position of the next block."""
        except UNPACK_ERRORS as error:
            self._file.close()
            raise self._unpackable(error) from error

    def next(self) -> bytes:
        """The next whole lines, about a block of them; empty at the end of the split.

        Raises:
            ValueError: the file has become shorter, or cannot be unpacked.
        """
        wanted = min(self._block_bytes, self._stop - self.offset)
        if wanted <= 0:
            return b""
        try:
            block = self._file.read(wanted)
            if block and not block.endswith(b"\n"):
                block += self._file.readline()
        except UNPACK_ERRORS as error:
            raise self._unpackable(error) from error
        if not block and self._stop != TO_THE_END:
            found = f"{self._path!r} ends at byte {self.offset}, it had {self._stop} bytes when it was listed"
            raise ValueError(f"{found}; leave files as they are until the job has read them")
        self.offset += len(block)
        return block

    def _unpackable(self, error: BaseException) -> ValueError:
        ending = os.path.splitext(self._path)[1]
        remedy = f"pack it anew, or rename it if it is no {ending} file"
        return ValueError(f"{self._path!r} cannot be unpacked ({error}); {remedy}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
