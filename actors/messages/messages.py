"""The messages between coordinator and tasks: frozen values, compared whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rayflink.common.records.batches import CheckpointBarrier
from rayflink.common.watermarks import WatermarkAlignment
from rayflink.graph.job_graph import ChainedOperator
from rayflink.graph.partitioners import Partitioner
from rayflink.state.snapshots import StoredSnapshot
from rayflink.user_types import SourceSplit

from ..exchange.frames import TaskAddress
from ..exchange.gate import ChannelSpec
from .checkpoint_statistics import CheckpointMetrics
from .in_flight import InFlight
from .states import ExecutionState


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One result partition a task produces.

    Args:
        dataset: 32 hex digits of the intermediate data set.
        subpartitions: number of consumers of this producer.
        partitioner: how records are partitioned; None on the way to the task's process, which has the program.
        buffer_timeout_ms: -1, 0 or more.
        blocking: consumers start when it is complete; it is spilled to disk.
        iteration: number of the loop its consumers stand in as well; ends of supersteps go nowhere else.
        in_order: no barrier overtakes its records.
        consumer: id of the vertex that reads it.
    """

    dataset: str
    subpartitions: int
    partitioner: Partitioner | None
    buffer_timeout_ms: int = 100
    blocking: bool = False
    iteration: int | None = None
    in_order: bool = False
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class TaskDeployment:
    """The deployment of one execution attempt.

    Args:
        attempt: its id and address.
        operators: the chain, head first.
        inputs: one a channel.
        outputs: one a consumer vertex, in the order the operators name them.
        config: option key -> value.
        restore: operator id -> snapshots to start from.
        restore_base: address to which the files of those are relative; "" where there are none.
        checkpoint_base: address to which the files of checkpoints are relative; "" keeps them in the messages.
        checkpointing: whether checkpoints are taken by the clock; then the last one comes after the end of its data.
        in_flight: records that were on their way to it and from it in that checkpoint.
        epoch: of the coordinator that deploys it.
        finished: all that its operators had to do was done when the checkpoint was taken that it starts from.
        cached_files: name -> path of the distributed cache on this machine.
        network_buffers: its share of those of its slot; None: all.
        program_id: of the job in the packed program; "": `job_id`.
    """

    job_id: str
    job_name: str
    attempt: TaskAddress
    attempt_number: int
    vertex_id: str
    vertex_name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    operators: tuple[ChainedOperator, ...]
    inputs: tuple[ChannelSpec, ...]
    outputs: tuple[OutputSpec, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    restore: Mapping[str, tuple[StoredSnapshot, ...]] = field(default_factory=dict)
    restore_base: str = ""
    checkpoint_base: str = ""
    checkpointing: bool = False
    in_flight: InFlight = InFlight()
    finished: bool = False
    epoch: int = 0
    cached_files: Mapping[str, str] = field(default_factory=dict)
    network_buffers: int | None = None
    program_id: str = ""

    @property
    def name(self) -> str:
        """Return the name as Flink prints it: "Map (1/3)"."""
        return f"{self.vertex_name} ({self.subtask + 1}/{self.parallelism})"

    @property
    def title(self) -> str:
        """Return the name with its attempt, as in Flink's log lines: "Map (1/3) (attempt #0)"."""
        return f"{self.name} (attempt #{self.attempt_number})"

    @property
    def identity(self) -> dict[str, object]:
        """Return the task's identity in the log."""
        return {
            "job": self.job_id, "vertex": self.vertex_name, "subtask": self.subtask, "attempt": self.attempt_number,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The failure of an attempt; `traceback` is a string, the user's part where the user's code raised.

    `operator`, `call_site` and `record` are "" where the failure was not in a user's function. One that is not
    `recoverable` ends the job. An outage is an error of something outside the program, which may come back.
    """

    kind: str
    message: str
    traceback: str
    operator: str = ""
    call_site: str = ""
    record: str = ""
    operator_id: str = ""
    recoverable: bool = True
    is_outage: bool = False

    def describe(self) -> str:
        """Return the message, and below it the traceback unless that adds nothing."""
        traceback = self.traceback.rstrip("\n")
        return self.message if "\n" not in traceback else f"{self.message}\n{traceback}"


# task -> coordinator


@dataclass(frozen=True, slots=True)
class TaskStateChanged:
    """An attempt entered `state`; at the end with its accumulators."""

    attempt: TaskAddress
    state: ExecutionState
    failure: TaskFailure | None = None
    accumulators: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A source reader has nothing left to read."""

    attempt: TaskAddress
    operator_id: str


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A source reader sends an event to its enumerator.

    Args:
        event: the user's object, as bytes.
    """

    attempt: TaskAddress
    operator_id: str
    event: bytes


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Heartbeat with counters; `metrics` is a plain dict of Flink's metric names."""

    attempt: TaskAddress
    metrics: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckpointAcknowledged:
    """A task's part of a checkpoint is written: operator id -> state, and how long it took.

    Args:
        data_is_over: the task has processed all its data, so a task that starts from this state has nothing left to do.
    """

    attempt: TaskAddress
    checkpoint_id: int
    snapshots: Mapping[str, StoredSnapshot]
    metrics: CheckpointMetrics = CheckpointMetrics()
    data_is_over: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointDeclined:
    """A task takes no part.

    Args:
        is_failure: not where it only was not there yet, or has ended already.
        is_unwritten: it has taken its snapshot, which cannot be written.
    """

    attempt: TaskAddress
    checkpoint_id: int
    reason: str
    is_failure: bool = True
    is_unwritten: bool = False


@dataclass(frozen=True, slots=True)
class LastCheckpointAwaited:
    """A task has processed all its data, and ends after the next checkpoint."""

    attempt: TaskAddress


@dataclass(frozen=True, slots=True)
class WatermarkReported:
    """A subtask of an aligned source reports its watermark.

    Args:
        watermark: epoch milliseconds, the last of all at its end; None: it is idle.
    """

    attempt: TaskAddress
    operator_id: str
    alignment: WatermarkAlignment
    watermark: int | None


@dataclass(frozen=True, slots=True)
class OperatorsSatisfied:
    """Operators of a task use no further record of their input, as a LIMIT that has given all its rows."""

    attempt: TaskAddress
    operator_ids: tuple[str, ...]


ToCoordinator: TypeAlias = (
    TaskStateChanged
    | SplitRequest
    | SourceEvent
    | WatermarkReported
    | TaskReport
    | CheckpointAcknowledged
    | CheckpointDeclined
    | LastCheckpointAwaited
    | OperatorsSatisfied
)


# coordinator -> task


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Stop as soon as possible, without finishing."""


@dataclass(frozen=True, slots=True)
class StopTask:
    """Sources end as if their input had; the job then finishes."""


@dataclass(frozen=True, slots=True)
class AssignSplits:
    """Splits for a source operator; with `no_more` it gets none after these."""

    operator_id: str
    splits: tuple[SourceSplit, ...]
    no_more: bool = False


@dataclass(frozen=True, slots=True)
class WatermarkAnnounced:
    """The greatest watermark with which an aligned source may read on."""

    operator_id: str
    max_allowed: int


@dataclass(frozen=True, slots=True)
class TriggerCheckpoint:
    """A command to sources to emit this barrier, after everything they were sent before."""

    barrier: CheckpointBarrier


@dataclass(frozen=True, slots=True)
class CheckpointAnnounced:
    """A checkpoint is triggered soon, most likely with this number."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CheckpointComplete:
    """The checkpoint is durable."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """The checkpoint will never be complete."""

    checkpoint_id: int


ToTask: TypeAlias = (
    CancelTask
    | StopTask
    | AssignSplits
    | WatermarkAnnounced
    | CheckpointAnnounced
    | TriggerCheckpoint
    | CheckpointComplete
    | CheckpointAborted
)
