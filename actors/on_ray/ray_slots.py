"""The slots of a job on Ray: their placement group, and a process in each, which runs its tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayError, RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rayflink.common.options.log_levels import LogLevels
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.value_bytes import to_bytes

from ..exchange.frames import TaskAddress
from ..job.deployment import announce
from ..job.job_master import JobMaster
from ..job.slot_wait import SlotWait
from ..job.submission import Submission
from ..messages.commands import (
    CommandLost,
    DeploymentFailed,
    DeployTask,
    Signal,
    SlotsGranted,
    SlotsRefused,
    TaskGone,
)
from ..messages.messages import ToTask
from ..messages.scheduling import Slot, bundle_of, slot_title, slots_asked, tenants
from ..messages.settings import JobSettings
from ..messages.states import ExecutionState
from .coordinators.slot_starts import SlotStarts
from .deployment_calls import DeploymentCalls, could_not_deploy
from .driver.ray_resources import cluster_has, free_slots
from .ray_deaths import cause_of_death, refusal
from .ray_handles import RayActor, RayRef
from .ray_nodes import NodeWatch, elsewhere
from .ray_spills import alive_nodes, remove_folders_on
from .slots.deployment_check import SlotAssignment, without_code
from .slots.hosted_slot import HostedSlot
from .slots.idle_slots import LEAST_TASKS, IdleSlots
from .slots.ray_task import PeerDirectory
from .slots.slot_actor import SlotActor, actor_class
from .slots.slot_hosts import HostKind, SlotHosts

log = get_logger(__name__)

MOST_REPORT_MS = 2000
"""Most time between two heartbeats of a task, which bring its metrics."""
_STARTS = (ExecutionState.CREATED, ExecutionState.SCHEDULED, ExecutionState.DEPLOYING)


@dataclass(frozen=True, slots=True)
class Leader:
    """A life of the coordinator.

    Args:
        actor: the coordinator as tasks call it.
        id: of this life.
        starts: bounds the processes that start at a time.
        hosts: processes that slots share.
    """

    actor: RayActor
    id: str
    starts: SlotStarts = field(default_factory=SlotStarts)
    hosts: SlotHosts = field(default_factory=SlotHosts)


class SlotProcesses:
    """Requests slots, makes their processes, and sends these the job's commands; one thread decides.

    Args:
        job: its graph may change.
        submission: how the driver wants it to run.
        leader: this life of the coordinator.
        post: takes what happens to slots and processes, from any thread.
        everywhere: tasks may have run on any node, in an earlier life of the coordinator.
        idle: of the job before in this process, which are taken where they fit, else released.
    """

    def __init__(
        self,
        job: JobMaster,
        submission: Submission,
        leader: Leader,
        post: Callable[[Signal], None],
        everywhere: bool = False,
        idle: IdleSlots | None = None,
    ) -> None:
        self._job, self._submission, self._leader, self._post = job, submission, leader, post
        self._settings = JobSettings.of(job.graph.configuration)
        self._program = ray.put(submission.program)
        self._program_id = "" if submission.changes is None else submission.changes.program_id
        self._tasks = max(tenants(job.graph).values())
        self._threads = max(self._tasks, LEAST_TASKS) if self._settings.idle_process_ms else self._tasks
        self._blueprint, self._idle = actor_class(self._threads), idle
        slots = self._settings.slots_of_process
        self._kind = HostKind.of(slots, self._tasks) if slots > 1 else None
        self.calls = DeploymentCalls(self._settings.slot_timeout_ms, self._settings.ask_timeout_ms)
        self.actors: dict[TaskAddress, RayActor] = {}
        self.nodes: dict[TaskAddress, str] = {}
        self.granted = False
        self.wait = SlotWait()
        self._slots: dict[Slot, RayActor] = {}
        self._dead: set[RayActor] = set()
        self._accepted: set[TaskAddress] = set()
        self._made = self._groups_asked = 0
        self._used_nodes = alive_nodes() if everywhere else set()
        self._group: PlacementGroup | None = None
        self._bundles: dict[Slot, int] = {}
        self._lost_nodes: set[str] = set()
        self._starts_processes = self._waits_for_turn = False
        self._new_slots: tuple[int, list[str]] = 0, []
        self._waiting: list[DeployTask] = []
        self._waiting_since = self._asked_at = 0.0
        self._watch_of_nodes = NodeWatch(lambda: set(list(self.nodes.values())), self._node_lost)

    @property
    def missing(self) -> int:
        """Return how many slots the job waits for."""
        return len({command.slot for command in self._waiting}) if self.granted else len(self._bundles)

    def available(self, reserved: Sequence[PlacementGroup]) -> int:
        """Return how many slots the cluster has for the job: those that it has on living nodes, and free CPUs.

        Args:
            reserved: further slots of the job.
        """
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        alive = {node["NodeID"] for node in nodes if node["Alive"]} - self._lost_nodes
        groups = [*reserved, *([] if self._group is None else [self._group])]
        placed = [node for group in groups for node in placement_group_table(group)["bundles_to_node_id"].values()]
        return sum(node in alive for node in placed) + free_slots(self._submission.slot_cpus)

    def is_overdue(self, now: float) -> bool:
        """Return whether slots were requested, and did not come in time."""
        return not self.granted and now - self._asked_at > self._settings.slot_timeout_ms / 1000

    def tick(self, now: float) -> list[TaskAddress]:
        """Check deadlines, and return the attempts that cannot have reported anything yet."""
        for failed in self.calls.overdue(now):
            self._post(failed)
        self._deploy_waiting(now)
        if self._starts_processes and not any(each.state in _STARTS for each in self._job.executions.values()):
            self._have_started()
        if self.is_overdue(now):
            self._post(SlotsRefused(cluster_has()))
        self._look(now)
        return [*self.calls.waiting(), *(command.deployment.attempt for command in self._waiting)]

    def _look(self, now: float) -> None:
        if self.granted and not self._waiting:
            lines = self.wait.end(now) if self.wait.reason else []
        else:
            is_due = self.wait.is_due(now) and not self._waits_for_turn  # there are slots: no look at the cluster
            lines = self.wait.look(now, cluster_has()) if is_due else []
        for line in lines:
            log.warning("job %r: %s", self._job.graph.name, line)

    def end(self) -> None:
        """Stop watching nodes, and leave the queue of those that start."""
        self._have_started()
        self._watch_of_nodes.end()

    def _have_started(self) -> None:
        self._starts_processes = False
        self._leader.starts.end(self._leader.id)

    def kill(self, attempt: TaskAddress) -> None:
        """End the process of an attempt; one that a shared process has not accepted ends with its slot alone."""
        actor = self.actors.get(attempt)
        if actor is None:
            return
        self._dead.add(actor)
        if isinstance(actor, HostedSlot) and attempt not in self._accepted:
            self._leader.hosts.close(actor)
        else:
            self._kill(actor)

    def _kill(self, actor: ActorHandle[SlotActor] | HostedSlot) -> None:
        """End the process of a slot, with all slots that share it."""
        if isinstance(actor, HostedSlot):
            self._leader.hosts.end_process(actor)
        else:
            ray.kill(actor)

    def send(self, attempt: TaskAddress, message: ToTask) -> None:
        """Send an attempt a message; one that waits for a slot ends."""
        actor = self.actors.get(attempt)
        if actor is None:
            self._drop_waiting(attempt)
            return
        what = type(message).__name__

        def returned(call: Future[None]) -> None:
            error = call.exception()
            if error is not None:
                self._post(CommandLost(attempt, what, cause_of_death(error)))

        actor.command.remote(attempt, to_bytes(message)).future().add_done_callback(returned)

    def request(self, slots: tuple[Slot, ...]) -> None:
        """Request these slots from Ray, and release the present ones."""
        if self._group is not None:  # the job needs others than those it has
            self._release(copies=False)
            self.granted = False
        self._bundles = {slot: index for index, slot in enumerate(slots)}
        self._asked_at = time.monotonic()
        if self._take_idle():
            return
        self._group = group = self._new_group()
        self.wait.begin(self._asked_at, slots_asked(self._job.graph, self._submission.slot_cpus))
        threading.Thread(target=self._await_slots, args=(group,), name="slots", daemon=True).start()

    def _take_idle(self) -> bool:
        """Take the slots of the job before where they fit and live, else release them."""
        idle, self._idle = self._idle, None
        if idle is None:
            return False
        bundles = [bundle_of(self._job.graph, slot, self._submission.slot_cpus) for slot in self._bundles]
        if not idle.fits(bundles, self._submission.placement, self._tasks) or not idle.assign(
            [self._assignment(slot) for slot in self._bundles]
        ):
            idle.release()
            return False
        self._group, self._slots = idle.group, dict(zip(self._bundles, idle.actors, strict=True))
        self._threads, self.granted = idle.tasks, True
        self._post(SlotsGranted())
        return True

    def keep(self) -> IdleSlots | None:
        """Release the slots of a job that has finished to the next one; None where they have lost a process or node."""
        group = self._group
        if group is None or self._dead or self._lost_nodes or self._slots.keys() != self._bundles.keys():
            return None
        if any(isinstance(actor, HostedSlot) for actor in self._slots.values()):  # `SlotHosts` keeps their process
            return None
        bundles = [bundle_of(self._job.graph, slot, self._submission.slot_cpus) for slot in self._bundles]
        actors = [self._slots[slot] for slot in self._bundles]
        self._group = None
        self._slots.clear()
        self.actors.clear()
        self.wait.end(time.monotonic())
        self._remove_folders(copies=True)
        return IdleSlots(group, self._submission.placement, bundles, actors, self._threads)

    def _new_group(self) -> PlacementGroup:
        """Request the slots of the job from Ray, on other nodes than the lost ones."""
        bundles = [bundle_of(self._job.graph, slot, self._submission.slot_cpus) for slot in self._bundles]
        self._groups_asked += 1
        name = f"rayflink/{self._job.graph.id}/{self._leader.id[:6]}{self._groups_asked}"
        where = [elsewhere(self._lost_nodes)] * len(bundles) if self._lost_nodes else None
        strategy = self._submission.placement
        group: PlacementGroup = placement_group(bundles, strategy=strategy, name=name, bundle_label_selector=where)
        return group

    def _await_slots(self, group: PlacementGroup) -> None:
        while self._group is group:
            if group.wait(1):
                self.granted = True
                self._post(SlotsGranted())
                return

    def deploy(self, deploys: Sequence[DeployTask], has_turn: bool = False) -> None:
        """Make all processes first, so that each task can be given its peers.

        Args:
            deploys: attempts and their slots.
            has_turn: whether it is the job's turn to start processes; False: it has not asked for it yet.
        """
        group = self._group
        assert group is not None, "tasks are deployed to slots that are there"
        node_of, is_placed = placed(group)
        if self._is_lost(deploys, node_of, is_placed):
            self._waiting, self._waiting_since = [*self._waiting, *deploys], time.monotonic()
            self._waits_for_turn = False
            self._have_started()  # it starts nothing before there is another node: others have their turn
            asked = slots_asked(self._job.graph, self._submission.slot_cpus)
            self.wait.begin(self._waiting_since, f"slots in the place of those of a lost node (of {asked})")
            if len(self._waiting) == len(self._job.executions):  # nothing else runs: there is no need to wait for Ray
                self._give_up_slots()
                self._group = self._new_group()
            return
        self._new_slots = self._needed([*self._waiting, *deploys], node_of)
        if not has_turn and not self._has_turn():
            self._waiting, self._waiting_since = [*self._waiting, *deploys], time.monotonic()
            return
        for attempt in self.actors.keys() - self._job.executions.keys():  # of attempts that others have followed
            del self.actors[attempt], self.nodes[attempt]
            self._accepted.discard(attempt)
        host_of = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes()}  # type: ignore[no-untyped-call]
        commands_and_hosts = []
        for command in deploys:
            slot, deployment = command.slot, command.deployment
            try:
                node = node_of.get(self._bundles[slot], "")  # of a bundle that is lost, none is known yet
                announce(deployment, host_of.get(node, node))
                if self._is_dead(slot):
                    self._slots[slot] = self._make_actor(slot, group, node)
            except Exception as error:  # whatever Ray refuses
                self._post(could_not_deploy(deployment, error))
                continue
            self.actors[deployment.attempt], self.nodes[deployment.attempt] = self._slots[slot], node
            self._used_nodes.add(node)
            commands_and_hosts.append((command, host_of.get(node, node)))
        report_ms = min(self._settings.heartbeat_interval_ms, MOST_REPORT_MS)
        around = ray.put(PeerDirectory(self.actors, self.nodes, self._leader.actor, self._leader.id, report_ms))
        for command, host in commands_and_hosts:
            self.calls.made(command.deployment, host, time.monotonic())
            self._submit(command, around)

    def _is_dead(self, slot: Slot) -> bool:
        """Return whether a slot has no process that lives, as far as is known."""
        actor = self._slots.get(slot)
        if actor is None or actor in self._dead:
            return True
        return isinstance(actor, HostedSlot) and not self._leader.hosts.has(actor)

    def _needed(self, deploys: Sequence[DeployTask], node_of: Mapping[int, str]) -> tuple[int, list[str]]:
        """Return the number of slots that need a process of their own, and the nodes of those that share one."""
        slots = {command.slot for command in deploys}
        new = [slot for slot in slots if self._is_dead(slot)]
        sharing = [node_of.get(self._bundles[slot], "") for slot in new if self._shares(slot)]
        return len(new) - len(sharing), sharing

    def _has_turn(self) -> bool:
        """Return whether the processes that the job needs may start now."""
        processes, sharing = self._new_slots
        if self._kind is not None:
            processes += self._leader.hosts.missing(self._kind, sharing)
        now = time.monotonic()
        has_turn = self._leader.starts.begin(self._leader.id, processes, now)
        self._starts_processes = has_turn and bool(processes)
        if not has_turn and not self._waits_for_turn:
            self.wait.begin(now, "its turn, as processes of other jobs start first")
        self._waits_for_turn = not has_turn
        return has_turn

    def _shares(self, slot: Slot) -> bool:
        """Return whether a slot shares its process; one that asks for more than CPUs has its own."""
        asked = bundle_of(self._job.graph, slot, self._submission.slot_cpus)
        return self._kind is not None and asked.keys() == {"CPU"}

    def _make_actor(self, slot: Slot, group: PlacementGroup, node: str) -> RayActor:
        submission = self._submission
        bundle = bundle_of(self._job.graph, slot, submission.slot_cpus)
        if self._kind is not None and self._shares(slot):
            return self._leader.hosts.take(self._kind, node, self._assignment(slot))
        self._made += 1
        blueprint = self._blueprint.options(
            name=f"{self._job.graph.id}/{slot}/{self._leader.id[:6]}{self._made}",
            namespace=submission.namespace,
            num_cpus=bundle.pop("CPU"),
            num_gpus=bundle.pop("GPU", 0),
            memory=int(bundle.pop("memory", 0)) or None,
            resources=bundle,
            max_restarts=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, self._bundles[slot]),
        )
        return blueprint.remote(self._assignment(slot))

    def _assignment(self, slot: Slot) -> SlotAssignment:
        graph = self._job.graph
        levels, title = LogLevels.of(graph.configuration), slot_title(graph, slot)
        return SlotAssignment(graph.id, slot, self._leader.id, self._submission.namespace, levels, title)

    def _submit(self, command: DeployTask, around: RayRef) -> None:
        deployment, actor = command.deployment, self._slots[command.slot]
        attempt = deployment.attempt

        def is_there(call: Future[object]) -> None:
            if call.exception() is None:
                self.calls.reached(attempt, time.monotonic())

        def submitted(call: Future[None]) -> None:
            self.calls.answered(attempt)
            error = call.exception()
            if error is None:
                self._accepted.add(attempt)
            if error is not None and not isinstance(error, ActorDiedError):  # the call of `run` reports its death
                self._post(DeploymentFailed(attempt, refusal(deployment.title, error)))

        actor.__ray_ready__.remote().future().add_done_callback(is_there)
        sent = without_code(deployment, self._program_id)
        submission = actor.submit.remote(self._program, sent, command.slot, around)
        submission.future().add_done_callback(submitted)
        self._watch(actor.run.remote(attempt), attempt, actor)

    def _watch(self, running: RayRef, attempt: TaskAddress, actor: RayActor) -> None:
        def ended(future: Future[object]) -> None:
            error = future.exception()
            if isinstance(error, RayError) and not isinstance(error, RayTaskError):  # what the task itself raised
                self._lose(actor)
            if error is not None:
                self._post(TaskGone(attempt, cause_of_death(error)))

        running.future().add_done_callback(ended)

    def _lose(self, actor: ActorHandle[SlotActor] | HostedSlot) -> None:
        """Note that a process is dead, or cannot be reached; any thread may call, also that of Ray's answers."""
        self._dead.add(actor)
        if isinstance(actor, HostedSlot):
            self._leader.hosts.lost(actor)

    def _is_lost(self, deploys: Sequence[DeployTask], node_of: Mapping[int, str], is_placed: bool) -> bool:
        """Return whether a slot is on a lost node, and Ray has given no other for it, or does not know yet."""
        if not self._lost_nodes and self._kind is None:
            return False
        bundles = {self._bundles[command.slot] for command in deploys}
        return not is_placed or any(node_of.get(bundle, "") in self._lost_nodes for bundle in bundles)

    def _deploy_waiting(self, now: float) -> None:
        """Deploy the attempts that wait for another node in place of a lost one, or for their turn."""
        if not self._waiting:
            return
        group, waiting, waits_for_turn = self._group, self._waiting, self._waits_for_turn
        assert group is not None
        if now - self._waiting_since > self._settings.slot_timeout_ms / 1000 and not waits_for_turn:
            self._waiting = []
            for command in waiting:
                self._post(could_not_deploy(command.deployment, TimeoutError(self.wait.reason)))
        elif self._has_turn() if waits_for_turn else not self._is_lost(waiting, *placed(group)):
            self._waiting = []
            self.deploy(waiting, has_turn=waits_for_turn)

    def _drop_waiting(self, attempt: TaskAddress) -> None:
        """Drop an attempt that has no process yet and is to end."""
        left = [command for command in self._waiting if command.deployment.attempt != attempt]
        if len(left) < len(self._waiting):
            self._waiting = left
            self._waits_for_turn = self._waits_for_turn and bool(left)
            self._post(TaskGone(attempt, "it waited for a slot"))

    def _node_lost(self, node: str, reason: str) -> None:
        log.warning("%s", reason)
        self._lost_nodes.add(node)
        for attempt, where in list(self.nodes.items()):
            actor = self.actors.get(attempt)
            if where == node and actor is not None:
                self._lose(actor)
                self._post(TaskGone(attempt, reason))

    def _give_up_slots(self) -> None:
        sharing = []
        for actor in self._slots.values():
            if isinstance(actor, HostedSlot) and actor not in self._dead:
                sharing.append(actor)
            else:
                self._kill(actor)
        self._leader.hosts.end(sharing)
        self._slots.clear()
        self.actors.clear()
        group, self._group = self._group, None
        if group is not None:
            remove_placement_group(group)

    def release(self) -> None:
        """End all processes, free the slots, and delete the files that the tasks left on their nodes."""
        self.wait.end(time.monotonic())
        self._release(copies=True)

    def _release(self, copies: bool) -> None:
        self._give_up_slots()
        self._remove_folders(copies)

    def _remove_folders(self, copies: bool) -> None:
        graph = self._job.graph
        left = remove_folders_on(self._used_nodes - {""}, graph.id, dict(graph.configuration), copies)
        if left:
            log.warning("folders of tasks may be left behind: %s", ", ".join(left))


def placed(group: PlacementGroup) -> tuple[Mapping[int, str], bool]:
    """Return the node of each bundle of a placement group, and whether all are placed: none was lost with its node."""
    table = placement_group_table(group)
    return table["bundles_to_node_id"], table["state"] == "CREATED"


__all__ = ["SlotProcesses"]
