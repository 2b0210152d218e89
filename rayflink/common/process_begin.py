"""The beginning of a process, by which another process that gets its id later is not taken for it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["process_begin"]


def process_begin(pid: int) -> str:
    """Return when a process began; "" where there is none, or it has ended and is only still listed.

    >>> import os
    >>> process_begin(os.getpid()).isdecimal(), process_begin(2**30)
    (True, '')
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return ""
