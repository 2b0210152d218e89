"""The exactly-once sink under every order of crashes that a model of Kafka can show: killed at each call, with zombies
that go on, at other parallelisms, and from older savepoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayflink.common import SimpleStringSchema
from rayflink.connectors.kafka.kafka_committing import EARLY_MS
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.operators import commits, early_commits
from rayflink.operators.base import UserCodeError
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from rayflink.testing.harness import Snapshots
from tests.connectors.kafka.kafka_topics import started
from tests.connectors.kafka.model_kafka import Killed, ModelKafka

FAULTS = ("before", "after", "refused", "lost", "intruder")


@cache
def sink(topics: int) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
    if topics == 1:
        schema.set_topic("t")
    else:
        schema.set_topic_selector(lambda value: f"t{int(value.split('-')[1]) % topics}")
    builder = KafkaSink.builder().set_bootstrap_servers("nowhere:1").set_record_serializer(schema.build())
    builder = builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix("p")
    return builder.set_memory_limit(8).build()  # most chunks are spilled


class Inline:
    """A call beside its task, in the order that is the hardest: at once, before the task does anything else."""

    def __init__(self, work: Callable[[], None], wake: Callable[[], None]) -> None:
        self.has_ended, self._error = True, None
        try:
            work()
        except BaseException as error:
            self._error: BaseException | None = error

    def ends_within(self, seconds: float | None) -> bool:
        return True

    def wait(self) -> None:
        if self._error is not None:
            raise self._error


@pytest.fixture
def wake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None] | None:
    for module in (commits, early_commits):
        monkeypatch.setattr(module, "BackgroundCall", Inline)
    monkeypatch.setattr(commits, "time", SimpleNamespace(sleep=lambda seconds: None))
    return None if request.param == "begins when complete" else lambda: None


class Zombie:
    """A subtask that was believed to be dead, and the last of its checkpoints that is complete."""

    def __init__(self, harness: OperatorHarness, complete: int) -> None:
        self.harness, self.complete, self.is_busy = harness, complete, False


class Story:
    """Subtasks of one sink that are fed with "generation-number"; a generation is a start of the job."""

    def __init__(
        self, kafka: ModelKafka, parallelism: int, topics: int = 1, wake: Callable[[], None] | None = None
    ) -> None:
        self.kafka, self.topics, self.wake = kafka, topics, wake
        self.generation, self.number, self.complete = -1, 0, 0
        self.lineage: list[str] = []
        self.savepoints: list[tuple[list[str], list[Snapshots]]] = [([], [])]
        self.subtasks: list[OperatorHarness] = []
        self.zombies: list[Zombie] = []
        self.is_rewound = False
        kafka.intruder = self.haunt
        self.start(parallelism)

    def start(self, parallelism: int, savepoint: int = -1) -> None:
        self.zombies += [Zombie(harness, self.complete) for harness in self.subtasks]
        self.subtasks, self.generation, self.complete = [], self.generation + 1, 0
        lineage, taken = self.savepoints[savepoint]
        self.lineage = list(lineage)
        snapshots = rescaled_snapshots(taken, parallelism) if taken else [{}] * parallelism
        order = range(parallelism) if self.generation % 2 else reversed(range(parallelism))
        own = {n: started(sink(self.topics), Place(n, parallelism, wake=self.wake), [snapshots[n]]) for n in order}
        self.subtasks = [own[subtask] for subtask in range(parallelism)]

    def rewind(self, parallelism: int) -> None:
        """Start from an older savepoint, as a user may; what was written since then stays."""
        self.is_rewound = self.is_rewound or len(self.savepoints) > 1
        self.start(parallelism, max(-len(self.savepoints), -3))

    def write(self, count: int) -> None:
        for _ in range(count):
            value = f"{self.generation}-{len(self.lineage)}"
            self.subtasks[len(self.lineage) % len(self.subtasks)].process(value)
            self.lineage.append(value)

    def checkpoint(self, how: str) -> None:
        self.number += 1
        lineage, taken = list(self.lineage), [harness.snapshot(self.number) for harness in self.subtasks]
        if how == "aborted":
            return
        self.savepoints.append((lineage, taken))
        self.complete = self.number
        if how == "complete":
            for harness in self.subtasks:
                harness.notify_checkpoint_complete(self.number)

    def fault(self, fault: str, after: int) -> None:
        self.kafka.fault, self.kafka.at = fault, self.kafka.calls + after

    def haunt(self) -> None:
        """Zombies learn that their last checkpoint is complete, and commit it; each has one thread."""
        for zombie in [zombie for zombie in self.zombies if not zombie.is_busy]:
            zombie.is_busy = True
            with suppress(UserCodeError, Killed):
                zombie.harness.notify_checkpoint_complete(zombie.complete)
            zombie.is_busy = False

    def step(self, step: str, *arguments: Any) -> None:
        try:
            getattr(self, step)(*arguments)
        except (Killed, UserCodeError):  # the job starts again from its last checkpoint
            self.kafka.at = -1
            self.start(max(1, len(self.subtasks)))
        self.check()
        self.haunt()
        self.check()

    def check(self) -> None:
        counts = Counter(self.kafka.values())
        assert not counts or max(counts.values()) == 1, f"repeated: {counts.most_common(3)}"
        if not self.is_rewound:
            assert set(counts) <= set(self.savepoints[-1][0]), "seen before its checkpoint was complete"

    def finish(self) -> None:
        self.kafka.at = -1
        for harness in self.subtasks:
            harness.clock.advance(60_000)
        self.checkpoint("complete")
        for harness in self.subtasks:
            harness.end_input()
            harness.close()
        self.check()
        assert set(self.lineage) <= set(self.kafka.values()), "lost"
        if not self.is_rewound:
            assert sorted(self.lineage) == sorted(self.kafka.values())


STORIES: dict[str, list[tuple[Any, ...]]] = {
    "restarts": [
        ("write", 3), ("checkpoint", "complete"), ("write", 3), ("checkpoint", "unheard"), ("write", 2),
        ("checkpoint", "aborted"), ("write", 2), ("checkpoint", "complete"), ("checkpoint", "unheard"), ("start", 2),
        ("write", 2), ("checkpoint", "complete"),
    ],
    "chunks of two checkpoints go to another number of subtasks": [
        ("write", 4), ("checkpoint", "unheard"), ("write", 4), ("checkpoint", "unheard"), ("start", 3), ("write", 4),
        ("checkpoint", "unheard"), ("write", 3), ("checkpoint", "unheard"), ("start", 4), ("start", 1),
    ],
    "an older savepoint with chunks that are committed since": [
        ("write", 3), ("checkpoint", "unheard"), ("start", 2), ("write", 4), ("checkpoint", "complete"), ("write", 1),
        ("checkpoint", "complete"), ("rewind", 2), ("write", 2), ("checkpoint", "complete"),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.spec("H24")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES.keys())
@pytest.mark.parametrize("wake", ["begins early"], indirect=True)
def test_a_fault_at_any_call_leaves_each_record_once(
    steps: list[tuple[Any, ...]], fault: str, wake: Callable[[], None] | None
) -> None:
    number, was_hit = 0, True
    while was_hit:
        kafka = ModelKafka()
        with kafka.installed():
            story = Story(kafka, 2, wake=wake)
            story.fault(fault, number)
            for step in steps:
                story.step(*step)
            was_hit = kafka.calls > number
            story.finish()
        number += 1
    assert number > 15


histories = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("checkpoint"), st.sampled_from(["complete", "unheard", "aborted"])),
        st.tuples(st.just("start"), st.integers(1, 3)),
        st.tuples(st.just("rewind"), st.integers(1, 3)),
        st.tuples(st.just("fault"), st.sampled_from(FAULTS), st.integers(0, 12)),
    ),
    max_size=14,
)


@pytest.mark.slow
@pytest.mark.spec("H24")
@pytest.mark.parametrize(("topics", "wake"), [(1, "begins when complete"), (3, "begins early")], indirect=["wake"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parallelism=st.integers(1, 3), history=histories)
def test_whatever_happens_each_record_is_written_once(
    topics: int, wake: Callable[[], None] | None, parallelism: int, history: list[tuple[Any, ...]]
) -> None:
    kafka = ModelKafka()
    with kafka.installed():
        story = Story(kafka, parallelism, topics, wake)
        for step in history:
            story.step(*step)
        story.finish()


@pytest.mark.parametrize("wake", ["begins early"], indirect=True)
def test_a_transaction_is_filled_before_its_checkpoint_is_complete(wake: Callable[[], None]) -> None:
    kafka = ModelKafka()
    with kafka.installed(), started(sink(1), Place(wake=wake)) as subtask:
        for number in (1, 2):
            subtask.process(f"{number}")
            subtask.snapshot(number)
            assert [ongoing.values for ongoing in kafka.open.values()] == ([] if number == 1 else [["2"]])
            subtask.notify_checkpoint_complete(number)
            assert kafka.values() == ["1", "2"][:number] and not kafka.open
        subtask.process("3")
        subtask.snapshot(3)
        assert subtask.operators[0].next_upkeep_ms() == subtask.clock.now_ms() + EARLY_MS
        subtask.set_processing_time(subtask.clock.now_ms() + EARLY_MS)
        assert not kafka.open and subtask.operators[0].next_upkeep_ms() is None, "readers waited long enough"
        for number in (4, 5):  # checkpoint 3 is never complete, and 4 takes too long to begin 5 early
            subtask.process(f"{number}")
            subtask.snapshot(number)
            assert not kafka.open
        subtask.notify_checkpoint_complete(5)
        assert kafka.values() == ["1", "2", "3", "4", "5"]
        subtask.process("6")
        subtask.snapshot(6)
        assert kafka.open, "a checkpoint was soon complete again"
    assert not kafka.open and kafka.values() == ["1", "2", "3", "4", "5"]
