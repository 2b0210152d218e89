"""All parts of the exchange together, under every order of calls: everything arrives, once, in order, within bounds."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.exchange.alignment import Aligned
from rayflink.actors.exchange.frames import AddCredit, BufferResponse, Envelope, PartitionId, TaskAddress
from rayflink.actors.exchange.gate import BufferReordering, InputGate
from rayflink.actors.exchange.links import MessageGap
from rayflink.actors.exchange.selectors import Broadcast, ByFunction, ByKeyGroup, RoundRobin, SingleChannel
from rayflink.actors.exchange.writer import BatchLimits
from rayflink.common.records.batches import CheckpointBarrier, EndOfData, RowBatch, Watermark
from tests.actors.exchange.network import Endpoint, Network, NoProgress, by_channel

SEEDS = range(12)


def script(producer: int, rows: int, chance: random.Random) -> list[Any]:
    """Batches of some rows each, (producer, number), a watermark here and there."""
    elements: list[Any] = []
    number = 0
    while number < rows:
        count = min(rows - number, chance.randint(1, 9))
        elements.append(RowBatch([(producer, n) for n in range(number, number + count)]))
        number += count
        if chance.random() < 0.3:
            elements.append(Watermark(number))
    return elements


def twice_sometimes(envelope: Envelope, chance: random.Random) -> list[Envelope]:
    return [envelope, envelope] if chance.random() < 0.3 else [envelope]


SELECTORS: dict[str, Callable[[int], Any]] = {
    "key group": lambda width: ByKeyGroup(width, lambda r: r[1] % 17, 128),
    "rebalance": RoundRobin,
    "broadcast": Broadcast,
    "all to one, the others idle": lambda width: SingleChannel(width, 0),
    "skewed": lambda width: ByFunction(width, lambda key, n: 0 if key % 10 else key % n, lambda r: r[1]),
}


def expected(network: Network, rows: list[list[Any]]) -> dict[tuple[int, int], list[Any]]:
    found: dict[tuple[int, int], list[Any]] = defaultdict(list)
    for producer, records in enumerate(rows):
        for channel, part in network.selector(network.consumers).split(RowBatch(records)):
            assert isinstance(part, RowBatch)
            found[channel, producer] += part.values
    return found


def check_bounds(network: Network) -> None:
    for producer in network.producers:
        limits = producer.writer.partition.limits
        at_one_write = 4 * network.consumers
        assert producer.most_buffers <= limits.total + at_one_write
    for sink in network.sinks:
        assert sink.most_buffers <= network.exclusive * len(sink.gate.channels) + network.floating


@pytest.mark.slow
@pytest.mark.spec("N01", "N03", "N05", "arrives", "N37", "O08", "H06")
@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("seed", SEEDS)
def test_everything_arrives_once_and_in_order_within_the_bounds(name: str, seed: int) -> None:
    chance = random.Random(seed)
    producers, consumers = chance.randint(1, 4), chance.randint(1, 4)
    scripts = [script(i, 60, chance) for i in range(producers)]
    network = Network(
        scripts,
        consumers,
        SELECTORS[name],
        seed,
        exclusive=chance.randint(1, 2),
        floating=chance.randint(0, 3),
        slow=frozenset(chance.sample(range(consumers), chance.randint(0, consumers))),
        fault=twice_sometimes,
    ).run()
    assert by_channel(network.sinks) == expected(network, [[(i, n) for n in range(60)] for i in range(producers)])
    check_bounds(network)


@pytest.mark.spec("P01", "P03", "A10", "back-pressure", "M21", "P02", "blocks")
def test_a_consumer_that_stands_still_stops_its_producer_within_the_bounds() -> None:
    network = Network([script(0, 2000, random.Random(1))], 2, SELECTORS["skewed"], seed=5)
    network.tasks.pop(network.sinks[0].address)
    still = network.sinks[0]
    network.tasks[still.address] = still
    still.step = lambda now_ms: False  # type: ignore[method-assign]
    with pytest.raises(NoProgress):
        network.run()
    check_bounds(network)
    producer = network.producers[0]
    assert producer.writer.partition.is_full
    assert producer.writer.rows_written < 200
    assert still.most_buffers == network.exclusive + network.floating
    limits = producer.writer.partition.limits
    assert producer.writer.partition.queued_bytes <= (limits.total + 8) * network.limits.max_bytes


@pytest.mark.spec("H07", "H13", "X24", "X25")
@pytest.mark.parametrize("seed", SEEDS)
def test_even_and_odd_sums_are_consistent_at_every_barrier(seed: int) -> None:
    def source(start: int) -> list[Any]:
        elements: list[Any] = []
        for checkpoint in range(1, 6):
            first = start + 5 * (checkpoint - 1) + 1
            elements += [RowBatch([n]) for n in range(first, first + 5)]
            elements.append(CheckpointBarrier(checkpoint, 0))
        return elements

    def by_parity(width: int) -> Any:
        return ByFunction(width, lambda key, n: key % n, lambda n: n)

    network = Network([source(0), source(100)], 2, by_parity, seed, fault=twice_sometimes).run()
    for parity, sink in enumerate(network.sinks):
        sums: dict[int, int] = defaultdict(int)
        snapshots = []
        for channel, item in sink.seen:
            if isinstance(item, Aligned):
                snapshots.append((item.barrier.checkpoint_id, dict(sums)))
            else:
                sums[channel] += item
        assert [number for number, _ in snapshots] == [1, 2, 3, 4, 5]
        for number, found in snapshots:
            for channel, start in enumerate((0, 100)):
                before = range(start + 1, start + 5 * number + 1)
                assert found[channel] == sum(n for n in before if n % 2 == parity)
        assert snapshots[0][1][0] == (6, 9)[parity]


@pytest.mark.spec("X46", "N02", "partition", "request", "N25", "channels")
def test_two_producers_and_two_consumers_make_four_channels() -> None:
    network = Network([[RowBatch([(i, 0), (i, 1)]), EndOfData()] for i in range(2)], 2, RoundRobin).run()
    assert [len(p.writer.partition.subpartitions) for p in network.producers] == [2, 2]
    for j, sink in enumerate(network.sinks):
        assert [channel.spec.subpartition for channel in sink.gate.channels] == [j, j]
        assert [channel.spec.partition for channel in sink.gate.channels] == [PartitionId("d" * 32, i) for i in (0, 1)]
    assert by_channel(network.sinks) == {(j, i): [(i, j)] for i in range(2) for j in range(2)}


def test_calls_stay_few_however_many_channels_and_batches_there_are() -> None:
    rows = 400
    limits = BatchLimits(max_rows=1, timeout_ms=0)
    network = Network([[RowBatch([(0, n)]) for n in range(rows)]], 1, RoundRobin, limits=limits).run()
    assert network.sent[network.producers[0].address] < rows


@pytest.mark.parametrize("seed", SEEDS)
def test_producers_that_end_at_different_times_do_not_hold_up_checkpoints(seed: int) -> None:
    short: list[Any] = [RowBatch([(0, 0)])]
    long: list[Any] = [RowBatch([(1, 0)]), CheckpointBarrier(1, 0), RowBatch([(1, 1)]), CheckpointBarrier(2, 0)]
    network = Network([short, long], 2, Broadcast, seed).run()
    for sink in network.sinks:
        aligned = [item.barrier.checkpoint_id for _, item in sink.seen if isinstance(item, Aligned)]
        assert aligned == [1, 2]


# faults that must not pass unnoticed


def test_a_lost_call_is_noticed() -> None:
    lost: list[Envelope] = []

    def lose_one(envelope: Envelope, chance: random.Random) -> list[Envelope]:
        if not lost and any(isinstance(f, BufferResponse) for f in envelope.frames) and envelope.sequence == 2:
            lost.append(envelope)
            return []
        return [envelope]

    network = Network([script(0, 3000, random.Random(2))], 2, RoundRobin, fault=lose_one)
    with pytest.raises((NoProgress, MessageGap)):
        network.run()
    assert lost


def test_lost_credit_is_a_standstill() -> None:
    def lose_credit(envelope: Envelope, chance: random.Random) -> list[Envelope]:
        kept = tuple(frame for frame in envelope.frames if not isinstance(frame, AddCredit))
        return [replace(envelope, frames=kept)]

    with pytest.raises(NoProgress):
        Network([script(0, 400, random.Random(3))], 2, RoundRobin, fault=lose_credit).run()


def test_a_reordered_channel_is_noticed() -> None:
    def swap(envelope: Envelope, chance: random.Random) -> list[Envelope]:
        data = [f for f in envelope.frames if isinstance(f, BufferResponse)]
        if len(data) > 1 and data[0].receiver == data[1].receiver:
            return [replace(envelope, frames=(data[1], data[0], *data[2:]))]
        return [envelope]

    with pytest.raises(BufferReordering):
        Network([script(0, 400, random.Random(4))], 1, RoundRobin, fault=swap).run()


def test_a_repetition_that_nobody_filters_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfiltered(self: Endpoint, envelope: Envelope, now_ms: int) -> None:
        for frame in envelope.frames:
            self.take(envelope.sender, frame)

    monkeypatch.setattr(Endpoint, "accept", unfiltered)
    network = Network([script(0, 400, random.Random(4))], 1, RoundRobin)
    network.fault = lambda envelope, chance: (
        [envelope, envelope] if any(isinstance(f, BufferResponse) for f in envelope.frames) else [envelope]
    )
    with pytest.raises(BufferReordering):
        network.run()


def test_what_is_meant_for_or_comes_from_another_attempt_is_not_worked() -> None:
    network = Network([script(0, 40, random.Random(5))], 1, RoundRobin)
    sink, producer = network.sinks[0], network.producers[0]
    frame = BufferResponse(0, 0, 0, b"from the past")
    sink.accept(Envelope(producer.address, TaskAddress("consumer 0 (attempt 7)"), 0, (frame,)), 0)
    old = TaskAddress("producer 0 (attempt 7)")
    sink.accept(Envelope(old, sink.address, 0, (frame,)), 0)
    assert sink.stale == 1
    assert (sink.gate.queued, sink.gate.channels[0].next_sequence) == (0, 0)
    sink._links.pop(old)
    network.run()
    assert by_channel(network.sinks) == {(0, 0): [(0, n) for n in range(40)]}


def test_a_gate_that_loses_a_credit_now_and_then_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter(range(10**9))
    recycle = InputGate.recycle

    def forgetful(self: InputGate, channel: int) -> None:
        if next(count) % 3:
            recycle(self, channel)

    monkeypatch.setattr(InputGate, "recycle", forgetful)
    with pytest.raises(NoProgress):
        Network([script(0, 400, random.Random(6))], 1, RoundRobin).run()
