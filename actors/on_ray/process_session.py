"""The share of the CPU of a process that must not wait behind hundreds of processes of jobs."""

from __future__ import annotations

import os

from rayflink.common.text_output.logs import get_logger

log = get_logger(__name__)


def begin_session() -> None:
    """Begin a session of this process alone, to which Linux gives as much of the CPU as to all other processes of Ray.

    Without it, a dispatcher would wait for its turn behind the processes of all jobs, and so would the one process of
    many coordinators, which is a single thread beside theirs: heartbeats would come too late, and jobs restart. Where
    the system groups processes otherwise, as it does in containers, this changes nothing.

    Source: sched(7), "The autogroup feature".
    """
    try:
        if os.getpgrp() == os.getpid() and os.getsid(0) != os.getpid():  # Ray lets each worker lead a process group
            os.setpgid(0, os.getpgid(os.getppid()))
        os.setsid()
    except OSError as error:
        log.debug("no session of its own: %s", error)


__all__ = ["begin_session"]
