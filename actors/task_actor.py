"""One subtask as a Ray actor: a thread that steps the task, one thread for data calls, one for control calls."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

import ray

from rayflink.state.clock import SystemClock

from .envelopes import join_envelope, split_envelope
from .exchange.frames import Envelope, TaskAddress
from .messages import TaskDeployment, ToCoordinator, ToTask
from .task import Progress, StreamTask
from .user_code import unpack

SWITCH_INTERVAL_S = 0.001
"""How long the task's thread may hold the interpreter while a call waits."""
COLLECT_EVERY_S = 10.0
"""Cyclic garbage is looked for this often; reference counts do the rest at once."""


class TaskActor:
    """Shell around `StreamTask`; `actor_class()` makes the Ray class."""

    def __init__(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._wake = threading.Event()
        self._mailbox: deque[Envelope | ToTask] = deque()
        self._task: StreamTask | None = None
        self._returned: deque[TaskAddress] = deque()
        self._peers: dict[TaskAddress, Any] = {}
        self._coordinator: Any = None
        self._done = threading.Event()
        self._crash: BaseException | None = None

    @ray.method(concurrency_group="data")
    def deliver(self, header: bytes, *bodies: bytes) -> None:
        """An envelope from a peer."""
        self._put(join_envelope(header, bodies))

    @ray.method(concurrency_group="control")
    def command(self, message: ToTask) -> None:
        """A command of the coordinator."""
        self._put(message)

    @ray.method(concurrency_group="control")
    def stack(self) -> str:
        """What every thread is doing now, for the doctor."""
        import traceback

        frames = sys._current_frames()
        return "\n".join("".join(traceback.format_stack(frame)) for frame in frames.values())

    @ray.method(concurrency_group="life")
    def run(
        self, program: bytes, deployment: TaskDeployment, peers: dict[TaskAddress, Any], coordinator: Any, report_ms: int
    ) -> None:
        """Run the attempt to its end; returns when it is in a terminal state and everything has been sent."""
        graph = unpack(program)
        operators = graph.vertex(deployment.vertex_id).operators
        self._peers, self._coordinator = peers, coordinator
        task = StreamTask(replace(deployment, operators=operators), SystemClock(), self._mailbox)
        self._task = task
        thread = threading.Thread(target=self._step_until_done, args=(task, report_ms / 1000), name=deployment.name)
        thread.start()
        self._done.wait()
        thread.join()
        if self._crash is not None:
            raise self._crash

    def _put(self, message: Envelope | ToTask) -> None:
        self._mailbox.append(message)
        self._wake.set()

    def _step_until_done(self, task: StreamTask, report_s: float) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            task.start()
            self._loop(task, report_s)
        except BaseException as error:  # `run` raises it, so that the coordinator learns why this process is lost
            self._crash = error
        finally:
            self._done.set()

    def _loop(self, task: StreamTask, report_s: float) -> None:
        last_report = last_collect = before = time.monotonic()
        while True:
            while self._returned:
                task.returned(self._returned.popleft())
            progress = task.step()
            now = time.monotonic()
            task.metrics.spent("busy", now - before)
            before = now
            for envelope in task.outgoing():
                self._send(envelope)
            if now - last_report >= report_s:
                last_report = now
                self._tell([*task.reports(), task.report()])
            else:
                self._tell(task.reports())
            if progress is Progress.BUSY:
                continue
            if progress is Progress.DONE:
                return
            if now - last_collect >= COLLECT_EVERY_S:
                last_collect = now
                gc.collect()
            self._sleep(task, last_report + report_s - now)
            now = time.monotonic()
            task.metrics.spent("back-pressured" if progress is Progress.BACK_PRESSURED else "idle", now - before)
            before = now

    def _sleep(self, task: StreamTask, most_s: float) -> None:
        deadline = task.deadline_ms()
        if deadline is not None:
            most_s = min(most_s, (deadline - task.clock.now_ms()) / 1000)
        if most_s > 0 and not task.has_mail and not self._returned:
            self._wake.wait(most_s)
        self._wake.clear()

    def _send(self, envelope: Envelope) -> None:
        header, bodies = split_envelope(envelope)
        peer = envelope.receiver
        ref = self._peers[peer].deliver.remote(header, *bodies)
        ref.future().add_done_callback(lambda _: self._call_returned(peer))

    def _call_returned(self, peer: TaskAddress) -> None:
        # a peer that is dead has "returned" as well: the coordinator finds out and ends this attempt
        self._returned.append(peer)
        self._wake.set()

    def _tell(self, reports: list[ToCoordinator]) -> None:
        if reports:
            self._coordinator.report.remote(reports)


def actor_class() -> Any:
    """The Ray actor class: data calls in one thread, control calls in another, `run` in a third."""
    return ray.remote(concurrency_groups={"data": 1, "control": 1, "life": 1})(TaskActor)
