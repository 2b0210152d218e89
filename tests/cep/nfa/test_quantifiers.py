"""How often a step occurs, and on which condition."""

from __future__ import annotations

import pytest

from rayflink.cep.conditions import IterativeCondition, SimpleCondition
from rayflink.cep.pattern import Pattern
from tests.cep.words import begin, find, is_


@pytest.mark.spec("X57", "times", "Q06", "range")
def test_two_to_four_times():
    pattern = begin("x").next("a").where(is_("a")).times(2, 4)
    assert find(pattern, "x a1 a2 a3 a4 a5") == ["x a1 a2", "x a1 a2 a3", "x a1 a2 a3 a4"]


@pytest.mark.spec("Q06", "exact")
def test_exactly_so_many_times():
    assert find(begin("a").times(3), "a1 a2 a3 a4") == ["a1 a2 a3", "a2 a3 a4"]


@pytest.mark.spec("X57", "times-or-more", "Q07", "times-or-more")
def test_a_number_of_times_or_more():
    pattern = begin("x").next("a").where(is_("a")).times_or_more(2)
    assert find(pattern, "x a1 a2 a3 a4") == ["x a1 a2", "x a1 a2 a3", "x a1 a2 a3 a4"]


@pytest.mark.spec("Q07", "one-or-more")
def test_once_or_more():
    assert find(begin("x").next("a").where(is_("a")).one_or_more(), "x a1 a2") == ["x a1", "x a1 a2"]
    assert find(begin("x").next("a").where(is_("a")).one_or_more(), "x b") == []


@pytest.mark.spec("X57", "optional", "Q08")
@pytest.mark.parametrize(("words", "matches"), [("x a1 a2 y", ["x a1 a2 y"]), ("x y", ["x y"]), ("x a1 y", [])])
def test_twice_or_not_at_all(words, matches):
    pattern = begin("x").next("a").where(is_("a")).times(2).consecutive().optional().next("y").where(is_("y"))
    assert find(pattern, words) == matches


def test_from_no_time_on_is_optional():
    pattern = begin("x").next("a").where(is_("a")).times(0, 2).next("y").where(is_("y"))
    assert [find(pattern, words) for words in ("x y", "x a y", "x a1 a2 y", "x a a a y")] == [
        ["x y"], ["x a y"], ["x a1 a2 y"], [],
    ]  # fmt: skip


@pytest.mark.spec("X57", "greedy", "Q09")
def test_greedy_takes_as_many_events_as_there_are():
    # c ends the loop unless it may be one of the loop's events
    def pattern(is_greedy: bool) -> Pattern:
        loop = begin("x").next("a").where(is_("ac")).times(2, 4)
        return (loop.greedy() if is_greedy else loop).next("c").where(is_("cd"))

    assert find(pattern(False), "x a1 a2 c1 d") == ["x a1 a2 c1", "x a1 a2 c1 d"]
    assert find(pattern(True), "x a1 a2 c1 d") == ["x a1 a2 c1 d"]
    assert find(begin("a").times(2).greedy(), "a1 a2 a3") == ["a1 a2", "a2 a3"]


@pytest.mark.spec("Q11")
def test_a_loop_ends_at_the_event_of_until():
    pattern = begin("a").one_or_more().until(is_("b"))
    assert sorted(find(pattern, "a1 c a2 b a3")) == ["a1", "a1 a2", "a2", "a3"]


@pytest.mark.spec("Q10", "where")
def test_all_conditions_have_to_be_met():
    assert find(begin("a").where(lambda word: "2" in word), "a1 a2 b2") == ["a2"]


@pytest.mark.spec("Q10", "or")
def test_one_of_two_conditions_has_to_be_met():
    assert find(begin("a").or_(is_("b")), "a1 b2 c3") == ["a1", "b2"]
    assert find(begin("a").or_(is_("b")).where(lambda word: "2" in word), "a1 a2 b2 b1") == ["a2", "b2"]


class Longer(IterativeCondition):
    """Accepts a word that is longer than those before it."""

    def filter(self, value, ctx):
        return all(len(value) > len(other) for other in ctx.get_events_for_pattern("a"))


class Short(SimpleCondition):
    """Accepts words of up to three letters."""

    def filter(self, value):
        return len(value) <= 3


def test_conditions_see_the_events_that_the_match_has():
    pattern = Pattern.begin("a").one_or_more().where(Longer()).where(Short())
    assert find(pattern.consecutive(), "x xx xxx xxxx") == ["x", "x xx", "xx", "x xx xxx", "xx xxx", "xxx"]


def test_a_step_without_conditions_takes_any_event():
    assert find(begin("a").next("any"), "a1 z b") == ["a1 z"]


def test_events_of_a_class_and_its_subclasses_are_taken():
    pattern = Pattern.begin("any").subtype(str).where(is_("a"))
    assert find(pattern, "a b") == ["a"]
    assert find(Pattern.begin("any").subtype(int), "a b") == []
