import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.state.backend import ForeignKeyError
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.errors import SerializationError
from rayflink.state.keys.key_groups import key_group, key_group_range
from rayflink.state.keys.key_hash import key_hash
from rayflink.state.memory import HashMapBackend
from rayflink.testing.backend_laws.subject import snapshot_of

COUNT = ValueStateDescriptor("count")
GROUPS = 16


def backend(subtask: int = 0, parallelism: int = 1) -> HashMapBackend:
    return HashMapBackend(key_group_range(subtask, parallelism, GROUPS), GROUPS, "uid-1")


def filled(keys: list[Any]) -> HashMapBackend:
    full = backend()
    for position, key in enumerate(keys):
        full.table(COUNT).put(key, position)
        full.table(COUNT).put(key, -position, ("window", position % 2))
        full.timers("event").register(position % 3, key, "ns")
    return full


def content(one: HashMapBackend) -> tuple[list[Any], list[Any]]:
    return list(one.table(COUNT).rows()), list(one.timers("event"))  # type: ignore[attr-defined]


keys = st.lists(st.one_of(st.integers(-9, 9), st.text(max_size=2), st.tuples(st.integers(0, 3), st.text(max_size=1))),
                unique=True, max_size=20)  # fmt: skip


@settings(max_examples=30)
@given(keys)
def test_a_restored_backend_holds_the_same_entries_and_timers_in_the_same_order(some: list[Any]) -> None:
    full = filled(some)
    again = backend()
    again.restore([snapshot_of(full)])
    assert content(again) == content(full)


@pytest.mark.spec("G24")
@settings(max_examples=20)
@given(keys, st.integers(1, GROUPS), st.integers(1, GROUPS))
def test_snapshots_of_p_subtasks_restore_into_q_each_key_where_its_group_is(some: list[Any], p: int, q: int) -> None:
    whole = snapshot_of(filled(some))
    parts = []
    for subtask in range(p):
        owner = backend(subtask, p)
        owner.restore([whole])
        parts.append(snapshot_of(owner))
    assert {group: data for part in parts for group, data in part.items()}.keys() == whole.keys()
    found: list[Any] = []
    for subtask in range(q):
        owner = backend(subtask, q)
        owner.restore(parts)
        rows = content(owner)[0]
        assert all(key_group(key_hash(key), GROUPS) in owner.key_groups for key, _, _ in rows)
        found += rows
    assert sorted(map(repr, found)) == sorted(map(repr, content(filled(some))[0]))


def test_empty_groups_are_left_out_and_emptied_namespaces_released() -> None:
    one = backend()
    table = one.table(COUNT)
    table.put("k", 1, "window")
    table.remove("k", "window")
    assert snapshot_of(one) == {} and len(table) == 0 and table._spaces == {}  # type: ignore[attr-defined]


def test_a_value_that_cannot_be_pickled_is_refused_with_a_remedy() -> None:
    one = backend()
    one.table(COUNT).put("k", lambda: 0)
    with pytest.raises(SerializationError, match="keep in state only values that can be pickled"):
        snapshot_of(one)


def test_errors_survive_the_way_between_processes() -> None:
    error = ForeignKeyError("'k'", 3, "[0, 2)")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
