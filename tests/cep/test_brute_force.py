"""The automaton finds the matches that the definition of a pattern allows, and no others."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cep.brute_force import find_by_definition
from tests.cep.described_patterns import Described, TooMany, find
from tests.cep.random_patterns import RandomPatterns


def check(pair: Described) -> int:
    """Compare both answers; return how many matches there are."""
    try:
        found = [line for line in find(pair) if not line.startswith("over")]
    except TooMany:
        return 0
    assert sorted(found) == sorted(find_by_definition(pair))
    return len(found)


def test_matches_are_those_of_the_definition():
    assert sum(check(RandomPatterns(Random(seed), is_plain=True).pair()) for seed in range(60)) > 100


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(st.randoms(use_true_random=False))
def test_matches_of_any_plain_pattern_are_those_of_the_definition(random):
    check(RandomPatterns(random, is_plain=True).pair())


@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        ([], ["1 A=0 B=1"]),
        ([["one_or_more", None]], ["1 A=0 B=1", "3 A=0 B=1,3"]),
        ([["one_or_more", None], ["consecutive"]], ["1 A=0 B=1"]),
        ([["times", 2, None], ["optional"]], ["0 A=0", "3 A=0 B=1,3"]),
    ],
)
def test_the_definition_itself(calls, lines):
    steps = [
        {"how": "begin", "name": "A", "calls": [["where", ["letter", "a"]]]},
        {"how": "followed_by", "name": "B", "calls": [["where", ["letter", "b"]], *calls]},
    ]
    pair = {"steps": steps, "skip": ["no_skip"], "events": "a0@0 b0@1 c0@2 b0@3", "rest": 0}
    assert sorted(find_by_definition(pair)) == lines
