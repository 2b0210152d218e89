"""A network in one thread: producers and consumers joined by calls that a seed delays, reorders and repeats."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rayflink.actors.exchange.alignment import Aligned, BarrierAligner, Block, Unblock
from rayflink.actors.exchange.codec import decode_batch, split_batches
from rayflink.actors.exchange.frames import (
    AddCredit,
    BufferResponse,
    CancelPartitionRequest,
    Envelope,
    PartitionId,
    PartitionRequest,
    TaskAddress,
)
from rayflink.actors.exchange.gate import ChannelSpec, InputGate
from rayflink.actors.exchange.links import Incoming, Outgoing
from rayflink.actors.exchange.partition import ResultPartition, output_pool
from rayflink.actors.exchange.selectors import ChannelSelector
from rayflink.actors.exchange.subpartition import Subpartition
from rayflink.actors.exchange.writer import BatchLimits, RecordWriter
from rayflink.common.records.batches import CheckpointBarrier, Element, EndOfPartition, RowBatch, Watermark

GAP_TIMEOUT_MS = 10_000


class NoProgress(AssertionError):
    """Nothing is under way, nothing can be done, and not everything has arrived."""


class Endpoint:
    """What producer and consumer have in common: an address, and a conversation with each peer."""

    def __init__(self, address: str) -> None:
        self.address = TaskAddress(address)
        self.stale = 0
        self._links: dict[TaskAddress, Outgoing] = {}
        self._incoming: dict[TaskAddress, Incoming] = {}

    def link(self, peer: TaskAddress) -> Outgoing:
        if peer not in self._links:
            self._links[peer] = Outgoing(self.address, peer, max_in_flight=2, max_bytes=4096)
        return self._links[peer]

    def outgoing(self) -> list[Envelope]:
        envelopes = []
        for link in self._links.values():
            while (envelope := link.compose()) is not None:
                envelopes.append(envelope)
        return envelopes

    def accept(self, envelope: Envelope, now_ms: int) -> None:
        if envelope.receiver != self.address:
            self.stale += 1
            return
        incoming = self._incoming.setdefault(envelope.sender, Incoming(envelope.sender, GAP_TIMEOUT_MS))
        for ready in incoming.accept(envelope, now_ms):
            for frame in ready.frames:
                self.take(ready.sender, frame)

    def check(self, now_ms: int) -> None:
        for incoming in self._incoming.values():
            incoming.check(now_ms)

    def take(self, sender: TaskAddress, frame: Any) -> None:
        raise NotImplementedError


class Producer(Endpoint):
    """Writes a script of elements, one a step, while its partition has room."""

    def __init__(self, index: int, script: Sequence[Element | CheckpointBarrier], writer: RecordWriter) -> None:
        super().__init__(f"producer {index} (attempt 0)")
        self.writer = writer
        self._script = deque(script)
        self._readers: dict[tuple[TaskAddress, int], Subpartition] = {}
        self._finished = False
        self.most_buffers = 0

    def step(self, now_ms: int) -> bool:
        self.writer.tick(now_ms)
        if self._finished or self.writer.partition.is_full:
            return False
        if not self._script:
            self.writer.finish()
            self._finished = True
        else:
            element = self._script.popleft()
            if isinstance(element, CheckpointBarrier):
                self.writer.broadcast(element)
            else:
                self.writer.write(element)
        self.most_buffers = max(self.most_buffers, sum(sub.backlog for sub in self.writer.partition.subpartitions))
        return True

    def take(self, sender: TaskAddress, frame: Any) -> None:
        if isinstance(frame, PartitionRequest):
            assert frame.partition == self.writer.partition.id
            sub = self.writer.partition.subpartitions[frame.subpartition]
            sub.request(sender, frame.receiver, frame.credit)
            self._readers[sender, frame.receiver] = sub
            self.link(sender).serve(sub)
        elif isinstance(frame, AddCredit):
            self._readers[sender, frame.receiver].add_credit(frame.credit)
        else:
            assert isinstance(frame, CancelPartitionRequest)
            self._readers[sender, frame.receiver].release()

    @property
    def done(self) -> bool:
        return self._finished and self.writer.partition.fully_consumed


class Consumer(Endpoint):
    """Works what its gate gives, aligning barriers; `seen` holds it all, by channel, snapshots as `Aligned`."""

    def __init__(self, index: int, gate: InputGate) -> None:
        super().__init__(f"consumer {index} (attempt 0)")
        self.gate = gate
        self.aligner = BarrierAligner(len(gate.channels))
        self.seen: list[tuple[int, Any]] = []
        self.most_buffers = 0
        for producer, frame in gate.request_partitions():
            self.link(producer).say(frame)

    def take(self, sender: TaskAddress, frame: Any) -> None:
        assert isinstance(frame, BufferResponse)
        refusal = self.gate.receive(frame, sender)
        if refusal is not None:
            self.link(sender).say(refusal)
        self.most_buffers = max(self.most_buffers, sum(c.credit.statistics().taken for c in self.gate.channels))

    def step(self, now_ms: int) -> bool:
        item = self.gate.next()
        if item is None:
            return False
        if item.body is not None:
            for part in split_batches(item.body):
                batch = decode_batch(part)
                assert isinstance(batch, RowBatch)
                self.seen += [(item.channel, value) for value in batch.values]
            self.gate.recycle(item.channel)
            return True
        actions: Sequence[Any] = ()
        if isinstance(item.event, CheckpointBarrier):
            actions = self.aligner.barrier(item.channel, item.event, now_ms)
        elif isinstance(item.event, EndOfPartition):
            actions = self.aligner.end(item.channel, now_ms)
        elif isinstance(item.event, Watermark):
            self.seen.append((item.channel, item.event))
        for action in actions:
            if isinstance(action, Block):
                self.gate.block(action.channel)
            elif isinstance(action, Unblock):
                self.gate.unblock()
            elif isinstance(action, Aligned):
                self.seen.append((-1, action))
        return True

    def outgoing(self) -> list[Envelope]:
        for producer, frame in self.gate.announcements():
            self.link(producer).say(frame)
        return super().outgoing()

    def values(self, channel: int) -> list[Any]:
        """Records of one channel in the order they were worked."""
        return [value for c, value in self.seen if c == channel and not isinstance(value, Watermark)]


Fault = Callable[[Envelope, random.Random], list[Envelope]]
"""What the network makes of an envelope: none is a loss, two a repetition."""


@dataclass
class Network:
    """All producers joined to all consumers; `run` goes on until everything is consumed.

    Args:
        scripts: what each producer writes.
        selector: makes each producer's selector, given the number of consumers.
        slow: consumers that get a turn only when nothing else moves.
    """

    scripts: Sequence[Sequence[Element | CheckpointBarrier]]
    consumers: int
    selector: Callable[[int], ChannelSelector]
    seed: int = 0
    exclusive: int = 2
    floating: int = 3
    limits: BatchLimits = field(default_factory=lambda: BatchLimits(max_rows=4, max_bytes=512, timeout_ms=20))
    slow: frozenset[int] = frozenset()
    fault: Fault = staticmethod(lambda envelope, chance: [envelope])

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.now_ms = 0
        self.sent: Counter[str] = Counter()
        self._calls: list[tuple[Envelope, bool]] = []
        count = len(self.scripts)
        self.producers = [Producer(i, script, self._writer(i)) for i, script in enumerate(self.scripts)]
        self.tasks: dict[TaskAddress, Producer | Consumer] = {p.address: p for p in self.producers}
        self.sinks = []
        for j in range(self.consumers):
            specs = tuple(ChannelSpec(PartitionId("d" * 32, i), j, self.producers[i].address) for i in range(count))
            self.sinks.append(Consumer(j, InputGate(specs, self.exclusive, self.floating)))
        self.tasks.update({sink.address: sink for sink in self.sinks})

    def _writer(self, index: int) -> RecordWriter:
        pool = output_pool(self.consumers, self.exclusive, self.floating, 10)
        partition = ResultPartition(PartitionId("d" * 32, index), self.consumers, pool)
        return RecordWriter(partition, self.selector(self.consumers), self.limits)

    @property
    def done(self) -> bool:
        return all(p.done for p in self.producers) and all(sink.gate.is_finished for sink in self.sinks)

    def run(self) -> Network:
        """Raises: NoProgress: nothing moves any more, or the story does not end."""
        for _ in range(200_000):
            if self.done and not self._calls:
                return self
            if not self._move():
                self._send()
                if not self._calls:
                    raise NoProgress(f"seed {self.seed}: nothing moves at {self.now_ms} ms")
        raise NoProgress(f"seed {self.seed}: no end after {self.now_ms} ms")

    def _move(self) -> bool:
        """Some task works, some call arrives; whether anything can still happen."""
        self.now_ms += 1
        tasks = list(self.tasks.values())
        self.chance.shuffle(tasks)
        slow = {self.sinks[j].address for j in self.slow}
        awake = [task for task in tasks if task.address not in slow and self.chance.random() < 0.7]
        moved = any([task.step(self.now_ms) for task in awake])
        for task in tasks:
            task.check(self.now_ms)
        self._send()
        if self._calls and (not moved or self.chance.random() < 0.8):
            self._deliver()
            return True
        if moved:
            return True
        worked = [task.step(self.now_ms) for task in tasks]  # everybody, the slow ones too
        waiting = any(p.writer.deadline_ms() is not None for p in self.producers)
        return any(worked) or waiting or bool(self._calls)

    def _send(self) -> None:
        for task in self.tasks.values():
            for envelope in task.outgoing():
                self.sent[task.address] += 1
                copies = self.fault(envelope, self.chance)
                self._calls += [(copy, number == 0) for number, copy in enumerate(copies)]
                if not copies:
                    self.tasks[envelope.sender].link(envelope.receiver).returned()

    def _deliver(self) -> None:
        envelope, is_first = self._calls.pop(self.chance.randrange(len(self._calls)))
        self.tasks[envelope.receiver].accept(envelope, self.now_ms)
        if is_first:
            self.tasks[envelope.sender].link(envelope.receiver).returned()


def by_channel(sinks: Sequence[Consumer]) -> dict[tuple[int, int], list[Any]]:
    """(consumer, channel) -> records in order."""
    found: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for j, sink in enumerate(sinks):
        for channel in range(len(sink.gate.channels)):
            if values := sink.values(channel):
                found[j, channel] = values
    return found
