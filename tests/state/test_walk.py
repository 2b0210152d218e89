"""The walk over a hashmap table that changes; the law itself is in the conformance suite."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from rayflink.state import memory
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.memory import HashMapBackend, HashMapTable


def filled(entries: int, namespaces: int = 1) -> HashMapTable:
    table = HashMapBackend(range(128), 128).table(ValueStateDescriptor("v"))
    assert isinstance(table, HashMapTable)
    for number in range(entries):
        table.put(number, number, number % namespaces)
    return table


def test_a_walk_takes_a_part_at_a_time_and_gives_each_unchanged_place_once() -> None:
    table = filled(5_000, 3)
    assert list(table.walk()) == [(key, namespace) for namespace in range(3) for key in range(namespace, 5_000, 3)]
    taken = list(islice(table.walk(), 10))
    table.remove_all(range(1, 5_000), 0)
    assert taken == [(key, 0) for key in range(0, 30, 3)]


def test_a_walk_ends_and_misses_nothing_though_more_comes_and_goes_than_it_gives() -> None:
    table, walked = filled(10_000), set()
    for steps, (key, _) in enumerate(table.walk()):
        walked.add(key)
        for number in range(3):
            table.put((steps, number), 0, 0)
            table.remove((steps, number), 0)
        assert steps < 60_000
    assert walked.issuperset(range(10_000))


@given(st.integers(0, 40), st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 4))))
def test_what_is_there_all_the_time_is_given(
    entries: int, namespaces: int, changes: list[tuple[bool, int, int]]
) -> None:
    part, memory._PART = memory._PART, 2
    try:
        table, given = filled(entries, namespaces), set()
        steady = set(table.walk())
        walk = table.walk()
        for removes, key, namespace in changes:
            given.update(islice(walk, 1))
            if removes:
                table.remove(key, namespace)
                steady.discard((key, namespace))
            else:
                table.put(key, 0, namespace)
        given.update(walk)
        assert given >= steady
    finally:
        memory._PART = part
