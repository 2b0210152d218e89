"""Laws of the tables: entries by key and namespace, batches, lists and maps."""

from __future__ import annotations

from typing import Any

from rayflink.state.backend import KeyedMapTable, KeyedTable
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.keys import canonical_key

from .samples import EQUAL_KEYS, KEYS, Gather, add, namespaces
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

MANY = 20_000
MEGABYTE = 1 << 20


def values_of(subject: Subject) -> KeyedTable:
    """Return the table of a value state in a new backend."""
    return subject.backend().table(ValueStateDescriptor("v"))


def lists_of(subject: Subject) -> KeyedTable:
    """Return the table of a list state in a new backend."""
    return subject.backend().table(ListStateDescriptor("l"))


def maps_of(subject: Subject) -> KeyedMapTable:
    """Return the table of a map state in a new backend."""
    return subject.backend().map_table(MapStateDescriptor("m"))


def entries_are_put_and_got_and_removed(subject: Subject) -> None:
    table = values_of(subject)
    same("an absent entry", (table.get("k"), table.get("k", None, 7), len(table)), (None, 7, 0))
    values: tuple[Any, ...] = (5, 0, "", False, [], None, {"a": [1]}, (1, "x"), b"\x00", 2**100, 0.1)
    for value in values:
        table.put("k", value)
        same("the entry", table.get("k", None, "absent"), value)
        same("its type", type(table.get("k", None, "absent")), type(value))
    same("entries after one key was put again and again", len(table), 1)
    table.remove("other")
    table.remove("k")
    table.remove("k")
    same("a removed entry", (table.get("k", None, "absent"), content_of(table)), ("absent", {}))


def each_kind_of_state_has_a_table(subject: Subject) -> None:
    backend = subject.backend()
    described = [
        ValueStateDescriptor("v"), ListStateDescriptor("l"), ReducingStateDescriptor("r", add),
        AggregatingStateDescriptor("a", Gather()),
    ]  # fmt: skip
    for descriptor in described:
        backend.table(descriptor).put("k", [descriptor.name])
    backend.map_table(MapStateDescriptor("m")).put("k", "at", "m")
    for descriptor in described:
        same("the same table for the same name", backend.table(descriptor).get("k"), [descriptor.name])
        same("entries of one table", content_of(backend.table(descriptor)), {("k", None): [descriptor.name]})
    same("the map of the same name", list(backend.map_table(MapStateDescriptor("m")).items("k")), [("at", "m")])


def a_name_belongs_to_one_kind(subject: Subject) -> None:
    backend = subject.backend()
    backend.table(ValueStateDescriptor("s"))
    backend.map_table(MapStateDescriptor("m"))
    refused("a list state of a value's name", SnapshotMismatch, OPERATOR_UID,
            lambda: backend.table(ListStateDescriptor("s")))  # fmt: skip
    refused(
        "a map state of a value's name", SnapshotMismatch, "'s'", lambda: backend.map_table(MapStateDescriptor("s"))
    )
    refused("a value state of a map's name", SnapshotMismatch, "'m'", lambda: backend.table(ValueStateDescriptor("m")))


def keys_of_all_kinds_are_kept_apart(subject: Subject) -> None:
    backend = subject.backend()
    table, mapped = backend.table(ValueStateDescriptor("v")), backend.map_table(MapStateDescriptor("m"))
    keys = [canonical_key(key) for key in KEYS]
    for number, key in enumerate(keys):
        table.put(key, number)
        mapped.put(key, "at", number)
    same("the values by key", [table.get(key) for key in keys], list(range(len(keys))))
    same(
        "the maps by key", [list(mapped.items(key)) for key in keys], [[("at", number)] for number in range(len(keys))]
    )
    same("all entries", content_of(table), {(key, None): number for number, key in enumerate(keys)})
    same("all maps", maps_in(mapped), {(key, None): {"at": number} for number, key in enumerate(keys)})
    table.remove_all(keys[::2])
    for key in keys[::2]:
        mapped.clear(key)
    left = {(key, None): number for number, key in enumerate(keys) if number % 2}
    same("entries after every other one was removed", content_of(table), left)
    same(
        "maps after every other one was cleared",
        maps_in(mapped),
        {place: {"at": value} for place, value in left.items()},
    )


def map_keys_of_all_kinds_are_kept_apart(subject: Subject) -> None:
    table = maps_of(subject)
    keys = [key for key in map(canonical_key, KEYS) if key == key]
    for number, key in enumerate(keys):
        table.put("k", key, number)
    same("the values by map key", [table.get("k", key) for key in keys], list(range(len(keys))))
    same_bag("the items", table.items("k"), [(key, number) for number, key in enumerate(keys)])
    for key in keys[::2]:
        table.remove("k", key)
    same("map keys left", [table.contains("k", key) for key in keys], [bool(n % 2) for n in range(len(keys))])


