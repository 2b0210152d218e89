"""One StreamTask on a bench: the test is its producers, its consumer and its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rayflink.actors.exchange.codec import decode_batch, encode_batch, split_batches
from rayflink.actors.exchange.frames import (
    AddCredit,
    BufferResponse,
    Envelope,
    Frame,
    PartitionId,
    PartitionRequest,
    TaskAddress,
    WindowUpdate,
)
from rayflink.actors.exchange.gate import ChannelSpec
from rayflink.actors.messages.messages import OutputSpec, TaskDeployment, TaskStateChanged
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task import StreamTask
from rayflink.common.records.batches import (
    Batch,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    RowBatch,
    Watermark,
    rows_of,
)
from rayflink.graph.attributes import NodeKind
from rayflink.graph.job_graph import ChainedOperator, ChainedOutput, NetworkOutput
from rayflink.graph.partitioners import Forward
from rayflink.operators.base import Operator, SourceOperator
from rayflink.operators.capabilities import CheckpointListener, EventHandler, PreBarrier
from rayflink.state.clock import ManualClock

ME, CONSUMER = TaskAddress("me"), TaskAddress("consumer")
DATASET = "d" * 32


class Logged(Operator, EventHandler, CheckpointListener, PreBarrier):
    """Passes its records on and writes down every call of its life."""

    name = "op"
    fails_in = ""

    def __init__(self, log: list[str], name: str = "op", fails_in: str = "") -> None:
        self.log, self.name, self.fails_in = log, name, fails_in

    def _says(self, what: str) -> None:
        self.log.append(f"{self.name}.{what}")
        if what == self.fails_in:
            raise ValueError(f"{self.name} failed in {what}")

    def setup(self, ctx: Any) -> None:
        super().setup(ctx)
        self._says("setup")

    def initialize_state(self, snapshots: Any) -> None:
        self._says("initialize_state")

    def open(self) -> None:
        self._says("open")

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self._says("process")
        return (batch,)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._says("process_watermark")
        return (watermark,)

    def process_latency_marker(self, marker: Any) -> Iterable[Element]:
        self._says("process_latency_marker")
        return (marker,)

    def finish(self) -> Iterable[Element]:
        self._says("finish")
        return ()

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        self._says("prepare_snapshot")
        return (RowBatch([f"before barrier {checkpoint_id}"]),)

    def snapshot_state(self, checkpoint_id: int) -> Any:
        self._says("snapshot_state")
        return None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._says(f"notify_checkpoint_complete {checkpoint_id}")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._says(f"notify_checkpoint_aborted {checkpoint_id}")

    def close(self) -> None:
        self._says("close")


class ListSource(SourceOperator):
    """Gives its batches one a poll, then nothing; ends when `ends`."""

    def __init__(self, batches: Iterable[Any], ends: bool = True) -> None:
        self.batches, self.ends = list(batches), ends
        self.closed = 0

    def poll(self, max_records: int) -> Iterable[Element] | None:
        if self.batches:
            return (self.batches.pop(0),)
        return None if self.ends else ()

    def close(self) -> None:
        self.closed += 1


class TaskBench:
    """A task between `channels` producers and one consumer.

    Args:
        operators: chained in a row; made operators, used once.
        channels: input index of each input channel; () for a source.
        config: options.
        has_output: whether a consumer reads the last operator.
    """

    def __init__(
        self,
        operators: list[Operator],
        channels: tuple[int, ...] = (0,),
        config: dict[str, str] | None = None,
        has_output: bool = True,
        clock: Any = None,
    ) -> None:
        self.clock = ManualClock(1_000) if clock is None else clock
        last = len(operators) - 1
        made = tuple(
            ChainedOperator(
                node_id=i,
                operator_id=f"{i:032x}",  # type: ignore[arg-type]
                name=f"Operator {i}",
                kind=NodeKind.ONE_INPUT if channels or i else NodeKind.SOURCE,
                chained_outputs=(ChainedOutput(i + 1),) if i < last else (),
                network_outputs=(NetworkOutput(0),) if has_output and i == last else (),
                factory=_giver(operator),
                call_site=f"job.py:{i + 1}",
            )
            for i, operator in enumerate(operators)
        )
        inputs = tuple(
            ChannelSpec(PartitionId(f"{i:032x}", 0), 0, TaskAddress(f"producer {i}"), input_index=index)
            for i, index in enumerate(channels)
        )
        outputs = (OutputSpec(DATASET, 1, Forward(), buffer_timeout_ms=0),) if has_output else ()
        self.deployment = TaskDeployment(
            "job", "job", ME, 0, "vertex", "Vertex", 0, 1, 128, made, inputs, outputs, config or {}
        )
        self.task = StreamTask(self.deployment, self.clock)
        self.sent: list[Frame] = []
        self.reports: list[Any] = []
        self._numbers: dict[TaskAddress, int] = {}
        self._sequences = [0] * len(channels)
        self._has_output = has_output

    def start(self, credit: int = 1_000, window: int = 1 << 40) -> TaskBench:
        self.task.start()
        if self._has_output and credit >= 0:
            request = PartitionRequest(PartitionId(DATASET, 0), 0, 0, credit)
            self.say(CONSUMER, request, WindowUpdate(0, 0, window, 1 << 20))
        return self

    def say(self, sender: TaskAddress, *frames: Frame) -> None:
        number = self._numbers.get(sender, 0)
        self._numbers[sender] = number + 1
        self.task.mail(Envelope(sender, ME, number, frames))

    def give_credit(self, credit: int) -> None:
        self.say(CONSUMER, AddCredit(0, credit))

    def feed(self, channel: int, *elements: Any) -> None:
        """Let a producer send: values become a batch of one, everything else goes as it is."""
        for element in elements:
            if not isinstance(element, RowBatch | Watermark | CheckpointBarrier | EndOfData | EndOfPartition):
                element = element if hasattr(element, "__dataclass_fields__") else RowBatch([element])
            body = encode_batch(element) if isinstance(element, RowBatch) else None
            event = None if body is not None else element
            frame = BufferResponse(0 + channel, self._sequences[channel], 0, body, event)
            self._sequences[channel] += 1
            self.say(TaskAddress(f"producer {channel}"), frame)

    def end(self, channel: int) -> None:
        self.feed(channel, EndOfData(), EndOfPartition())

    def step(self) -> Progress:
        progress = self.task.step()
        for envelope in self.task.outgoing():
            if envelope.receiver == CONSUMER:
                self.sent += envelope.frames
            self.task.returned(envelope.receiver)
        self.reports += self.task.reports()
        return progress

    def work(self, most: int = 10_000) -> Progress:
        """Step until there is nothing to do at once."""
        for _ in range(most):
            said = len(self.sent)
            progress = self.step()
            if progress is not Progress.BUSY and not self.task.has_mail and len(self.sent) == said:
                return progress
        raise AssertionError(f"still busy after {most} steps")

    @property
    def output(self) -> list[Any]:
        """What the consumer got: records one by one, events as they are."""
        out: list[Any] = []
        for frame in self.sent:
            if isinstance(frame, BufferResponse):
                out += [frame.event] if frame.body is None else rows_in_body(frame.body)
        return out

    @property
    def states(self) -> list[str]:
        return [report.state.value for report in self.reports if isinstance(report, TaskStateChanged)]

    @property
    def failure(self) -> Any:
        return next(r.failure for r in self.reports if isinstance(r, TaskStateChanged) and r.failure is not None)

    def reported(self, kind: type) -> list[Any]:
        return [report for report in self.reports if isinstance(report, kind)]


def _giver(operator: Operator) -> Callable[[], Operator]:
    return lambda: operator


def rows_in_body(body: bytes) -> list[Any]:
    """The records of all batches of a buffer."""
    return [row for part in split_batches(body) for row in rows_of(decode_batch(part))]
