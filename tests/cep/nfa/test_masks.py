"""Conditions are evaluated for many events at a time, and fail only where their answer is needed."""

from __future__ import annotations

import numpy as np
import pytest

from rayflink.cep.conditions import IterativeCondition
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.masks import EventConditions, NoBoolean
from rayflink.cep.nfa.matcher import UNKNOWN
from rayflink.cep.pattern import Pattern
from rayflink.common.errors import InvalidFunction
from tests.cep.words import begin, find, is_


def conditions_of(pattern: Pattern) -> EventConditions:
    return EventConditions(compile_pattern(pattern).units)


def has_two(word: str) -> bool:
    return int(word[1:]) == 2


def test_each_condition_is_a_bit():
    conditions = conditions_of(begin("a").where(has_two).followed_by("b", ).where(is_("b")))
    assert conditions.masks(["a1", "a2", "b2", "x3"]) == [0b00, 0b10, 0b01, 0b00]
    assert (conditions.tried, conditions.true) == ([4, 4], [1, 1])


def test_there_may_be_more_conditions_than_bits_in_a_word():
    pattern = begin("s0", "z")
    for number in range(1, 80):
        pattern = pattern.next(f"s{number}").where(is_("a" if number % 2 else "b"))
    assert conditions_of(pattern).masks(["a", "z"]) == [sum(1 << bit for bit in range(0, 79, 2)), 1 << 79]


def test_an_event_at_which_a_condition_raises_is_unknown():
    pattern = begin("a").next("two").where(has_two)
    assert conditions_of(pattern).masks(["a1", "a2", "bad"]) == [0b10, 0b11, UNKNOWN]


def test_a_condition_that_raises_fails_where_a_partial_match_needs_it():
    pattern = begin("a").next("two").where(has_two)
    assert find(pattern, "bad a1 b2") == ["a1 b2"]
    with pytest.raises(ValueError, match="invalid literal for int"):
        find(pattern, "a1 bad")


def test_an_event_at_which_a_condition_raises_is_matched_by_the_others():
    pattern = begin("a").or_(is_("b")).followed_by("two").where(has_two)
    assert find(pattern.or_(is_("x")).next("c").where(is_("c")), "a1 b2 c0") == ["a1 b2 c0"]
    assert find(begin("x").where(is_("x")), "x y") == ["x"]


class Positive(IterativeCondition):
    """Gives a number where it should give a bool."""

    def filter(self, value, ctx):
        return len(ctx.get_events_for_pattern("a"))


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.begin("a").where(lambda word: word),
        Pattern.begin("a").where(lambda word: None),
        Pattern.begin("a").where(lambda word: word == "a").or_(lambda word: 1),
        Pattern.begin("a").where(Positive()),
    ],
)
def test_a_condition_that_gives_no_bool_is_named_with_its_line(pattern):
    with pytest.raises(NoBoolean, match="the condition '.*' .passed at .*test_masks.py:.* return True or False"):
        find(pattern, "b")


def test_booleans_of_numpy_are_booleans():
    assert find(Pattern.begin("a").where(lambda word: np.bool_(word == "a")), "a b") == ["a"]


def test_something_that_cannot_be_called_is_no_condition():
    with pytest.raises(InvalidFunction, match="where\\(\\) was passed"):
        Pattern.begin("a").where(5)


def test_a_condition_on_the_match_is_asked_where_the_mask_does_not_decide():
    asked = []

    def rising(word, ctx):
        asked.append(word)
        return True

    assert find(begin("a").where(rising).next("b").where(is_("b")), "x a1 x y a2 b") == ["a2 b"]
    assert asked == ["a1", "a2"]
