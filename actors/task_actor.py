"""One subtask as a Ray actor: a thread that steps the task, one thread for data calls, one for control calls."""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import ActorDiedError
from ray.util import get_node_ip_address as node_address

from rayflink.common.errors import ConfigError, TaskLost, described
from rayflink.state.clock import SystemClock

from .acceptance import Acceptance, Appointment, TaskSubmissionError, with_operators
from .envelopes import join_envelope, split_envelope
from .exchange.frames import Envelope, TaskAddress
from .failures import describe_failure, halt_process
from .messages import TaskDeployment, TaskFailure, TaskReport, TaskStateChanged, ToCoordinator, ToTask
from .reports import pack_reports
from .states import ExecutionState
from .task import Progress, StreamTask
from .terminal import Printed, PrintedStream, Text
from .user_code import from_bytes

SWITCH_INTERVAL_S = 0.001
"""How long the task's thread may hold the interpreter while a call waits."""
LOST_CALL_S = 10.0
"""A call that failed is never sent again; when the coordinator has not ended the attempt by then, it fails."""
COLLECT_EVERY_S = 10.0
"""Cyclic garbage is looked for this often; reference counts do the rest at once."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Who else there is.

    Args:
        actors: of the attempts deployed so far.
        nodes: where they run.
        coordinator: takes reports.
        leader_id: of that coordinator.
        namespace: Ray namespace of all actors of the job.
        report_ms: time between two heartbeats.
    """

    actors: Mapping[TaskAddress, Any]
    nodes: Mapping[TaskAddress, str]
    coordinator: Any
    leader_id: str
    namespace: str
    report_ms: int


class LostCall(ConnectionError):
    """A call of this attempt failed, and what it carried is missing elsewhere."""

    def __init__(self, what: str, cause: str) -> None:
        super().__init__(what, cause)
        self.what, self.cause = what, cause

    def __str__(self) -> str:
        return f"its call with {self.what} failed: {self.cause}"


