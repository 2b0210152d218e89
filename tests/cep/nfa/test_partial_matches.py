"""How partial matches are stored."""

from __future__ import annotations

import pickle

import pytest

from rayflink.cep.nfa.partial_matches import KeyMatches, Node, events_of
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy as Skip
from tests.cep.described_patterns import Finder
from tests.cep.words import begin, is_


def nodes_of(matches: KeyMatches) -> dict[int, Node]:
    """Return all nodes by their identity."""
    found: dict[int, Node] = {}
    for match in (*matches.partial, *matches.completed):
        node = match[1]
        while node is not None and id(node) not in found:
            found[id(node)] = node
            node = node[3]
    return found


def matches_after(pattern, words: str) -> KeyMatches:
    finder = Finder(pattern, lambda when, match: when)
    finder.find(words.split(), range(len(words.split())))
    return finder.matches


@pytest.mark.spec("Q28")
def test_partial_matches_share_the_nodes_of_their_beginning():
    loop = begin("a").followed_by("b").where(is_("b")).one_or_more().allow_combinations()
    matches = matches_after(loop.followed_by("c").where(is_("c")), "a b1 b2 b3")
    paths = {tuple(events_of(node, ("a", "b", "c")).get("b", ())) for node in nodes_of(matches).values()}
    assert paths == {(), ("b1",), ("b1", "b2"), ("b1", "b3"), ("b1", "b2", "b3")}
    assert len(nodes_of(matches)) == 5 < len(matches.partial)
    assert len({id(node[2]) for node in nodes_of(matches).values()}) == 4  # an event is stored once


def test_nodes_are_shared_when_they_are_read_back():
    pattern = begin("a").followed_by_any("b").where(is_("b")).followed_by("c").where(is_("c"))
    matches = matches_after(pattern, "a x b1 b2")
    read = pickle.loads(pickle.dumps(matches))
    assert read == matches and len(nodes_of(read)) == len(nodes_of(matches)) == 3
    assert read.next_number == 4


def test_nodes_of_partial_matches_that_ended_are_gone():
    assert matches_after(begin("a").next("b").where(is_("b")), "a a x").is_empty
    assert matches_after(begin("a").followed_by("b").where(is_("b")).within(2), "a x x x").is_empty


def test_matches_that_wait_for_an_earlier_one_are_stored():
    pattern = begin("a", skip_strategy=Skip.skip_past_last_event()).followed_by("b").where(lambda word, ctx: (
        word == "b" and ctx.get_events_for_pattern("a") == ["a2"]
    ))  # fmt: skip
    matches = matches_after(pattern, "a1 a2 b")
    assert (len(matches.partial), len(matches.completed)) == (1, 1)
    assert pickle.loads(pickle.dumps(matches)) == matches


@pytest.mark.slow
def test_a_match_of_many_events_is_no_deep_recursion():
    node = None
    for number in range(100_000):
        node = (0, number, number, node)
    matches = KeyMatches([(1, node, 0, 0, 0)], [], 100_000)
    data = pickle.dumps(matches)
    assert len(data) < 3_000_000
    [match] = pickle.loads(data).partial
    events = events_of(match[1], ("a",))["a"]
    assert (len(events), events[0], events[-1]) == (100_000, 0, 99_999)
