"""Laws of the handles: a function sees the same state on every backend."""

from __future__ import annotations

from typing import Any

from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import DuplicateStateError
from rayflink.state.handles import NoCurrentKeyError

from .samples import Gather, add, join, namespaces
from .subject import Law, Subject, refused, same, same_bag


def each_key_has_its_own_state(subject: Subject) -> None:
    states, context = subject.store()
    value = states.get_state(ValueStateDescriptor("v"))
    value.update(1)
    context.key = "other"
    same("the value of a key that was not written", value.value(), None)
    value.update(2)
    context.key = "k"
    same("the value of the first key", value.value(), 1)
    value.clear()
    same("a cleared value", value.value(), None)
    context.key = "other"
    same("the value of the other key", value.value(), 2)
    value.update(None)
    same("a value updated to None", value.value(), None)


def a_value_changed_in_place_changes_nothing_until_it_is_written(subject: Subject) -> None:
    states, _ = subject.store()
    mine: list[Any] = [1]
    value: Any = states.get_state(ValueStateDescriptor("v"))
    value.update(mine)
    mine.append(2)
    value.value().append(3)
    same("a value", value.value(), [1])
    listed = states.get_list_state(ListStateDescriptor("l"))
    listed.add(mine)
    mine.append(4)
    next(listed.get()).append(5)
    same("a list's element", list(listed), [[1, 2]])
    mapped: Any = states.get_map_state(MapStateDescriptor("m"))
    mapped.put("x", mine)
    mine.append(6)
    mapped.get("x").append(7)
    next(mapped.values()).append(8)
    same("a map's value", mapped["x"], [1, 2, 4])
    reduced: Any = states.get_reducing_state(ReducingStateDescriptor("r", join))
    reduced.add(mine)
    mine.append(9)
    reduced.get().append(10)
    same("a reduced value", reduced.get(), [1, 2, 4, 6])
    gathered: Any = states.get_aggregating_state(AggregatingStateDescriptor("a", Gather()))
    gathered.add(mine)
    mine.append(11)
    gathered.get().append("x")
    same("an accumulator", gathered.get(), [[1, 2, 4, 6, 9]])


def lists_are_appended_replaced_and_forgotten(subject: Subject) -> None:
    listed = subject.store()[0].get_list_state(ListStateDescriptor("l"))
    same("a list that was not written", list(listed.get()), [])
    listed.add(1)
    listed.add_all([2, 3])
    same("a list", list(listed), [1, 2, 3])
    refused("None as an element", ValueError, "no None", lambda: listed.add(None))
    refused("None among new elements", ValueError, "no None", lambda: listed.update([4, None]))
    refused("None among more elements", ValueError, "no None", lambda: listed.add_all([4, None]))
    same("a list that refused None", list(listed), [1, 2, 3])
    listed.update([9])
    same("a list that was replaced", list(listed), [9])
    listed.update([])
    same("a list replaced by none", list(listed), [])


def maps_read_like_dicts(subject: Subject) -> None:
    mapped = subject.store()[0].get_map_state(MapStateDescriptor("m"))
    same("a map that was not written", (mapped.is_empty(), mapped.get("x")), (True, None))
    mapped.put_all({"x": 1, "y": None})
    mapped["z"] = 3
    same_bag("items", mapped.items(), [("x", 1), ("y", None), ("z", 3)])
    same_bag("keys", mapped, ["x", "y", "z"])
    same_bag("values", mapped.values(), [1, None, 3])
    same("presence", (mapped.contains("y"), "w" in mapped, mapped.is_empty()), (True, False, False))
    for key in mapped.keys():
        mapped.remove(key)
    same("a map whose keys were removed while they were read", mapped.is_empty(), True)
    mapped.put("x", 1)
    mapped.clear()
    same("a cleared map", list(mapped.values()), [])


