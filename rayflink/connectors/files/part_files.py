"""Part files: files that are hidden while they are written and become visible with their checkpoint."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync folders, such as some network file systems."""
_BLOCK = 1 << 20


@dataclass(frozen=True)
class PendingFile:
    """A file that waits to be made visible.

    Args:
        cut_at: the number of bytes of its beginning that are wanted, as it was still written to; None: it is whole.
    """

    hidden: str
    visible: str
    cut_at: int | None = None

    @property
    def size(self) -> int | None:
        """Return the number of bytes that are wanted; None: all."""
        return self.cut_at

    def __repr__(self) -> str:
        return f"file {self.visible!r}, which is {self.hidden!r} until then"


class Renamer(Committer):
    """Makes files visible, durably; one that is so already stays as it is."""

    def commit(self, requests: Sequence[CommitRequest[PendingFile]]) -> None:
        renamed: dict[str, list[CommitRequest[PendingFile]]] = {}
        for request in requests:
            pending = request.get_committable()
            try:
                show_file(pending)
            except FileNotFoundError as error:
                is_first = not request.restored and request.retries == 0
                if is_first or not os.path.exists(pending.visible):
                    request.signal_failed_with_unknown_reason(LostFile(pending, error))
                    continue
                request.signal_already_committed()
            except OSError as error:
                request.retry_later(error)
                continue
            renamed.setdefault(os.path.dirname(pending.visible), []).append(request)
        for folder, those in renamed.items():
            try:
                sync_folder(folder)
            except OSError as error:
                for request in those:
                    request.retry_later(error)


def show_file(pending: PendingFile) -> None:
    """Make a file visible, in the place of what has its name.

    Raises:
        FileNotFoundError: it is gone, or visible already.
    """
    if pending.cut_at is None:
        os.replace(pending.hidden, pending.visible)
        return
    # A copy, for an attempt that is believed to be dead may still write to the hidden file.
    copy = f"{pending.hidden}.cut"
    with open(pending.hidden, "rb") as source, open(copy, "wb") as target:
        left = pending.cut_at
        while block := source.read(min(left, _BLOCK)):
            target.write(block)
            left -= len(block)
        if left:
            size = pending.cut_at - left
            raise OSError(f"{pending.hidden!r} has {size} bytes, {pending.cut_at} were in the checkpoint")
        target.flush()
        os.fsync(target.fileno())
    os.replace(copy, pending.visible)
    sync_folder(os.path.dirname(pending.visible))  # before what it was made of goes
    os.remove(pending.hidden)


class LostFile(OSError):
    """A file that was to be made visible is not there, hidden or visible."""

    def __init__(self, pending: PendingFile, error: OSError) -> None:
        super().__init__(pending, error)
        self.pending = pending

    def __str__(self) -> str:
        hidden, visible = self.pending.hidden, self.pending.visible
        return (
            f"{hidden!r} is gone before it became {visible!r}; give the sink a folder that is the same on every node, "
            f"and if the file was shown and then moved away, put an empty file in its place to go on"
        )


