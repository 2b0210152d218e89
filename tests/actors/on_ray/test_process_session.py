"""Sessions of processes, by which Linux divides the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rayflink.actors.on_ray import process_session

pytestmark = pytest.mark.slow  # starts processes


def run(program: str, group: int | None = None) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, process_group=group)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("group", [0, None], ids=["that leads a group, as Ray's workers do", "of its parent's group"])
def test_a_process_begins_a_session_of_its_own(group: int | None) -> None:
    program = (
        "import os; from rayflink.actors.on_ray.process_session import begin_session; begin_session(); "
        "print(os.getsid(0) == os.getpgrp() == os.getpid())"
    )
    assert run(program, group) == "True\n"


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the system groups no processes by session")
def test_a_session_has_the_niceness_of_its_process() -> None:
    program = (
        "import os, threading; os.nice(15); "
        "from rayflink.actors.on_ray.process_session import AUTOGROUP, begin_session, own_niceness; "
        "begin_session(own_niceness()); "
        "[thread.join() for thread in threading.enumerate() if thread.name == 'niceness']; "
        "print(AUTOGROUP.read_text())"
    )
    assert run(program).split()[1:] == ["nice", "15"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system lists no threads")
def test_all_threads_get_the_niceness_of_the_one_that_waits_most() -> None:
    program = (
        "import os, threading; stop = threading.Event(); "
        "other = threading.Thread(target=stop.wait); other.start(); os.nice(7); "
        "from rayflink.actors.on_ray.process_session import level_threads; "
        "before = os.getpriority(os.PRIO_PROCESS, other.native_id); level_threads(); "
        "print(before, os.getpriority(os.PRIO_PROCESS, other.native_id)); stop.set()"
    )
    assert run(program).split() == ["0", "7"]


def test_a_niceness_is_set_again_while_others_are_being_set(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        tries = 0

        def write_text(self, text: str, encoding: str) -> None:
            self.tries += 1
            if self.tries < 3:
                raise BlockingIOError

    busy = Busy()
    monkeypatch.setattr(process_session, "AUTOGROUP", busy)
    monkeypatch.setattr(process_session, "TRY_EVERY_S", 0.0)
    process_session.set_niceness(15)
    assert busy.tries == 3
