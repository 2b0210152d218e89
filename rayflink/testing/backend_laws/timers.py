"""Laws of timers: each once, in order of time, while others are set and deleted."""

from __future__ import annotations

import random
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from rayflink.state.backend import KeyedBackend, Timers
from rayflink.state.keys import canonical_key

from .samples import EQUAL_KEYS, KEYS, namespaces
from .subject import Law, Subject, refused, same, same_bag, snapshot_of

FIRST, LAST = -(2**63), 2**63 - 1
MANY = 100_000


def queue_of(subject: Subject) -> Timers:
    """Return the queue of a new backend."""
    return subject.backend().timers("event")


def timers_fire_once_in_order_of_time(subject: Subject) -> None:
    queue = queue_of(subject)
    same("an empty queue", (queue.next_timestamp(), list(queue.due(LAST))), (None, []))
    for timestamp in (5, -3, 9, 0, 5, FIRST, LAST, -3):
        queue.register(timestamp, "k")
    same("the earliest", queue.next_timestamp(), FIRST)
    same("those up to 5", list(queue.due(5)), [(time, "k", None) for time in (FIRST, -3, 0, 5)])
    same("those up to 5, again", list(queue.due(5)), [])
    same("the earliest of those left", queue.next_timestamp(), 9)
    queue.register(2, "k")
    same("the rest", list(queue.due(LAST)), [(time, "k", None) for time in (2, 9, LAST)])
    same("afterwards", queue.next_timestamp(), None)


def a_timer_is_one_of_key_and_namespace_and_time(subject: Subject) -> None:
    queue, keys = queue_of(subject), [canonical_key(key) for key in KEYS]
    for _ in range(2):
        for key in keys:
            for namespace in namespaces():
                queue.register(7, key, namespace)
                queue.register(8, key, namespace)
    queue.delete(7, "a", namespaces()[1])
    queue.delete(7, "a", namespaces()[1])
    queue.delete(9, "a")
    expected = {(key, namespace) for key in keys for namespace in namespaces()}
    fired = [(key, namespace) for _, key, namespace in queue.due(7)]
    same_bag("timers of one time", fired, expected - {("a", namespaces()[1])})
    same("one of the next time", queue.contains(8, "a", namespaces()[1]), True)
    same_bag("timers of the next time", [(key, namespace) for _, key, namespace in queue.due(8)], expected)


def timers_of_equal_keys_are_one(subject: Subject) -> None:
    queue = queue_of(subject)
    for spellings in EQUAL_KEYS:
        for key in spellings:
            queue.register(1, canonical_key(key))
        same(f"timers of {spellings}", len(list(queue.due(1))), 1)
        queue.register(2, canonical_key(spellings[0]))
        same("whether it is set", queue.contains(2, canonical_key(spellings[-1])), True)
        queue.delete(2, canonical_key(spellings[-1]))
        same(f"timers after {spellings[-1]!r} was deleted", queue.next_timestamp(), None)


def a_deleted_timer_does_not_fire(subject: Subject) -> None:
    queue = queue_of(subject)
    for key in ("a", "b", "c"):
        for timestamp in (1, 2, 3):
            queue.register(timestamp, key)
    queue.delete(1, "a")
    queue.delete(1, "b")
    queue.delete(1, "c")
    same("the earliest", (queue.next_timestamp(), queue.contains(1, "a"), queue.contains(2, "a")), (2, False, True))
    queue.delete(2, "b")
    queue.register(1, "b")
    fired = list(queue.due(2))
    same("times", [timestamp for timestamp, _, _ in fired], [1, 2, 2])
    same_bag("timers", fired, [(1, "b", None), (2, "a", None), (2, "c", None)])


