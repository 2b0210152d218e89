"""Streams and patterns of whole programs: which events are matched together, and bad input at its line."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pytest

from rayflink.cep import CEP, AfterMatchSkipStrategy, MalformedPatternException, Pattern
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.common import WatermarkStrategy
from rayflink.common.errors import InvalidFunction, RayflinkError
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.testing import OperatorHarness

EVENTS = [("x", "a", 1), ("y", "a", 2), ("x", "b", 3), ("z", "b", 4), ("y", "b", 5)]
"""(key, name, time)"""


def stream(events=EVENTS, parallelism=2):
    config = {"execution.target": "local", "parallelism.default": str(parallelism)}
    return StreamExecutionEnvironment.get_execution_environment(config).from_collection(events)


def timed():
    by_last = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[-1])
    return stream().assign_timestamps_and_watermarks(by_last)


def a_next_b():
    return Pattern.begin("a").where(lambda event: event[1] == "a").next("b").where(lambda event: event[1] == "b")


def keys_of(match):
    return "".join(event[0] for events in match.values() for event in events)


@pytest.mark.spec("A01", "cep", "Q29", "keyed")
def test_each_key_of_a_keyed_stream_is_matched_on_its_own():
    keyed = timed().key_by(lambda event: event[0])
    assert sorted(CEP.pattern(keyed, a_next_b()).select(keys_of).execute_and_collect()) == ["xx", "yy"]


@pytest.mark.spec("Q29", "non-keyed")
def test_all_events_of_another_stream_are_matched_together():
    assert list(CEP.pattern(timed(), a_next_b()).select(keys_of).execute_and_collect()) == ["yx"]


def group():
    return Pattern.begin("a").next("b")


TO_FIRST_Z = AfterMatchSkipStrategy.skip_to_first("z")
BAD = [
    (lambda: group().within(-1), "a time of -1 ms", "at least one millisecond"),
    (lambda: group().within("5 min"), "'5 min' as a time", "pass a Duration"),
    (lambda: group().within(5, "first"), "'first' as its type", "WithinType.FIRST_AND_LAST"),
    (lambda: Pattern.begin("a").one_or_more("5 min"), "'5 min' as a time", "pass a Duration"),
    (lambda: Pattern.begin(""), "is called ''", "non-empty string"),
    (lambda: Pattern.begin("a", "no_skip"), "'no_skip' as its skip strategy", "AfterMatchSkipStrategy"),
    (lambda: Pattern.begin("a").times("2"), "cannot occur '2' times", "whole numbers"),
    (lambda: Pattern.begin(group()).one_or_more().greedy(), "applied to a group", "steps within the group"),
    (lambda: Pattern.begin("a").where(3), "where() was passed 3", "pass a callable"),
    (lambda: Pattern.begin("a").where(lambda: True), "found one of 0", "takes the event, or the event and a context"),
    (lambda: CEP.pattern(timed(), None), "passed None", "pass a Pattern"),
    (lambda: CEP.pattern(timed(), group(), 3), "3 as its comparator", "pass a callable of two events"),
    (lambda: CEP.pattern(timed(), group()).with_comparator(3), "with_comparator() was passed 3", "callable of two"),
    (lambda: CEP.pattern(timed(), group().not_followed_by("c")), "'c'", "call within(...)"),
    (lambda: CEP.pattern(timed(), group().next("a")), "called 'a' (the first: ", "a name of its own"),
    (lambda: CEP.pattern(timed(), Pattern.begin(group()).next("b")), "called 'b' (the first: ", "a name of its own"),
    (lambda: CEP.pattern(timed(), Pattern.begin("a", TO_FIRST_Z)), "the step 'z'", "name one of a"),
]  # fmt: skip


@pytest.mark.parametrize("build, problem, remedy", BAD)
def test_bad_input_is_an_error_of_its_line_with_the_remedy(build, problem, remedy):
    with pytest.raises((MalformedPatternException, InvalidFunction)) as raised:
        build()
    wanted = rf"{re.escape(problem)}.*; .*{re.escape(remedy)}.*"
    assert re.search(wanted, str(raised.value)) and "test_pattern_streams.py" in raised.value.line


@pytest.mark.parametrize(
    "condition, problem",
    [
        (lambda event: event["price"], "TypeError"), (lambda event: 1, "gave 1 of type int; return True or False"),
        (lambda event, ctx: event["price"], "TypeError"), (lambda event, ctx: None, "gave None .*return True or False"),
        (lambda event, ctx: ctx.get_events_for_pattern("b") == [], "the step 'b', which .*; its steps are a"),
    ],
)  # fmt: skip
def test_a_condition_that_gives_no_answer_fails_at_its_line(condition, problem):
    pattern = Pattern.begin("a").where(condition)
    with OperatorHarness(lambda: CepOperator(len, pattern, lambda match, _: (), MatchOptions())) as harness:
        with pytest.raises(UserCodeError, match=problem) as raised:
            harness.process(("x", "a"), timestamp=1)
            harness.advance_watermark(2)
    assert "test_pattern_streams.py" in str(raised.value)


@pytest.mark.parametrize(
    "comparator, problem",
    [
        (lambda one, other: None, "gave None of type NoneType; return a negative number"),
        (lambda one, other: one[0] < other[0], "gave (True|False) of type bool; return a negative number"),
        (lambda one, other: float("nan"), "gave nan of type float; return a negative number"),
        (lambda one, other: one[0] - other[0], "TypeError: unsupported operand"),
    ],
)  # fmt: skip
def test_a_comparator_that_gives_no_number_fails_at_its_line(comparator, problem):
    options = MatchOptions(comparator=comparator, comparator_site="program.py:7")
    where = r"program.py:7.*the comparator 'lambda of line \d+' on record \('\w', 'a'\) and \('\w', 'a'\): "
    with OperatorHarness(lambda: CepOperator(lambda _: 0, group(), lambda match, _: (), options)) as harness:
        with pytest.raises(UserCodeError, match=f"{where}.*{problem}"):
            harness.process(("x", "a"), timestamp=1)
            harness.process(("y", "a"), timestamp=1)
            harness.advance_watermark(2)


def test_a_job_fails_at_the_line_of_its_comparator():
    same_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: 1)
    events = stream().assign_timestamps_and_watermarks(same_time)
    for matches in (
        CEP.pattern(events, a_next_b(), lambda one, other: "less"),
        CEP.pattern(events, a_next_b()).with_comparator(lambda one, other: "less"),
    ):
        with pytest.raises(RayflinkError, match=r"test_pattern_streams.py:\d+.* the comparator .*gave 'less' of"):
            list(matches.select(keys_of).execute_and_collect())


@pytest.mark.parametrize("wanted, comparator", [
    ("xyz", lambda one, other: np.sign(np.int64(ord(one[0]) - ord(other[0])))),
    ("zyx", lambda one, other: Decimal(ord(other[0]) - ord(one[0]))), ("yzx", lambda one, other: 0.0),
])  # fmt: skip
def test_a_comparator_gives_any_number(wanted, comparator):
    pattern = Pattern.begin("a").times(3)
    options, function = MatchOptions(comparator=comparator), lambda match, _: ["".join(key for key, _ in match["a"])]
    with OperatorHarness(lambda: CepOperator(lambda _: 0, pattern, function, options)) as harness:
        for key in "yzx":
            harness.process((key, "a"), timestamp=1)
        harness.advance_watermark(2)
        assert harness.output_values() == [wanted]


def test_events_without_times_fail_at_the_line_of_the_pattern_with_the_remedy():
    untimed = CEP.pattern(stream(), a_next_b()).select(keys_of)
    with pytest.raises(RayflinkError, match=r"test_pattern_streams.py:\d+(?s:.*)call assign_timestamps_and_watermarks"):
        list(untimed.execute_and_collect())
