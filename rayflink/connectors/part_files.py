"""Part files: files that are hidden while they are written and become visible when they are whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from ..common.commits import CommitRequest
from ..common.sink import Committer

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class PendingFile:
    """A whole file that waits to be made visible."""

    hidden: str
    visible: str


class Renamer(Committer):
    """Makes whole files visible; one that is so already stays as it is."""

    def commit(self, requests: Sequence[CommitRequest[PendingFile]]) -> None:
        for request in requests:
            pending = request.get_committable()
            if os.path.exists(pending.hidden):
                os.replace(pending.hidden, pending.visible)
            elif not os.path.exists(pending.visible):
                raise FileNotFoundError(f"{pending.hidden!r} is gone before it became {pending.visible!r}")


class PartFile:
    """A file being written: `.<name>.inprogress.<attempt>`, then `.<name>.pending.<attempt>`, committed `<name>`.

    Args:
        folder: made if it is not there.
        name: the visible one.
        attempt: of the subtask.
        now_ms: processing time.
    """

    def __init__(self, folder: str, name: str, attempt: int, now_ms: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder, self._name, self._attempt = folder, name, attempt
        self._hidden = os.path.join(folder, f".{name}.inprogress.{attempt}")
        self.file: IO[bytes] = open(self._hidden, "wb")
        self.begun_ms = self.touched_ms = now_ms

    def end(self) -> PendingFile:
        """Close the whole file, durably."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        pending = os.path.join(self._folder, f".{self._name}.pending.{self._attempt}")
        os.replace(self._hidden, pending)
        return PendingFile(pending, os.path.join(self._folder, self._name))

    def discard(self) -> None:
        """Delete it."""
        with suppress(OSError):  # on a full disk, what is still to be written; it need not be
            self.file.close()
        os.remove(self._hidden)


class CannotWrite(OSError):
    """A part file cannot be written."""

    def __init__(self, folder: str, found: str, remedy: str) -> None:
        super().__init__(folder, found, remedy)
        self.folder, self.found, self.remedy = folder, found, remedy

    def __str__(self) -> str:
        return f"cannot write below {self.folder!r}: {self.found}; {self.remedy}"


@contextmanager
def writing_below(folder: str) -> Iterator[None]:
    """What the operating system refuses in the block becomes an error that names the folder and the remedy.

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


def remove_leftovers(folder: str, beginning: str) -> None:
    """Delete what earlier attempts of a subtask were writing when they failed, in `folder` and its buckets.

    Args:
        beginning: of the visible names of that subtask.
    """
    for where, _, names in os.walk(folder):
        for name in names:
            if name.startswith(f".{beginning}") and ".inprogress." in name:
                os.remove(os.path.join(where, name))
