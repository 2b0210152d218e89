"""map_batches with concurrency in programs: on threads, in the simulator, with side outputs."""

from __future__ import annotations

import threading

import pytest

from rayflink.common import OutputTag
from rayflink.common.errors import InvalidFunction, JobFailed
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import ActorPool, StreamExecutionEnvironment
from rayflink.testing import UNRELIABLE_NETWORK, SlowSink, TriggerCheckpoint, simulate
from tests.datastream.programs import environment, timed


class Model:
    """Says which instance has worked a number, in which thread."""

    def __call__(self, numbers):
        if "bad" in numbers:
            raise ValueError("cannot score 'bad'")
        return [(number, (id(self), threading.current_thread().name)) for number in numbers]


def test_instances_of_a_class_work_in_threads_of_their_own_and_the_order_is_kept():
    scored = environment().from_sequence(1, 200).map_batches(Model, "rows", concurrency=ActorPool(3, batch_size=5))
    found = list(scored.execute_and_collect())
    assert [number for number, _ in found] == list(range(1, 201))
    assert len({instance for _, (instance, _) in found}) == 3
    assert all("worker of Map Batches" in name for _, (_, name) in found)


def test_processes_of_a_pool_are_shared_out_to_its_subtasks():
    env = environment(4)
    scored = env.from_sequence(1, 40).map_batches(Model, "rows", concurrency=2)
    assert sorted(number for number, _ in scored.execute_and_collect()) == list(range(1, 41))
    wide = env.from_sequence(1, 40).map_batches(Model, "rows", concurrency=2).set_parallelism(3)
    with pytest.raises(JobFailed, match="2 processes are too few for 3 subtasks; set the step's parallelism to 2"):
        list(wide.execute_and_collect())


def test_records_without_an_answer_go_to_the_side_output_the_user_names():
    tag = OutputTag("unscored")
    pool = ActorPool(batch_size=1, max_retries=1, retry_delay_ms=1, open_after=100, side_output=tag)
    scored = environment().from_collection([1, "bad", 3]).map_batches(Model, "rows", concurrency=pool)
    both = scored.map(lambda pair: pair[0]).union(scored.get_side_output(tag).map(lambda value: f"not {value}"))
    assert sorted(both.execute_and_collect(), key=str) == [1, 3, "not bad"]


def test_without_one_the_job_fails_with_line_and_record():
    pool = ActorPool(batch_size=1, max_retries=0)
    scored = environment().from_collection(["bad"]).map_batches(Model, "rows", concurrency=pool)
    with pytest.raises(JobFailed, match="(?s)cannot score 'bad'.*test_pools.py.*record: 'bad'"):
        list(scored.execute_and_collect())


def test_frames_and_timestamps_pass_through_a_pool():
    import pandas

    def longer(frame: pandas.DataFrame):
        return frame.assign(size=frame["f0"].str.len())

    stream = timed(environment(), [("a", 1_000), ("bcd", 2_000)]).map_batches(longer, concurrency=1)
    stamped = stream.process(lambda row, ctx: [(row.size, ctx.timestamp())])
    assert list(stamped.execute_and_collect()) == [(1, 1_000), (3, 2_000)]


def tenfold(rows):
    return [10 * n for n in rows]


@pytest.mark.parametrize("batch_size", [1, 7, "adaptive"])
def test_nothing_is_lost_or_doubled_from_any_seed(batch_size):
    for seed in range(4):
        env = StreamExecutionEnvironment()
        pool = ActorPool(2, batch_size=batch_size)
        env.from_sequence(1, 60).rebalance().map_batches(tenfold, "rows", concurrency=pool).sink_to(CollectSink("out"))
        story = simulate(
            env.get_job_graph(), seed, [*UNRELIABLE_NETWORK, SlowSink(ms=20), TriggerCheckpoint(1, move=40)]
        )
        assert story.collected("out") == [10 * n for n in range(1, 61)]


def test_what_cannot_be_hosted_is_refused_in_the_users_line():
    stream = environment().from_collection([1])
    with pytest.raises(InvalidFunction, match="give the class a method __call__"):
        stream.map_batches(object, concurrency=2)
    with pytest.raises(ValueError, match="concurrency must be a number of at least 1, or an ActorPool, found 0"):
        stream.map_batches(tenfold, concurrency=0)