def equal_keys_are_one_key(subject: Subject) -> None:
    for spellings in EQUAL_KEYS:
        table, first = values_of(subject), canonical_key(spellings[0])
        table.put(first, [0])
        for count, key in enumerate(spellings, 1):
            same(f"the entry of {key!r}", table.get(canonical_key(key)), list(range(count)))
            loaded = table.load([key])
            (loaded[key] if key == key else loaded[canonical_key(key)]).append(count)
            table.changed([key])
        same(f"entries of the equal keys {spellings}", len(content_of(table)), 1)
        table.remove(canonical_key(spellings[-1]))
        same(f"the entry of {first!r} once {spellings[-1]!r} was removed", table.get(first), None)


def namespaces_divide_the_entries_of_a_key(subject: Subject) -> None:
    backend = subject.backend()
    table, mapped = backend.table(ValueStateDescriptor("v")), backend.map_table(MapStateDescriptor("m"))
    for number, namespace in enumerate(namespaces()):
        for key in ("a", "b"):
            table.put(key, (key, number), namespace)
            mapped.put(key, number, key, namespace)
    for number, namespace in enumerate(namespaces()):
        same(f"the entry in {namespace!r}", table.get("a", namespace), ("a", number))
        same(f"the map in {namespace!r}", list(mapped.items("b", namespace)), [(number, "b")])
        loaded = table.load(["a", "b", "c"], namespace)
        same(f"what is loaded of {namespace!r}", (loaded["a"], loaded.get("c")), (("a", number), None))
    expected = {(key, n): (key, number) for number, n in enumerate(namespaces()) for key in ("a", "b")}
    same("all entries", content_of(table), expected)
    same("all maps", maps_in(mapped), {place: {value[1]: value[0]} for place, value in expected.items()})
    for namespace in namespaces()[1::2]:
        table.remove_all(["a", "b"], namespace)
        mapped.clear("a", namespace)
    remaining = {place: value for place, value in expected.items() if place[1] in namespaces()[0::2]}
    same("entries after every other namespace was emptied", content_of(table), remaining)


def loaded_dicts_are_read_and_written(subject: Subject) -> None:
    table = values_of(subject)
    for key in ("a", "b", "c"):
        table.put(key, [key])
    loaded = table.load(["a", "b", "a", "new", "absent"])
    same("present entries of the keys", (loaded["a"], loaded["b"]), (["a"], ["b"]))
    same("keys without an entry", ("new" in loaded, loaded.get("absent")), (False, None))
    loaded["a"].append(1)
    loaded["b"] = "replaced"
    loaded["new"] = ["added"]
    table.changed(["a", "b", "new", "absent", "a"])
    changed = {"a": ["a", 1], "b": "replaced", "c": ["c"], "new": ["added"]}
    same("entries", content_of(table), {(key, None): value for key, value in changed.items()})
    same("an entry by itself", table.get("a"), ["a", 1])
    table.remove("a")
    same("a removed entry, loaded", table.load(["a", "b"]).get("a", "absent"), "absent")
    table.put("b", "put")
    same("a put entry, loaded", table.load(["b"])["b"], "put")
    table.changed([])
    same("a key that was changed to nothing", "absent" in table.load(["absent"]), False)


def dicts_of_several_namespaces_are_loaded_together(subject: Subject) -> None:
    table, spaces = values_of(subject), namespaces()
    for round_ in range(3):
        loaded = [table.load(range(20), space) for space in spaces]
        for number, space in enumerate(loaded):
            for key in range(round_, 20):
                space[key] = [*space.get(key, ()), number]
        for space in namespaces():
            table.changed(range(round_, 20), space)
    expected = {
        (key, space): [number] * min(key + 1, 3) for number, space in enumerate(spaces) for key in range(20)
    }  # fmt: skip
    same("entries", content_of(table), expected)


def lists_grow_at_the_end(subject: Subject) -> None:
    table, window = lists_of(subject), namespaces()[1]
    for number in range(10):
        table.append("k", number)
        table.append("k", -number, window)
        table.append("other", number)
        if number % 3 == 0:
            same("a list while it grows", table.get("k"), list(range(number + 1)))
    table.load(["k"])["k"].append("in place")
    table.changed(["k"])
    table.append("k", "last")
    same("a list that was also changed in place", table.get("k"), [*range(10), "in place", "last"])
    table.put("k", [1, 2])
    table.append("k", [3])
    same("a list that was replaced", table.get("k"), [1, 2, [3]])
    table.append("other", 10)
    table.remove("other")
    same("a removed list", (table.get("other"), len(table)), (None, 2))
    table.append("other", "anew")
    same("a list begun anew", table.load(["other"])["other"], ["anew"])
    same("the list of another namespace", table.get("k", window), [-number for number in range(10)])


