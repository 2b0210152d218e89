"""Which matches are dropped once one has been found: the tables of Flink's documentation."""

from __future__ import annotations

import pytest

from rayflink.cep.pattern import Pattern
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy as Skip
from rayflink.cep.skip_strategies import SkipFailed
from tests.cep.words import begin, find, is_

B_THEN_C = {
    Skip.no_skip(): ["b1 b2 b3 c", "b2 b3 c", "b3 c"],
    Skip.skip_to_next(): ["b1 b2 b3 c", "b2 b3 c", "b3 c"],
    Skip.skip_past_last_event(): ["b1 b2 b3 c"],
    Skip.skip_to_first("b"): ["b1 b2 b3 c", "b2 b3 c", "b3 c"],
    Skip.skip_to_last("b"): ["b1 b2 b3 c", "b3 c"],
}


def check_b_then_c(skip: Skip) -> None:
    """Compare the matches of b+ c, which has to take all b before c.

    The loop ends at c: one that goes on is an earlier partial match, for which matches wait where any may be dropped.
    """
    pattern = begin("b", skip_strategy=skip).one_or_more().consecutive().next("c").where(is_("c"))
    assert find(pattern, "b1 b2 b3 c") == B_THEN_C[skip]


@pytest.mark.spec("Q17", "no-skip", "X59", "no-skip")
def test_no_skip():
    check_b_then_c(Skip.no_skip())


@pytest.mark.spec("Q17", "to-next", "X59", "to-next")
def test_skip_to_next():
    check_b_then_c(Skip.skip_to_next())


@pytest.mark.spec("Q17", "past-last", "X59", "past-last")
def test_skip_past_last_event():
    check_b_then_c(Skip.skip_past_last_event())


@pytest.mark.spec("Q17", "to-first", "X59", "to-first")
def test_skip_to_first():
    check_b_then_c(Skip.skip_to_first("b"))


@pytest.mark.spec("Q17", "to-last", "X59", "to-last")
def test_skip_to_last():
    check_b_then_c(Skip.skip_to_last("b"))


@pytest.mark.parametrize(
    ("skip", "matches"),
    [
        (Skip.no_skip(), ["a b c1 c2 c3 d", "b c1 c2 c3 d", "c1 c2 c3 d"]),
        (Skip.skip_to_first("third"), ["a b c1 c2 c3 d", "c1 c2 c3 d"]),
    ],
)
def test_skip_to_first_drops_what_began_before_it(skip, matches):
    pattern = Pattern.begin("first", skip).where(is_("abc")).next("second").where(is_("bc"))
    pattern = pattern.next("third").where(is_("c")).one_or_more().greedy().next("fourth").where(is_("d"))
    assert find(pattern, "a b c1 c2 c3 d") == matches


@pytest.mark.parametrize(
    ("skip", "matches"), [(Skip.no_skip(), ["a b1", "a b1 b2", "a b1 b2 b3"]), (Skip.skip_to_next(), ["a b1"])]
)
def test_skip_to_next_drops_what_began_with_the_same_event(skip, matches):
    assert find(begin("a", skip_strategy=skip).next("b").where(is_("b")).one_or_more(), "a b1 b2 b3") == matches


def test_an_earlier_match_is_waited_for_as_it_may_drop_a_later_one():
    def pattern(skip: Skip) -> Pattern:
        return begin("a", "ab", skip_strategy=skip).followed_by("c").where(is_("c")).times(1, 2)

    def twice(skip: Skip) -> Pattern:
        return begin("a", skip_strategy=skip).followed_by("b").where(is_("b")).followed_by("c").where(is_("c"))

    assert find(pattern(Skip.skip_past_last_event()), "a1 b2 c3") == ["a1 c3"]
    assert find(twice(Skip.skip_past_last_event()), "a1 a2 b3 c4") == ["a1 b3 c4"]


def test_nothing_is_skipped_where_the_match_has_no_such_event():
    def pattern(skip: Skip) -> Pattern:
        return begin("a", skip_strategy=skip).next("b").where(is_("b")).optional().next("c").where(is_("c"))

    assert find(pattern(Skip.skip_to_first("b")), "a c") == ["a c"]
    with pytest.raises(SkipFailed, match="no event of 'b' to skip to"):
        find(pattern(Skip.skip_to_first("b").throw_exception_on_miss()), "a c")


def test_a_match_cannot_skip_to_its_own_beginning_where_it_fails_on_a_miss():
    pattern = begin("a", skip_strategy=Skip.skip_to_last("a").throw_exception_on_miss())
    with pytest.raises(SkipFailed, match="the first event is skipped to"):
        find(pattern, "a1")
