"""Files cut into byte ranges that several readers take at the same time, each line read by exactly one of them."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

BLOCK_BYTES = 1 << 20
"""Read at a time."""
SPLIT_BYTES = 16 << 20
"""Largest split of a file; a file is cut smaller so that every reader gets a part, but not below a block."""

_COMPRESSED: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True)
class FileSplit:
    """The lines of a file whose first byte lies in [start, stop).

    Args:
        path: of the file.
        offset: first byte of the line at which reading goes on; None: not begun.
        skip: records from `offset` on that were given out already.
    """

    path: str
    start: int
    stop: int
    offset: int | None = None
    skip: int = 0


def find_files(paths: Sequence[str]) -> list[str]:
    """Files named by `paths`: a file, a folder (all in it, hidden ones left out, in order of name) or a glob pattern.

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
        else:
            here = f"no file, folder or match for {path!r} (working directory {os.getcwd()})"
            raise FileNotFoundError(f"{here}; correct the path, or put the file there on every node")
    return found


def refuse_special(path: str) -> None:
    """Check that what `path` names here, if anything, is a regular file, a folder or a pattern.

    Raises:
        ValueError: it is a pipe, socket or device, whose bytes can be read only once and have no size.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        remedy = "write what comes from it to a file first, or read it in a function given to add_source()"
        raise ValueError(f"{path!r} is a pipe, socket or device, a regular file is wanted; {remedy}")


def splits_of(paths: Sequence[str], parallelism: int, divisible: bool = True) -> list[FileSplit]:
    """Splits of files, in order of path and position.

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
            splits.append(FileSplit(path, 0, 2**63 - 1))
            continue
        width = max(BLOCK_BYTES, min(SPLIT_BYTES, -(-size // parallelism)))
        splits += [FileSplit(path, start, min(start + width, size)) for start in range(0, size, width)]
    return splits


def is_compressed(path: str) -> bool:
    """True for files that are unpacked while they are read, by their ending."""
    return os.path.splitext(path)[1] in _COMPRESSED


def open_bytes(path: str) -> IO[bytes]:
    """The file's bytes, unpacked where its ending says so."""
    opener = _COMPRESSED.get(os.path.splitext(path)[1], open)
    opened: IO[bytes] = opener(path, "rb")
    return opened


class LineBlocks:
    """Reads a split in blocks of whole lines."""

    def __init__(self, split: FileSplit, block_bytes: int = BLOCK_BYTES) -> None:
        self._file = open_bytes(split.path)
        self._stop, self._block_bytes = split.stop, block_bytes
        if split.offset is not None:
            self._file.seek(split.offset)
        elif split.start:
            self._file.seek(split.start - 1)  # a line that begins exactly at start is this split's
            self._file.readline()
        self.offset = self._file.tell()
        """Position of the next block."""

    def next(self) -> bytes:
        """The next whole lines, about a block of them; empty at the end of the split."""
        wanted = min(self._block_bytes, self._stop - self.offset)
        if wanted <= 0:
            return b""
        block = self._file.read(wanted)
        if block and not block.endswith(b"\n"):
            block += self._file.readline()
        self.offset += len(block)
        return block

    def close(self) -> None:
        """Close the file."""
        self._file.close()
