"""Steps that must not occur, and the time that a match may take."""

from __future__ import annotations

import pytest

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.pattern import Pattern
from rayflink.cep.quantifier import WithinType
from tests.cep.words import begin, find, find_all, is_


def a_without_b(how: str) -> Pattern:
    return getattr(begin("a"), how)("b").where(is_("b")).followed_by("c").where(is_("c"))


@pytest.mark.spec("Q16", "not-next")
@pytest.mark.parametrize(("words", "matches"), [("a c", ["a c"]), ("a b c", []), ("a x b c", ["a c"])])
def test_directly_behind(words, matches):
    assert find(a_without_b("not_next"), words) == matches


@pytest.mark.spec("Q16", "not-followed-by")
@pytest.mark.parametrize(("words", "matches"), [("a c", ["a c"]), ("a x c", ["a c"]), ("a x b c", [])])
def test_anywhere_before_the_next_step(words, matches):
    assert find(a_without_b("not_followed_by"), words) == matches


@pytest.mark.parametrize(("words", "matches"), [("a x", ["a"]), ("a b", []), ("a", [])])
def test_not_next_at_the_end_waits_for_an_event(words, matches):
    assert find(begin("a").not_next("b").where(is_("b")), words) == matches


def test_not_followed_by_at_the_end_waits_for_the_time():
    pattern = begin("a").not_followed_by("b").where(is_("b")).within(10)
    assert find_all(pattern, "a1 a2 b a3", [0, 5, 12, 20], 20) == [("at 10", "a1"), ("at 30", "a3")]


def test_an_optional_step_that_occurs_ends_the_step_that_must_not():
    pattern = begin("a").not_followed_by("b").where(is_("b")).followed_by_any("c").where(is_("c")).optional()
    pattern = pattern.followed_by_any("d").where(is_("d"))
    assert [find(pattern, words) for words in ("a c b d", "a b d", "a d")] == [["a c d"], [], ["a d"]]


def test_all_of_several_steps_that_must_not_occur_count():
    pattern = begin("a").not_followed_by("b").where(is_("b")).not_next("c").where(is_("c"))
    pattern = pattern.followed_by("d").where(is_("d"))
    assert [find(pattern, words) for words in ("a d", "a x d", "a c d", "a x b d", "a x c d")] == [
        ["a d"], ["a d"], [], [], ["a d"],
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "matches"), [("a", ["a"]), ("a x", ["a"]), ("a b", []), ("a c", []), ("a x c", [])])
@pytest.mark.parametrize("first", ["not_next", "not_followed_by"])
def test_all_of_several_steps_that_must_not_occur_count_at_the_end(first, words, matches):
    pattern = getattr(begin("a"), first)("b").where(is_("b")).not_followed_by("c").where(is_("c")).within(5)
    assert find(pattern, words, rest=9) == matches


@pytest.mark.spec("X60", "Q19", "last-negative")
def test_not_followed_by_at_the_end_needs_a_time():
    with pytest.raises(MalformedPatternException, match="NotFollowedBy is not supported as a last part of a Pattern"):
        compile_pattern(begin("a").not_followed_by("b").where(is_("b")))


@pytest.mark.spec("Q15")
def test_a_match_takes_less_than_the_shortest_time():
    pattern = begin("a").within(50).followed_by("b").where(is_("b")).within(10).followed_by("c").where(is_("c"))
    assert compile_pattern(pattern).window_ms == 10
    assert find_all(pattern, "a1 b c a2 b c", [0, 4, 9, 20, 24, 30]) == [("2", "a1 b c"), ("over 30", "a2 b")]


def test_the_time_between_two_events_is_limited():
    pattern = begin("a").followed_by("b").where(is_("b")).within(5, WithinType.PREVIOUS_AND_CURRENT)
    pattern = pattern.followed_by("c").where(is_("c"))
    assert find_all(pattern, "a b c", [0, 4, 90]) == [("2", "a b c")]
    assert find_all(pattern, "a x b c", [0, 3, 5, 6]) == [("over 5", "a")]
