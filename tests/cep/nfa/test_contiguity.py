"""Which events may lie between those of a match: the examples of Flink's documentation."""

from __future__ import annotations

import pytest

from rayflink.cep.pattern import Pattern
from tests.cep.words import begin, find, is_


def a_then_b(how: str) -> Pattern:
    return getattr(begin("a"), how)("b").where(is_("b"))


@pytest.mark.spec("X58", "next", "Q12")
@pytest.mark.parametrize(("words", "matches"), [("a b", ["a b"]), ("a c b", []), ("a c b1 b2", [])])
def test_strict(words, matches):
    assert find(a_then_b("next"), words) == matches


@pytest.mark.spec("X58", "followed-by", "Q13")
@pytest.mark.parametrize(("words", "matches"), [("a b", ["a b"]), ("a c b", ["a b"]), ("a c b1 b2", ["a b1"])])
def test_relaxed(words, matches):
    assert find(a_then_b("followed_by"), words) == matches


@pytest.mark.spec("X58", "followed-by-any", "Q14")
@pytest.mark.parametrize(("words", "matches"), [("a b", ["a b"]), ("a c b1 b2", ["a b1", "a b2"])])
def test_non_deterministic_relaxed(words, matches):
    assert find(a_then_b("followed_by_any"), words) == matches


A_TO_C = {
    "consecutive": ["a b3 c"],
    "": ["a b1 b2 b3 c", "a b1 b2 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c"],
    "allow_combinations": [
        "a b1 b2 b3 c", "a b1 b2 c", "a b1 b3 c", "a b1 c", "a b2 b3 c", "a b2 c", "a b3 c",
    ],
}  # fmt: skip


@pytest.mark.parametrize("inner", A_TO_C)
def test_between_the_events_of_a_loop(inner):
    pattern = begin("a").followed_by_any("b").where(is_("b")).one_or_more()
    pattern = getattr(pattern, inner)() if inner else pattern
    last = pattern.next("c") if inner == "consecutive" else pattern.followed_by("c")
    assert sorted(find(last.where(is_("c")), "a b1 d1 b2 d2 b3 c")) == A_TO_C[inner]


C_TO_B = {
    "consecutive": {"C A1 B", "C A1 A2 B", "C A1 A2 A3 B"},
    "": {"C A1 B", "C A1 A2 B", "C A1 A2 A3 B", "C A1 A2 A3 A4 B"},
}


@pytest.mark.parametrize("inner", C_TO_B)
def test_a_loop_ends_at_another_event_where_it_is_consecutive(inner):
    pattern = begin("C").followed_by("A").where(is_("A")).one_or_more()
    pattern = getattr(pattern, inner)() if inner else pattern
    found = find(pattern.followed_by("B").where(is_("B")), "C D A1 A2 A3 D A4 B")
    assert len(found) == len(C_TO_B[inner]) and set(found) == C_TO_B[inner]


def test_each_choice_of_the_events_of_a_loop_is_a_combination():
    pattern = begin("C").followed_by("A").where(is_("A")).one_or_more().allow_combinations()
    found = find(pattern.followed_by("B").where(is_("B")), "C D A1 A2 A3 D A4 B")
    chosen = [" ".join(["C", "A1", *(f"A{place}" for place in (2, 3, 4) if bits >> place & 1), "B"])
              for bits in range(0, 32, 4)]  # fmt: skip
    assert sorted(found) == sorted(chosen)
