"""Creates the deployments of attempts from an execution graph: each names its peers and their addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rayflink.common.text_output.logs import get_logger
from rayflink.graph.execution_graph import execution_graph
from rayflink.graph.job_graph import JobEdge, JobGraph, JobVertex

from ..exchange.frames import PartitionId, TaskAddress
from ..exchange.gate import ChannelSpec
from ..messages.messages import OutputSpec, TaskDeployment
from ..messages.scheduling import Slot, slot_of
from ..messages.settings import TaskSettings
from ..task.network_buffers import Demand, demands, shares_of_tasks

log = get_logger(__name__)


def announce(deployment: TaskDeployment, host: str) -> None:
    """Log the deployments that are about to be sent."""
    log.info("Deploying %s to %s", deployment.title, host)


class Deployer:
    """Gives every subtask an attempt id and describes its deployment.

    Args:
        graph: the job.
        new_id: gives 32 fresh hex digits a call.
        cached_files: name -> path of the distributed cache.
    """

    def __init__(self, graph: JobGraph, new_id: Callable[[], str], cached_files: Mapping[str, str]) -> None:
        self._graph = graph
        self._parallel = execution_graph(graph)
        self._cached_files = dict(cached_files)
        self._new_id = new_id
        self._attempts: dict[tuple[str, int], TaskAddress] = {
            (vertex.id, subtask): TaskAddress(new_id())
            for vertex in graph.vertices
            for subtask in range(vertex.parallelism)
        }
        self._buffers = self._buffers_of_tasks()

    def attempts(self) -> Iterator[tuple[JobVertex, int, TaskAddress]]:
        """Return (vertex, subtask, attempt id), producers before consumers."""
        for vertex in self._graph.vertices:
            for subtask in range(vertex.parallelism):
                yield vertex, subtask, self._attempts[vertex.id, subtask]

    def renew(self, vertex_id: str, subtask: int) -> TaskAddress:
        """Renew the id of a subtask's attempt; peers that are deployed from now on know it by that."""
        fresh = self._attempts[vertex_id, subtask] = TaskAddress(self._new_id())
        return fresh

    def deployment(self, vertex: JobVertex, subtask: int, attempt_number: int) -> TaskDeployment:
        """Return the deployment of one attempt that starts from nothing."""
        inputs, outputs = self._ends(vertex, subtask)
        return TaskDeployment(
            job_id=self._graph.id,
            job_name=self._graph.name,
            attempt=self._attempts[vertex.id, subtask],
            attempt_number=attempt_number,
            vertex_id=vertex.id,
            vertex_name=vertex.name,
            subtask=subtask,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            operators=vertex.operators,
            inputs=inputs,
            outputs=outputs,
            config=dict(self._graph.configuration),
            cached_files=self._cached_files,
            network_buffers=self._buffers[vertex.id, subtask],
        )

    def _ends(self, vertex: JobVertex, subtask: int) -> tuple[tuple[ChannelSpec, ...], tuple[OutputSpec, ...]]:
        """Return a subtask's inputs and outputs."""
        channels = self._parallel.channels_of(vertex.id, subtask)
        inputs = tuple(
            ChannelSpec(
                partition=PartitionId(gate.edge.dataset_id, channel.producer_subtask),
                subpartition=channel.subpartition,
                producer=self._attempts[channel.producer, channel.producer_subtask],
                gate=gate.edge.gate,
                input_index=gate.edge.input_index,
                in_order=_is_in_order(gate.edge),
            )
            for gate in channels.gates
            for channel in gate.channels
        )
        outputs = tuple(
            OutputSpec(
                dataset=result.dataset.id,
                subpartitions=max(len(result.subpartitions), 1),
                partitioner=result.edge.partitioner,
                buffer_timeout_ms=result.edge.buffer_timeout_ms,
                blocking=not result.dataset.partition_type.is_pipelined,
                iteration=result.edge.iteration,
                in_order=_is_in_order(result.edge),
                consumer=str(result.edge.target),
            )
            for result in channels.results
        )
        return inputs, outputs

    def _buffers_of_tasks(self) -> dict[tuple[str, int], int]:
        """Share the network buffers of a slot among its subtasks."""
        settings = TaskSettings.of(self._graph.configuration)
        wanted: dict[Slot, dict[tuple[str, int], list[Demand]]] = {}
        for vertex in self._graph.vertices:
            for subtask in range(vertex.parallelism):
                in_slot = wanted.setdefault(slot_of(vertex, subtask), {})
                in_slot[vertex.id, subtask] = demands(*self._ends(vertex, subtask), settings)
        shares: dict[tuple[str, int], int] = {}
        for in_slot in wanted.values():
            shares |= shares_of_tasks(settings.network_buffers, in_slot)
        return shares


def _is_in_order(edge: JobEdge) -> bool:
    """Return whether no barrier may overtake: in a loop, one that came round before the head's own would divide
    nothing.
    """
    return not edge.supports_unaligned or edge.iteration is not None
