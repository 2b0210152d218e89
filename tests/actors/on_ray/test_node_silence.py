"""A node is lost when nobody answers there several times in a row, and that is told once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.on_ray.node_silence import MOST_FAILURES, NodeSilence


@given(st.lists(st.booleans(), max_size=30))
def test_a_node_is_lost_at_the_third_failure_in_a_row_only(answers: list[bool]):
    silence, in_a_row = NodeSilence(), 0
    for was_reached in answers:
        in_a_row = 0 if was_reached else in_a_row + 1
        assert silence.probed("n", was_reached) == (in_a_row == MOST_FAILURES)
        assert not silence.probed("another", True)


def test_a_node_without_tasks_is_forgotten():
    silence = NodeSilence()
    for _ in range(MOST_FAILURES - 1):
        assert not silence.probed("n", False)
    silence.forget(frozenset())
    assert not silence.probed("n", False)
