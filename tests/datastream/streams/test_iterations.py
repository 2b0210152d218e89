"""Records that are fed back: what a loop gives, when it ends, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rayflink.common import JobFailed, PlanError
from rayflink.common.connector_base.source import Boundedness
from rayflink.common.records.batches import MIN_TIMESTAMP
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import KeyedProcessFunction, ProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.testing import UNRELIABLE_NETWORK, CancelJob, Pause, ScriptedSource, StopJob, rec, simulate, wm

MODES = [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH]


def environment(parallelism: int = 1, mode: Any = RuntimeExecutionMode.STREAMING, **more: Any) -> Any:
    env = StreamExecutionEnvironment({"execution.target": "local", **more}).set_runtime_mode(mode)
    return env.set_parallelism(parallelism)


def halving(stream: Any) -> Any:
    """Numbers go round until they are one or none."""
    loop = stream.iterate()
    halved = loop.map(lambda n: n // 2)
    loop.close_with(halved.filter(lambda n: n > 1))
    return halved.filter(lambda n: n <= 1)


@pytest.mark.spec("C18", "feedback")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("parallelism", [1, 2])
def test_records_go_round_until_none_is_left(mode: Any, parallelism: int) -> None:
    env = environment(parallelism, mode)
    assert (
        sorted(halving(env.from_collection(range(100)).map(int)).execute_and_collect())
        == [0, *[1] * 98, 1][:1] + [0] + [1] * 98
    )


@pytest.mark.spec("C18", "feedback")
@pytest.mark.parametrize("mode", MODES)
def test_an_empty_input_ends_at_once(mode: Any) -> None:
    assert list(halving(environment(2, mode).from_collection([]).map(int)).execute_and_collect()) == []


@pytest.mark.parametrize("mode", MODES)
def test_what_is_fed_back_may_be_more_than_memory_holds(mode: Any) -> None:
    env = environment(1, mode, **{"rayflink.feedback.memory": "10 kb", "rayflink.batch.max-rows": "100"})
    loop = env.from_collection([20_000]).iterate()
    shares = loop.flat_map(lambda n: [1] * n if n > 1 else [])
    loop.close_with(shares)
    assert list(loop.filter(lambda n: n == 1).key_by(lambda n: n).sum().execute_and_collect())[-1] == 20_000


@pytest.mark.spec("C18", "co-feedback")
@pytest.mark.parametrize("mode", MODES)
def test_what_is_fed_back_may_be_the_second_of_two_connected_streams(mode: Any) -> None:
    loop = environment(2, mode).from_collection(["one", "three"]).map(str).iterate().with_feedback_type(int)
    lengths = loop.map((len, lambda n: n - 2), output_type=int)
    loop.close_with(lengths.filter(lambda n: n > 2))
    assert sorted(lengths.execute_and_collect()) == [1, 1, 3, 3, 5]


@pytest.mark.slow
def test_a_loop_that_feeds_back_more_than_all_buffers_hold_does_not_stand_still() -> None:
    env = environment(2, **{"rayflink.batch.max-rows": "1", "taskmanager.network.memory.buffers-per-channel": "1"})
    loop = env.from_collection([(n, 6) for n in range(4)]).rebalance().map(lambda pair: pair).iterate()
    more = loop.key_by(lambda pair: pair[0]).flat_map(lambda p: [(p[0] + 1, p[1] - 1)] * 2 if p[1] else [])
    loop.close_with(more)
    more.sink_to(CollectSink("out"))
    job = env.get_job_graph()
    for seed in range(2):
        assert len(simulate(job, seed, UNRELIABLE_NETWORK).collected("out")) == 4 * (2**7 - 2)


class Levels(KeyedProcessFunction):
    """Adds up what each key gets in a superstep, and halves it for the next one."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: tuple[str, int], ctx: Any) -> None:
        self.total.update((self.total.value() or 0) + value[1])

    def on_superstep_end(self, superstep: int, ctx: Any) -> Iterable[tuple[str, int, int]]:
        total = self.total.value()
        self.total.clear()
        yield ctx.get_current_key(), total, superstep


