"""Flink's worked examples of checkpoints, guarantees and restores, as whole jobs."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.functions.checkpointed_function import CheckpointedFunction
from rayflink.common.functions.function_classes import KeyedProcessFunction, MapFunction, SinkFunction
from rayflink.common.options import registry as options
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import RowBatch
from rayflink.common.time import Time
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import JobManagerCheckpointStorage, ProcessWindowFunction, StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from rayflink.graph.job_graph import JobGraph
from rayflink.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from rayflink.state.group_content import decode_group
from rayflink.testing import (
    CancelJob,
    DelayCalls,
    FullStorage,
    KillTask,
    Pause,
    ScriptedSource,
    TakeSavepoint,
    simulate,
)
from rayflink.testing.faults import ClusterFault, Fault
from rayflink.testing.simulated_storage import SimulatedDisk
from rayflink.testing.simulation import SimulatedCluster
from rayflink.testing.story import Story

EVERY_5_MS = {
    "restart-strategy.fixed-delay.attempts": "50",
    "execution.checkpointing.interval": "5 ms",
    "restart-strategy.type": "fixed-delay",
}


def paced(items: list[Any]) -> list[Any]:
    """The items, one each 3 ms."""
    return [part for item in items for part in (item, Pause(3))]


class Sum(MapFunction):
    """Adds up the amounts of its key."""

    def open(self, ctx: Any) -> None:
        self.sum = ctx.get_state(ValueStateDescriptor("sum"))

    def map(self, transfer: tuple[str, str, int]) -> tuple[str, str, int]:
        self.sum.update((self.sum.value() or 0) + transfer[2])
        return transfer


def bank(mode: str) -> JobGraph:
    """A pays B 50 and B pays A 80, often; who pays and who is paid are two operators, with the money between them."""
    where = {"execution.checkpointing.dir": "/flink/checkpoints", "parallelism.default": "2"}
    options = {**EVERY_5_MS, **where, "execution.checkpointing.mode": mode}
    env = StreamExecutionEnvironment({**options, "rayflink.batch.max-rows": "1"})
    transfers = env.from_source(ScriptedSource(*[paced([("A", "B", 50), ("B", "A", 80)] * 8)] * 2), None, "Orders")
    payers = transfers.key_by(lambda transfer: transfer[0]).map(Sum()).name("Payers").uid("payers")
    payees = payers.key_by(lambda transfer: transfer[1]).map(Sum()).name("Payees").uid("payees")
    payees.sink_to(CollectSink())
    return env.get_job_graph()


def totals(story: Story, opening: int) -> Iterator[int]:
    """All money in each checkpoint: what the accounts held at first, less what was paid, plus what was received."""
    for number in story.completed:
        sums: Counter[str] = Counter()
        for task, part in story.acknowledged[number].items():
            for snapshot in part.snapshots.values():
                for group in snapshot.keyed.values():
                    assert isinstance(group, bytes)
                    content = decode_group(group, task)
                    sums[task.split(" ")[0]] += sum(entry[-1] for entry in content["tables"]["sum"][1])
        yield opening - sums["Payers"] + sums["Payees"]


LATE = DelayCalls(0.3, 60)
"""So that barriers of two channels come at different times."""


@pytest.mark.spec("X19", "H02", "H04")
@pytest.mark.parametrize("seed", range(3))
def test_in_every_checkpoint_the_accounts_and_what_is_between_them_are_800(seed: int) -> None:
    found = list(totals(simulate(bank("EXACTLY_ONCE"), seed, [LATE]), opening=600 + 200))
    assert len(found) >= 2 and set(found) == {800}


@pytest.mark.spec("X19", "H13")
def test_without_alignment_there_are_checkpoints_with_money_that_nobody_had() -> None:
    found = {total for seed in (1, 5) for total in totals(simulate(bank("AT_LEAST_ONCE"), seed, [LATE]), 800)}
    assert max(found) > 800 and 800 in found


# guarantees


@dataclass(frozen=True)
class KillAfterEachCheckpoint(ClusterFault):
    """Kills the map after each of the first four checkpoints."""

    seen: set[int] = field(default_factory=set)

    def inject(self, cluster: Any, move: int) -> bool:
        latest = cluster.job.checkpoints.latest
        if latest is not None and latest.checkpoint_id not in self.seen and cluster.kill_named("Map"):
            self.seen.add(latest.checkpoint_id)
        return len(self.seen) == 4


def forty_numbers(**given: str) -> JobGraph:
    pace = {**EVERY_5_MS, "parallelism.default": "2", "restart-strategy.fixed-delay.delay": "1 ms"}
    env = StreamExecutionEnvironment({**pace, **{key.replace("_", "."): value for key, value in given.items()}})
    halves = ScriptedSource(paced(list(range(20))), paced(list(range(20, 40))))
    env.from_source(halves, None, "Numbers").key_by(lambda n: n % 2).map(lambda n: n).sink_to(CollectSink())
    return env.get_job_graph()


def received(graph: JobGraph) -> list[Counter[int]]:
    """What the sink's state has at the end of six runs with failures."""
    return [Counter(simulate(graph, seed, [LATE, KillAfterEachCheckpoint()]).collected()) for seed in range(6)]