class TaskActor:
    """Shell around `StreamTask`; `actor_class()` makes the Ray class."""

    def __init__(self, appointment: Appointment) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._acceptance = Acceptance(appointment)
        self._accepted: queue.SimpleQueue[tuple[bytes, TaskDeployment, Surroundings]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._mailbox: deque[Envelope | ToTask] = deque()
        self._returned: deque[TaskAddress] = deque()
        self._peers: _Peers = _Peers("", "", {})
        self._coordinator: Any = None
        self._done = threading.Event()
        self._lost_call: tuple[float, LostCall] | None = None
        self._told: deque[tuple[str, Future[None]]] = deque()
        self._printed = Printed(self._send_texts)
        self._place: dict[str, Any] = {}
        self._near: frozenset[TaskAddress] = frozenset()
        self._bytes_near = self._bytes_far = 0
        self._metrics: Mapping[str, Any] = {}
        self._reported_at = 0.0

    @ray.method(concurrency_group="data")
    def deliver(self, header: bytes, *bodies: bytes) -> None:
        """An envelope from a peer."""
        envelope = join_envelope(header, bodies)
        size = sum(map(len, bodies))
        if envelope.sender in self._near:
            self._bytes_near += size
        else:
            self._bytes_far += size
        self._put(envelope)

    @ray.method(concurrency_group="control")
    def command(self, message: bytes) -> None:
        """A command of the coordinator."""
        self._put(from_bytes(message))

    @ray.method(concurrency_group="control")
    def stack(self) -> str:
        """What every thread is doing now, for the doctor."""
        frames = sys._current_frames()
        return "\n".join("".join(traceback.format_stack(frame)) for frame in frames.values())

    @ray.method(concurrency_group="control")
    def submit(self, program: bytes, deployment: TaskDeployment, around: Surroundings) -> None:
        """Take over an attempt, which `run` then runs.

        Raises:
            TaskSubmissionError: it is none that this process may run.
        """
        self._acceptance.accept(deployment, around.leader_id)
        self._accepted.put((program, deployment, around))

    @ray.method(concurrency_group="life")
    def run(self) -> None:
        """Run the attempt, once it is submitted, to its end: in a terminal state, and everything has been sent.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
        """
        program, deployment, around = self._accepted.get()
        here = ray.get_runtime_context().get_node_id()
        self._coordinator = around.coordinator
        self._peers = _Peers(deployment.job_id, around.namespace, around.actors)
        self._near = frozenset(attempt for attempt, node in around.nodes.items() if node == here)
        host = node_address()  # type: ignore[no-untyped-call]
        self._place = {"pid": os.getpid(), "node": here, "host": host}
        sys.stdout, sys.stderr = PrintedStream(self._printed, False), PrintedStream(self._printed, True)
        report_s = around.report_ms / 1000
        threading.Thread(target=self._beat, args=(deployment.attempt, report_s), name="heartbeat", daemon=True).start()
        task = self._load(program, deployment)
        if task is not None:
            thread = threading.Thread(target=self._step_until_done, args=(task, report_s), name=deployment.name)
            thread.start()
            self._done.wait()
            thread.join()
        self._done.set()
        self._printed.send(wait=True)
        wait([call for _, call in self._told])
        self._heed_lost_reports()
        if self._lost_call is not None:
            raise self._lost_call[1]

    def _load(self, program: bytes, deployment: TaskDeployment) -> StreamTask | None:
        """The task; None, and the coordinator has been told, when the program cannot be loaded here."""
        try:
            whole = with_operators(program, deployment)
            return StreamTask(whole, SystemClock(), self._mailbox, halt=halt_process)
        except (ConfigError, TaskSubmissionError) as error:
            failure = TaskFailure(type(error).__name__, str(error), traceback.format_exc())
        except Exception as error:  # whatever a module of the program raises when it is imported here
            refusal = TaskSubmissionError(
                deployment.title,
                f"could not deserialize the job or task information on {self._place['host']}: {described(error)}",
                "every module it uses must be importable on all nodes (working_dir or py_modules of `ray job submit`)",
            )
            failure = TaskFailure(type(refusal).__name__, str(refusal), traceback.format_exc())
        self._tell([TaskStateChanged(deployment.attempt, ExecutionState.FAILED, failure)])
        return None

    def _put(self, message: Envelope | ToTask) -> None:
        self._mailbox.append(message)
        self._wake.set()

    def _step_until_done(self, task: StreamTask, report_s: float) -> None:
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            task.start()
            self._tell(task.reports())
            self._loop(task, report_s)
        except LostCall as error:
            failure = TaskFailure(TaskLost.__name__, f"lost task {task.deployment.title}: {error}", "")
            self._tell([TaskStateChanged(task.deployment.attempt, ExecutionState.FAILED, failure)])
        except BaseException as error:  # a defect of ours, or what ends a program, raised in a user's function
            failure = describe_failure(error, task.deployment)
            self._tell([TaskStateChanged(task.deployment.attempt, ExecutionState.FAILED, failure)])
        finally:
            self._done.set()

    def _beat(self, attempt: TaskAddress, report_s: float) -> None:
        """Say that this process lives while a user's function keeps the task's thread from saying so."""
        while not self._done.wait(report_s):
            if time.monotonic() - self._reported_at > 2 * report_s:
                beat = {**self._metrics, **self._place, "reportedMs": int(time.time() * 1000)}
                self._coordinator.report.remote(pack_reports([TaskReport(attempt, beat)]))

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
            if progress is Progress.DONE:
                return
            self._heed_lost_reports()
            if self._lost_call is not None and now - self._lost_call[0] > LOST_CALL_S:
                raise self._lost_call[1]
            if now - last_collect >= COLLECT_EVERY_S:
                last_collect = now
                gc.collect()
            if progress is Progress.BUSY:
                continue
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
        ref.future().add_done_callback(lambda call: self._call_returned(peer, call.exception()))

    def _call_returned(self, peer: TaskAddress, error: BaseException | None) -> None:
        if error is None:
            self._returned.append(peer)
        else:  # what it carried is missing, so this attempt must not end as FINISHED
            self._lose(f"data for its peer {peer}", error)
        self._wake.set()

    def _lose(self, what: str, error: BaseException) -> None:
        if self._lost_call is None:
            self._lost_call = (time.monotonic(), LostCall(what, described(error)))

    def _heed_lost_reports(self) -> None:
        """Look at the calls to the coordinator that have returned; one that is dead needs no reports any more."""
        while self._told and self._told[0][1].done():
            what, call = self._told.popleft()
            error = call.exception()
            if error is not None and not isinstance(error, ActorDiedError):
                self._lose(f"{what} for the coordinator", error)

    def _tell(self, reports: list[ToCoordinator]) -> None:
        ended = any(isinstance(report, TaskStateChanged) and report.state.is_terminal for report in reports)
        if ended or self._printed.pending:
            self._printed.send(wait=ended)
        if reports:
            self._reported_at = time.monotonic()
            call = self._coordinator.report.remote(pack_reports([self._completed(report) for report in reports]))
            what = ", ".join(type(report).__name__ for report in reports if not isinstance(report, TaskReport))
            if what:  # a heartbeat that is lost is made up for by the next
                self._told.append((what, call.future()))

    def _completed(self, report: ToCoordinator) -> ToCoordinator:
        """With what only the process knows: where it is, and what came from which node."""
        if not isinstance(report, TaskReport):
            return report
        traffic = {"numBytesInLocal": self._bytes_near, "numBytesInRemote": self._bytes_far}
        self._metrics = {**report.metrics, **traffic, **self._place, "reportedMs": int(time.time() * 1000)}
        return TaskReport(report.attempt, self._metrics)

    def _send_texts(self, texts: list[Text]) -> Callable[[float], bool]:
        call = self._coordinator.printed.remote(texts)
        return lambda timeout_s: bool(ray.wait([call], timeout=timeout_s)[0])


class _Peers(dict[TaskAddress, Any]):
    """Actors by attempt; one that was made after this one is found by its name."""

    def __init__(self, job_id: str, namespace: str, actors: Mapping[TaskAddress, Any]) -> None:
        super().__init__(actors)
        self._job_id, self._namespace = job_id, namespace

    def __missing__(self, attempt: TaskAddress) -> Any:
        actor = self[attempt] = ray.get_actor(f"{self._job_id}/{attempt}", namespace=self._namespace)
        return actor


def actor_class() -> Any:
    """The Ray actor class: data calls in one thread, control calls in another, `run` in a third."""
    options: dict[str, Any] = {"concurrency_groups": {"data": 1, "control": 1, "life": 1}}
    return ray.remote(**options)(TaskActor)