def reducing_and_aggregating_states_fold_what_is_added(subject: Subject) -> None:
    states, context = subject.store()
    total = states.get_reducing_state(ReducingStateDescriptor("r", add))
    gathered = states.get_aggregating_state(AggregatingStateDescriptor("a", Gather()))
    same("before the first value", (total.get(), gathered.get()), (None, None))
    for number in (1, 2, 3):
        for key in ("k", "other"):
            context.key = key
            total.add(number)
            gathered.add(number)
    same("folded", (total.get(), gathered.get()), (6, [1, 2, 3]))
    total.add(None)
    gathered.add(None)
    same("None forgets", (total.get(), gathered.get()), (None, None))
    context.key = "k"
    same("the other key's", (total.get(), gathered.get()), (6, [1, 2, 3]))


def scoped_state_belongs_to_the_namespace(subject: Subject) -> None:
    backend = subject.backend()
    (scoped, context), (states, at_key) = subject.store_of(backend, scoped=True), subject.store_of(backend)
    for number, namespace in enumerate(namespaces()):
        context.namespace = at_key.namespace = namespace
        scoped.get_state(ValueStateDescriptor("of window")).update(number)
        scoped.get_list_state(ListStateDescriptor("list of window")).add(number)
        states.get_list_state(ListStateDescriptor("of key")).add(number)
    for number, namespace in enumerate(namespaces()):
        context.namespace = namespace
        same(f"the value of {namespace!r}", scoped.get_state(ValueStateDescriptor("of window")).value(), number)
        same("its list", list(scoped.get_list_state(ListStateDescriptor("list of window"))), [number])
    everything = list(range(len(namespaces())))
    same("the list of the key", list(states.get_list_state(ListStateDescriptor("of key"))), everything)


def merging_states_merge_other_namespaces(subject: Subject) -> None:
    states, context = subject.store(scoped=True)
    total = states.get_reducing_state(ReducingStateDescriptor("r", add))
    gathered = states.get_aggregating_state(AggregatingStateDescriptor("a", Gather()))
    listed = states.get_list_state(ListStateDescriptor("l"))
    for namespace in (1, 2, 3):
        context.namespace = namespace
        for handle in (total, gathered, listed):
            handle.add(namespace)
    context.namespace = "mine"
    for handle in (total, gathered, listed):
        handle.merge_namespaces(3, [1, 2, "empty"])
    same("the namespace afterwards", context.namespace, "mine")
    context.namespace = 3
    same("merged", (total.get(), gathered.get(), list(listed)), (6, [3, 1, 2], [3, 1, 2]))
    context.namespace = 1
    same("what is left", (total.get(), gathered.get(), list(listed)), (None, None, []))


def one_name_is_one_state(subject: Subject) -> None:
    states, _ = subject.store()
    value = states.get_state(ValueStateDescriptor("s"))
    same("the same handle", states.get_state(ValueStateDescriptor("s")) is value, True)
    refused("a list of a value's name", DuplicateStateError, "name 's'",
            lambda: states.get_list_state(ListStateDescriptor("s")))  # fmt: skip
    refused("a map of a value's name", DuplicateStateError, "name 's'",
            lambda: states.get_map_state(MapStateDescriptor("s")))  # fmt: skip


def without_a_current_key_state_is_refused(subject: Subject) -> None:
    states, context = subject.store()
    context.key = type(context)().key
    value, mapped = states.get_state(ValueStateDescriptor("v")), states.get_map_state(MapStateDescriptor("m"))
    said = "without a current key"
    refused("reading without a key", NoCurrentKeyError, said, value.value)
    refused("writing without a key", NoCurrentKeyError, said, lambda: value.update(1))
    refused("a map without a key", NoCurrentKeyError, said, lambda: mapped.put(1, 1))


LAWS: tuple[Law, ...] = (
    each_key_has_its_own_state,
    a_value_changed_in_place_changes_nothing_until_it_is_written,
    lists_are_appended_replaced_and_forgotten,
    maps_read_like_dicts,
    reducing_and_aggregating_states_fold_what_is_added,
    scoped_state_belongs_to_the_namespace,
    merging_states_merge_other_namespaces,
    one_name_is_one_state,
    without_a_current_key_state_is_refused,
)
