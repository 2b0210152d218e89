"""Files cut into byte ranges that several readers take at the same time, each line read by exactly one of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..file_systems.object_listing import find_objects
from ..file_systems.object_paths import ObjectPath
from .compression import UNPACK_ERRORS, is_compressed, open_bytes
from .fingerprint import Fingerprint

Block = TypeVar("Block", bytes, bytearray)

BLOCK_BYTES = 1 << 20
"""Read at a time, and the least part of a file that is a split."""
READ_BYTES = 2 << 20
"""Lines are read in blocks of so much: small enough for the processor's cache, large enough for work by columns."""
SPLIT_BYTES = 16 << 20
"""Largest split of a file; a file is cut smaller so that every reader gets a part, but not below a block."""
TO_THE_END = 2**63 - 1
"""The stop of a split that goes on to the end of its file, wherever that is."""
MARK_BYTES = 64
"""Number of bytes at its beginning by which a split is recognized."""


@dataclass(frozen=True)
class FileSplit:
    """The lines of a file whose first byte lies in [start, stop).

    Args:
        path: of the file.
        offset: where reading goes on, as the format counts: for lines the first byte of one; None: not begun.
        skip: records from `offset` on that were given out already.
        mark: the first bytes there were at `offset`, or at `start` where reading has not begun; empty: not known.
        size: bytes of the object, which is in an object store; 0: not known, or a local file.
        version: the ETag of the object, by which it is found out when it is written anew; "": not known.
    """

    path: str
    start: int
    stop: int
    offset: int | None = None
    skip: int = 0
    mark: bytes = b""
    size: int = 0
    version: str = ""

    @property
    def split_id(self) -> str:
        """Return the path, and the first byte where it is not the file's first."""
        return f"{self.path}:{self.start}" if self.start else self.path


def find_files(paths: Sequence[str], may_be_empty: bool = False) -> list[str]:
    """Return the files named by `paths`: a file, a folder (all in it, hidden ones left out, in order of name) or a glob
    pattern; the same of addresses of object stores.

    Args:
        may_be_empty: a pattern may have no match.

    Raises:
        FileNotFoundError: a path names nothing.
        ValueError: a path names a pipe, socket or device, whose bytes can be read only once and have no size.
    """
    files: list[str] = []
    for path in paths:
        if isinstance(path, ObjectPath):
            files += find_objects(path, may_be_empty)
        elif os.path.isdir(path):
            for folder, folders, names in os.walk(path):
                folders[:] = sorted(name for name in folders if name[0] not in "._")
                shown = [os.path.join(folder, name) for name in sorted(names) if name[0] not in "._"]
                for path_in_folder in shown:
                    refuse_special(path_in_folder)
                files += shown
        elif os.path.exists(path):
            refuse_special(path)
            files.append(path)
        elif matches := sorted(glob.glob(path, recursive=True)):
            files += find_files(matches)
        elif not (may_be_empty and glob.has_magic(path)):
            here = f"no file, folder or match for {path!r} (working directory {os.getcwd()})"
            raise FileNotFoundError(f"{here}; correct the path, or put the file there on every node")
    return list(dict.fromkeys(files))


def refuse_special(path: str) -> None:
    """Check that what `path` names here, if anything, is a regular file, a folder or a pattern.

    Raises:
        ValueError: it is a pipe, socket or device, whose bytes can be read only once and have no size.
    """
    if isinstance(path, ObjectPath):
        return
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        remedy = "write what comes from it to a file first, or read it in a function given to add_source()"
        raise ValueError(f"{path!r} is a pipe, socket or device, a regular file is wanted; {remedy}")


