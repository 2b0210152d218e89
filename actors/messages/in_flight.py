"""Records that were on their way between two tasks when an unaligned barrier overtook them: in a checkpoint, and back.

A checkpoint has them as lists of the head operator of the task that held them, of mode `CHANNELS`, named by the data
set and the task at the other end. Where both ends have as many subtasks as before each batch goes back to where it was.
Else the producers are given all of them: they partition the records again, in their order, before anything else.

Source: apache/flink FLIP-76, StateAssignmentOperation; there the consumers of a rescaled job sort out what is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rayflink.graph.job_graph import JobGraph, JobVertex
from rayflink.state.snapshots import Blob, StoredSnapshot
from rayflink.state.storage.manifest import OperatorManifest

CHANNELS = "channels"
"""Mode of the lists; they are of a task and not of its operators."""
_RECEIVED, _TO_SEND = "in-flight input", "in-flight output"


@dataclass(frozen=True, slots=True)
class InFlight:
    """The in-flight records that one task starts with; encoded batches, or their addresses.

    Args:
        received: (data set, producer) -> had been received from it.
        to_send: (data set, consumer) -> was to be sent to it.
        to_redistribute: data set -> records to partition among its consumers again.
    """

    received: Mapping[tuple[str, int], tuple[Blob, ...]] = field(default_factory=dict)
    to_send: Mapping[tuple[str, int], tuple[Blob, ...]] = field(default_factory=dict)
    to_redistribute: Mapping[str, tuple[Blob, ...]] = field(default_factory=dict)


def received(dataset: str, producer: int) -> str:
    """Return the name of the list of received records."""
    return f"{_RECEIVED} {dataset}/{producer}"


def to_send(dataset: str, consumer: int) -> str:
    """Return the name of the list of records to send."""
    return f"{_TO_SEND} {dataset}/{consumer}"


def without_records(snapshot: StoredSnapshot | None) -> StoredSnapshot | None:
    """Return the snapshot without in-flight records."""
    if snapshot is None:
        return None
    lists = {name: part for name, part in snapshot.lists.items() if part[0] != CHANNELS}
    return replace(snapshot, lists=lists)


class RecordsInFlight:
    """The in-flight records of a checkpoint, for the tasks of a job that starts from it.

    Args:
        written: operator id -> what the checkpoint has of it.
        graph: the job.
    """

    def __init__(self, written: Mapping[str, OperatorManifest], graph: JobGraph) -> None:
        self._graph = graph
        self._received: dict[str, dict[tuple[int, int], tuple[Blob, ...]]] = {}
        self._to_send: dict[str, dict[tuple[int, int], tuple[Blob, ...]]] = {}
        for operator in written.values():
            for subtask, kind, dataset, other, blobs in _records_of(operator):
                if kind == _RECEIVED:
                    self._received.setdefault(dataset, {})[other, subtask] = blobs
                else:
                    self._to_send.setdefault(dataset, {})[subtask, other] = blobs
        known = {edge.dataset_id for edge in graph.edges}
        self.unclaimed = (self._received.keys() | self._to_send.keys()) - known
        """Data sets that the job does not have."""
        self._stay = {
            edge.dataset_id
            for edge in graph.edges
            if all(_is_as_wide(graph.vertex(end), written) for end in (edge.source, edge.target))
        }

    def is_redistributed(self, dataset: str) -> bool:
        """Return whether there are records whose consumers may have changed."""
        return dataset not in self._stay and (dataset in self._received or dataset in self._to_send)

    def of(self, vertex: JobVertex, subtask: int) -> InFlight:
        """Return the in-flight records that a subtask starts with."""
        came = {
            (edge.dataset_id, producer): blobs
            for edge in vertex.inputs
            if edge.dataset_id in self._stay
            for (producer, consumer), blobs in self._received.get(edge.dataset_id, {}).items()
            if consumer == subtask
        }
        datasets = [dataset.id for dataset in vertex.outputs]
        waits = {
            (dataset, consumer): blobs
            for dataset in datasets
            if dataset in self._stay
            for (producer, consumer), blobs in self._to_send.get(dataset, {}).items()
            if producer == subtask
        }
        redistributed = {
            d: self._redistributed_to(d, vertex.parallelism, subtask) for d in datasets if d not in self._stay
        }
        return InFlight(came, waits, {dataset: blobs for dataset, blobs in redistributed.items() if blobs})

    def _redistributed_to(self, dataset: str, parallelism: int, subtask: int) -> tuple[Blob, ...]:
        """Return all in-flight records of some former producers, each producer's in order."""
        came, waits = self._received.get(dataset, {}), self._to_send.get(dataset, {})
        channels = sorted(came.keys() | waits.keys())
        mine = [channel for channel in channels if channel[0] % parallelism == subtask]
        return tuple(blob for channel in mine for part in (came, waits) for blob in part.get(channel, ()))


def _records_of(operator: OperatorManifest) -> Iterator[tuple[int, str, str, int, tuple[Blob, ...]]]:
    """Return subtask, kind, data set, number of the task at the other end, and batches."""
    for subtask, snapshot in enumerate(operator.subtasks):
        for name, (mode, blobs) in ({} if snapshot is None else snapshot.lists).items():
            if mode == CHANNELS:
                kind, _, where = name.rpartition(" ")
                dataset, _, other = where.partition("/")
                yield subtask, kind, dataset, int(other), blobs


def _is_as_wide(vertex: JobVertex, written: Mapping[str, OperatorManifest]) -> bool:
    before = written.get(vertex.head.operator_id)
    return before is not None and before.parallelism == vertex.parallelism


__all__ = ["CHANNELS", "InFlight", "RecordsInFlight", "received", "to_send", "without_records"]