@pytest.mark.spec("T04")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_in_batch_mode_what_is_fed_back_is_worked_in_the_next_superstep(parallelism: int) -> None:
    env = environment(parallelism, RuntimeExecutionMode.BATCH)
    pairs = env.from_collection([("a", 1), ("b", 4), ("a", 7), ("c", 1)]).rebalance().map(lambda pair: pair)
    loop = pairs.iterate()
    levels = loop.key_by(lambda pair: pair[0]).process(Levels())
    loop.close_with(levels.flat_map(lambda level: [(level[0], 1)] * (level[1] // 2)))
    assert sorted(levels.execute_and_collect()) == [
        ("a", 1, 4), ("a", 2, 3), ("a", 4, 2), ("a", 8, 1), ("b", 1, 3), ("b", 2, 2), ("b", 4, 1), ("c", 1, 1),
    ]  # fmt: skip


def test_a_function_without_keys_is_told_once_a_superstep() -> None:
    class Counts(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Iterable[int]:
            yield value - 1

        def on_superstep_end(self, superstep: int, ctx: Any) -> Iterable[str]:
            yield f"end of {superstep}"

    env = environment(1, RuntimeExecutionMode.BATCH)
    loop = env.from_collection([2, 1]).iterate()
    counted = loop.process(Counts())
    loop.close_with(counted.filter(lambda value: isinstance(value, int) and value > 0))
    found = list(counted.execute_and_collect())
    assert found[:6] == [1, 0, "end of 1", 0, "end of 2", "end of 3"]


def test_the_loop_of_an_endless_stream_ends_with_a_stop_and_with_a_cancel() -> None:
    env = environment(2)
    halving(env.from_sequence(0, 10**12).map(lambda n: n % 4)).sink_to(CollectSink("out"))
    job = env.get_job_graph()
    stopped = simulate(job, seed=3, faults=[StopJob(move=100)])
    assert stopped.status.value == "FINISHED" and set(stopped.collected("out")) <= {0, 1} != set()
    assert simulate(job, seed=3, faults=[CancelJob(move=100)]).status.value == "CANCELED"


def test_a_function_that_fails_in_the_loop_fails_the_job() -> None:
    env = environment(2)
    loop = env.from_collection([3]).map(int).iterate()
    loop.close_with(loop.map(lambda n: n - 1).filter(lambda n: 6 // n))
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        env.execute()


def test_iterations_may_follow_each_other() -> None:
    assert sorted(halving(halving(environment(2).from_collection(range(9)).map(int)).map(lambda n: 5 * n + 1)
                          ).execute_and_collect()) == [0, 0, *[1] * 7]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("meet", ["union", "connect"])
def test_the_results_of_two_loops_may_meet(mode: Any, meet: str) -> None:
    env = environment(2, mode)
    first, second = (halving(env.from_collection(range(at, at + 9)).map(int)) for at in (0, 50))
    both = first.union(second) if meet == "union" else first.connect(second).map((int, int))
    assert sorted(both.rebalance().map(int).execute_and_collect()) == [0] * 2 + [1] * 16


class Endless(ScriptedSource):
    """Says that it has no end."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED


class Time(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.spec("A03", "unbounded")
@pytest.mark.parametrize(("kind", "seen"), [(Endless, {MIN_TIMESTAMP, 100, 200}), (ScriptedSource, {MIN_TIMESTAMP})])
def test_event_time_passes_the_loop_of_an_endless_stream_and_waits_for_another(kind: Any, seen: Any) -> None:
    script = [rec(8, 100), wm(100), Pause(9_000), rec(9, 200), wm(200), Pause(9_000), rec(1, 300)]
    env = environment()
    loop = env.from_source(kind(script)).iterate()
    loop.close_with(loop.map(lambda n: n // 2).filter(lambda n: n > 1))
    loop.process(Time()).sink_to(CollectSink("out"))
    collected = simulate(env.get_job_graph(), seed=1).collected("out")
    assert {watermark for _, watermark in collected} == seen


def test_iterations_within_each_other_are_refused() -> None:
    env = environment()
    outer = env.from_collection([1]).iterate()
    outer.close_with(halving(outer))
    with pytest.raises(PlanError, match="stands in iterations 1 and 2.*let one iteration end before the other begins"):
        env.get_job_graph()


def test_what_is_fed_back_must_come_from_the_loop_and_have_its_width() -> None:
    env = environment(2)
    loop = env.from_collection([1]).map(int).iterate()
    with pytest.raises(PlanError, match="close_with was given 'Map', which does not come from this iteration"):
        loop.close_with(env.from_collection([1]).map(str))
    loop.close_with(loop.map(int).set_parallelism(1))
    with pytest.raises(PlanError, match=r"has parallelism 1, the iteration 2.*call set_parallelism\(2\) on the step"):
        env.get_job_graph()
    env = environment()
    env.from_collection([1]).iterate().map(int).print()
    with pytest.raises(PlanError, match=r"does not have any feedback edges.*close_with\(\)"):
        env.get_job_graph()


def test_an_iteration_over_a_collection_runs_in_parallel_as_its_refusal_says() -> None:
    def looped(numbers: Any) -> Any:
        loop = numbers.iterate()
        step = loop.map(lambda number: number - 1)
        loop.close_with(step.filter(lambda number: number > 0))
        return step

    env = environment(2)
    looped(env.from_collection([3, 2])).print()
    with pytest.raises(PlanError, match=r"put \.rebalance\(\)\.map\(lambda value: value\) in front of iterate\(\)"):
        env.get_job_graph()
    env = environment(2)
    with looped(env.from_collection([3, 2]).rebalance().map(lambda value: value)).execute_and_collect() as found:
        assert sorted(found) == [0, 0, 1, 1, 2]