def long_lists_keep_their_order(subject: Subject) -> None:
    table = lists_of(subject)
    for number in range(3_000):
        table.append("long", number)
        table.append(number % 50, number)
        if number == 1_500:
            same("a list half-way", table.get("long"), list(range(1_501)))
    expected: dict[Any, Any] = {(n, None): list(range(n, 3_000, 50)) for n in range(50)}
    same("all lists", content_of(table), {**expected, ("long", None): list(range(3_000))})


def maps_are_read_and_written_by_map_key(subject: Subject) -> None:
    table = maps_of(subject)
    same(
        "an absent map",
        (table.get("k", 1, None, "d"), table.contains("k", 1), list(table.items("k"))),
        ("d", False, []),
    )
    table.put("k", "x", 1)
    table.put("k", "y", None)
    table.put("other", "x", 5)
    same(
        "values", (table.get("k", "x"), table.get("k", "y", None, "d"), table.get("k", "z", None, "d")), (1, None, "d")
    )
    same(
        "presence", (table.contains("k", "y"), table.contains("k", "z"), table.contains("o", "x")), (True, False, False)
    )
    for key, value in table.items("k"):
        table.put("k", (key, "added"), value)
        table.remove("k", key)
    same_bag("items that changed while they were read", table.items("k"), [(("x", "added"), 1), (("y", "added"), None)])
    table.clear("k")
    table.clear("k")
    table.remove("k", "x")
    same("a cleared map", maps_in(table), {("other", None): {"x": 5}})
    table.put("k", "x", 2)
    table.remove("other", "x")
    same("maps without values are none, and one begun anew", maps_in(table), {("k", None): {"x": 2}})


def large_maps_stay_apart(subject: Subject) -> None:
    table, window = maps_of(subject), namespaces()[1]
    keys = ["a", "aa", "a\x00", b"a", 1, (1,), (1, 1), ("a",), -1]
    model: dict[Any, dict[Any, Any]] = {(key, space): {} for key in keys for space in (None, window)}
    for number in range(3_000):
        place = keys[number % len(keys)], (None, window)[number % 2]
        map_key = number % 700
        if number % 5 == 4:
            table.remove(place[0], map_key, place[1])
            model[place].pop(map_key, None)
        else:
            table.put(place[0], map_key, number, place[1])
            model[place][map_key] = number
    for (key, space), entries in model.items():
        same(f"the map of {key!r} in {space}", dict(table.items(key, space)), entries)
    table.clear("a")
    same("the map of 'aa' after that of 'a' was cleared", dict(table.items("aa")), model["aa", None])
    same("the cleared map", list(table.items("a")), [])


def a_large_map_changes_while_it_is_read(subject: Subject) -> None:
    table = maps_of(subject)
    for number in range(2_000):
        table.put("k", number, number)
    read = []
    for number, value in table.items("k"):
        read.append((number, value))
        if number % 2:
            table.remove("k", number)
        table.put("k", number + 2_000, "new")
        table.put("other", number, 1)
    same_bag("what is read is the map as of the beginning", read, [(number, number) for number in range(2_000)])
    left: dict[Any, Any] = {number: number for number in range(0, 2_000, 2)}
    same("the map", dict(table.items("k")), left | dict.fromkeys(range(2_000, 4_000), "new"))
    reading = iter(table.items("k"))
    next(reading)
    table.clear("k")
    same("a map that was cleared while it was read", (sum(1 for _ in reading), list(table.items("k"))), (2_999, []))


def values_may_be_large(subject: Subject) -> None:
    backend = subject.backend()
    table, listed = backend.table(ValueStateDescriptor("v")), backend.table(ListStateDescriptor("l"))
    mapped = backend.map_table(MapStateDescriptor("m"))
    large = [bytes([number]) * MEGABYTE for number in range(6)]
    for number, value in enumerate(large):
        table.put(number, value)
        listed.append("k", value)
        mapped.put("k", number, value)
    same("values of a megabyte", [table.get(number) == value for number, value in enumerate(large)], [True] * 6)
    same("a list of such", listed.get("k") == large, True)
    same("a map of such", dict(mapped.items("k")) == dict(enumerate(large)), True)
    again = subject.backend(snapshot_of(backend))
    same("a list of such, restored", again.table(ListStateDescriptor("l")).get("k") == large, True)


