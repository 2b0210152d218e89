import fractions
import pathlib
import pickle

import pytest

from rayflink.common import Time, Types
from rayflink.common.functions.state_ttl import StateTtlConfig
from rayflink.state.backend import KeyContext
from rayflink.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import (
    DuplicateStateError,
    SerializationError,
    SnapshotMismatch,
    VersionMismatch,
)
from rayflink.state.handles import NoCurrentKeyError, StateStore
from rayflink.state.memory import HashMapBackend
from rayflink.state.operator_state import OperatorStateStore
from rayflink.state.value_isolation import isolated


@pytest.mark.spec("G01")
def test_without_a_current_key_the_error_names_the_state() -> None:
    states = StateStore(HashMapBackend(range(128), 128), KeyContext())
    for handle in (states.get_state(ValueStateDescriptor("v")), states.get_list_state(ListStateDescriptor("l"))):
        with pytest.raises(NoCurrentKeyError, match="without a current key; use it in process_element"):
            handle.clear()
    assert str(pickle.loads(pickle.dumps(NoCurrentKeyError("v")))) == str(NoCurrentKeyError("v"))


def test_one_name_is_one_state_of_one_kind() -> None:
    states = StateStore(HashMapBackend(range(128), 128), KeyContext(), "uid-1")
    assert states.get_state(ValueStateDescriptor("s")) is states.get_state(ValueStateDescriptor("s"))
    with pytest.raises(DuplicateStateError, match="have the name 's': value state, and list state; give each"):
        states.get_list_state(ListStateDescriptor("s"))
    with pytest.raises(TypeError, match="map state needs a MapStateDescriptor"):
        states.get_map_state(ValueStateDescriptor("other"))
    with pytest.raises(ValueError, match="non-empty string"):
        StateDescriptor("")


def test_one_name_is_one_state_of_one_type_and_one_life() -> None:
    states = StateStore(HashMapBackend(range(128), 128), KeyContext())
    typed = states.get_state(ValueStateDescriptor("s", Types.INT()))
    assert states.get_state(ValueStateDescriptor("s", Types.INT())) is typed
    assert states.get_state(ValueStateDescriptor("s")) is typed, "who declares no type takes what there is"
    with pytest.raises(DuplicateStateError, match="value state of Integer, and value state of String"):
        states.get_state(ValueStateDescriptor("s", Types.STRING()))
    states.get_map_state(MapStateDescriptor("m", Types.INT(), Types.INT()))
    with pytest.raises(DuplicateStateError, match="map state of Integer, and map state of String"):
        states.get_map_state(MapStateDescriptor("m", Types.STRING(), Types.INT()))
    brief = ValueStateDescriptor("s")
    brief.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    with pytest.raises(DuplicateStateError, match="one with no time to live, and one with Expiry.ttl_ms=1000"):
        states.get_state(brief)
    listed = OperatorStateStore()
    listed.get_list_state(ListStateDescriptor("l", Types.INT()))
    with pytest.raises(DuplicateStateError, match="list state of Integer, and list state of String"):
        listed.get_list_state(ListStateDescriptor("l", Types.STRING()))


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


@pytest.mark.spec("G32", "copy")
def test_a_snapshot_of_operator_state_is_of_its_moment() -> None:
    states = OperatorStateStore()
    listed, rules = states.get_list_state(ListStateDescriptor("l")), MapStateDescriptor("rules")
    listed.add([1])
    states.get_broadcast_state(rules).put("r", [1])
    taken = states.snapshot()
    listed.add([2])
    states.get_broadcast_state(rules)["r"].append(2)
    states.get_broadcast_state(rules).put("other", [3])
    again = OperatorStateStore([taken])
    assert list(again.get_list_state(ListStateDescriptor("l"))) == [[1]]
    assert list(again.get_broadcast_state(rules).items()) == [("r", [1])]


def test_operator_state_is_isolated_and_checked() -> None:
    states = OperatorStateStore([], "uid-1")
    listed = states.get_list_state(ListStateDescriptor("l"))
    mine = [1]
    listed.add(mine)
    mine.append(2)
    next(listed.get()).append(3)
    assert list(listed) == [[1]]
    with pytest.raises(DuplicateStateError, match="have the name 'l': split operator state, and union"):
        states.get_union_list_state(ListStateDescriptor("l"))
    with pytest.raises(SnapshotMismatch, match="'uid-1'.*split operator state.*union operator state"):
        OperatorStateStore([{"l": ("split", ())}], "uid-1").get_union_list_state(ListStateDescriptor("l"))
    listed.update([len])
    listed.add(lambda: 0)
    with pytest.raises(SerializationError, match="'l'.*can be pickled"):
        states.snapshot()
    with pytest.raises(VersionMismatch, match="entry format 99"):
        OperatorStateStore([{"l": ("split", (b"\x63",))}]).get_list_state(ListStateDescriptor("l"))
