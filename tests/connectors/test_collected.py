"""Rows that the program draws come once, whatever dies; without checkpoints a restart that repeats rows is an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rayflink.common.errors import JobExecutionError
from rayflink.connectors.collected import BLOCK_ROWS, DrawnOnce, DrawnSink, RowBlock, rows_go_to
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import KillTask, simulate
from rayflink.testing.faults import ClusterFault, FaultTarget

RESTARTS = {
    "execution.target": "local",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "1 ms",
}
CHECKPOINTS = {**RESTARTS, "execution.checkpointing.interval": "5 ms"}


class Arrived(list[RowBlock]):
    """What the tasks have sent."""

    def put(self, block: RowBlock) -> None:
        self.append(block)

    def flush(self) -> None:
        pass


@dataclass(frozen=True)
class KillWhenRowsHaveCome(ClusterFault):
    """Kills the sink after its first rows."""

    arrived: Arrived

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return bool(self.arrived) and cluster.kill_named("Sink")


def drawn_in_simulation(options: dict[str, str], seed: int, faults: list[Any], kill_late: bool = False) -> list[Any]:
    env = StreamExecutionEnvironment({**options, "parallelism.default": "2"})
    numbers = env.from_collection(range(200)).map(lambda number: number)
    numbers.sink_to(DrawnSink()).set_parallelism(1)
    arrived = Arrived()
    with rows_go_to(arrived):
        story = simulate(env, seed, [*faults, KillWhenRowsHaveCome(arrived)] if kill_late else faults)
    assert story.status.value == "FINISHED"
    return DrawnOnce("7" * 32).new(arrived)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.slow
def test_with_checkpoints_each_row_comes_once_whatever_dies(seed: int) -> None:
    faults = [
        KillTask("Sink", move=200 + seed * 23),
        KillTask("Source", move=500 + seed * 17),
        KillTask("Sink", move=900),
    ]
    assert sorted(drawn_in_simulation(CHECKPOINTS, seed, faults, kill_late=True)) == list(range(200))


def test_without_checkpoints_a_restart_that_repeats_rows_is_an_error() -> None:
    with pytest.raises(JobExecutionError, match="begun anew without checkpoints.*execution.checkpointing.interval"):
        drawn_in_simulation(RESTARTS, 0, [], kill_late=True)


def test_without_checkpoints_a_restart_before_the_first_row_is_none() -> None:
    assert sorted(drawn_in_simulation(RESTARTS, 3, [KillTask("Sink", move=1)])) == list(range(200))


FAILED: list[int] = []


def fails_once(number: int) -> int:
    if number == 500 and not FAILED:
        FAILED.append(number)
        raise ValueError("once")
    return number


@pytest.mark.slow
def test_a_job_in_this_process_draws_each_row_once_over_a_failure() -> None:
    FAILED.clear()
    env = StreamExecutionEnvironment(CHECKPOINTS)
    assert list(env.from_sequence(1, 900).map(fails_once).execute_and_collect()) == list(range(1, 901))
    assert FAILED == [500]


@pytest.mark.slow
def test_a_job_in_this_process_without_checkpoints_says_what_to_set() -> None:
    FAILED.clear()
    drawn = StreamExecutionEnvironment(RESTARTS).from_sequence(1, 900).map(fails_once).execute_and_collect()
    with pytest.raises(JobExecutionError, match="begun anew without checkpoints"):
        list(drawn)
    assert list(drawn) == []


def test_rows_before_the_failure_of_a_job_are_those_of_its_last_checkpoint() -> None:
    FAILED.clear()
    env = StreamExecutionEnvironment({**CHECKPOINTS, "restart-strategy.type": "none"})
    rows = []
    with pytest.raises(JobExecutionError, match="once"):
        for row in env.from_sequence(1, 900).map(fails_once).execute_and_collect():
            rows.append(row)
    assert rows == list(range(1, len(rows) + 1)) and len(rows) < 500


class TestDrawnOnce:
    def test_rows_that_were_drawn_are_dropped_row_by_row(self) -> None:
        once = DrawnOnce("7" * 32)
        assert once.new([RowBlock("a", 0, None, [0, 1, 2]), RowBlock("b", 0, None, ["x"])]) == [0, 1, 2, "x"]
        assert once.new([RowBlock("a", 1, None, [1, 2, 3]), RowBlock("b", 0, None, ["x"])]) == [3]

    def test_a_program_that_goes_on_with_a_savepoint_begins_where_its_rows_begin(self) -> None:
        assert DrawnOnce("7" * 32).new([RowBlock("a", 40, None, [40]), RowBlock("a", 41, None, [41])]) == [40, 41]

    def test_rows_that_are_missing_are_an_error(self) -> None:
        once = DrawnOnce("7" * 32)
        once.new([RowBlock("a", 0, None, [0])])
        with pytest.raises(JobExecutionError, match="lost 2 rows on their way to the program, from row 1 on"):
            once.new([RowBlock("a", 3, None, [3])])

    def test_an_attempt_that_was_believed_dead_is_not_heard(self) -> None:
        once = DrawnOnce("7" * 32)
        once.new([RowBlock("a", 0, 0, [])])
        assert once.new([RowBlock("a", 0, 1, [0]), RowBlock("a", 0, 0, [0])]) == [0]

    def test_an_attempt_that_counts_anew_is_another_one_though_its_number_is_known(self) -> None:
        once = DrawnOnce("7" * 32)
        assert once.new([RowBlock("a", 0, 0, [0]), RowBlock("a", 1, 0, [1])]) == [0, 1]
        with pytest.raises(JobExecutionError, match="would repeat 2 rows"):
            once.new([RowBlock("a", 0, 0, [0])])


def test_what_waits_for_a_checkpoint_is_packed_by_blocks() -> None:
    arrived = Arrived()
    env = StreamExecutionEnvironment({**CHECKPOINTS, "execution.checkpointing.interval": "1 h"})
    env.from_collection(range(3 * BLOCK_ROWS)).sink_to(DrawnSink())
    with rows_go_to(arrived):
        simulate(env)
    assert len(arrived) <= 4 and all(isinstance(block.rows, bytes) and block.attempt is None for block in arrived)