@pytest.mark.slow
@pytest.mark.spec("H01", "at-least-once", "exactly-once", "X22", "H18", "X33", "at-least-once", "exactly-once")
def test_aligned_barriers_count_each_record_once_and_unaligned_counts_at_least_once() -> None:
    once = Counter(range(40))
    assert received(forty_numbers(execution_checkpointing_mode="EXACTLY_ONCE")) == [once] * 6
    at_least = received(forty_numbers(execution_checkpointing_mode="AT_LEAST_ONCE"))
    assert all(set(counts) == set(once) for counts in at_least)
    assert any(counts.total() > 40 for counts in at_least)


class Noting(SinkFunction):
    """Appends each record to a list, which repeats what is worked twice, and sets it by its key, which does not."""

    seen: ClassVar[list[int]] = []
    by_key: ClassVar[dict[int, int]] = {}

    def invoke(self, value: int) -> None:
        self.seen.append(value)
        self.by_key[value] = value * value


def noted(count: int, config: dict[str, str], *faults: Fault) -> Story:
    """The story of a job whose sink notes the first numbers."""
    Noting.seen.clear()
    Noting.by_key.clear()
    env = StreamExecutionEnvironment(config)
    numbers = env.from_source(ScriptedSource(paced(list(range(count)))), None, "Numbers")
    numbers.map(lambda n: n).key_by(lambda n: n % 2).map(lambda n: n).add_sink(Noting())
    return simulate(env, 1, faults)


@pytest.mark.spec("H01", "at-most-once", "X33", "at-most-once")
def test_without_checkpoints_and_restarts_what_was_under_way_is_lost() -> None:
    story = noted(20, {}, KillTask("Sink", move=60))
    assert story.status.value == "FAILED" and "lost task" in story.failure
    assert 0 < len(Noting.seen) == len(Noting.by_key) < 20, "each at most once"


@pytest.mark.spec("H22", "twice", "H23", "duplicates", "idempotent")
def test_a_plain_sink_repeats_records_since_the_checkpoint_which_upserts_hide() -> None:
    story = noted(40, {**EVERY_5_MS, "restart-strategy.fixed-delay.delay": "1 ms"}, LATE, KillAfterEachCheckpoint())
    assert story.status.value == "FINISHED" and len(Noting.seen) > 40
    assert Noting.by_key == {n: n * n for n in range(40)}


@pytest.mark.spec("X23")
def test_where_each_task_has_one_channel_each_record_counts_once_without_alignment() -> None:
    graph = forty_numbers(execution_checkpointing_mode="AT_LEAST_ONCE", parallelism_default="1")
    for seed in (1, 5):
        assert Counter(simulate(graph, seed, [LATE, KillAfterEachCheckpoint()]).collected()) == Counter(range(40))


