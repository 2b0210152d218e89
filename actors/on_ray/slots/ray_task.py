"""Runs one attempt in the process of its slot: a thread that steps the task, and its calls to Ray."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

import ray

from rayflink.common.errors import ConfigError, TaskLost, described
from rayflink.common.metrics.metric_names import BACK_PRESSURED_TIME, BUSY_TIME, IDLE_TIME
from rayflink.common.metrics.waits import WAITS
from rayflink.common.text_output.logs import bind, get_logger, spoken_by
from rayflink.common.user_code.python_files import IMPORT_REMEDY
from rayflink.common.user_code.stalled import STALLED, stalled_text
from rayflink.common.user_code.value_bytes import from_bytes
from rayflink.connectors.collected import rows_go_to
from rayflink.state.clock import SystemClock

from ...exchange.envelopes import split_envelope
from ...exchange.frames import BufferResponse, Envelope, TaskAddress
from ...messages.messages import CancelTask, TaskDeployment, TaskFailure, TaskReport, TaskStateChanged, ToCoordinator
from ...messages.scheduling import Slot
from ...messages.states import ExecutionState
from ...task.failures import describe_failure
from ...task.progress import Mail, Progress
from ...task.stalls import WARN_AFTER_S, StepWatch
from ...task.task import StreamTask
from ...task.task_folders import report_disks
from ...task.wiring import wake_at_feedback
from ..coordinators.hosted_coordinator import is_gone
from ..ray_handles import RayActor
from ..ray_metrics import PrometheusReports
from ..ray_rows import RowCalls
from ..reports import pack_reports
from .deployment_check import TaskSubmissionError
from .process_job import ProcessJob

log = get_logger(__name__)

LOST_CALL_S = 10.0
"""A call that failed is never sent again; when the coordinator has not ended the attempt by then, it fails."""
WHILE_STALLED: dict[str, Any] = {BUSY_TIME: 1000, IDLE_TIME: 0, BACK_PRESSURED_TIME: 0, WAITS: ()}
"""Rates of the time metrics, in ms per second, of a task whose function does not return; it waits for nothing else."""


@dataclass(frozen=True, slots=True)
class PeerDirectory:
    """The directory of a task's peers and its coordinator.

    Args:
        actors: processes of the attempts deployed so far.
        nodes: where they run.
        coordinator: takes reports.
        leader_id: of this life of the coordinator.
        report_ms: time between two heartbeats.
    """

    actors: Mapping[TaskAddress, RayActor]
    nodes: Mapping[TaskAddress, str]
    coordinator: RayActor
    leader_id: str
    report_ms: int


class LostCall(ConnectionError):
    """A call of this attempt failed, and its content is missing at the receiver."""

    def __init__(self, what: str, cause: str) -> None:
        super().__init__(what, cause)
        self.what, self.cause = what, cause

    def __str__(self) -> str:
        return f"its call with {self.what} failed: {self.cause}"


class RayTask:
    """Runs one attempt; `receive` and `command` may be called by any thread.

    Args:
        program: the packed job graph.
        deployment: without operators, which are in the program.
        slot: that it runs in.
        around: who else there is.
        process: its job in this process.
    """

    def __init__(
        self, program: bytes, deployment: TaskDeployment, slot: Slot, around: PeerDirectory, process: ProcessJob
    ) -> None:
        self._program, self._deployment, self._slot, self._process = program, deployment, slot, process
        self._coordinator, self._report_s = around.coordinator, around.report_ms / 1000
        self._peers = _Peers(around.actors, around.coordinator)
        here = process.place["node"]
        self._near = frozenset(attempt for attempt, node in around.nodes.items() if node == here)
        self._wake = threading.Event()
        self._mailbox: deque[Mail] = deque()
        self._sealed: list[bytes] | None = []
        self._opening = threading.Lock()
        self._returned: deque[TaskAddress] = deque()
        self._done = threading.Event()
        self._lost_call: tuple[float, LostCall] | None = None
        self._reports_under_way: deque[tuple[str, Future[None]]] = deque()
        self._bytes_near = self._bytes_far = 0
        self._metrics: Mapping[str, Any] = {}
        self._reported_at = 0.0
        self._watch = StepWatch()

    def receive(self, envelope: Envelope) -> None:
        """Receive an envelope of a peer."""
        size = bytes_of(envelope)
        if envelope.sender in self._near:
            self._bytes_near += size
        else:
            self._bytes_far += size
        self._leave(envelope)

    def command(self, message: bytes) -> None:
        """Receive a command of the coordinator; it is unpickled after the program, which may define its classes."""
        with self._opening:
            if self._sealed is not None:
                self._sealed.append(message)
                return
        self._leave(from_bytes(message))

    def cancel(self) -> None:
        """Cancel the attempt: its coordinator has given up the slot."""
        self._leave(CancelTask())

    def _leave(self, message: Mail) -> None:
        self._mailbox.append(message)
        self._wake.set()

    def run(self) -> None:
        """Run the attempt until it is in a terminal state and everything has been sent.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
        """
        with spoken_by(self._deployment.identity):
            self._run(self._deployment)

    def _run(self, deployment: TaskDeployment) -> None:
        threading.Thread(target=self._beat, args=(deployment.attempt,), name="heartbeat", daemon=True).start()
        task = self._load(self._program, deployment)
        self._program = b""
        if task is not None:
            name = self._process.thread_name(deployment)
            thread = threading.Thread(target=self._step_until_done, args=(task,), name=name)
            thread.start()
            self._done.wait()
            thread.join()
        self._done.set()
        self._process.show()
        wait([call for _, call in self._reports_under_way])
        self._heed_lost_reports()
        if self._lost_call is not None:
            raise self._lost_call[1]

    def _load(self, program: bytes, deployment: TaskDeployment) -> StreamTask | None:
        """Load the task; None, after a report to the coordinator, when the program cannot be loaded here."""
        try:
            whole = self._process.program.whole(program, deployment)
            self._unseal()
            services = self._process.services_for(deployment, self._slot, self._wake.set)
            memory = self._process.memory_of(deployment, self._slot)
            task = StreamTask(whole, SystemClock(), self._mailbox, services=services)
            task.metrics.located(str(self._process.place["host"]), self._process.process_id)
            memory.report_in(task.metrics.group.group)
            report_disks(task.metrics.group.group, deployment.config)
            wake_at_feedback(whole, self._wake.set)
            return task
        except (ConfigError, TaskSubmissionError) as error:
            failure = TaskFailure(type(error).__name__, str(error), traceback.format_exc())
        except (Exception, SystemExit) as error:  # whatever a module of the program raises when it is imported here
            host = self._process.place["host"]
            refusal = TaskSubmissionError(
                deployment.title,
                f"could not deserialize the job or task information on {host}: {described(error)}",
                f"every module it uses must be importable on all nodes: {IMPORT_REMEDY}",
            )
            failure = TaskFailure(type(refusal).__name__, str(refusal), traceback.format_exc())
        self._tell([TaskStateChanged(deployment.attempt, ExecutionState.FAILED, failure)])
        return None

    def _unseal(self) -> None:
        with self._opening:
            sealed, self._sealed = self._sealed or [], None
            for message in sealed:
                self._leave(from_bytes(message))

    def _step_until_done(self, task: StreamTask) -> None:
        self._process.garbage.settle()
        bind(**task.identity)
        try:
            with rows_go_to(RowCalls(self._coordinator)):
                self._watch.begin(time.monotonic())
                task.start(lambda: self._tell(task.reports()))
                self._tell(task.reports())
                self._loop(task)
        except LostCall as error:
            self._give_up(task, TaskFailure(TaskLost.__name__, f"lost task {task.deployment.title}: {error}", ""))
        except BaseException as error:  # a defect of ours, or what ends a program, raised in a user's function
            self._give_up(task, describe_failure(error, task.deployment))
        finally:
            self._process.free_memory(self._deployment.attempt, self._slot)
            self._process.garbage.has_ended()
            self._done.set()

    def _give_up(self, task: StreamTask, failure: TaskFailure) -> None:
        """Fail a task that cannot go on: close what it opened, and notify the coordinator and its peers."""
        reports: list[ToCoordinator] = []
        try:
            task.give_up(failure)
            reports = task.reports()
        except BaseException:  # closing may end as badly as what went before, which is what counts
            log.exception("%s could not be closed", task.deployment.title)
        if not any(isinstance(said, TaskStateChanged) and said.failure is not None for said in reports):
            reports.append(TaskStateChanged(task.deployment.attempt, ExecutionState.FAILED, failure))
        self._tell(reports)
        for envelope in task.outgoing():
            try:
                self._send(envelope)
            except Exception as error:
                log.warning("%s could not tell %s of its failure: %s", task.deployment.title, envelope.receiver, error)

    def _beat(self, attempt: TaskAddress) -> None:
        """Send a heartbeat, with the function that runs, while one keeps the task's thread from doing so."""
        bind(**self._deployment.identity)
        has_warned = False
        while not self._done.wait(self._report_s):
            if time.monotonic() - self._reported_at > 2 * self._report_s:
                beat = {**self._metrics, **self._process.place, "reportedMs": int(time.time() * 1000)}
                stalled = self._watch.stalled()
                if stalled is not None:
                    beat |= {STALLED: stalled, **WHILE_STALLED}
                    if not has_warned and stalled["ms"] > WARN_AFTER_S * 1000:
                        has_warned = True
                        log.warning("%s", stalled_text(self._deployment.name, stalled))
                self._coordinator.report.remote(pack_reports([TaskReport(attempt, beat)]))

    def _loop(self, task: StreamTask) -> None:
        last_report = before = time.monotonic()
        prometheus = PrometheusReports(task.deployment.config)
        while True:
            self._watch.begin(before)
            while self._returned:
                task.returned(self._returned.popleft())
            progress = task.step()
            now = time.monotonic()
            task.metrics.spent("busy", now - before)
            before = now
            for envelope in task.outgoing():
                self._send(envelope)
            if now - last_report >= self._report_s:
                last_report = now
                self._tell([*task.reports(), task.report()])
                prometheus.report(task.metrics.group.group, now)
            else:
                self._tell(task.reports())
            if progress is Progress.DONE:
                return
            self._heed_lost_reports()
            if self._lost_call is not None and task.state in (ExecutionState.CANCELED, ExecutionState.FAILED):
                task.metrics.close()  # a peer is dead, and nothing waits for what is left to report
                return
            if self._lost_call is not None and now - self._lost_call[0] > LOST_CALL_S:
                raise self._lost_call[1]
            self._process.garbage.collect(now)
            if progress is Progress.BUSY:
                continue
            self._watch.end()
            self._sleep(task, last_report + self._report_s - now)
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
        neighbour = self._process.tasks.get(envelope.receiver)
        if neighbour is not None:
            neighbour.receive(envelope)
        if neighbour is not None or self._process.has_ended_here(envelope.receiver):
            self._returned.append(envelope.receiver)
            return
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
        """Check the calls to the coordinator that have returned; one that is dead needs no reports any more."""
        while self._reports_under_way and self._reports_under_way[0][1].done():
            what, call = self._reports_under_way.popleft()
            error = call.exception()
            if error is not None and not is_gone(error):
                self._lose(f"{what} for the coordinator", error)

    def _tell(self, reports: list[ToCoordinator]) -> None:
        ended = any(isinstance(report, TaskStateChanged) and report.state.is_terminal for report in reports)
        if ended:
            self._process.show()
        elif self._process.printed.pending:
            self._process.printed.send()
        if not reports:
            return
        self._reported_at = time.monotonic()
        completed = [self._completed(report) for report in reports]
        heartbeats = self._process.heartbeats
        match completed:
            case [TaskReport() as heartbeat]:
                completed = [*heartbeats.add(heartbeat, len(self._process.tasks))]
            case _:
                completed = [*heartbeats.take(self._deployment.attempt), *completed]
        if completed:
            call = self._coordinator.report.remote(pack_reports(completed))
            what = ", ".join(type(report).__name__ for report in reports if not isinstance(report, TaskReport))
            if what:  # a heartbeat that is lost is made up for by the next
                self._reports_under_way.append((what, call.future()))

    def _completed(self, report: ToCoordinator) -> ToCoordinator:
        """Complete a report with the process's place and the bytes received by node."""
        if not isinstance(report, TaskReport):
            return report
        traffic = {"numBytesInLocal": self._bytes_near, "numBytesInRemote": self._bytes_far}
        self._metrics = {**report.metrics, **traffic, **self._process.place, "reportedMs": int(time.time() * 1000)}
        return TaskReport(report.attempt, self._metrics)


def bytes_of(envelope: Envelope) -> int:
    """Return the bytes of data in an envelope."""
    return sum(len(frame.body) for frame in envelope.frames if isinstance(frame, BufferResponse) and frame.body)


class _Peers(dict[TaskAddress, RayActor]):
    """The processes by attempt; the coordinator knows those of attempts deployed after this one."""

    def __init__(self, actors: Mapping[TaskAddress, RayActor], coordinator: RayActor) -> None:
        super().__init__(actors)
        self._coordinator = coordinator

    def __missing__(self, attempt: TaskAddress) -> RayActor:
        asked = self._coordinator.process_of.remote(attempt)
        actor = self[attempt] = ray.get(asked, timeout=LOST_CALL_S)
        return actor
