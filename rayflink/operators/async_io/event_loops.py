"""Event loops of an operator's coroutines: in a thread of their own, or in the task's thread by the task's clock.

A real runner has a thread for each operator, so that neither a coroutine nor the task keeps the other waiting. Where
time and chance are parameters (the harness, the simulator, any runner that cannot be woken), the same coroutines run
between two steps of the task, and `asyncio.sleep` follows the task's clock: the same seed gives the same results.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as WaitedTooLong
from contextvars import copy_context
from inspect import isawaitable
from typing import Any, Protocol

from rayflink.common.errors import described

from ..base import OperatorContext

END_SECONDS = 10
"""Time that coroutines may take to end after they were cancelled."""
_ROUNDING_S = 1e-6
Ask = Callable[[], Awaitable[Any]]
"""Gives what is awaited for an answer."""


def _nothing() -> None:
    pass


class Answers(deque[tuple[Any, Any]]):
    """(what for, answer), in the order in which answers came; appended to by the loop, drawn from by the task."""


class CoroutineRunner(Protocol):
    """Runs coroutines, and keeps their answers until they are asked for."""

    answers: Answers

    def begin(self, what_for: Any, ask: Ask) -> None:
        """Call a coroutine function and start what it gives; what that returns or raises is an answer."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, plain or async, in the loop, and wait for it.

        Raises: whatever it raises.
        """

    def advance(self) -> None:
        """Let coroutines go on, where they do not by themselves."""

    def next_due_ms(self) -> int | None:
        """Return the epoch milliseconds at which `advance` makes sense; None until another thread wakes the loop."""

    def close(self, last: Callable[[], Any]) -> None:
        """Cancel what runs, call `last` in the loop, and end it.

        Raises:
            TimeoutError: what runs does not end, because it blocks the loop; `last` is not called then.
            Exception: whatever `last` raises.
        """


def coroutine_runner(ctx: OperatorContext) -> CoroutineRunner:
    """Return the runner of coroutines for an operator."""
    if ctx.wake is None:
        return SteppedLoop(ctx.clock)
    return LoopThread(f"async {ctx.operator_name}", ctx.clock, ctx.wake)


class LoopThread:
    """An event loop in a thread of its own.

    Args:
        name: of the thread.
        clock: of the task.
        wake: called by the thread when an answer is there.
    """

    def __init__(self, name: str, clock: Any, wake: Callable[[], None]) -> None:
        self.answers = Answers()
        self._clock, self._wake = clock, wake
        self._given: deque[tuple[Any, Ask]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True)
        self._thread.start()

    def begin(self, what_for: Any, ask: Ask) -> None:
        self._given.append((what_for, ask))
        if len(self._given) == 1:  # else the loop has been called already, and has not begun them yet
            self._loop.call_soon_threadsafe(self._begin_given)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(_called(function, arguments), self._loop).result()

    def advance(self) -> None:
        pass

    def next_due_ms(self) -> int | None:
        return int(self._clock.now_ms()) if self.answers else None

    def close(self, last: Callable[[], Any] = _nothing) -> None:
        loop = self._loop
        if loop.is_closed():
            return
        ending = asyncio.run_coroutine_threadsafe(_cancelled(loop), loop)
        try:
            ending.result(END_SECONDS)
        except WaitedTooLong:
            ending.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
            problem = f"coroutines have not ended {END_SECONDS} s after they were cancelled"
            remedy = "await in them, for example asyncio.sleep() instead of time.sleep()"
            raise TimeoutError(f"{problem}; {remedy}") from None
        try:
            self.call(last)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(END_SECONDS)

    def _begin_given(self) -> None:
        while self._given:
            what_for, ask = self._given[0]
            task = self._loop.create_task(self._answering(what_for, ask))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            self._given.popleft()

    async def _answering(self, what_for: Any, ask: Ask) -> None:
        self.answers.append((what_for, await _answer_of(ask)))
        self._wake()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                break
            except BaseException as error:  # sys.exit() in a task of the user's own: no caller may wait in vain
                self.answers.append((None, RuntimeError(f"the event loop was ended by {described(error)}")))
                self._wake()  # the job fails; the loop runs on, for its coroutines shall end as they would else
        self._loop.close()


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that runs on request, in the thread that requests it, and whose time is that of a clock.

    It is asyncio's own but for `time`, so that whatever awaits in it behaves as ever. Timers fire in the order of their
    times, each at its own time, however far the clock has moved since the last step.

    >>> from rayflink.state.clock import ManualClock
    >>> clock = ManualClock()
    >>> loop = SteppedLoop(clock)
    >>> loop.begin("a minute", lambda: asyncio.sleep(60, "is over"))
    >>> loop.advance(); loop.next_due_ms(), list(loop.answers)
    (60000, [])
    >>> clock.advance(60_000); loop.advance(); list(loop.answers)
    [('a minute', 'is over')]
    >>> loop.close()

    Args:
        clock: `now_ms()` and `monotonic()`.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, clock: Any) -> None:
        self._clock, self._at = clock, clock.monotonic()
        super().__init__()
        self.answers = Answers()
        self._running: set[asyncio.Task[None]] = set()

    def time(self) -> float:
        """Return seconds, like `monotonic()` of the clock; while a timer fires, the time at which it was due."""
        return float(self._at)

    def begin(self, what_for: Any, ask: Ask) -> None:
        task = self.create_task(self._answering(what_for, ask))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function and wait for it; what it sleeps takes no time of the clock."""
        task = self.create_task(_called(function, arguments))
        self._turn()
        while not task.done():
            due = self._next_timer()
            if due is not None:
                self._at = max(self._at, due)
            self._turn()
        return task.result()

    def advance(self) -> None:
        until = self._clock.monotonic()
        self._turn()
        while (due := self._next_timer()) is not None and due <= until + _ROUNDING_S:
            self._at = max(self._at, due)
            self._turn()
        self._at = max(self._at, until)

    def next_due_ms(self) -> int | None:
        now: int = self._clock.now_ms()
        if self._ready or self.answers:
            return now
        due = self._next_timer()
        if due is None:
            return None
        left_s: float = due - self._clock.monotonic() - _ROUNDING_S
        return now + max(0, math.ceil(left_s * 1000))

    def close(self, last: Callable[[], Any] = _nothing) -> None:
        if self.is_closed():
            return
        self.call(_cancelled, self)
        try:
            self.call(last)
        finally:
            super().close()

    async def _answering(self, what_for: Any, ask: Ask) -> None:
        self.answers.append((what_for, await _answer_of(ask)))

    def _turn(self) -> None:
        """Run what is ready until nothing is: a loop that is asked to stop before it runs makes one round."""
        outer = asyncio._get_running_loop()  # that of a notebook
        asyncio._set_running_loop(None)
        try:
            while True:
                self.stop()
                self.run_forever()
                if not self._ready:
                    return
        finally:
            asyncio._set_running_loop(outer)

    def _next_timer(self) -> float | None:
        return min((timer.when() for timer in self._scheduled if not timer.cancelled()), default=None)


async def _answer_of(ask: Ask) -> Any:
    try:
        return await ask()
    except Exception as error:  # an answer as well: no caller may wait for one in vain
        return error


async def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    result = function(*arguments)
    return await result if isawaitable(result) else result


async def _cancelled(loop: asyncio.AbstractEventLoop) -> None:
    running = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await loop.shutdown_asyncgens()


__all__ = ["CoroutineRunner", "LoopThread", "SteppedLoop", "coroutine_runner"]