@pytest.mark.spec("X25")
def test_a_checkpoint_of_two_sources_completes_when_the_sinks_have_acknowledged() -> None:
    stored = {**EVERY_5_MS, "execution.checkpointing.dir": "/checkpoints", "parallelism.default": "2"}
    env = StreamExecutionEnvironment(stored).disable_operator_chaining()
    numbers = env.from_source(ScriptedSource(*[paced(list(range(1, 11)))] * 2), None, "Numbers")
    numbers.key_by(lambda n: n % 2).map(lambda n: n).name("Sums").sink_to(CollectSink())
    story = simulate(env, 1, [LATE])
    tasks = {f"{name} ({number}/2)" for name in ("Source: Numbers", "Sums", "Sink: Collect") for number in (1, 2)}
    assert [set(story.acknowledged[number]) for number in story.completed[:3]] == [tasks] * 3


# a backlog after a restore


@dataclass(frozen=True)
class LogPosition:
    """From that entry on."""

    position: int = 0
    split_id = "log"


class Log(Source):
    """An entry every 10 s of the clock for 200 minutes, which waits until it is read, as in a message log."""

    entries = tuple(range(1_020_000, 1_020_000 + 200 * 60_000, 10_000))
    boundedness = Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [LogPosition()])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _LogReader(ctx)


class _LogReader(OneByOneReader):
    def __init__(self, ctx: ReaderContext) -> None:
        super().__init__()
        self.ctx, self.due_ms = ctx, 0

    def next_poll_ms(self) -> int | None:
        return self.due_ms

    def open_split(self, split: LogPosition) -> SplitCursor:
        return _LogCursor(split, self)


class _LogCursor:
    def __init__(self, split: LogPosition, reader: _LogReader) -> None:
        self._split, self._reader = split, reader

    def read(self, max_records: int) -> Polled | None:
        waiting = Log.entries[self._split.position :]
        there = [at for at in waiting if at <= self._reader.ctx.now_ms()][:max_records]
        if there:
            self._split = LogPosition(self._split.position + len(there))
            return RowBatch(there, there)
        self._reader.due_ms = waiting[0] if waiting else 0
        return PENDING if waiting else None

    def position(self) -> LogPosition:
        return self._split

    def close(self) -> None:
        pass


class StartAndCount(ProcessWindowFunction):
    """The window's start and how many records it has."""

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[tuple[int, int]]:
        yield context.window().start, len(list(elements))


@dataclass(frozen=True)
class StopAt(ClusterFault):
    """Somebody stops the job with a savepoint at a time of the clock."""

    at_ms: int

    def inject(self, cluster: Any, move: int) -> bool:
        return cluster.clock.now_ms() >= self.at_ms and bool(cluster.savepoint("/savepoints", StopMode.SUSPEND))


def counts_per_minute(**options: str) -> JobGraph:
    env = StreamExecutionEnvironment(options)
    log = env.from_source(Log(), WatermarkStrategy.for_monotonous_timestamps(), "Log").key_by(lambda at: 0)
    minute = Time.minutes(1)
    for name, windows in (
        ("event", TumblingEventTimeWindows.of(minute)),
        ("processing", TumblingProcessingTimeWindows.of(minute)),
    ):
        log.window(windows).process(StartAndCount()).uid(name).sink_to(CollectSink(name)).uid(f"{name} sink")
    return env.get_job_graph()


