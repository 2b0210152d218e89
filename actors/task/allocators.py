"""Settings of the memory allocators of a process that runs tasks.

A job allocates and frees buffers of several MB all the time. An allocator that gives their pages back to the system
each time pays for a fault of every page when it gets them again: up to a third of the system's time of a task.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD."""
_LARGEST_BLOCK = 32 << 20
"""Blocks up to this size come from the heap and are used again; glibc accepts no larger bound."""
_MOST_FREE = 256 << 20
"""Free bytes at the end of a heap that the process does not give back."""


def use_malloc_for_columns() -> None:
    """Make Arrow allocate by malloc, unless ARROW_DEFAULT_MEMORY_POOL says otherwise.

    Its own allocators give the pages of short-lived columns back to the system: a third of the system's time of a task
    that parses text.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "pyarrow" in sys.modules and os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "system":
        import pyarrow

        pyarrow.set_memory_pool(pyarrow.system_memory_pool())


@cache
def reuse_large_blocks() -> bool:
    """Make malloc use freed blocks of up to 32 MB again; return whether it does.

    By itself glibc decides by the sizes that were freed before, so that the same job is a seventh slower when its
    first buffers are small ones. What the user sets by MALLOC_* or GLIBC_TUNABLES holds, and other C libraries stay as
    they are.

    Source: mallopt(3).
    """
    is_set = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if is_set or sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)) and bool(mallopt(_TRIM_THRESHOLD, _MOST_FREE))


__all__ = ["reuse_large_blocks", "use_malloc_for_columns"]
