"""From an execution graph to the deployments of its attempts: who reads what at which address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rayflink.common.logs import get_logger
from rayflink.graph.execution_graph import execution_graph
from rayflink.graph.job_graph import JobGraph, JobVertex

from .exchange.frames import PartitionId, TaskAddress
from .exchange.gate import ChannelSpec
from .messages import OutputSpec, TaskDeployment
from .scheduling import slot_of, tenants

log = get_logger(__name__)


def announce(deployment: TaskDeployment, host: str) -> None:
    """Log what is about to be deployed where."""
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
        self._tenants = tenants(graph)
        self._attempts: dict[tuple[str, int], TaskAddress] = {
            (vertex.id, subtask): TaskAddress(new_id())
            for vertex in graph.vertices
            for subtask in range(vertex.parallelism)
        }

    def attempts(self) -> Iterator[tuple[JobVertex, int, TaskAddress]]:
        """(vertex, subtask, attempt id), producers before consumers."""
        for vertex in self._graph.vertices:
            for subtask in range(vertex.parallelism):
                yield vertex, subtask, self._attempts[vertex.id, subtask]

    def deployment(self, vertex: JobVertex, subtask: int, attempt_number: int) -> TaskDeployment:
        """All that one attempt needs to run."""
        channels = self._parallel.channels_of(vertex.id, subtask)
        inputs = tuple(
            ChannelSpec(
                partition=PartitionId(gate.edge.dataset_id, channel.producer_subtask),
                subpartition=channel.subpartition,
                producer=self._attempts[channel.producer, channel.producer_subtask],
                gate=gate.edge.gate,
                input_index=gate.edge.input_index,
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
            )
            for result in channels.results
        )
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
            slot_tenants=self._tenants[slot_of(vertex, subtask)],
        )
