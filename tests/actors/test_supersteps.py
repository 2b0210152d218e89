"""The end of a superstep is passed on when it has come on all channels that have not ended."""

from __future__ import annotations

import pytest

from rayflink.actors.supersteps import SuperstepAligner
from rayflink.common.batches import EndOfSuperstep


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
