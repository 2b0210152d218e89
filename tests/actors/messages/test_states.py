"""Which moves the state machines have, over every pair of states."""

from __future__ import annotations

import pickle

import pytest

from rayflink.actors.messages.states import (
    STORY_LENGTH,
    ExecutionState,
    IllegalTransition,
    JobStatus,
    Move,
    MoveHistory,
)
from tests.actors.job.job_events import Job, three_vertices

LEGAL = {
    "CREATED": "SCHEDULED RECONCILING CANCELED FAILED",
    "SCHEDULED": "DEPLOYING CANCELED FAILED",
    "DEPLOYING": "INITIALIZING RUNNING CANCELING FAILED",
    "INITIALIZING": "RUNNING CANCELING FAILED",
    "RUNNING": "FINISHED CANCELING FAILED",
    "CANCELING": "CANCELED FAILED",
    "RECONCILING": "RUNNING FINISHED CANCELED FAILED",
    "FINISHED": "",
    "CANCELED": "",
    "FAILED": "",
}
"""Flink's table; of Flink 1.20 are INITIALIZING, and CREATED -> CANCELED for what was never deployed."""

LEGAL_OF_JOBS = {
    "INITIALIZING": "CREATED FAILED CANCELED",
    "CREATED": "RUNNING FAILING CANCELLING SUSPENDED",
    "RUNNING": "FINISHED FAILING CANCELLING RESTARTING SUSPENDED",
    "FAILING": "FAILED RESTARTING CANCELLING SUSPENDED",
    "RESTARTING": "CREATED RUNNING FAILING CANCELLING SUSPENDED",
    "CANCELLING": "CANCELED FAILING SUSPENDED",
    "SUSPENDED": "RECONCILING",
    "RECONCILING": "RUNNING FAILING SUSPENDED",
    "FINISHED": "",
    "CANCELED": "",
    "FAILED": "",
}


@pytest.mark.spec("K01", "K02", "K03", "K04", "K05", "moves", "X64")
def test_an_execution_has_exactly_the_legal_moves_over_every_pair():
    found = {s.value: {t.value for t in ExecutionState if s.may_become(t)} for s in ExecutionState}
    assert found == {state: set(moves.split()) for state, moves in LEGAL.items()}


@pytest.mark.spec("K06", "X64")
def test_three_states_of_an_execution_are_terminal():
    assert {s.value for s in ExecutionState if s.is_terminal} == {"FINISHED", "CANCELED", "FAILED"}
    assert all(not LEGAL[s.value] for s in ExecutionState if s.is_terminal)


def test_a_job_has_exactly_the_legal_moves_over_every_pair():
    found = {s.value: {t.value for t in JobStatus if s.may_become(t)} for s in JobStatus}
    assert found == {state: set(moves.split()) for state, moves in LEGAL_OF_JOBS.items()}
    assert {s.value for s in JobStatus if s.is_terminal} == {"FINISHED", "CANCELED", "FAILED"}


@pytest.mark.spec("K14", "X64", "J14", "once")
@pytest.mark.parametrize("old", list(ExecutionState))
@pytest.mark.parametrize("new", list(ExecutionState))
def test_an_execution_refuses_every_other_move_and_names_both_states(old, new):
    execution = Job(three_vertices()).execution("Map (2/2)")
    execution.state = old
    if new.value in LEGAL[old.value].split():
        execution.become(new, 7)
        assert execution.state is new
        assert execution.timestamps == {new.value: 7}
        return
    with pytest.raises(IllegalTransition) as caught:
        execution.become(new, 7)
    assert str(caught.value).startswith(f"execution Map (2/2) (attempt #0) cannot go from {old.value} to {new.value};")
    assert (execution.state, execution.timestamps) == (old, {})


def test_an_illegal_move_shows_the_moves_before_it_and_why_each_happened():
    job = Job(three_vertices())
    job.deploy()
    execution = job.execution("Map (2/2)")
    job.says("Map (2/2)", ExecutionState.RUNNING, 7)
    with pytest.raises(IllegalTransition) as caught:
        execution.become(ExecutionState.SCHEDULED, 8, "deployment")
    assert str(caught.value) == (
        "execution Map (2/2) (attempt #0) cannot go from RUNNING to SCHEDULED (deployment); this is a defect of the "
        "runtime, please report it with its last moves: CREATED -> SCHEDULED at 0 (deployment); "
        "SCHEDULED -> DEPLOYING at 0 (deployment); DEPLOYING -> RUNNING at 7 (RUNNING reported)"
    )
    assert caught.value.story[-1] == Move("DEPLOYING", "RUNNING", 7, "RUNNING reported")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.story) == (str(caught.value), caught.value.story)


def test_a_story_has_the_newest_moves_only():
    history = MoveHistory("a machine")
    for n in range(STORY_LENGTH + 3):
        history.add(str(n), str(n + 1), n, "counting")
    assert [move.at_ms for move in history.refusal("x", "y", "").story] == list(range(3, STORY_LENGTH + 3))


@pytest.mark.parametrize("state", list(ExecutionState))
@pytest.mark.parametrize("reported", list(ExecutionState))
def test_the_moves_after_a_report_are_legal_or_one_move_that_is_refused(state, reported):
    moves = state.moves_after_report(reported)
    legal = all(before.may_become(after) for before, after in zip((state, *moves), moves, strict=False))
    assert legal or moves[0] in (reported, ExecutionState.FAILED, ExecutionState.RUNNING)
    if legal and moves and state is not ExecutionState.CANCELING:
        assert moves[-1] is (ExecutionState.FAILED if reported is ExecutionState.CANCELED else reported)
    if state is ExecutionState.CANCELING and reported is not state:
        assert moves == ((ExecutionState.CANCELED,) if reported.is_terminal else ())
