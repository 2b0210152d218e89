"""Requests and answers of a job: each request is performed once, and what is remembered is bounded."""

from __future__ import annotations

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import AnswerCheckpoint
from rayflink.actors.messages.request_answers import MOST_ANSWERS, RequestAnswers
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock


def answer(number: int) -> AnswerCheckpoint:
    return AnswerCheckpoint(f"{number:032x}", number, "")


def test_a_request_is_performed_once_and_its_answer_is_remembered() -> None:
    answers = RequestAnswers()
    assert [answers.ask("a"), answers.ask("a"), answers.ask("b")] == [True, False, True]
    answers.add(answer(1))
    assert not answers.ask(f"{1:032x}") and answers[f"{1:032x}"] == answer(1)


def test_the_latest_answers_are_remembered_and_all_are_counted() -> None:
    answers = RequestAnswers(most=2)
    for number in range(3):
        answers.ask(f"{number:032x}")
        answers.add(answer(number))
    assert (list(answers.values()), answers.count) == ([answer(1), answer(2)], 3)


def test_a_job_of_this_process_remembers_a_bounded_number_of_answers() -> None:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).sink_to(DiscardingSink())
    cluster = InProcessCluster(env.get_job_graph("answers"), ManualClock(), lambda timeout_ms: None)
    for number in range(MOST_ANSWERS + 100):
        cluster.answer(answer(number))
    assert len(cluster.answers) == MOST_ANSWERS
