"""A server that a test has started ends with the test's process, though that is killed with signal 9."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.servers.bound_process import is_binding, start_bound

ROOT = Path(__file__).parents[2]
STARTS_AND_WAITS = """
import time
from benchmarks.servers.bound_process import start_bound
print(start_bound(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not is_binding(), reason="there is no setpriv: apt-get install util-linux")
@pytest.mark.slow
def test_a_killed_parent_takes_its_server_along():
    parent = subprocess.Popen([sys.executable, "-c", STARTS_AND_WAITS], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.01)


def test_the_end_of_the_thread_that_asked_for_it_ends_no_server():
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(start_bound(["cat"], stdin=subprocess.PIPE)))
    thread.start()
    thread.join()
    [server] = started
    assert server.stdin is not None
    server.stdin.close()
    assert server.wait(10) == 0, "it was killed and has not read its input to the end"
