"""A restored program has another pattern: old partial matches are finished or dropped by choice, else it fails."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from rayflink.cep import CEP, MalformedPatternException, Pattern, PatternRule
from rayflink.cep.runtime.cep_operator import CepOperator
from rayflink.cep.runtime.dynamic_operator import FixedRulesOperator
from rayflink.cep.runtime.finishing_operator import FinishingOperator
from rayflink.cep.runtime.match_state import ChangedPattern, OtherCall
from rayflink.cep.runtime.matching_operator import MatchOptions
from rayflink.common import JobExecutionError
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import OperatorHarness, rec, verify, wm

_key = itemgetter(0)


def kind(name: str) -> Any:
    return lambda event: event[1] == name


OLD = Pattern.begin("a").where(kind("a")).followed_by("b").where(kind("b"))
NEW = Pattern.begin("a").where(kind("a")).followed_by("c").where(kind("c")).followed_by("d").where(kind("d"))


def numbers(match: Any, ctx: Any) -> Any:
    yield "".join(str(event[2]) for events in match.values() for event in events)


def single(pattern: Any, **options: Any) -> Any:
    return partial(CepOperator, _key, pattern, numbers, MatchOptions(**options))


def finishing(pattern: Any, *old: Any, **options: Any) -> Any:
    return partial(FinishingOperator, _key, pattern, old, numbers, MatchOptions(**options))


def event(key: str, name: str, number: int, stamp: int) -> Any:
    return rec((key, name, number), stamp)


def feed(harness: OperatorHarness, *names: str, since: int, until: int) -> list[str]:
    """Give events of both keys, numbered like their timestamps, and return the new results."""
    before = len(harness.output_values())
    for stamp, name in enumerate(names, since):
        for key in "xy":
            harness.process((key, name, stamp), timestamp=stamp)
    harness.advance_watermark(until)
    return harness.output_values()[before:]


def begun() -> Any:
    with OperatorHarness(single(OLD)) as harness:
        assert feed(harness, "a", since=1, until=5) == []
        return harness.snapshot()


@pytest.mark.slow
def test_it_matches_like_the_operator_of_one_pattern_under_every_hardship() -> None:
    verify(
        finishing(OLD, NEW),
        elements=[
            event("x", "b", 3, 30), event("x", "a", 1, 10), event("y", "b", 2, 20), event("y", "a", 4, 40), wm(35),
            event("y", "b", 5, 50), event("x", "c", 6, 55), wm(60),
        ],
        then=[rec("13", 30), wm(35), rec("45", 50), wm(60)],
        key=_key,
    )  # fmt: skip


def test_old_matches_are_finished_across_savepoints_until_none_is_left() -> None:
    with OperatorHarness(finishing(NEW, OLD), restore=(begun(),)) as harness:
        assert sorted(feed(harness, "a", "c", since=6, until=9)) == []
        middle = harness.snapshot()
    with pytest.raises(
        ChangedPattern, match=r"finish_partial_matches_of\(old pattern\).*drop_partial_matches_on_change"
    ):
        OperatorHarness(single(NEW), restore=(middle,))
    with OperatorHarness(finishing(NEW, OLD), restore=(middle,)) as harness:
        assert sorted(feed(harness, "b", "d", since=10, until=20)) == ["110", "110", "6711", "6711"]
        assert metric(harness, "numKeysWithOldMatches") == 0
        assert feed(harness, "a", since=21, until=30) == []
        last = harness.snapshot()
    with OperatorHarness(single(NEW), restore=(last,)) as harness:  # the old pattern is needed no longer
        assert feed(harness, "c", "d", "b", since=31, until=40) == ["213132", "213132"]


def test_old_matches_are_dropped_where_the_program_says_so() -> None:
    with OperatorHarness(single(NEW, drops_on_change=True), restore=(begun(),)) as harness:
        assert metric(harness, "numPartialMatchesDropped") == 2
        assert feed(harness, "b", since=10, until=20) == []
    with OperatorHarness(finishing(NEW, OLD), restore=(begun(),)) as harness:
        feed(harness, "a", since=6, until=9)
        middle = harness.snapshot()
    with OperatorHarness(single(NEW, drops_on_change=True), restore=(middle,)) as harness:  # those of NEW go on
        assert metric(harness, "numPartialMatchesDropped") == 2
        assert feed(harness, "b", "c", "d", since=10, until=20) == ["61112", "61112"]
    other = NEW.followed_by("e")
    with pytest.raises(ChangedPattern):
        OperatorHarness(finishing(other, NEW), restore=(middle,))
    with OperatorHarness(finishing(other, NEW, drops_on_change=True), restore=(middle,)) as harness:
        assert metric(harness, "numPartialMatchesDropped") == 2
        assert feed(harness, "b", "c", "d", since=10, until=20) == ["61112", "61112"]


def metric(harness: OperatorHarness, name: str) -> Any:
    return next(value for path, value in harness.metrics.snapshot().items() if path.endswith(f"-0.{name}"))


def test_a_pattern_of_the_same_steps_needs_no_finish() -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    stream = CEP.pattern(env.from_collection([1]), Pattern.begin("a").where(lambda n: n > 1))
    with pytest.raises(MalformedPatternException, match="of the same steps"):
        stream.finish_partial_matches_of(Pattern.begin("a").where(lambda n: n > 2))
    with pytest.raises(MalformedPatternException, match="pass the pattern as it was"):
        stream.finish_partial_matches_of("a")  # type: ignore[arg-type]


def is_first(number: int) -> bool:
    return number == 1


def is_never(number: int) -> bool:
    return number < 0


def is_late(number: int) -> bool:
    return number >= 5_000


FIRST_AND_LATE = Pattern.begin("first").where(is_first).followed_by_any("late").where(is_late)
NEVER = Pattern.begin("never").where(is_never).followed_by("late").where(is_late).followed_by("later")


def two_numbers(match: Any) -> tuple[int, int]:
    return match["first"][0], match["late"][0]


def started(patterns: Any, results: list[Any], savepoint: str | None = None) -> Any:
    """Start a job that matches numbers, and return its client."""
    options = {"execution.target": "local"}
    if savepoint is not None:
        options["execution.state-recovery.path"] = savepoint
    env = StreamExecutionEnvironment(options)
    numbers = env.from_sequence(1, 10_000_000).uid("numbers")
    matches = patterns(numbers.key_by(lambda number: 0)).in_processing_time().select(two_numbers)
    matches.uid("matches").add_sink(results.append).uid("results")
    return env.execute_async("numbers")


def savepoint_of(patterns: Any, folder: Path) -> str:
    """Return a savepoint that has the partial match of the number 1."""
    results: list[Any] = []
    client = started(patterns, results)
    while not results:
        client.get_job_status()
    assert results[0] == (1, 5_000)
    savepoint: str = client.stop_with_savepoint(False, str(folder)).result()
    return savepoint


def first_result(patterns: Any, savepoint: str) -> Any:
    results: list[Any] = []
    client = started(patterns, results, savepoint)
    while not results and not client.get_job_status().result().is_terminal:
        pass
    client.cancel().result()
    return results[0]


@pytest.mark.slow
def test_a_pattern_changes_over_a_savepoint(tmp_path: Path) -> None:
    savepoint = savepoint_of(lambda stream: CEP.pattern(stream, FIRST_AND_LATE), tmp_path)
    with pytest.raises(JobExecutionError, match="finish_partial_matches_of"):
        started(lambda stream: CEP.pattern(stream, NEVER), [], savepoint).get_job_execution_result().result()
    first, late = first_result(
        lambda stream: CEP.pattern(stream, NEVER).finish_partial_matches_of(FIRST_AND_LATE), savepoint
    )
    assert first == 1 and late > 5_000


@pytest.mark.slow
def test_a_version_of_a_rule_changes_over_a_savepoint(tmp_path: Path) -> None:
    first_version, second = PatternRule("numbers", 1, FIRST_AND_LATE), PatternRule("numbers", 2, NEVER)
    savepoint = savepoint_of(lambda stream: CEP.patterns(stream, [first_version]), tmp_path)
    first, late = first_result(lambda stream: CEP.patterns(stream, [second]), savepoint)
    assert first == 1 and late > 5_000


def test_state_of_another_call_is_refused_with_the_remedy() -> None:
    rules = partial(FixedRulesOperator, _key, (PatternRule("p", 1, OLD),), numbers, MatchOptions())
    with OperatorHarness(rules) as harness:
        feed(harness, "a", since=1, until=5)
        of_rules = harness.snapshot()
    for operator, snapshot, calls in (
        (rules, begun(), "written by CEP.pattern, and the program calls CEP.patterns,"),
        (single(OLD), of_rules, "written by CEP.patterns, and the program calls CEP.pattern,"),
        (finishing(NEW, OLD), of_rules, "written by CEP.patterns, and the program calls CEP.pattern,"),
    ):
        with pytest.raises(OtherCall, match=calls):
            OperatorHarness(operator, restore=[snapshot])
