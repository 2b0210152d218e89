"""The session of a process, by which Linux divides the CPU among programs."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from rayflink.common.text_output.logs import get_logger

log = get_logger(__name__)
AUTOGROUP, THREADS = Path("/proc/self/autogroup"), Path("/proc/self/task")
TRIES, TRY_EVERY_S = 100, 0.2
"""Linux lets others than root change a niceness of a session ten times a second, in all sessions together."""


def begin_session(niceness: int = 0) -> None:
    """Begin a session of this process alone, which gets as much of the CPU as its niceness says, beside other sessions.

    With sessions of their own, a service that answers people does not wait for its turn behind hundreds of threads of
    jobs, and no job behind those of another. Within one session, threads of Ray and of the job share the CPU evenly.
    Where the system groups processes otherwise, as it does in containers, this changes nothing.

    Args:
        niceness: of the session, in [0, 19]; with 15 it gets a thirtieth of what one with 0 gets, where both want all.

    Source: sched(7), "The autogroup feature".
    """
    try:
        if os.getpgrp() == os.getpid() and os.getsid(0) != os.getpid():  # Ray lets each worker lead a process group
            os.setpgid(0, os.getpgid(os.getppid()))
        os.setsid()
    except OSError as error:
        log.debug("no session of its own: %s", error)
        return
    if niceness and AUTOGROUP.exists():
        threading.Thread(target=set_niceness, args=(niceness,), name="niceness", daemon=True).start()


def own_niceness() -> int:
    """Return the niceness of this process, at least 0."""
    return max(os.getpriority(os.PRIO_PROCESS, 0), 0)


def level_threads() -> None:
    """Give all threads of this process the highest niceness of any: Ray raises that of some alone.

    Linux gives a session its share on each CPU by the weights of the threads that are there. One thread of a higher
    niceness, alone on a CPU, would get a thirtieth of it while others of its process wait on another CPU.
    """
    if not THREADS.exists():  # not Linux
        return
    niceness = max(map(_niceness_of, threads := [int(folder.name) for folder in THREADS.iterdir()]))
    for thread in threads:
        with suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, thread, niceness)


def set_niceness(niceness: int) -> None:
    """Set the niceness of this session, again and again where many processes begin theirs."""
    pause = threading.Event()
    for _ in range(TRIES):
        try:
            AUTOGROUP.write_text(str(niceness), encoding="ascii")
            return
        except BlockingIOError:
            pause.wait(TRY_EVERY_S)
        except OSError as error:
            log.debug("the session has no niceness of its own: %s", error)
            return


def _niceness_of(thread: int) -> int:
    try:
        return os.getpriority(os.PRIO_PROCESS, thread)
    except ProcessLookupError:  # it has ended
        return 0


__all__ = ["begin_session", "level_threads", "own_niceness", "set_niceness"]