def timers_are_set_and_deleted_while_others_fire(subject: Subject) -> None:
    queue = queue_of(subject)
    for key in ("a", "b", "c"):
        queue.register(5, key)
        queue.register(8, key)
    fired: list[tuple[int, Any]] = []
    for timestamp, key, _ in queue.due(8):
        fired.append((timestamp, key))
        if len(fired) == 1:
            first = key
            gone, remaining = sorted({"a", "b", "c"} - {key})
            queue.register(3, "early")
            queue.register(9, "late")
            queue.register(5, "new")
            queue.register(6, "between")
            queue.delete(5, gone)
            queue.delete(8, gone)
        elif key == "early":
            queue.register(2, "earlier")
            queue.register(3, "also early")
        elif key == "between":
            queue.register(6, "again")
            queue.delete(8, first)
    same("the first two of what was set meanwhile", fired[1:3], [(3, "early"), (2, "earlier")])
    same("times", [timestamp for timestamp, _ in fired], [5, 3, 2, 3, 5, 5, 6, 6, 8])
    expected = {(5, first), (3, "early"), (2, "earlier"), (3, "also early"), (5, "new"), (5, remaining), (6, "between"),
                (6, "again"), (8, remaining)}  # fmt: skip
    same_bag("timers", fired, expected)
    same("what is left", list(queue.due(LAST)), [(9, "late", None)])


def a_timer_that_sets_itself_again_fires_until_it_is_past(subject: Subject) -> None:
    queue = queue_of(subject)
    queue.register(0, "k")
    fired = []
    for timestamp, key, namespace in queue.due(50):
        fired.append(timestamp)
        queue.register(timestamp + 1, key, namespace)
    same("times", fired, list(range(51)))
    same("the next", queue.next_timestamp(), 51)


def a_firing_is_left_and_resumed(subject: Subject) -> None:
    backend = subject.backend()
    queue = backend.timers("event")
    model: set[Any] = {(number % 4, number, namespaces()[number % 3]) for number in range(60)}
    for timestamp, key, namespace in model:
        queue.register(timestamp, key, namespace)
    firing = queue.due(2)
    taken = list(islice(firing, 20))
    same("the earliest after some have fired", queue.next_timestamp(), 1)
    same_bag("what a snapshot holds meanwhile", _timers_of(subject.backend(snapshot_of(backend))), model - set(taken))
    other = list(islice(queue.due(2), 5))
    queue.register(0, "new")
    model.add((0, "new", None))
    deleted = next(timer for timer in sorted(model - set(taken) - set(other), key=repr) if timer[0] == 2)
    queue.delete(*deleted)
    fired = taken + other + list(firing) + list(queue.due(LAST))
    same_bag("all that fired", fired, model - {deleted})
    same(
        "the order of what was resumed",
        [fired[25][0], *sorted(t for t, _, _ in fired[26:])],
        [t for t, _, _ in fired[25:]],
    )


def _timers_of(backend: KeyedBackend) -> list[tuple[int, Any, Any]]:
    return list(backend.timers("event").due(LAST))


def keys_are_taken_out_in_pieces(subject: Subject) -> None:
    backend = subject.backend()
    queue, spaces = backend.timers("event"), namespaces()
    model = {(number % 3, number, spaces[number % 2 + 1]) for number in range(120)}
    for timestamp, key, namespace in model:
        queue.register(timestamp, key, namespace)
    pieces = queue.due_keys(1, 7)
    fired: list[Any] = []
    for index, (timestamp, namespace, keys) in enumerate(pieces):
        same("the size of a piece", 1 <= len(keys) <= 7, True)
        fired += [(timestamp, key, namespace) for key in keys]
        if index == 2:
            left = _timers_of(subject.backend(snapshot_of(backend)))
            same_bag("what a snapshot holds meanwhile", left, model - set(fired))
            break
    for timestamp, namespace, keys in queue.due_keys(1, 1_000):
        fired += [(timestamp, key, namespace) for key in keys]
    same("times", [timestamp for timestamp, _, _ in fired], sorted(timestamp for timestamp, _, _ in fired))
    same_bag("timers", fired, {timer for timer in model if timer[0] <= 1})
    same_bag("what is left", _timers_of(backend), {timer for timer in model if timer[0] == 2})


def keys_are_set_like_those_of_a_dict(subject: Subject) -> None:
    backend = subject.backend()
    queue, window = backend.timers("event"), namespaces()[1]
    queue.register(5, "a", window)
    keys, others = queue.keys_at(5, window), queue.keys_at(6, window)
    keys["a"] = None
    keys["b"] = None
    keys.update(dict.fromkeys(["b", "c"]))
    others["a"] = None
    same("whether one is set", (queue.contains(5, "c", window), queue.contains(5, "c")), (True, False))
    same("the earliest", queue.next_timestamp(), 5)
    expected = [*((5, key, window) for key in "abc"), (6, "a", window)]
    same_bag("what a snapshot holds", _timers_of(subject.backend(snapshot_of(backend))), expected)
    queue.delete(5, "b", window)
    same_bag("what fires", _timers_of(backend), [timer for timer in expected if timer[1] != "b"])