class PartFile:
    """A file being written: `.<name>.inprogress.<epoch>.<attempt>`, committed `<name>`.

    Args:
        folder: made if it is not there.
        name: the visible one.
        attempt: of the subtask: its epoch and number.
        now_ms: processing time.

    Raises:
        FileExistsError: another attempt of that number has this file.
    """

    def __init__(self, folder: str, name: str, attempt: tuple[int, int], now_ms: int) -> None:
        make_folder(folder)
        self.folder, self.visible = folder, os.path.join(folder, name)
        self.hidden = os.path.join(folder, f".{name}.inprogress.{attempt[0]}.{attempt[1]}")
        self.file: IO[bytes] = open(self.hidden, "xb")
        self.begun_ms = self.touched_ms = now_ms
        self._synced = 0

    def sync(self) -> PendingFile:
        """Write what was appended to the disk; gives what the file is so far."""
        size = self.file.tell()
        if size > self._synced:
            self._write_out()
            self._synced = size
        return PendingFile(self.hidden, self.visible, size)

    def end(self) -> PendingFile:
        """Close the whole file, durably but for its name."""
        self._write_out()
        self.file.close()
        return PendingFile(self.hidden, self.visible)

    def _write_out(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def leave(self) -> None:
        """Close it and leave it to the next attempt, which needs no more of it than was synced."""
        with suppress(OSError):  # on a full disk, what is still to be written; it need not be
            self.file.close()

    def discard(self) -> None:
        """Delete it."""
        self.leave()
        discard(self.hidden)


def discard(path: str) -> None:
    """Delete a file that is no longer needed; the next attempt may have done so already."""
    with suppress(FileNotFoundError):
        os.remove(path)


def make_folder(folder: str) -> None:
    """Make a folder and those above it, durably, where they are missing."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    make_folder(above)
    with suppress(FileExistsError):  # another subtask was faster
        os.mkdir(folder)
    sync_folder(above)


def sync_folder(folder: str) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


class CannotWrite(OSError):
    """A part file cannot be written."""

    def __init__(self, folder: str, actual: str, remedy: str) -> None:
        super().__init__(folder, actual, remedy)
        self.folder, self.actual, self.remedy = folder, actual, remedy

    def __str__(self) -> str:
        return f"cannot write below {self.folder!r}: {self.actual}; {self.remedy}"


@contextmanager
def writing_below(folder: str) -> Iterator[None]:
    """Convert errors of the operating system in the block to one that names the folder and the remedy.

    Raises:
        CannotWrite: it refused something.
    """
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        remedy = "free space there, or choose another folder" if error.errno in _FULL else "choose another folder"
        raise CannotWrite(folder, str(error), remedy) from error


def ensure_writable(folder: str) -> None:
    """Check that `folder` can be written to, or made, without making it.

    Raises:
        NotADirectoryError: a part of the path is a file.
        PermissionError: the folder that is there must not be written to.
    """
    there = folder
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise NotADirectoryError(f"{there!r} is a file, a folder is wanted; choose another folder for the sink")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{there!r} must not be written to; choose another folder, or permit it on every node")


def remove_leftovers(
    folder: str, names: tuple[str, str], firsts: Mapping[int, int], before: tuple[int, int] | None
) -> None:
    """Delete files that earlier attempts of some subtasks were writing and no checkpoint knows, in all buckets.

    Args:
        names: beginning and end of the visible names, around subtask and number.
        firsts: subtask -> the number of its first file after the checkpoint.
        before: epoch and number of the attempt that looks: it leaves later ones alone, which run in its place where it
            is believed to be dead. None: whosever they are.
    """
    beginning, end = map(re.escape, names)
    ours = re.compile(rf"\.{beginning}(\d+)-(\d+){end}\.inprogress\.(\d+)\.(\d+)(\.cut)?")
    for where, _, there in os.walk(folder):
        for name in there:
            match = ours.fullmatch(name)
            first = firsts.get(int(match[1])) if match else None
            if not match or first is None or int(match[2]) < first:
                continue
            if before is None or (int(match[3]), int(match[4])) < before:
                discard(os.path.join(where, name))


class LocalPlace:
    """A folder of part files that every node reaches.

    Args:
        folder: from the root.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def ensure_writable(self) -> None:
        """Check that it can be written to, or made, without making it."""
        ensure_writable(self._folder)

    def exists(self, path: str) -> bool:
        """Return whether a visible file is there."""
        return os.path.exists(path)

    def open_part(self, folder: str, name: str, attempt: tuple[int, int], now_ms: int) -> PartFile:
        """Return a new file.

        Raises:
            FileExistsError: another attempt of that number has this file.
        """
        return PartFile(folder, name, attempt, now_ms)

    def settle(self, folder: str) -> None:
        """Write the names in a folder to the disk."""
        sync_folder(folder)

    def discard(self, pending: PendingFile) -> None:
        """Delete a file that will not be visible."""
        discard(pending.hidden)

    def remove_leftovers(
        self, names: tuple[str, str], firsts: Mapping[int, int], before: tuple[int, int] | None, subtask: int
    ) -> None:
        """Delete files that earlier attempts began and no checkpoint knows; see `remove_leftovers`."""
        del subtask
        remove_leftovers(self._folder, names, firsts, before)

    def close(self) -> None:
        """Release nothing."""
