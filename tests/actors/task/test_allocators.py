"""Freed memory of a process that runs tasks is used again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

GROWING = """
import resource
from rayflink.actors.task.allocators import reuse_large_blocks
print(reuse_large_blocks())
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for size in range(1, 25):
    bytearray(size << 20)[::4096] = b"x" * (size << 8)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize() >> 20)
"""


def _run(**environment: str) -> tuple[str, int]:
    """Return whether blocks are used again, and the megabytes of pages faulted in by blocks of 300 MB in all."""
    command = [sys.executable, "-c", GROWING]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    is_set, megabytes = result.stdout.split()
    return is_set, int(megabytes)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of another C library")
def test_a_larger_block_takes_the_pages_of_those_freed_before() -> None:
    assert _run() == ("True", pytest.approx(24, abs=8))


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc of another C library")
def test_settings_of_the_user_hold() -> None:
    is_set, megabytes = _run(MALLOC_ARENA_MAX="2")
    assert is_set == "False" and megabytes > 100