@pytest.mark.slow
@pytest.mark.spec("X15", "E35", "H72")
def test_after_three_hours_of_downtime_event_time_is_right_and_the_clock_has_a_burst() -> None:
    disk, stopped_ms = SimulatedDisk(), Log.entries[0] + 10 * 60_000
    first = SimulatedCluster(counts_per_minute(), 1, [StopAt(stopped_ms)], disk)
    first.run()
    restored = counts_per_minute(**{"execution.state-recovery.path": first.story.stopped_with})
    second = SimulatedCluster(restored, 2, (), disk)
    second.clock.advance(stopped_ms + 3 * 3_600_000 - second.clock.now_ms())
    second.run()
    minutes = range(Log.entries[0], Log.entries[-1], 60_000)
    assert sorted(second.story.collected("event")) == [(start, 6) for start in minutes]
    by_clock = dict(second.story.collected("processing"))
    asleep = range(stopped_ms + 60_000, stopped_ms + 3 * 3_600_000, 60_000)
    assert not by_clock.keys() & set(asleep)
    assert max(by_clock.values()) > 100 * 6, "the backlog, in one minute"


# where checkpoints and savepoints are


def stored(retention: str = "", **options: str) -> JobGraph:
    kept = {"execution.checkpointing.externalized-checkpoint-retention": retention} if retention else {}
    where = {"execution.checkpointing.dir": "/flink/checkpoints", **kept}
    graph = forty_numbers()
    return replace(graph, configuration={**graph.configuration, **where, **options})


@pytest.mark.spec("H53", "H56", "explicit")
def test_checkpoints_are_below_the_job_and_a_savepoint_starts_with_its_number() -> None:
    disk = SimulatedDisk()
    cluster = SimulatedCluster(
        stored("RETAIN_ON_CANCELLATION"), 1, [TakeSavepoint(move=100), CancelJob(move=400)], disk
    )
    cluster.run()
    (savepoint,), job_id = cluster.story.savepoints, cluster.job.graph.id
    assert re.fullmatch(rf"/savepoints/savepoint-{job_id[:6]}-[0-9a-f]{{12}}", savepoint)
    checkpoint = f"/flink/checkpoints/{job_id}/chk-{cluster.story.completed[-1]}/_metadata"
    assert {path for path in disk.files if path.endswith("_metadata")} == {f"{savepoint}/_metadata", checkpoint}


@pytest.mark.slow
@pytest.mark.spec("H51", "H52", "H56", "kept")
@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        ("", set()),
        ("DELETE_ON_CANCELLATION", {"FAILED"}),
        ("RETAIN_ON_CANCELLATION", {"FAILED", "CANCELED"}),
    ],
)
def test_which_checkpoints_outlive_their_job(retention: str, kept: set[str]) -> None:
    for end in (CancelJob(move=400), KillTask("Map", move=400), TakeSavepoint(move=100)):
        disk = SimulatedDisk()
        story = simulate(stored(retention, **{"restart-strategy.type": "none"}), 1, [end], disk)
        assert story.completed
        checkpoints = [path for path in disk.files if path.startswith("/flink/checkpoints")]
        assert bool(checkpoints) == (story.status.value in kept), story.status
        assert len(story.savepoints) == len([path for path in disk.files if path.startswith("/savepoints/")])


@pytest.mark.spec("H63")
@pytest.mark.parametrize("ending", ["", "/_metadata"])
def test_a_job_goes_on_from_a_retained_checkpoint_by_its_path(ending: str) -> None:
    disk = SimulatedDisk()
    assert simulate(stored("RETAIN_ON_CANCELLATION"), 1, [CancelJob(move=400)], disk).status.value == "CANCELED"
    (kept,) = [path for path in disk.files if path.endswith("/_metadata")]
    before = dict(disk.files)
    path = kept.removesuffix("/_metadata") + ending
    again = stored(**{"execution.state-recovery.path": path})
    assert Counter(simulate(again, 2, (), disk).collected()) == Counter(range(40))
    assert {name: disk.files[name] for name in before} == before, "what another job wrote is not touched"


# what fits a savepoint


