"""The check at the end of a run sees what tests leave, and nothing of other runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.suite.leftovers import MARK, SHARED_MEMORY, Watch

WAITS_FOR_INPUT = "import sys; print('runs', flush=True); sys.stdin.read()"


@contextmanager
def waiting(**given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for input and has its environment, which one that has only just begun has not."""
    command = [sys.executable, "-c", WAITS_FOR_INPUT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **given) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield process


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch.start()
    yield watch
    watch.close()


def test_a_run_that_leaves_nothing_has_no_leftovers(watch):
    assert watch.leftovers(deadline_s=0) == []


def test_a_process_left_behind_is_named(watch):
    with waiting() as process:
        (line,) = watch.leftovers(deadline_s=0)
    assert line.startswith(f"process {process.pid}: ")


def test_a_process_of_another_run_is_not_ours(watch):
    other = {**os.environ, MARK: "another"}
    with waiting(env=other):
        assert watch.leftovers(deadline_s=0) == []


def test_a_temporary_folder_left_behind_is_named_and_deleted(watch):
    folder = tempfile.mkdtemp()
    assert watch.leftovers(deadline_s=0) == [f"temporary file {folder}"]
    watch.close()
    assert not Path(folder).exists()


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="this system has no /dev/shm")
def test_a_shared_memory_file_left_behind_is_named(watch):
    path = SHARED_MEMORY / f"rayflink-test-{uuid.uuid4().hex}"
    path.touch()
    try:
        assert watch.leftovers(deadline_s=0) == [f"shared memory {path.name}"]
    finally:
        path.unlink()


def test_the_environment_is_given_back():
    before = (dict(os.environ), tempfile.tempdir)
    Watch.start().close()
    assert (dict(os.environ), tempfile.tempdir) == before