def splits_of(paths: Sequence[str], parallelism: int, divisible: bool = True) -> list[FileSplit]:
    """Return the splits of files, in order of path and position; empty files have none.

    Args:
        paths: of files.
        parallelism: readers that should each get a part of a large file.
        divisible: False makes each file one split.
    """
    splits = []
    for path in paths:
        size = size_of(path)
        if not size:
            continue
        version = path.known().version if isinstance(path, ObjectPath) else ""
        whole = FileSplit(str(path), 0, TO_THE_END, size=size if version else 0, version=version)
        if not divisible or is_compressed(path):
            splits.append(whole)
            continue
        width = max(BLOCK_BYTES, min(SPLIT_BYTES, -(-size // parallelism)))
        if version:
            splits += [replace(whole, start=start, stop=min(start + width, size)) for start in range(0, size, width)]
            continue
        with open_bytes(path) as file:
            for start in range(0, size, width):
                file.seek(start)
                stop = min(start + width, size)
                mark = file.read(min(MARK_BYTES, stop - start))
                splits.append(replace(whole, start=start, stop=stop, mark=mark))
    return splits


def size_of(path: str) -> int:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: it is gone.
    """
    return path.known().size if isinstance(path, ObjectPath) else os.path.getsize(path)


def line_number(path: str, offset: int) -> int:
    """Return the number, from 1, of the line that begins at byte `offset`; the file is read up to there."""
    lines = 1
    with open_bytes(path) as file:
        while offset > 0 and (block := file.read(min(BLOCK_BYTES, offset))):
            lines += block.count(b"\n")
            offset -= len(block)
    return lines


_LEAVE = "leave files as they are until the job has read them, and put new content into new files"


class LineBlocks:
    """Reads a split in blocks of whole lines.

    A file may grow meanwhile, which is not looked at. One that is written anew in place is found out at the end of the
    split, where time or size have changed and what was read is no longer there; packed files have checksums instead,
    and the ranges of an object are all of one version.

    Args:
        block_bytes: of a block, about.

    Raises:
        FileNotFoundError: the file is gone.
        ValueError: it cannot be unpacked, or was written anew since it was listed.
    """

    def __init__(self, split: FileSplit, block_bytes: int = READ_BYTES) -> None:
        self._path = split.path
        self._file = open_bytes(split.path)
        self._stop, self._block_bytes = split.stop, block_bytes
        self._is_checked = is_compressed(split.path) or isinstance(split.path, ObjectPath)
        try:
            self._state = self._state_now()
            self._refuse_other_content(split)
            if split.offset is not None:
                self._file.seek(split.offset)
            elif split.start:
                self._file.seek(split.start - 1)  # a line that begins exactly at start is this split's
                self._file.readline()
            self._first = self.offset = self._file.tell()
            """Position of the next block."""
            self._read = Fingerprint(self._first)
        except UNPACK_ERRORS as error:
            self._file.close()
            raise self._unpackable(error) from error
        except ValueError:
            self._file.close()
            raise

    def next(self) -> bytes:
        """Return the next whole lines, about a block of them; empty at the end of the split.

        Raises:
            ValueError: the file has become shorter, was written anew, or cannot be unpacked.
        """
        return self._next(self._file.read)

    def next_in(self, buffer: bytearray) -> bytearray:
        """Return the same, in a buffer of which nothing else may hold a part: it need not be allocated for each
        block.
        """

        def read(wanted: int) -> bytearray:
            buffer.extend(bytes(max(wanted - len(buffer), 0)))
            del buffer[wanted:]
            del buffer[self._file.readinto(buffer) :]  # type: ignore[attr-defined]
            return buffer

        return self._next(read)

    def _next(self, read: Callable[[int], Block]) -> Block:
        wanted = min(self._block_bytes, self._stop - self.offset)
        if wanted <= 0:
            self._refuse_rewritten()
            return read(0)
        try:
            block = read(wanted)
            if block and not block.endswith(b"\n"):
                block += self._file.readline()
        except UNPACK_ERRORS as error:
            raise self._unpackable(error) from error
        if not block and self._stop != TO_THE_END:
            problem = f"{self._path!r} ends at byte {self.offset}, it had {self._stop} bytes when it was listed"
            raise ValueError(f"{problem}; {_LEAVE}")
        if not block:
            self._refuse_rewritten()
        elif not self._is_checked:
            self._read.add(block)
        self.offset += len(block)
        return block

    def _state_now(self) -> tuple[int, int] | None:
        """Return size and time of the last change; None for packed files and objects."""
        if self._is_checked:
            return None
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _refuse_other_content(self, split: FileSplit) -> None:
        """Check that the split begins as it did when it was listed or its position was saved."""
        if self._is_checked or not split.mark:
            return
        position = split.start if split.offset is None else split.offset
        self._file.seek(position)
        mark = self._file.read(len(split.mark))
        is_cut = self._stop != TO_THE_END and split.mark.startswith(mark)  # then next() shows where the file ends
        if mark != split.mark and not is_cut:
            raise ValueError(
                f"{self._path!r} has other bytes at {position} than when it was listed or last read; {_LEAVE}"
            )
        self._file.seek(0)

    def _refuse_rewritten(self) -> None:
        """Check that what was read is still there, if the file has changed since."""
        state = self._state_now()
        if state == self._state:
            return
        if not self._read.is_in(self._file):
            problem = f"bytes {self._first} to {self.offset} are not those that were read"
            raise ValueError(f"{self._path!r} was written anew while it was read: {problem}; {_LEAVE}")
        self._state = state

    def _unpackable(self, error: BaseException) -> ValueError:
        ending = os.path.splitext(self._path)[1]
        remedy = f"pack it anew, or rename it if it is no {ending} file"
        return ValueError(f"{self._path!r} cannot be unpacked ({error}); {remedy}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