class Counted(MapFunction):
    """Adds to each record how many its key had here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, ctx: Any) -> None:
        self.count = ctx.get_state(ValueStateDescriptor("count"))

    def map(self, record: dict[str, int]) -> dict[str, int]:
        self.count.update((self.count.value() or 0) + 1)
        return {**record, self.name: self.count.value()}


NUMBERS = ScriptedSource(paced([{"number": number} for number in range(20)]))


def steps(*names: str, uids: bool = True, parallelism: int = 2, **options: str) -> JobGraph:
    """A job of these operators; those in capitals have keyed state."""
    env = StreamExecutionEnvironment({**options, "parallelism.default": str(parallelism)})
    stream = env.from_source(NUMBERS, None, "Numbers").uid("numbers")
    for name in names:
        keyed = stream.key_by(lambda record: 0)
        stream = keyed.map(Counted(name)) if name.isupper() else stream.map(lambda record: record)
        if uids:
            stream.uid(name)
    stream.sink_to(CollectSink()).uid("sink")
    return env.get_job_graph()


def gone_on(before: JobGraph, *names: str, ignore: bool = False, **how: Any) -> Story:
    """Stop a job with a savepoint in the middle, and go on with another program."""
    disk = SimulatedDisk()
    stopped = simulate(before, 1, [StopAt(1_000_040)], disk)
    options = {
        "execution.state-recovery.path": stopped.stopped_with,
        "execution.state-recovery.ignore-unclaimed-state": str(ignore).lower(),
    }
    return simulate(steps(*names, **how, **options), 2, (), disk)


def last_of(story: Story) -> dict[str, int]:
    assert story.status.value == "FINISHED", story.failure
    assert sorted(record["number"] for record in story.collected()) == list(range(20))
    names = {name for record in story.collected() for name in record}
    return {name: max(record.get(name, 0) for record in story.collected()) for name in names}


@pytest.mark.spec("X31", "H65", "H61")
def test_operators_may_change_places_when_they_have_uids() -> None:
    assert last_of(gone_on(steps("A", "B"), "B", "A")) == {"number": 19, "A": 20, "B": 20}


@pytest.mark.spec("X31", "H66")
def test_an_operator_that_is_new_begins_without_state() -> None:
    last = last_of(gone_on(steps("A"), "stateless", "A", "B"))
    assert last["A"] == 20 and 0 < last["B"] < 20


@pytest.mark.spec("X31", "H67", "H61")
def test_state_of_an_operator_that_is_gone_is_an_error_or_is_left_behind() -> None:
    refused = gone_on(steps("A", "B"), "A")
    assert refused.status.value == "FAILED"
    assert "uid 'B'" in refused.failure and "--allow-non-restored-state" in refused.failure
    assert last_of(gone_on(steps("A", "B"), "A", ignore=True))["A"] == 20


@pytest.mark.spec("X31", "H68", "H62")
def test_operators_without_state_come_and_go_where_the_others_have_uids() -> None:
    assert last_of(gone_on(steps("one", "A"), "A", "another"))["A"] == 20
    moved = gone_on(steps("A", uids=False), "stateless", "A", uids=False)
    assert moved.status.value == "FAILED" and "give the operators uids" in moved.failure


@pytest.mark.spec("X31", "H69", "H60", "H57", "parallelism")
@pytest.mark.parametrize("parallelism", [1, 3, 5])
def test_the_parallelism_may_change(parallelism: int) -> None:
    assert last_of(gone_on(steps("A", "B"), "A", "B", parallelism=parallelism)) == {"number": 19, "A": 20, "B": 20}


# failures of checkpoints, and work beside them


class Growing(KeyedProcessFunction):
    """Keeps all it gets."""

    def open(self, ctx: Any) -> None:
        self.kept = ctx.get_list_state(ListStateDescriptor("kept"))

    def process_element(self, value: str, ctx: Any) -> None:
        self.kept.add(value)


@pytest.mark.spec("V24", "H46")
@pytest.mark.parametrize(("fails", "status"), [(True, "FAILED"), (False, "FINISHED")])
def test_whether_a_checkpoint_that_fails_fails_the_job_is_a_setting(fails: bool, status: str) -> None:
    env = StreamExecutionEnvironment({**EVERY_5_MS, "restart-strategy.type": "none"})
    env.get_checkpoint_config().set_fail_on_checkpointing_errors(fails).set_checkpoint_storage_dir("/full")
    env.from_source(ScriptedSource(paced(list(range(20)))), None, "Numbers").map(lambda n: n).sink_to(CollectSink())
    story = simulate(env, 1, [FullStorage(count=3)])
    assert story.status.value == status
    assert ("Exceeded checkpoint tolerable failure threshold" in story.failure) == fails


@pytest.mark.spec("G16", "coordinator", "most", "V12", "size")
def test_without_a_directory_snapshots_are_kept_by_the_coordinator_up_to_a_size() -> None:
    assert StreamExecutionEnvironment().get_configuration().get(options.MAX_INLINE_STATE).bytes == 5 << 20
    env = StreamExecutionEnvironment({**EVERY_5_MS, "restart-strategy.type": "none"})
    env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=2_000))
    slow = ScriptedSource(paced(["x" * 100] * 100))
    env.from_source(slow, None, "Texts").key_by(len).process(Growing()).sink_to(CollectSink())
    story = simulate(env, 1)
    assert story.status.value == "FAILED" and len(story.acknowledged) > 1, "the first ones were small"
    assert "a snapshot of more than 2000 bytes" in story.failure and "execution.checkpointing.dir" in story.failure


@pytest.mark.spec("H03", "H16", "continues", "G32", "beside", "G17", "files", "beside")
def test_tasks_work_on_while_their_snapshots_are_written() -> None:
    story = simulate(stored(), 1)
    worked, since = 0, False
    for happening in story.happenings:
        if happening.what == "command" and "TriggerCheckpoint" in happening.detail and "(1/2)" in happening.who:
            since, steps_since = True, 0
        elif since and happening.what == "step" and happening.who == "Source: Numbers (1/2)":
            steps_since += happening.detail == "busy"
        elif since and happening.what == "write" and happening.who == "Source: Numbers (1/2)":
            since, worked = False, max(worked, steps_since)
    assert worked > 1, "the first of these steps took the snapshot"


@pytest.mark.spec("H47", "I22", "thread")
def test_records_timers_and_snapshots_of_a_task_are_worked_by_one_thread() -> None:
    seen: set[tuple[str, int]] = set()

    class Watched(KeyedProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Iterator[int]:
            seen.add(("record", threading.get_ident()))
            ctx.timer_service().register_processing_time_timer(0)
            yield value

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
            seen.add(("timer", threading.get_ident()))
            return iter(())

        def close(self) -> None:
            seen.add(("close", threading.get_ident()))

    class Kept(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            seen.add(("restore", threading.get_ident()))

        def snapshot_state(self, context: Any) -> None:
            seen.add(("snapshot", threading.get_ident()))

        def map(self, value: int) -> int:
            return value

    env = StreamExecutionEnvironment({**EVERY_5_MS, "execution.target": "local"})
    env.from_sequence(1, 50).key_by(lambda n: n % 2).process(Watched()).map(Kept()).sink_to(CollectSink())
    env.execute()
    assert {what for what, _ in seen} == {"record", "timer", "close", "restore", "snapshot"}
    assert len({thread for _, thread in seen}) == 1


@pytest.mark.spec("H49", "I15", "checkpoints", "I38", "checkpoints")
def test_checkpoint_settings_are_in_the_job_graph_and_reach_its_coordinator() -> None:
    env = StreamExecutionEnvironment()
    env.enable_checkpointing(7_000).get_checkpoint_config().set_max_concurrent_checkpoints(3).set_checkpoint_timeout(9)
    env.from_sequence(1, 2).map(str).sink_to(CollectSink())
    graph = env.get_job_graph()
    assert graph.configuration["execution.checkpointing.max-concurrent-checkpoints"] == "3"
    settings = SimulatedCluster(graph, 1).job.checkpoints.settings
    assert (settings.interval_ms, settings.max_concurrent, settings.timeout_ms) == (7_000, 3, 9)