def prefetching_changes_nothing(subject: Subject) -> None:
    backend = subject.backend()
    table, listed = backend.table(ValueStateDescriptor("v")), backend.table(ListStateDescriptor("l"))
    mapped, window = backend.map_table(MapStateDescriptor("m")), namespaces()[1]
    keys = [canonical_key(key) for key in KEYS]
    backend.prefetch([*KEYS, "absent", [1]])
    for number, key in enumerate(keys):
        for namespace in (None, window):
            table.put(key, number, namespace)
            listed.append(key, number, namespace)
            mapped.put(key, number, number, namespace)
        if number % 5 == 0:
            backend.prefetch([*KEYS[number : number + 9], *EQUAL_KEYS[0], "absent", [1], {}])
            table.remove(key)
            listed.append(key, "more")
    backend.prefetch(keys[::-1])
    values = {(key, space): n for n, key in enumerate(keys) for space in (None, window) if space or n % 5}
    same("values", content_of(table), values)
    lists = {(key, space): [n] for n, key in enumerate(keys) for space in (None, window)}
    same("lists", content_of(listed), lists | {(key, None): [n, "more"] for n, key in enumerate(keys) if n % 5 == 0})
    same("maps", maps_in(mapped), {place: {n: n for n in elements} for place, elements in lists.items()})


def many_keys_are_kept_in_batches(subject: Subject) -> None:
    backend, model = subject.backend(), {}
    table = backend.table(ValueStateDescriptor("v"))
    for start in (0, 5_000, 2_500, 12_000, 0):
        for first_key in range(start, min(start + 8_000, MANY), 1_000):
            keys = range(first_key, first_key + 1_000)
            loaded = table.load(keys)
            for key in keys:
                loaded[key] = model[key] = [*loaded.get(key, ()), start]
            table.changed(keys)
        table.remove_all(range(start, start + 500))
        for key in range(start, start + 500):
            del model[key]
        same("an entry that was not used for long", table.get(7_900), model.get(7_900))
    same("entries", content_of(table), {(key, None): value for key, value in model.items()})
    again = subject.backend(snapshot_of(backend)).table(ValueStateDescriptor("v"))
    same("entries after a restore", content_of(again), {(key, None): value for key, value in model.items()})


def entries_are_found_by_key_group(subject: Subject) -> None:
    table = values_of(subject)
    for key in range(500):
        table.put(key, key, namespaces()[key % 2])
    entries: list[Any] = []
    for groups in ([5], [], range(6, 90), {0, 1, 2, 3, 4}, range(90, MAX_PARALLELISM)):
        entries += table.entries(groups)
    same_bag("entries of all groups together", entries, [(key, namespaces()[key % 2], key) for key in range(500)])
    few = {key for key, _, _ in table.entries(range(0, MAX_PARALLELISM, 16))}
    same("some groups hold some of the keys", 0 < len(few) < 200, True)


def a_walk_misses_nothing_while_the_table_changes(subject: Subject) -> None:
    backend, spaces = subject.backend(), namespaces()[:4]
    table, mapped = backend.table(ValueStateDescriptor("v")), backend.map_table(MapStateDescriptor("m"))
    for key in range(3_000):
        table.put(key, key, spaces[key % 4])
        mapped.put(key, "at", key, spaces[key % 4])
    stays = {(key, spaces[key % 4]) for key in range(3_000) if key % 3 and key < 2_900}
    seen: tuple[set[Any], set[Any]] = set(), set()
    walks = table.walk(), mapped.walk()
    for step in range(3_000):
        for walk, places in zip(walks, seen, strict=True):
            places.update([place] if (place := next(walk, None)) is not None else [])
        if step % 3 == 0:
            table.remove(step, spaces[step % 4])
            mapped.clear(step, spaces[step % 4])
            table.put(-step, 0, spaces[step % 4])
            mapped.put(-step, "at", 0, spaces[step % 4])
        elif step % 100 == 1:
            table.put(step, "changed", spaces[step % 4])
            mapped.remove(step, "nothing", spaces[step % 4])
    table.remove_all(range(2_900, 3_000), None)
    for walk, places, name in zip(walks, seen, ("entries", "maps"), strict=True):
        places.update(walk)
        same(f"{name} that were there all the time and were not given", stays - places, set())


LAWS: tuple[Law, ...] = (
    entries_are_put_and_got_and_removed,
    each_kind_of_state_has_a_table,
    a_name_belongs_to_one_kind,
    keys_of_all_kinds_are_kept_apart,
    map_keys_of_all_kinds_are_kept_apart,
    equal_keys_are_one_key,
    namespaces_divide_the_entries_of_a_key,
    loaded_dicts_are_read_and_written,
    dicts_of_several_namespaces_are_loaded_together,
    lists_grow_at_the_end,
    maps_are_read_and_written_by_map_key,
    large_maps_stay_apart,
    entries_are_found_by_key_group,
    prefetching_changes_nothing,
)
LONG_LAWS: tuple[Law, ...] = (
    long_lists_keep_their_order,
    a_large_map_changes_while_it_is_read,
    values_may_be_large,
    many_keys_are_kept_in_batches,
    a_walk_misses_nothing_while_the_table_changes,
)
