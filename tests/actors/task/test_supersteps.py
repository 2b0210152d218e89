"""The end of a superstep is passed on when it has come on all channels that have not ended."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rayflink.actors.task.supersteps import SuperstepAligner
from rayflink.common.records.batches import Element, EndOfSuperstep
from tests.actors.task.task_bench import Logged, TaskBench


def end(superstep: int, active: bool = False, iteration: int = 1) -> EndOfSuperstep:
    return EndOfSuperstep(iteration, superstep, active)


@pytest.mark.spec("T04")
def test_it_waits_for_all_channels_and_says_whether_any_was_active() -> None:
    aligner = SuperstepAligner(3)
    assert aligner.arrived(0, end(1)) == []
    assert aligner.arrived(2, end(1, active=True)) == []
    assert aligner.arrived(1, end(1)) == [end(1, active=True)]
    assert [aligner.arrived(channel, end(2)) for channel in range(3)] == [[], [], [end(2)]]


@pytest.mark.spec("T04")
def test_a_channel_that_has_ended_is_not_waited_for() -> None:
    aligner = SuperstepAligner(2)
    assert aligner.arrived(1, end(1)) == []
    assert aligner.ended(0) == [end(1)]
    assert aligner.arrived(1, end(2, active=True)) == [end(2, active=True)]
    assert aligner.ended(1) == []


def test_a_channel_may_be_ahead_of_another() -> None:
    aligner = SuperstepAligner(2)
    assert aligner.arrived(0, end(1, active=True)) == []
    assert aligner.arrived(0, end(2)) == []
    assert aligner.arrived(1, end(1)) == [end(1, active=True)]
    assert aligner.ended(1) == [end(2)]


def test_iterations_are_told_apart() -> None:
    aligner = SuperstepAligner(2)
    assert aligner.arrived(0, end(1, iteration=1)) == []
    assert aligner.arrived(1, end(1, iteration=2)) == []
    assert aligner.arrived(1, end(1, iteration=1)) == [end(1, iteration=1)]


class Ends(Logged):
    """Writes down the ends of supersteps."""

    def process_superstep(self, end: EndOfSuperstep) -> Iterable[Element]:
        self._says(f"superstep {end.superstep}")
        return (end,)


@pytest.mark.spec("N36", "superstep")
def test_a_task_ends_a_superstep_when_each_channel_has_said_so() -> None:
    log: list[str] = []
    bench = TaskBench([Ends(log)], channels=(0, 0, 0)).start()
    for channel in (2, 0):
        bench.feed(channel, end(1))
        bench.work()
    assert log[3:] == []
    bench.feed(1, "a record", end(1))
    bench.work()
    assert log[3:] == ["op.process", "op.superstep 1"]
