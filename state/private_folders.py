"""Private folders for a job's files on a machine that others may use as well, such as in the system's /tmp."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

PREFIX = "rayflink-"
"""Prefix of the names of such folders; folders above them belong to others."""


def make_private(folder: Path, *, may_exist: bool = True) -> None:
    """Make a folder that no other user of the machine may enter, and those between it and the first with our prefix.

    Folders above are made as usual. One that is there already is refused where another user may have put it there.

    Args:
        may_exist: whether the folder may be there, as our own.

    Raises:
        FileExistsError: it is there, though it may not, or is a file.
        PermissionError: it, or one above it with our prefix, is a link or belongs to another user.
        OSError: it cannot be made.
    """
    path = Path(os.path.abspath(folder))
    folders = [*reversed(path.parents), path]
    first = next((index for index, level in enumerate(folders) if level.name.startswith(PREFIX)), len(folders) - 1)
    folders[first].parent.mkdir(parents=True, exist_ok=True)
    for level in folders[first:]:
        try:
            os.mkdir(level, 0o700)
        except FileExistsError:
            if level == path and not may_exist:
                raise
            _ensure_own(level)


def _ensure_own(folder: Path) -> None:
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        what = "is a link"
    elif not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))
    elif status.st_uid != os.geteuid():
        what = f"belongs to user {status.st_uid}"
    else:
        return
    raise PermissionError(errno.EPERM, f"it {what}, and other users could read what a job writes there", str(folder))


__all__ = ["PREFIX", "make_private"]
