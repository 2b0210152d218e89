import fractions
import pathlib
import pickle
from typing import Any

import pytest

from rayflink.state.backend import KeyContext
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import SerializationError, SnapshotMismatch, StateError, VersionMismatch
from rayflink.state.handles import NoCurrentKeyError, StateStore
from rayflink.state.isolation import isolated
from rayflink.state.memory import HashMapBackend
from rayflink.state.operator_state import OperatorStateStore
from tests.operators.write_back import WriteBackBackend

BACKENDS = pytest.mark.parametrize("make", [HashMapBackend, WriteBackBackend])


class Gather:
    """An AggregateFunction whose accumulator is the list of values."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


def store(make: Any, scoped: bool = False) -> tuple[StateStore, KeyContext]:
    context = KeyContext()
    context.key = "k"
    return StateStore(make(range(128), 128), context, "uid-1", scoped), context


def join(a: Any, b: Any) -> Any:
    a.extend(b)
    return a


@pytest.mark.spec("G06", "G07")
@BACKENDS
def test_each_key_has_its_own_state(make: Any) -> None:
    states, context = store(make)
    value = states.get_state(ValueStateDescriptor("v"))
    value.update(1)
    context.key = "other"
    assert value.value() is None
    value.update(2)
    context.key = "k"
    assert value.value() == 1
    value.clear()
    assert value.value() is None


@BACKENDS
def test_changing_a_value_in_place_changes_nothing_until_update(make: Any) -> None:
    states, _ = store(make)
    value = states.get_state(ValueStateDescriptor("v"))
    mine = [1]
    value.update(mine)
    mine.append(2)
    value.value().append(3)
    assert value.value() == [1]

    listed = states.get_list_state(ListStateDescriptor("l"))
    listed.add(mine)
    mine.append(4)
    next(listed.get()).append(5)
    assert list(listed) == [[1, 2]]

    mapped = states.get_map_state(MapStateDescriptor("m"))
    mapped.put("x", mine)
    mine.append(6)
    mapped.get("x").append(7)
    next(mapped.values()).append(8)
    assert mapped["x"] == [1, 2, 4]

    reduced = states.get_reducing_state(ReducingStateDescriptor("r", join))
    reduced.add(mine)
    mine.append(9)
    reduced.get().append(10)
    assert reduced.get() == [1, 2, 4, 6]

    gathered = states.get_aggregating_state(AggregatingStateDescriptor("a", Gather()))
    gathered.add(mine)
    mine.append(11)
    gathered.get().append("x")
    assert gathered.get() == [[1, 2, 4, 6, 9]]


@BACKENDS
def test_lists_append_replace_and_forget(make: Any) -> None:
    listed = store(make)[0].get_list_state(ListStateDescriptor("l"))
    assert list(listed.get()) == []
    listed.add(1)
    listed.add_all([2, 3])
    assert list(listed) == [1, 2, 3]
    for refused in (lambda: listed.add(None), lambda: listed.update([4, None]), lambda: listed.add_all([4, None])):
        with pytest.raises(ValueError, match="no None"):
            refused()
    assert list(listed) == [1, 2, 3]
    listed.update([9])
    assert list(listed) == [9]
    listed.update([])
    assert list(listed) == []


@BACKENDS
def test_maps_read_like_dicts_and_may_change_while_they_are_read(make: Any) -> None:
    mapped = store(make)[0].get_map_state(MapStateDescriptor("m"))
    assert mapped.is_empty() and mapped.get("x") is None
    mapped.put_all({"x": 1, "y": None})
    mapped["z"] = 3
    assert list(mapped.items()) == [("x", 1), ("y", None), ("z", 3)] and list(mapped) == ["x", "y", "z"]
    assert mapped.contains("y") and "w" not in mapped
    for key in mapped.keys():
        mapped.remove(key)
    assert mapped.is_empty()
    mapped.put("x", 1)
    mapped.clear()
    assert list(mapped.values()) == []


@BACKENDS
def test_reducing_and_aggregating_states_fold_what_is_added(make: Any) -> None:
    states, _ = store(make)
    total = states.get_reducing_state(ReducingStateDescriptor("r", lambda a, b: a + b))
    gathered = states.get_aggregating_state(AggregatingStateDescriptor("a", Gather()))
    assert total.get() is None and gathered.get() is None
    for number in (1, 2, 3):
        total.add(number)
        gathered.add(number)
    assert total.get() == 6 and gathered.get() == [1, 2, 3]
    total.add(None)
    gathered.add(None)
    assert total.get() is None and gathered.get() is None


@BACKENDS
def test_scoped_state_belongs_to_the_namespace_and_other_state_to_the_key(make: Any) -> None:
    states, context = store(make, scoped=True)
    value = states.get_state(ValueStateDescriptor("v"))
    context.namespace = "window"
    value.update(1)
    context.namespace = "later"
    assert value.value() is None
    context.namespace = "window"
    assert value.value() == 1


def test_without_a_current_key_the_error_names_the_state() -> None:
    states = StateStore(HashMapBackend(range(128), 128), KeyContext())
    for handle in (states.get_state(ValueStateDescriptor("v")), states.get_list_state(ListStateDescriptor("l"))):
        with pytest.raises(NoCurrentKeyError, match="without a current key; use it in process_element"):
            handle.clear()
    assert str(pickle.loads(pickle.dumps(NoCurrentKeyError("v")))) == str(NoCurrentKeyError("v"))


def test_one_name_is_one_state_of_one_kind() -> None:
    states, _ = store(HashMapBackend)
    assert states.get_state(ValueStateDescriptor("s")) is states.get_state(ValueStateDescriptor("s"))
    with pytest.raises(SnapshotMismatch, match="'s'.*'uid-1'.*value state.*list state"):
        states.get_list_state(ListStateDescriptor("s"))
    with pytest.raises(TypeError, match="map state needs a MapStateDescriptor"):
        states.get_map_state(ValueStateDescriptor("other"))
    with pytest.raises(ValueError, match="non-empty string"):
        StateDescriptor("")


def test_what_cannot_change_is_shared_and_all_else_copied() -> None:
    path, part = pathlib.PurePosixPath("a"), fractions.Fraction(1, 2)
    for fixed in (1, "a", b"a", None, (1, ("a", 2.5)), frozenset({1}), path, part, (part, path)):
        assert isolated(fixed) is fixed
    for changing in ([1], {"a": 1}, (1, [2])):
        assert isolated(changing) == changing and isolated(changing) is not changing


@pytest.mark.spec("G05")
def test_operator_state_comes_back_by_its_mode() -> None:
    first = OperatorStateStore()
    first.get_list_state(ListStateDescriptor("split")).add_all([1, 2])
    first.get_union_list_state(ListStateDescriptor("union")).add("a")
    first.get_broadcast_state(MapStateDescriptor("rules")).put("r", 1)
    taken = first.snapshot()
    assert {name: (mode, len(entries)) for name, (mode, entries) in taken.items()} == {
        "split": ("split", 2), "union": ("union", 1), "rules": ("broadcast", 1),
    }  # fmt: skip
    again = OperatorStateStore([taken, taken])
    assert list(again.get_list_state(ListStateDescriptor("split"))) == [1, 2, 1, 2]
    assert list(again.get_union_list_state(ListStateDescriptor("union")).get()) == ["a", "a"]
    assert list(again.get_broadcast_state(MapStateDescriptor("rules")).items()) == [("r", 1)]
    assert OperatorStateStore([taken]).snapshot() == taken, "what nobody asked for is kept"


def test_operator_state_is_isolated_and_checked() -> None:
    states = OperatorStateStore([], "uid-1")
    listed = states.get_list_state(ListStateDescriptor("l"))
    mine = [1]
    listed.add(mine)
    mine.append(2)
    next(listed.get()).append(3)
    assert list(listed) == [[1]]
    with pytest.raises(StateError, match="two states of one operator have the name 'l': split and union"):
        states.get_union_list_state(ListStateDescriptor("l"))
    with pytest.raises(SnapshotMismatch, match="'uid-1'.*split operator state.*union operator state"):
        OperatorStateStore([{"l": ("split", ())}], "uid-1").get_union_list_state(ListStateDescriptor("l"))
    listed.update([len])
    listed.add(lambda: 0)
    with pytest.raises(SerializationError, match="'l'.*can be pickled"):
        states.snapshot()
    with pytest.raises(VersionMismatch, match="entry format 99"):
        OperatorStateStore([{"l": ("split", (b"\x63",))}]).get_list_state(ListStateDescriptor("l"))
