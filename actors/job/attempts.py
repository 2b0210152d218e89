"""The present attempts of a job's subtasks: who is deployed, cancelled and started again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from rayflink.graph.job_graph import JobGraph, JobVertex, ScheduleMode

from ..exchange.frames import TaskAddress
from ..messages.commands import Command, DeployTask, KillTask, SendToTask
from ..messages.executions import Execution
from ..messages.messages import CancelTask, TaskDeployment
from ..messages.scheduling import slot_of
from ..messages.states import ExecutionState
from .deployment import Deployer
from .failures.failover import Place

Equip: TypeAlias = Callable[[TaskDeployment, Execution], TaskDeployment]
"""Returns the deployment of an attempt with the state that it starts from."""


class Attempts:
    """One execution for each subtask.

    Args:
        graph: the job.
        new_id: gives 32 fresh hex digits a call.
        cached_files: name -> path of the distributed cache.
        number: of the first attempts.
    """

    def __init__(
        self,
        graph: JobGraph,
        new_id: Callable[[], str],
        cached_files: Mapping[str, str],
        number: int = 0,
    ) -> None:
        self._new_id, self._cached_files = new_id, cached_files
        self._killed: set[TaskAddress] = set()
        self._create_all(graph, number)

    def _create_all(self, graph: JobGraph, number: int) -> None:
        self.graph = graph
        self._deployer = Deployer(graph, self._new_id, self._cached_files)
        self.by_id: dict[TaskAddress, Execution] = {
            attempt: Execution(attempt, vertex, subtask, number)
            for vertex, subtask, attempt in self._deployer.attempts()
        }

    def adopt(self, graph: JobGraph) -> list[Execution]:
        """Create new attempts of all subtasks, as many as another graph of the same job has."""
        self._create_all(graph, 1 + self.highest)
        return list(self)

    def renew(self, places: Iterable[Place]) -> list[Execution]:
        """Create new attempts in place of these, which have ended."""
        by_place = {e.place: e for e in self}
        fresh = []
        for place in places:
            ended = by_place[place]
            renewed = Execution(self._deployer.renew(*place), ended.vertex, ended.subtask, ended.number + 1)
            renewed.follow(ended)
            by_place[place] = renewed
            fresh.append(renewed)
        self.by_id = {execution.attempt: execution for execution in by_place.values()}
        return fresh

    def __iter__(self) -> Iterator[Execution]:
        return iter(list(self.by_id.values()))

    @property
    def highest(self) -> int:
        """Return the number of the latest attempt."""
        return max(execution.number for execution in self.by_id.values())

    @property
    def have_ended(self) -> bool:
        """Return whether all attempts are in a terminal state."""
        return all(execution.state.is_terminal for execution in self)

    @property
    def live(self) -> list[Execution]:
        """Return the attempts that were scheduled and have not ended."""
        return [e for e in self if e.timestamps and not e.state.is_terminal]

    def stalled(self, attempt: TaskAddress) -> str:
        """Return, for people, which function of an attempt has not returned for long; "" where none is known of."""
        execution = self.by_id.get(attempt)
        return "" if execution is None else execution.stalled

    def deploy_first(self, executions: Iterable[Execution], now_ms: int, equip: Equip) -> list[Command]:
        """Deploy those of new attempts that start at once: all, or those whose inputs can be read."""
        eager = self.graph.schedule_mode is ScheduleMode.EAGER
        first = [e for e in executions if eager or e.vertex.is_input]
        return self._deploy(first, now_ms, equip) + self.deploy_ready(now_ms, equip)

    def deploy_ready(self, now_ms: int, equip: Equip) -> list[Command]:
        """Deploy vertices all of whose inputs can be read now (LAZY_FROM_SOURCES)."""
        if self.graph.schedule_mode is ScheduleMode.EAGER:
            return []
        ready: list[Execution] = []
        for vertex in self.graph.vertices:
            mine = [e for e in self if e.vertex is vertex]
            if any(e.state is ExecutionState.CREATED for e in mine) and self._inputs_ready(vertex):
                ready += (e for e in mine if e.state is ExecutionState.CREATED)
        return self._deploy(ready, now_ms, equip)

    def cancel(self, now_ms: int, places: Collection[Place] | None = None) -> list[Command]:
        """Cancel all attempts that have not ended, or those in these places."""
        commands: list[Command] = []
        for execution in self:
            if places is not None and execution.place not in places:
                continue
            if execution.state in (ExecutionState.CREATED, ExecutionState.SCHEDULED):
                execution.become(ExecutionState.CANCELED, now_ms, "cancelled before its deployment")
            elif not execution.state.is_terminal and execution.state is not ExecutionState.CANCELING:
                execution.become(ExecutionState.CANCELING, now_ms, "cancelled")
                commands.append(SendToTask(execution.attempt, CancelTask()))
        return commands

    def kill(self, execution: Execution) -> list[Command]:
        """Kill the process of an attempt, unless that was asked for already."""
        if execution.attempt in self._killed:
            return []
        self._killed = {*self._killed & self.by_id.keys(), execution.attempt}
        return [KillTask(execution.attempt)]

    def unresponsive(
        self, now_ms: int, cancellation_timeout_ms: int, heartbeat_timeout_ms: int
    ) -> Iterator[tuple[Execution, str]]:
        """Yield the attempts whose processes have to be killed, and why each counts as lost.

        The reason is "" for one that does not stop in time after a cancel: the death of its process ends it. States are
        looked at one by one, because the loss of one attempt may cancel the next.
        """
        for execution in self.live:
            if execution.state is ExecutionState.CANCELING:
                since = execution.timestamps[ExecutionState.CANCELING.value]
                if now_ms - since > cancellation_timeout_ms:
                    yield execution, ""
            elif now_ms - execution.last_seen_ms > heartbeat_timeout_ms:
                yield execution, f"no heartbeat for {now_ms - execution.last_seen_ms} ms (heartbeat.timeout)"

    def is_needed(self, finished: Execution) -> bool:
        """Return whether an attempt still reads the results of a finished one, and is not being cancelled."""
        edges = self.graph.edges
        readers = {e.target for e in edges if e.source == finished.vertex.id and not e.partition_type.is_pipelined}
        reading = [e.state for e in self if e.vertex.id in readers and not e.state.is_terminal]
        return any(state is not ExecutionState.CANCELING for state in reading)

    def _deploy(self, executions: Iterable[Execution], now_ms: int, equip: Equip) -> list[Command]:
        beginning = list(executions)
        for execution in beginning:
            execution.become(ExecutionState.SCHEDULED, now_ms, "deployment")
        commands: list[Command] = []
        for execution in beginning:
            execution.become(ExecutionState.DEPLOYING, now_ms, "deployment")
            execution.last_seen_ms = now_ms
            slot = slot_of(execution.vertex, execution.subtask)
            deployment = self._deployer.deployment(execution.vertex, execution.subtask, execution.number)
            commands.append(DeployTask(slot, equip(deployment, execution)))
        return commands

    def _inputs_ready(self, vertex: JobVertex) -> bool:
        for edge in vertex.inputs:
            wanted = {ExecutionState.FINISHED}
            if edge.partition_type.is_pipelined:
                wanted.add(ExecutionState.RUNNING)
            if any(e.state not in wanted for e in self if e.vertex.id == edge.source):
                return False
        return True


__all__ = ["Attempts", "Equip"]
