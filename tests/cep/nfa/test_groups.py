"""Steps that are sequences of their own."""

from __future__ import annotations

import pytest

from rayflink.cep.errors import MalformedPatternException
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.pattern import Pattern
from tests.cep.words import begin, find, is_


def a_then_b() -> Pattern:
    return begin("a").next("b").where(is_("b"))


def test_a_group_that_repeats():
    pattern = Pattern.begin(a_then_b()).times(2).next("c").where(is_("c"))
    assert find(pattern, "a1 b1 a2 b2 c") == ["a1 a2 b1 b2 c"]
    assert find(pattern, "a1 b1 c") == []


@pytest.mark.parametrize(
    ("how", "words", "matches"),
    [
        ("next", "x a b", ["x a b"]),
        ("next", "x y a b", []),
        ("followed_by", "x y a1 y a2 b", []),
        ("followed_by", "x y a1 b1 a2 b2", ["x a1 b1"]),
        ("followed_by_any", "x y a1 b1 a2 b2", ["x a1 b1", "x a2 b2"]),
    ],
)
def test_the_contiguity_of_a_group_is_that_of_its_first_step(how, words, matches):
    assert find(getattr(begin("x"), how)(a_then_b()), words) == matches


@pytest.mark.spec("Q27", "optional")
def test_an_optional_group():
    pattern = begin("x").next(a_then_b()).optional().next("c").where(is_("c"))
    assert [find(pattern, words) for words in ("x a b c", "x c", "x a c")] == [["x a b c"], ["x c"], []]


@pytest.mark.spec("Q27", "expanded", "Q18", "group")
def test_a_group_is_nothing_but_its_states():
    inline = begin("x").next("a").where(is_("a")).next("b").where(is_("b"))
    for pattern in (begin("x").next(a_then_b()), inline):
        assert [state.name for state in compile_pattern(pattern).states] == ["$endState$", "b", "a", "x"]


def test_a_group_that_loops_ends_at_the_event_of_until():
    pattern = Pattern.begin(a_then_b()).one_or_more().until(is_("c"))
    assert sorted(find(pattern, "a1 b1 a2 b2 c a3 b3")) == ["a1 a2 b1 b2", "a1 b1", "a2 b2", "a3 b3"]


def test_a_group_that_loops_has_a_step_that_is_not_optional():
    both = begin("a").optional().next("b").where(is_("b")).optional()
    with pytest.raises(MalformedPatternException, match="has optional steps alone"):
        compile_pattern(Pattern.begin(both).one_or_more())
    assert "a1 b1" in find(Pattern.begin(both).times(2), "a1 b1 x")
