"""Assigns the state of a checkpoint to the tasks of a job, by operator id, and redistributes it after a rescaling.

Source: apache/flink StateAssignmentOperation, Checkpoints.loadAndValidateCheckpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from rayflink.common.errors import PlanError
from rayflink.graph.job_graph import ChainedOperator, JobGraph, JobVertex
from rayflink.operators.rescaling import rescale
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest

from ..messages.in_flight import InFlight, RecordsInFlight, without_records


class RestoreError(PlanError):
    """A job cannot start from a checkpoint or savepoint."""


class Restoring:
    """A checkpoint as the starting point of a job's tasks.

    Args:
        manifest: of the checkpoint.
        base: address to which its files are relative.
        graph: of the job that starts.
        ignore_unclaimed: state of operators the job does not have is left behind; else it is an error.

    Raises:
        RestoreError: the job and the checkpoint do not fit.
    """

    def __init__(
        self, manifest: CheckpointManifest, base: str, graph: JobGraph, ignore_unclaimed: bool = False
    ) -> None:
        self.manifest, self.base, self._graph = manifest, base, graph
        self._written: dict[str, OperatorManifest] = {operator.operator_id: operator for operator in manifest.operators}
        self._redistributed: dict[str, list[StoredSnapshot | None]] = {}
        self._records = RecordsInFlight(self._written, graph)
        self._check(ignore_unclaimed)

    @cached_property
    def enumerators(self) -> Mapping[str, bytes]:
        """Return operator id -> the state of a source's enumerator, which is in the manifest itself."""
        claimed = {node.operator_id for vertex in self._graph.vertices for node in vertex.operators}
        return {
            name: operator.coordinator
            for name, operator in self._written.items()
            if isinstance(operator.coordinator, bytes) and name in claimed
        }

    def snapshots_of(self, vertex: JobVertex, subtask: int) -> dict[str, tuple[StoredSnapshot, ...]]:
        """Return operator id -> snapshots that the subtask starts from."""
        restored = {node.operator_id: self._of(vertex, node)[subtask] for node in vertex.operators}
        return {name: (snapshot,) for name, snapshot in restored.items() if snapshot is not None}

    def in_flight(self, vertex: JobVertex, subtask: int) -> InFlight:
        """Return the records that were in flight to the subtask and from it."""
        return self._records.of(vertex, subtask)

    def is_finished(self, vertex: JobVertex, subtask: int) -> bool:
        """Return whether the subtask had finished before the checkpoint.

        Of another parallelism the data of a vertex is over when it was over for all of its subtasks; and so it is where
        in-flight records are redistributed, as any of its subtasks may be given some.
        """
        return all(self._is_over(node, vertex, subtask) for node in vertex.operators)

    def _is_over(self, node: ChainedOperator, vertex: JobVertex, subtask: int) -> bool:
        written = self._written.get(node.operator_id)
        if written is None:
            return False
        if len(written.finished) == written.parallelism:
            return True
        is_as_it_was = written.parallelism == vertex.parallelism and vertex.id not in self._downstream_of_redistributed
        return is_as_it_was and subtask in written.finished

    @cached_property
    def _downstream_of_redistributed(self) -> set[str]:
        """Return the ids of the vertices whose in-flight records are redistributed, and of those downstream of them."""
        vertex_ids: set[str] = set()
        for vertex in self._graph.vertices:  # every producer before its consumers
            if any(
                edge.source in vertex_ids or self._records.is_redistributed(edge.dataset_id) for edge in vertex.inputs
            ):
                vertex_ids.add(vertex.id)
        return vertex_ids

    def _of(self, vertex: JobVertex, node: ChainedOperator) -> list[StoredSnapshot | None]:
        snapshots = self._redistributed.get(node.operator_id)
        if snapshots is None:
            written = self._written.get(node.operator_id)
            snapshots = [None] * vertex.parallelism
            if written is not None:
                parts = (without_records(part) for part in written.subtasks)
                restored_parts = tuple(None if part is None else replace(part, states=written.states) for part in parts)
                snapshots = rescale(restored_parts, vertex.parallelism, vertex.max_parallelism, node.uid or node.name)
            self._redistributed[node.operator_id] = snapshots
        return snapshots

    def _check(self, ignore_unclaimed: bool) -> None:
        places: dict[str, tuple[JobVertex, ChainedOperator]] = {
            node.operator_id: (vertex, node) for vertex in self._graph.vertices for node in vertex.operators
        }
        what = f"{self.manifest.kind} {self.manifest.checkpoint_id} of job {self.manifest.job_name!r}"
        unclaimed = []
        for name, written in self._written.items():
            place = places.get(name)
            if place is None:
                if any(part is not None for part in written.subtasks) or written.coordinator is not None:
                    unclaimed.append(f"{written.name!r} ({f'uid {written.uid!r}' if written.uid else f'id {name}'})")
                continue
            vertex, node = place
            if is_keyed(written) and not any(node.key_selectors):
                raise RestoreError(
                    f"{what} has state by key of {written.name!r}, in whose place the job has {node.name!r}, which has "
                    "none",
                    "give the operators uids: then their state is found wherever they stand",
                    node.call_site,
                )
            if written.max_parallelism != vertex.max_parallelism and is_keyed(written):
                raise _other_key_groups(written, vertex, node, what)
        if self._records.unclaimed:
            raise RestoreError(
                f"{what} holds records that were on their way on {len(self._records.unclaimed)} edges that the job "
                "does not have",
                "start the program as it was, take a savepoint, which holds none, and start the new one from that",
            )
        if unclaimed and not ignore_unclaimed:
            raise RestoreError(
                f"{what} has state of operators that the job does not have: {', '.join(sorted(unclaimed))}",
                "give the operators the uids they had, or leave that state behind by --allow-non-restored-state "
                "(execution.state-recovery.ignore-unclaimed-state)",
            )


def _other_key_groups(written: OperatorManifest, vertex: JobVertex, node: ChainedOperator, what: str) -> RestoreError:
    groups, state_title = written.max_parallelism, f"the keyed state of {node.name!r} in {what}"
    if vertex.parallelism > groups:
        return RestoreError(
            f"{vertex.name!r} has parallelism {vertex.parallelism}, and {state_title} is in {groups} key groups, of "
            "which each subtask needs one",
            f"lower its parallelism to {groups} or less: the number of key groups cannot change",
            node.call_site,
        )
    return RestoreError(
        f"{state_title} is in {groups} key groups, and the job has {vertex.max_parallelism}",
        f"set its max parallelism to {groups}, or leave it out: the number cannot change",
        node.call_site,
    )


def is_keyed(written: OperatorManifest) -> bool:
    """Return whether an operator had keyed state."""
    return any(part is not None and (part.keyed or part.raw_keyed or part.databases) for part in written.subtasks)


__all__ = ["RestoreError", "Restoring", "is_keyed"]
