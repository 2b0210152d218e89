"""The coordinator of one job on Ray: carries out what `JobMaster` decides.

It owns the processes of the slots and their placement group, so that its end is theirs. One thread decides; calls
leave events.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayActorError
from ray.util import get_node_ip_address as node_address
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rayflink.common.errors import JobExecutionError, described
from rayflink.common.logs import bind, get_logger, keep_logs
from rayflink.common.value_bytes import to_bytes
from rayflink.state.clock import SystemClock
from rayflink.state.storages import open_storage

from .acceptance import Appointment, without_code
from .commands import (
    Answer,
    AnswerRescale,
    AnswerSavepoint,
    CancelRequested,
    Command,
    CommandLost,
    DeploymentFailed,
    DeployTask,
    DiscardFiles,
    EndJob,
    JobResult,
    KillTask,
    PublishCheckpoint,
    Request,
    RequestSlots,
    SendToTask,
    Signal,
    SlotsGranted,
    SlotsRefused,
    StopRequested,
    TaskGone,
    Tick,
)
from .deployment import announce
from .deployment_calls import DeploymentCalls, could_not_deploy
from .exchange.frames import TaskAddress
from .held_rows import HeldRows
from .job import JobMaster
from .job_past import keep_past
from .messages import TaskDeployment, TaskReport, ToCoordinator, ToTask
from .ray_deaths import cause_of_death, refusal
from .ray_job_files import job_folder, write_record
from .ray_metrics import PrometheusReports
from .ray_nodes import NodeWatch, elsewhere
from .ray_remains import patiently, remove_remains
from .ray_resources import cluster_has
from .ray_spills import leaves_copies, may_spill, remove_spills_of
from .ray_task import Surroundings
from .recovery_path import begin, storage_options
from .recovery_times import last_recovery, recovery_told
from .reports import read_reports
from .scheduling import Slot, bundle_of, slots_asked, tenants
from .settings import JobSettings
from .slot_actor import actor_class
from .states import JobStatus
from .submission import Stored, Submission, forget, keep, kept
from .task_log import TaskLog, log_of_runtime_goes_to
from .terminal import News, Terminal, Text
from .user_code import unpack

log = get_logger(__name__)

TICK_S = 0.2
NOTE_EVERY_S = 2.0
"""How often a job that waits for slots looks at what the cluster has."""
LINGER_S = 60.0
"""How long the result of an ended job is kept after its driver was heard of last."""
MOST_LINGER_S = 3600.0
"""How long it is kept at most (jobstore.expiration-time)."""
_RUNS = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING)


class Coordinator:
    """Shell around `JobMaster`; each method may be called by a thread of its own."""

    def __init__(self, stored: Stored | None = None) -> None:
        self._stored = stored
        self._clock = SystemClock()
        self._events: queue.Queue[ToCoordinator | Signal] = queue.Queue()
        self._slots: dict[Slot, Any] = {}
        self._dead: set[Any] = set()
        self._made = self._groups_asked = 0
        self._answers: dict[str, Answer] = {}
        self._asked: set[str] = set()
        self._answered = threading.Condition()
        self._storage_work = ThreadPoolExecutor(1, "checkpoint-files")
        self._actors: dict[TaskAddress, Any] = {}
        self._nodes: dict[TaskAddress, str] = {}
        self._leader_id = os.urandom(16).hex()
        self._spilling: dict[str, list[TaskDeployment]] = {}
        self._ended_well: set[TaskAddress] = set()
        self._group: PlacementGroup | None = None
        self._bundles: dict[Slot, int] = {}
        self._lost_nodes: set[str] = set()
        self._held: list[DeployTask] = []
        self._held_since = 0.0
        self._told_recovery = 0
        self._granted = False
        self._asked_at = 0.0
        self._noted_at = 0.0
        self._note = ""
        self._ended = threading.Event()
        self._rows = HeldRows(lambda: not self._ended.is_set() and self._job.status in _RUNS)
        self._terminal = Terminal()
        self._result: JobResult | None = None
        self._owner_seen = time.monotonic()
        self._owner_timeout_s: float | None = None
        self._fault: str | None = None

    # calls of the driver

    def start(self, submission: Submission) -> None:
        """Begin.

        Raises: whatever loading the program here raises.
        """
        keep_logs(sys.stderr, warn=False)
        graph = unpack(submission.program)
        if self._stored is not None:
            keep(self._stored.open(), submission)
        self._submission = submission
        self._program = ray.put(submission.program)
        self._settings = JobSettings.of(graph.configuration)
        self._calls = DeploymentCalls(self._settings.slot_timeout_ms, self._settings.ask_timeout_ms)
        self._open_storage = lru_cache(partial(open_storage, options=storage_options(graph.configuration)))
        beginning = begin(graph, lambda: self._leader_id, self._open_storage)
        self._files = beginning.files
        self._job = JobMaster(graph, lambda: os.urandom(16).hex(), submission.cached_files, start=beginning.start)
        self._job.metrics.located(node_address())  # type: ignore[no-untyped-call]
        self._prometheus = PrometheusReports(graph.configuration)
        self._blueprint = actor_class(max(tenants(graph).values()))
        self._me = ray.get_runtime_context().current_actor
        self._folder = job_folder(submission.namespace, graph.id)
        log_of_runtime_goes_to(TaskLog(self._folder, "coordinator"))
        limit = submission.owner_timeout_ms
        self._owner_timeout_s = None if limit is None else limit / 1000
        self._watch_of_nodes = NodeWatch(lambda: set(list(self._nodes.values())), self._node_lost)
        threading.Thread(target=self._decide, name="coordinator", daemon=True).start()

    def come_back(self, job_id: str) -> None:
        """Go on with a job whose coordinator was lost.

        Raises: what keeps it from going on.
        """
        assert self._stored is not None, "Ray restarts no other coordinators"
        stored = self._stored
        try:
            submission = patiently(lambda: kept(stored.open(), job_id))
        except JobExecutionError as error:
            reason = "had ended, or was about to, when its coordinator was lost: its result went with that"
            raise JobExecutionError(job_id, reason, error.reason) from error
        remove_remains(job_id, submission.namespace)
        patiently(lambda: self.start(submission))

    def leave(self) -> None:
        """End this process, for good."""
        ray.kill(ray.get_runtime_context().current_actor)

    def cancel(self, by: str) -> None:
        """Ask for cancellation; rows that wait for the driver are dropped."""
        self._rows.discard()
        self._events.put(CancelRequested(by))

    def stop(self) -> None:
        """Let the sources end."""
        self._events.put(StopRequested())

    def answer_to(self, request: Request, timeout_s: float) -> Answer | None:
        """Ask for something, or wait on for what was asked for; None when it takes longer than `timeout_s`."""
        number = request.request_id
        if number not in self._answers and number not in self._asked:
            self._asked.add(number)
            self._events.put(request)
        with self._answered:
            self._answered.wait_for(lambda: number in self._answers or self._ended.is_set(), timeout_s)
        if number not in self._answers and self._ended.is_set():
            return request.job_has_ended()
        return self._answers.get(number)

    def status(self) -> dict[str, Any]:
        """The job as plain data."""
        described = self._described()
        waiting = len({command.slot for command in self._held}) if self._granted else len(self._bundles)
        described["slots"] = f"waiting for {waiting} slots" if waiting else "granted"
        if self._note:
            described["note"] = self._note
        if self._fault is not None:
            described["fault"] = self._fault
        return described

    def checkpoints(self) -> dict[str, Any]:
        """Statistics of the job's checkpoints."""
        return self._job.checkpoints.coordinator.history.overview()

    def result(self, timeout_s: float) -> bytes | None:
        """The result, or None when the job has not ended within `timeout_s`."""
        self._ended.wait(timeout_s)
        self._raise_fault()
        return None if self._result is None else to_bytes(self._result)

    def follow(self, timeout_s: float, with_texts: bool) -> News:
        """What is new for the driver, within `timeout_s`; also tells that the driver lives.

        Without texts, which a driver has no room for while its terminal is paused, that is all: they wait here.
        """
        self._owner_seen = time.monotonic()
        if not with_texts:
            self._terminal.attend()
            self._raise_fault()
            return News((), self._note)
        texts = self._terminal.take(timeout_s)
        self._owner_seen = time.monotonic()
        if not texts:
            self._raise_fault()
        ended = self._ended.is_set() and self._terminal.is_empty and self._rows.is_empty
        return News(texts, self._note, to_bytes(self._result) if ended else None)

    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Blocks of collected rows, waiting for the first at most `timeout_s`; None when all have been drawn."""
        self._raise_fault()
        return self._rows.take(timeout_s)

    def accumulators(self) -> bytes:
        """Name -> value of the subtasks that have finished, packed."""
        return to_bytes(self._job.accumulators())

    # calls of the tasks

    def report(self, reports: bytes) -> None:
        """What a task has to say: a list of messages."""
        for item in read_reports(reports):
            self._calls.answered(item.attempt)
            self._events.put(item)

    def printed(self, texts: list[Text]) -> None:
        """What a task has printed; returns when there is room for more."""
        self._terminal.put(texts)

    def collected(self, block: bytes) -> None:
        """Rows for the driver; returns when there is room for more."""
        self._rows.put(block)

    def process_of(self, attempt: TaskAddress) -> Any:
        """The actor in which an attempt runs, for a peer that was deployed before it."""
        return self._actors[attempt]

    # the deciding thread

    def _decide(self) -> None:
        bind(job=self._job.graph.id)
        try:
            self._carry_out(self._job.start(self._clock.now_ms()))
            self._record()
            last_tick = 0.0
            while self._result is None:
                self._next_event()
                now = time.monotonic()
                if now - last_tick >= TICK_S:
                    last_tick = now
                    self._tick(now)
        except BaseException as error:  # the last resort: whoever waits for the job must learn of it
            log.exception("coordinator failed")
            self._fault = f"the coordinator of job {self._job.graph.name!r} failed: {described(error)}"
            self._release_all_the_same()
        self._watch_of_nodes.end()
        self._record()
        self._ended.set()
        self._rows.close()
        self._terminal.close()
        self._linger()
        self.leave()

    def _release_all_the_same(self) -> None:
        """Those who wait for the job must be answered, and this process must end, also where Ray answers no more."""
        try:
            self._release()
        except Exception:  # what goes with this process, goes then
            log.exception("the processes of the job could not be released")

    def _record(self) -> None:
        """Leave the status for those who ask when this process is gone."""
        status = self._described()
        log.info("Job %s (%s) is %s.", status["name"], status["jid"], status["state"])
        for failed in self._job.exceptions:
            log.error("%s: %s", failed.task, failed.failure.told())
        try:
            write_record(self._folder, status)
        except OSError as error:
            log.warning("the record of the job could not be written: %s", error)

    def _linger(self) -> None:
        ended_at = time.monotonic()
        while (now := time.monotonic()) - ended_at < MOST_LINGER_S and now - max(self._owner_seen, ended_at) < LINGER_S:
            time.sleep(1)

    def _next_event(self) -> None:
        try:
            event = self._events.get(timeout=TICK_S)
        except queue.Empty:
            return
        restarts = self._job.past.restarts
        self._carry_out(self._job.handle(event, self._clock.now_ms()))
        if self._stored is not None and self._job.past.restarts != restarts:
            self._storage_work.submit(keep_past, self._open_storage(self._files.base), self._job.past)

    def _work_on_files(self, command: PublishCheckpoint | DiscardFiles) -> None:
        """In order, beside the decisions: a slow storage holds up no heartbeat."""
        if isinstance(command, PublishCheckpoint):
            self._storage_work.submit(lambda: self._events.put(self._files.publish(command)))
        else:
            self._storage_work.submit(self._discard, command)

    def _discard(self, command: DiscardFiles) -> None:
        self._files.discard(command)
        if self._stored is not None and command.folder == "":
            forget(self._stored.open())

    def _tick(self, now: float) -> None:
        self._job.job_metrics()
        self._prometheus.report(self._job.metrics.group, now)
        for failed in self._calls.overdue(now):
            self._events.put(failed)
        self._deploy_held(now)
        self._tell_recovery()
        for attempt in self._calls.waiting():  # Ray tells when a process cannot start
            self._carry_out(self._job.handle(TaskReport(attempt, {}), self._clock.now_ms()))
        if not self._granted and now - self._asked_at > self._settings.slot_timeout_ms / 1000:
            self._events.put(SlotsRefused(cluster_has()))
        elif not self._granted and now - max(self._asked_at, self._noted_at) >= NOTE_EVERY_S:
            self._noted_at = now
            asked = slots_asked(self._job.graph, self._submission.slot_cpus)
            self._note = f"waiting for {asked}; {cluster_has()}"
        if self._owner_timeout_s is not None and now - self._owner_seen > self._owner_timeout_s:
            self._rows.discard()
            self._owner_timeout_s = None
            self._events.put(CancelRequested("the loss of its driver"))
        if self._granted or now - self._asked_at <= self._settings.slot_timeout_ms / 1000:
            self._carry_out(self._job.handle(Tick(), self._clock.now_ms()))

    def _carry_out(self, commands: list[Command]) -> None:
        deploys = [command for command in commands if isinstance(command, DeployTask)]
        if deploys:
            self._deploy(deploys)
        for command in commands:
            if isinstance(command, RequestSlots):
                self._request(command.slots)
            elif isinstance(command, SendToTask):
                self._send(command.attempt, command.message)
            elif isinstance(command, KillTask):
                actor = self._actors.get(command.attempt)
                if actor is not None:
                    self._dead.add(actor)
                    ray.kill(actor)
            elif isinstance(command, PublishCheckpoint | DiscardFiles):
                self._work_on_files(command)
            elif isinstance(command, AnswerSavepoint | AnswerRescale):
                with self._answered:
                    self._answers[command.request_id] = command
                    self._answered.notify_all()
            elif isinstance(command, EndJob):
                self._release()
                self._storage_work.shutdown()
                self._result = command.result

    def _send(self, attempt: TaskAddress, message: ToTask) -> None:
        actor = self._actors.get(attempt)
        if actor is None:
            self._drop_held(attempt)
            return
        what = type(message).__name__

        def returned(call: Future[None]) -> None:
            error = call.exception()
            if error is not None:
                self._events.put(CommandLost(attempt, what, cause_of_death(error)))

        actor.command.remote(attempt, to_bytes(message)).future().add_done_callback(returned)

    # slots, actors

    def _request(self, slots: tuple[Slot, ...]) -> None:
        if self._group is not None:  # the job needs others than those it has
            self._release()
            self._granted = False
        self._bundles = {slot: index for index, slot in enumerate(slots)}
        self._group = group = self._new_group()
        self._asked_at = time.monotonic()
        threading.Thread(target=self._await_slots, args=(group,), name="slots", daemon=True).start()

    def _new_group(self) -> PlacementGroup:
        """The slots of the job, asked of Ray, on other nodes than the lost ones."""
        bundles = [bundle_of(self._job.graph, slot, self._submission.slot_cpus) for slot in self._bundles]
        self._groups_asked += 1
        name = f"rayflink/{self._job.graph.id}/{self._leader_id[:6]}{self._groups_asked}"
        where = [elsewhere(self._lost_nodes)] * len(bundles) if self._lost_nodes else None
        strategy = self._submission.placement
        group: PlacementGroup = placement_group(bundles, strategy=strategy, name=name, bundle_label_selector=where)
        return group

    def _await_slots(self, group: PlacementGroup) -> None:
        while self._group is group:
            if group.wait(1):
                self._granted = True
                self._note = ""
                self._events.put(SlotsGranted())
                return

    def _deploy(self, deploys: list[DeployTask]) -> None:
        """Make all processes first, so that each task can be told its peers."""
        group = self._group
        assert group is not None, "tasks are deployed to slots that are there"
        if self._is_lost(group, deploys):
            self._held, self._held_since = [*self._held, *deploys], time.monotonic()
            if len(self._held) == len(self._job.executions):  # nothing else runs: there is no need to wait for Ray
                self._give_up_slots()
                self._group = self._new_group()
            return
        for attempt in self._actors.keys() - self._job.executions.keys():  # of attempts that others have followed
            del self._actors[attempt], self._nodes[attempt]
        node_of = placement_group_table(group)["bundles_to_node_id"]
        host_of = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}  # type: ignore[no-untyped-call]
        made = []
        for command in deploys:
            slot, deployment = command.slot, command.deployment
            try:
                node = node_of.get(self._bundles[slot], "")  # of a bundle that is lost, none is known yet
                announce(deployment, host_of.get(node, node))
                if slot not in self._slots or self._slots[slot] in self._dead:
                    self._slots[slot] = self._make_actor(slot, group)
            except Exception as error:  # whatever Ray refuses
                self._events.put(could_not_deploy(deployment, error))
                continue
            self._actors[deployment.attempt], self._nodes[deployment.attempt] = self._slots[slot], node
            if may_spill(deployment):
                self._spilling.setdefault(node, []).append(deployment)
            made.append((command, host_of.get(node, node)))
        report_ms = min(self._settings.heartbeat_interval_ms, 1000)
        around = ray.put(Surroundings(self._actors, self._nodes, self._me, self._leader_id, report_ms))
        for command, host in made:
            self._calls.made(command.deployment, host, time.monotonic())
            self._submit(command, around)

    def _make_actor(self, slot: Slot, group: PlacementGroup) -> Any:
        job_id, submission = self._job.graph.id, self._submission
        bundle = bundle_of(self._job.graph, slot, submission.slot_cpus)
        self._made += 1
        blueprint = self._blueprint.options(
            name=f"{job_id}/{slot}/{self._leader_id[:6]}{self._made}",
            namespace=submission.namespace,
            num_cpus=bundle.pop("CPU"),
            num_gpus=bundle.pop("GPU", 0),
            memory=int(bundle.pop("memory", 0)) or None,
            resources=bundle,
            max_restarts=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, self._bundles[slot]),
        )
        return blueprint.remote(Appointment(job_id, slot, self._leader_id, submission.namespace))

    def _submit(self, command: DeployTask, around: Any) -> None:
        deployment, actor = command.deployment, self._slots[command.slot]
        attempt = deployment.attempt

        def is_there(call: Future[Any]) -> None:
            if call.exception() is None:
                self._calls.reached(attempt, time.monotonic())

        def submitted(call: Future[None]) -> None:
            self._calls.answered(attempt)
            error = call.exception()
            if error is not None and not isinstance(error, ActorDiedError):  # of its death the call of `run` tells
                self._events.put(DeploymentFailed(attempt, refusal(deployment.title, error)))

        actor.__ray_ready__.remote().future().add_done_callback(is_there)
        submission = actor.submit.remote(self._program, without_code(deployment), command.slot, around)
        submission.future().add_done_callback(submitted)
        self._watch(actor.run.remote(attempt), attempt, actor)

    def _watch(self, running: Any, attempt: TaskAddress, actor: Any) -> None:
        def ended(future: Any) -> None:
            error = future.exception()
            if isinstance(error, RayActorError):
                self._dead.add(actor)
            if error is not None:
                self._events.put(TaskGone(attempt, cause_of_death(error)))
            else:
                self._ended_well.add(attempt)

        running.future().add_done_callback(ended)

    def _is_lost(self, group: PlacementGroup, deploys: list[DeployTask]) -> bool:
        """Whether a slot is on a node that is lost, and Ray, which does not know yet, has given no other for it."""
        if not self._lost_nodes:
            return False
        table = placement_group_table(group)
        nodes = table["bundles_to_node_id"]
        bundles = {self._bundles[command.slot] for command in deploys}
        return table["state"] != "CREATED" or any(nodes.get(bundle, "") in self._lost_nodes for bundle in bundles)

    def _tell_recovery(self) -> None:
        """Once all tasks that started anew run, say how long it took."""
        found = last_recovery(self._job.timestamps, self._job.attempts, self._job.checkpoints.restored_bytes)
        if found is not None and found["total_ms"] is not None and found["began"] != self._told_recovery:
            self._told_recovery = found["began"]
            log.info("recovered: %s", recovery_told(found), extra=found)

    def _deploy_held(self, now: float) -> None:
        """What waits for another node in the place of a lost one."""
        if not self._held:
            return
        group, held = self._group, self._held
        assert group is not None
        if now - self._held_since > self._settings.slot_timeout_ms / 1000:
            self._held = []
            for command in held:
                self._events.put(could_not_deploy(command.deployment, TimeoutError(self._note)))
        elif self._is_lost(group, held):
            asked = slots_asked(self._job.graph, self._submission.slot_cpus)
            self._note = f"waiting for slots in the place of those of a lost node (of {asked}); {cluster_has()}"
            for command in held:
                attempt = command.deployment.attempt
                self._carry_out(self._job.handle(TaskReport(attempt, {}), self._clock.now_ms()))
        else:
            self._held, self._note = [], ""
            self._deploy(held)

    def _drop_held(self, attempt: TaskAddress) -> None:
        """An attempt is told something that has no process yet: that it is to end."""
        left = [command for command in self._held if command.deployment.attempt != attempt]
        if len(left) < len(self._held):
            self._held = left
            self._events.put(TaskGone(attempt, "it waited for a slot"))

    def _node_lost(self, node: str, found: str) -> None:
        log.warning("%s", found)
        self._lost_nodes.add(node)
        for attempt, where in list(self._nodes.items()):
            actor = self._actors.get(attempt)
            if where == node and actor is not None:
                self._dead.add(actor)
                self._events.put(TaskGone(attempt, found))

    def _give_up_slots(self) -> None:
        for actor in self._slots.values():
            ray.kill(actor)
        self._slots.clear()
        self._actors.clear()
        group, self._group = self._group, None
        if group is not None:
            remove_placement_group(group)

    def _release(self) -> None:
        self._give_up_slots()
        left = remove_spills_of(
            {
                node: [one for one in deployments if one.attempt not in self._ended_well or leaves_copies(one)]
                for node, deployments in self._spilling.items()
            }
        )
        self._spilling.clear()
        if left:
            log.warning("spill folders may be left behind: %s", ", ".join(left))

    def _described(self) -> dict[str, Any]:
        for _ in range(10):
            try:
                return self._job.describe()
            except RuntimeError:  # the deciding thread changed a collection while it was read: read it again
                continue
        return self._job.describe()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise RuntimeError(self._fault)
