"""Redistribution of operator state of p subtasks to q: nothing lost, nothing twice, in order and evenly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.state.errors import SnapshotMismatch
from rayflink.state.operator_state import Lists
from rayflink.state.redistribution import redistributed

entries = st.lists(st.binary(max_size=2), max_size=6).map(tuple)
parallelisms = st.integers(1, 7)


def split(*rows: tuple[bytes, ...]) -> list[Lists]:
    return [{"l": ("split", row)} for row in rows]


def of(lists: list[Lists], name: str = "l") -> list[tuple[bytes, ...]]:
    return [part[name][1] for part in lists]


@settings(max_examples=50)
@given(st.lists(entries, min_size=1, max_size=6), parallelisms)
@pytest.mark.spec("G29")
def test_a_split_list_is_dealt_in_order_with_nothing_lost_or_twice(rows: list[tuple[bytes, ...]], q: int) -> None:
    dealt = of(redistributed(split(*rows), q))
    assert len(dealt) == q
    assert [entry for share in dealt for entry in share] == [entry for row in rows for entry in row]
    if len(rows) == q:
        assert dealt == rows, "with an equal parallelism every subtask keeps its own"
    else:
        sizes = [len(share) for share in dealt]
        assert max(sizes) - min(sizes) <= 1


@settings(max_examples=50)
@given(st.lists(entries, min_size=1, max_size=6), parallelisms)
@pytest.mark.spec("G30")
def test_a_union_list_is_whole_for_everyone(rows: list[tuple[bytes, ...]], q: int) -> None:
    dealt = of(redistributed([{"l": ("union", row)} for row in rows], q))
    assert dealt == [tuple(entry for row in rows for entry in row)] * q


@settings(max_examples=50)
@given(entries, parallelisms, parallelisms)
@pytest.mark.spec("G31")
def test_broadcast_state_is_one_copy_for_everyone(copy: tuple[bytes, ...], p: int, q: int) -> None:
    assert of(redistributed([{"l": ("broadcast", copy)}] * p, q)) == [copy] * q


@settings(max_examples=50)
@given(st.lists(st.lists(entries, min_size=2, max_size=2), min_size=1, max_size=5), parallelisms)
def test_lists_of_several_names_are_dealt_each_by_itself(rows: list[list[tuple[bytes, ...]]], q: int) -> None:
    dealt = redistributed([{"a": ("split", a), "b": ("split", b)} for a, b in rows], q)
    for name, index in (("a", 0), ("b", 1)):
        wanted = sorted(entry for row in rows for entry in row[index])
        assert sorted(entry for share in of(dealt, name) for entry in share) == wanted
    if len(rows) != q:
        totals = [len(part["a"][1]) + len(part["b"][1]) for part in dealt]
        assert max(totals) - min(totals) <= 1, "longer parts of one list on top of those of the other"


@pytest.mark.spec("X27")
def test_three_subtasks_become_two_and_five() -> None:
    rows = split((b"1", b"2"), (b"3",), (b"4",))
    assert of(redistributed(rows, 2)) == [(b"1", b"2"), (b"3", b"4")]
    assert of(redistributed(rows, 5)) == [(b"1",), (b"2",), (b"3",), (b"4",), ()], "the surplus one starts empty"
    assert of(redistributed(rows, 3)) == [(b"1", b"2"), (b"3",), (b"4",)]


def test_the_longer_parts_of_the_next_list_begin_where_those_of_the_last_one_ended() -> None:
    dealt = redistributed([{"a": ("split", (b"1",)), "b": ("split", (b"2", b"3"))}], 3)
    assert of(dealt, "a") == [(b"1",), (), ()]
    assert of(dealt, "b") == [(), (b"2",), (b"3",)], "as in Flink"


@pytest.mark.spec("X28")
def test_union_and_broadcast_state_go_to_two_and_to_five_subtasks() -> None:
    parts: list[Lists] = [{"u": ("union", (bytes((n,)),)), "b": ("broadcast", (b"rule",))} for n in range(3)]
    for q in (2, 5):
        dealt = redistributed(parts, q)
        assert of(dealt, "u") == [(b"\0", b"\1", b"\2")] * q
        assert of(dealt, "b") == [(b"rule",)] * q


def test_a_state_that_some_subtasks_never_asked_for_comes_from_the_others() -> None:
    dealt = redistributed([{}, {"b": ("broadcast", (b"x",)), "l": ("split", (b"1", b"2"))}], 3)
    assert of(dealt, "b") == [(b"x",)] * 3
    assert of(dealt) == [(b"1",), (b"2",), ()]


def test_subtasks_that_differ_in_the_mode_are_refused() -> None:
    with pytest.raises(SnapshotMismatch, match="'l' of operator 'abc'.*union.*subtasks differ"):
        redistributed([{"l": ("union", ())}, {"l": ("split", ())}], 1, "abc")