def times_are_ints_of_64_bits(subject: Subject) -> None:
    queue = queue_of(subject)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (None, TypeError, "an int of epoch milliseconds"), (1.5, TypeError, "of type float"), (True, TypeError, "bool"),
        ("x", TypeError, "of type str"), (2**63, ValueError, "[-2^63, 2^63)"),
        (-(2**63) - 1, ValueError, "[-2^63, 2^63)"),
    ]  # fmt: skip
    for timestamp, error, said in wrong:
        refused(f"a timer at {timestamp!r}", error, said, partial(queue.register, timestamp, "k"))
        refused(f"keys at {timestamp!r}", error, said, partial(queue.keys_at, timestamp))
    same("none was set", queue.next_timestamp(), None)
    queue.register(np.int64(7), "k")
    same("another kind of whole number", queue.next_timestamp(), 7)
    same("its type", [type(timestamp) for timestamp, _, _ in queue.due(7)], [int])


def a_queue_is_read_without_taking_from_it(subject: Subject) -> None:
    queue, spaces = queue_of(subject), namespaces()
    same("an empty queue", (len(queue), list(queue)), (0, []))
    model = {(number % 7 - 3, number % 11, spaces[number % 4]) for number in range(200)}
    for timer in sorted(model, key=repr):
        queue.register(*timer)
        queue.register(*timer)
    for timer in [timer for timer in model if timer[1] == 5]:
        queue.delete(*timer)
        model.discard(timer)
    everything = list(queue)
    same_bag("all timers", everything, model)
    same("their number", len(queue), len(model))
    same("the order in which they fire", list(queue.due(0)), [timer for timer in everything if timer[0] <= 0])
    same("the rest", (list(queue), len(queue)), ([t for t in everything if t[0] > 0], sum(t[0] > 0 for t in model)))


def queues_are_kept_apart_by_name(subject: Subject) -> None:
    backend = subject.backend()
    backend.timers("event").register(1, "k")
    backend.timers("processing").register(1, "other")
    backend.timers("even").register(2, "k")
    same("the same queue for the same name", list(backend.timers("event").due(9)), [(1, "k", None)])
    same("another queue", list(backend.timers("processing").due(9)), [(1, "other", None)])
    same("one whose name begins alike", list(backend.timers("even").due(9)), [(2, "k", None)])


def many_timers_fire_in_order(subject: Subject) -> None:
    chance, backend, spaces = random.Random(7), subject.backend(), namespaces()
    queue, model = backend.timers("event"), set()
    for number in range(MANY):
        timer = chance.randrange(-5_000, 50_000), number % 7_001, spaces[number % len(spaces)]
        queue.register(*timer)
        model.add(timer)
    for timer in list(islice(model, 10_000)):
        queue.delete(*timer)
        model.discard(timer)
    queues = [queue, subject.backend(snapshot_of(backend)).timers("event")]
    for timers in queues:
        fired, until = [], -5_000
        while (due := timers.next_timestamp()) is not None:
            until = max(until, due) + 5_000
            part = list(timers.due(until))
            same("times up to the one asked for", (part[0][0], part[-1][0] <= until), (due, True))
            fired += part
        times = [timestamp for timestamp, _, _ in fired]
        same("order of time", times == sorted(times), True)
        same_bag("timers", fired, model)


LAWS: tuple[Law, ...] = (
    timers_fire_once_in_order_of_time,
    a_timer_is_one_of_key_and_namespace_and_time,
    timers_of_equal_keys_are_one,
    a_deleted_timer_does_not_fire,
    timers_are_set_and_deleted_while_others_fire,
    a_timer_that_sets_itself_again_fires_until_it_is_past,
    a_firing_is_left_and_resumed,
    keys_are_taken_out_in_pieces,
    keys_are_set_like_those_of_a_dict,
    times_are_ints_of_64_bits,
    a_queue_is_read_without_taking_from_it,
    queues_are_kept_apart_by_name,
)
LONG_LAWS: tuple[Law, ...] = (many_timers_fire_in_order,)
