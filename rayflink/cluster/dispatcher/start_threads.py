"""A few jobs start at a time; a start that hangs soon counts no longer, so that it holds up no other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["StartThreads"]

P = ParamSpec("P")
T = TypeVar("T")
AT_A_TIME = 4
"""The number of starts at a time that do not hang."""
HANGS_AFTER_S = 10.0
"""Seconds after which a start hangs."""
MOST = 64
"""The number of threads, with those that hang."""


@dataclass(frozen=True, eq=False)
class _Call:
    """A call, and its future by what is asked of it."""

    run: Callable[[], None]
    begin: Callable[[], bool]
    cancel: Callable[[], bool]


class StartThreads(Executor):
    """Runs each call in a thread of its own, a few at a time.

    A call that has run for a while is waiting: for Ray to start a process, or for a program that does not load. The
    next one begins then, as long as there are not too many threads.

    Args:
        at_a_time: number of calls that run at a time, without those that hang.
        hangs_after_s: seconds after which a call hangs.
        most: number of threads.
    """

    def __init__(
        self, at_a_time: int = AT_A_TIME, hangs_after_s: float = HANGS_AFTER_S, most: int = MOST
    ) -> None:
        self._at_a_time, self._hangs_after_s, self._most = at_a_time, hangs_after_s, most
        self._changed = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._begun: dict[_Call, float] = {}
        """When each call that runs began, seconds of the monotonic clock."""
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def submit(self, call: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Have a call run as soon as it is its turn.

        Raises:
            RuntimeError: the executor is closed.
        """
        future: Future[T] = Future()
        run = partial(_settle, future, partial(call, *arguments, **named))
        with self._changed:
            if self._is_closed:
                raise RuntimeError("no job can be started any more: the dispatcher ends")
            self._waiting.append(_Call(run, future.set_running_or_notify_cancel, future.cancel))
            if self._thread is None:
                self._thread = threading.Thread(target=self._begin_each, name="starts of jobs", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Begin no more calls; those that run go on, in threads that the process does not wait for."""
        with self._changed:
            self._is_closed = True
            while cancel_futures and self._waiting:
                self._waiting.popleft().cancel()
            self._changed.notify()

    def _begin_each(self) -> None:
        with self._changed:
            while self._waiting or not self._is_closed:
                pause_s = self._pause_s()
                if pause_s != 0:
                    self._changed.wait(pause_s)
                    continue
                call = self._waiting.popleft()
                if call.begin():
                    self._begun[call] = time.monotonic()
                    threading.Thread(target=self._run, args=(call,), name="start job", daemon=True).start()

    def _pause_s(self) -> float | None:
        """Return the time until the next call may begin: 0: now; None: when something has changed."""
        if not self._waiting or len(self._begun) >= self._most:
            return None
        hang_at = sorted(begun + self._hangs_after_s for begun in self._begun.values())
        if len(hang_at) < self._at_a_time:
            return 0.0
        return max(hang_at[-self._at_a_time] - time.monotonic(), 0.0)

    def _run(self, call: _Call) -> None:
        call.run()
        with self._changed:
            del self._begun[call]
            self._changed.notify()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:  # whoever waits for the call raises it
        future.set_exception(error)
