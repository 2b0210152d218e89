"""Laws of snapshots: all state is restored, in any backend and at any parallelism."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any

from rayflink.state.backend import ForeignKeyError, KeyedBackend
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import SerializationError, SnapshotMismatch, VersionMismatch
from rayflink.state.keys import canonical_key
from rayflink.state.keys.key_groups import key_group
from rayflink.state.keys.key_hash import key_hash

from .samples import KEYS, namespaces
from .subject import (
    MAX_PARALLELISM,
    OPERATOR_UID,
    Law,
    Subject,
    content_of,
    maps_in,
    refused,
    same,
    same_bag,
    snapshot_of,
)

VALUES, LISTS, MAPS = ValueStateDescriptor("values"), ListStateDescriptor("lists"), MapStateDescriptor("maps")


def filled(backend: KeyedBackend) -> KeyedBackend:
    """Fill the backend with state of all kinds for keys of all kinds in several namespaces, and timers."""
    spaces = namespaces()
    for number, key in enumerate(map(canonical_key, KEYS)):
        space = spaces[number % len(spaces)]
        backend.table(VALUES).put(key, number)
        backend.table(VALUES).put(key, {"in": number}, space)
        for element in range(number % 4):
            backend.table(LISTS).append(key, [number, element], space)
        for map_key in KEYS[: number % 5]:
            backend.map_table(MAPS).put(key, map_key, number, space)
        backend.timers("event").register(number % 7, key, space)
        backend.timers("other").register(-number, key)
    return backend


def all_of(backend: KeyedBackend) -> dict[str, Any]:
    """Return what `filled` puts into a backend, in a comparable form; this removes the timers."""
    timers = {}
    for name in ("event", "other"):
        fired = list(backend.timers(name).due(2**62))
        times = [timestamp for timestamp, _, _ in fired]
        same(f"times of the {name} timers", times, sorted(times))
        same("timers that fire twice", len(fired) - len(set(fired)), 0)
        timers[name] = set(fired)
    return {"values": content_of(backend.table(VALUES)), "lists": content_of(backend.table(LISTS)),
            "maps": maps_in(backend.map_table(MAPS)), "timers": timers}  # fmt: skip


def a_snapshot_restores_everything(subject: Subject) -> None:
    full = filled(subject.backend())
    snapshot = snapshot_of(full)
    same("group numbers", set(snapshot) <= set(range(MAX_PARALLELISM)), True)
    same("parts are bytes", {type(data) for data in snapshot.values()}, {bytes})
    again = subject.backend(snapshot)
    again.timers("unknown")
    same("the restored state", all_of(again), all_of(full))


def a_restored_backend_is_written_on(subject: Subject) -> None:
    again = subject.backend(snapshot_of(filled(subject.backend())))
    table, lists, maps = again.table(VALUES), again.table(LISTS), again.map_table(MAPS)
    space = namespaces()[3]
    loaded = table.load(["a", "new"])
    same("a restored value, loaded", loaded["a"], KEYS.index("a"))
    loaded["a"], loaded["new"] = "changed", "added"
    table.changed(["a", "new"])
    lists.append("list", 1, space)
    maps.put("map", "at", 1, space)
    once_more = subject.backend(snapshot_of(again))
    same(
        "a changed and an added value", [once_more.table(VALUES).get(key) for key in ("a", "new")], ["changed", "added"]
    )
    same("an added list", once_more.table(LISTS).get("list", space), [1])
    same("an added map", list(once_more.map_table(MAPS).items("map", space)), [("at", 1)])


def a_snapshot_is_of_the_moment_it_was_taken(subject: Subject) -> None:
    backend = filled(subject.backend())
    backend.table(VALUES).put("k", [1])
    backend.table(LISTS).append("k", [1])
    backend.map_table(MAPS).put("k", "at", [1])
    backend.timers("event").register(99, "k")
    before = snapshot_of(backend)
    backend.table(VALUES).load(["k"])["k"].append(2)
    backend.table(VALUES).changed(["k"])
    backend.table(LISTS).load(["k"])["k"][0].append(2)
    backend.table(LISTS).changed(["k"])
    backend.table(LISTS).append("k", 3)
    backend.map_table(MAPS).put("k", "at", 2)
    backend.map_table(MAPS).put("k", "more", 2)
    backend.table(VALUES).remove_all(map(canonical_key, KEYS))
    backend.timers("event").delete(99, "k")
    again = subject.backend(before)
    same("the value", again.table(VALUES).get("k"), [1])
    same("the list", again.table(LISTS).get("k"), [[1]])
    same("the map", list(again.map_table(MAPS).items("k")), [("at", [1])])
    same(
        "entries removed later",
        len(again.table(VALUES)),
        2 * len(KEYS) - sum(_is_first(n) for n in range(len(KEYS))) + 1,
    )
    same("the timer", again.timers("event").contains(99, "k"), True)


def _is_first(number: int) -> bool:
    """Return whether `filled` writes the value of this key twice to the same place."""
    return namespaces()[number % len(namespaces())] is None


def snapshots_go_from_one_kind_of_backend_to_another(subject: Subject) -> None:
    expected = all_of(filled(subject.hashmap()))
    same(
        "a hashmap's snapshot, restored here", all_of(subject.backend(snapshot_of(filled(subject.hashmap())))), expected
    )
    same("a snapshot of here in a hashmap", all_of(subject.hashmap(snapshot_of(filled(subject.backend())))), expected)
    there = subject.hashmap(snapshot_of(filled(subject.backend())))
    same("there and back", all_of(subject.backend(snapshot_of(there))), expected)


def subtasks_become_more_and_fewer(subject: Subject) -> None:
    expected = all_of(filled(subject.hashmap()))
    snapshots: list[Mapping[int, bytes]] = [snapshot_of(filled(subject.backend()))]
    for parallelism in (3, 2):
        parts: list[dict[str, Any]] = []
        taken: list[Mapping[int, bytes]] = []
        for subtask in range(parallelism):
            part = subject.backend(*snapshots, subtask=subtask, parallelism=parallelism)
            taken.append(snapshot_of(part))
            same("groups of a subtask's snapshot", set(taken[-1]) <= set(part.key_groups), True)
            parts.append(all_of(part))
        for name in ("values", "lists", "maps"):
            joined = {place: value for part in parts for place, value in part[name].items()}
            same(f"{name} of {parallelism} subtasks together", joined, expected[name])
            same(f"{name} in two subtasks", sum(len(part[name]) for part in parts), len(joined))
        for queue in ("event", "other"):
            fired = [timer for part in parts for timer in part["timers"][queue]]
            same_bag(f"{queue} timers of {parallelism} subtasks together", fired, expected["timers"][queue])
        snapshots = taken


def tables_and_queues_may_be_made_before_the_restore(subject: Subject) -> None:
    again = subject.backend()
    table, queue, maps = again.table(VALUES), again.timers("event"), again.map_table(MAPS)
    again.restore([snapshot_of(filled(subject.backend()))])
    expected = filled(subject.backend())
    same("entries", content_of(table), content_of(expected.table(VALUES)))
    same("maps", maps_in(maps), maps_in(expected.map_table(MAPS)))
    same_bag("timers", queue.due(9), expected.timers("event").due(9))


def an_empty_backend_has_an_empty_snapshot(subject: Subject) -> None:
    backend = subject.backend()
    backend.table(VALUES).load(["k"], "window")
    backend.timers("event")
    same("nothing was written", snapshot_of(backend), {})
    backend.table(VALUES).put("k", 1, "window")
    backend.map_table(MAPS).put("k", 1, 1)
    backend.timers("event").register(1, "k")
    backend.table(VALUES).remove("k", "window")
    backend.map_table(MAPS).remove("k", 1)
    backend.timers("event").delete(1, "k")
    same("all was removed", snapshot_of(backend), {})


def a_key_of_another_subtask_is_refused(subject: Subject) -> None:
    stray = next(key for key in range(99) if key_group(key_hash(key), MAX_PARALLELISM) >= MAX_PARALLELISM // 2)

    def put(half: KeyedBackend) -> None:
        half.table(VALUES).put(stray, 1)

    def load(half: KeyedBackend) -> None:
        half.table(VALUES).load([stray])[stray] = 1
        half.table(VALUES).changed([stray])

    def put_in_map(half: KeyedBackend) -> None:
        half.map_table(MAPS).put(stray, 1, 1)

    def register(half: KeyedBackend) -> None:
        half.timers("event").register(1, stray)

    for way in (put, load, put_in_map, register):
        half = subject.backend(parallelism=2)

        def write_and_snapshot(half: KeyedBackend = half, way: Any = way) -> None:
            way(half)
            snapshot_of(half)

        said = f"this subtask owns [0, {MAX_PARALLELISM // 2})"
        refused(f"by {way.__name__}, at the latest at the snapshot", ForeignKeyError, said, write_and_snapshot)


def a_value_that_cannot_be_written_is_refused_by_name(subject: Subject) -> None:
    def put(backend: KeyedBackend) -> None:
        backend.table(VALUES).put("k", lambda: 0)

    def append(backend: KeyedBackend) -> None:
        backend.table(LISTS).append("k", lambda: 0)

    def put_in_map(backend: KeyedBackend) -> None:
        backend.map_table(MAPS).put("k", 1, lambda: 0)

    def change(backend: KeyedBackend) -> None:
        backend.table(VALUES).load(["k"])["k"] = lambda: 0
        backend.table(VALUES).changed(["k"])

    for way, name in ((put, "values"), (append, "lists"), (put_in_map, "maps"), (change, "values")):
        backend = subject.backend()
        backend.table(VALUES).put("other", 1)

        def write_and_snapshot(backend: KeyedBackend = backend, way: Any = way) -> None:
            way(backend)
            snapshot_of(backend)

        refused(f"by {way.__name__}, at the latest at the snapshot", SerializationError, repr(name), write_and_snapshot)


def bytes_of_another_format_are_refused(subject: Subject) -> None:
    (group, data), *_ = snapshot_of(filled(subject.backend())).items()
    for wrong in (b"\x63" + data[1:], b""):
        refused("restoring them", VersionMismatch, OPERATOR_UID, partial(subject.backend, {group: wrong}))


def a_state_restored_as_another_kind_is_refused(subject: Subject) -> None:
    again = subject.backend(snapshot_of(filled(subject.backend())))
    said = "snapshot holds value state, job declares list state"
    refused("a value as a list", SnapshotMismatch, said, lambda: again.table(ListStateDescriptor(VALUES.name)))
    refused("a list as a map", SnapshotMismatch, "'lists'", lambda: again.map_table(MapStateDescriptor(LISTS.name)))


def snapshots_hold_what_their_filter_keeps(subject: Subject) -> None:
    backend = subject.backend()
    for number in range(10):
        backend.table(VALUES).put(number, number)
        for element in range(number):
            backend.table(LISTS).append(number, element)
            backend.map_table(MAPS).put(number, element, element)
    backend.filter_snapshots(VALUES, lambda value: value * 10 if value % 2 else None)
    backend.filter_snapshots(LISTS, lambda elements: elements[3:] or None)
    backend.filter_snapshots(MAPS, lambda entries: {key: value for key, value in entries.items() if key > 2} or None)
    for again in (subject.backend(snapshot_of(backend)), subject.hashmap(snapshot_of(backend))):
        same("values", content_of(again.table(VALUES)), {(n, None): n * 10 for n in range(1, 10, 2)})
        same("lists", content_of(again.table(LISTS)), {(n, None): list(range(3, n)) for n in range(4, 10)})
        same("maps", maps_in(again.map_table(MAPS)), {(n, None): {k: k for k in range(3, n)} for n in range(4, 10)})
    same("the state itself", (backend.table(VALUES).get(2), len(backend.table(LISTS))), (2, 9))
    same("its maps", dict(backend.map_table(MAPS).items(9)), {k: k for k in range(9)})


def cleared_state_is_gone_and_what_was_given_out_goes_on(subject: Subject) -> None:
    backend = filled(subject.backend())
    table, maps, queue = backend.table(VALUES), backend.map_table(MAPS), backend.timers("event")
    backend.clear()
    same("entries", (content_of(table), len(backend.table(LISTS)), maps_in(maps)), ({}, 0, {}))
    same("timers", (queue.next_timestamp(), list(queue.due(99))), (None, []))
    same("the snapshot", snapshot_of(backend), {})
    table.put("k", 1)
    maps.put("k", 1, 1)
    queue.register(5, "k")
    again = subject.backend(snapshot_of(backend))
    same("what came after", content_of(again.table(VALUES)), {("k", None): 1})
    same("maps that came after", maps_in(again.map_table(MAPS)), {("k", None): {1: 1}})
    same("timers that came after", list(again.timers("event").due(9)), [(5, "k", None)])


def timers_are_refused_until_the_state_is_cleared(subject: Subject) -> None:
    backend = subject.backend()
    queue = backend.timers("event")
    queue.register(1, "k")
    backend.refuse_timers()
    same("none was refused yet", backend.refused_timers, 0)
    fired = []
    for timestamp, key, _ in queue.due(9):
        fired.append(timestamp)
        queue.register(timestamp + 1, key)
        queue.register(timestamp + 2, key)
    same("those that were set before fire", fired, [1])
    same("how many were refused", backend.refused_timers, 2)
    backend.clear()
    queue.register(3, "k")
    same("after clear", (backend.refused_timers, list(queue.due(9))), (0, [(3, "k", None)]))


class _Tracked:
    """A value whose life can be watched."""


def a_closed_backend_releases_its_values(subject: Subject) -> None:
    backend, value = subject.backend(), _Tracked()
    watched = weakref.ref(value)
    backend.table(VALUES).put("k", value)
    backend.table(VALUES).load(["k"])
    del value
    subject.close(backend)
    del backend
    gc.collect()
    same("the value after close", watched(), None)
    same("a new backend in its place", content_of(subject.backend().table(VALUES)), {})


LAWS: tuple[Law, ...] = (
    a_snapshot_restores_everything,
    a_restored_backend_is_written_on,
    a_snapshot_is_of_the_moment_it_was_taken,
    snapshots_go_from_one_kind_of_backend_to_another,
    subtasks_become_more_and_fewer,
    tables_and_queues_may_be_made_before_the_restore,
    an_empty_backend_has_an_empty_snapshot,
    a_key_of_another_subtask_is_refused,
    a_value_that_cannot_be_written_is_refused_by_name,
    bytes_of_another_format_are_refused,
    a_state_restored_as_another_kind_is_refused,
    snapshots_hold_what_their_filter_keeps,
    cleared_state_is_gone_and_what_was_given_out_goes_on,
    timers_are_refused_until_the_state_is_cleared,
    a_closed_backend_releases_its_values,
)
