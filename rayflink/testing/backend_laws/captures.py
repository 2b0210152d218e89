"""Laws of captures: whatever is written later, in another thread, is the state as it was at the barrier."""

from __future__ import annotations

from threading import Thread
from typing import Any

from rayflink.state.backend import KeyedBackend
from rayflink.state.keys import canonical_key
from rayflink.state.snapshots import InlineSnapshots, KeyedCapture

from .samples import KEYS, namespaces
from .snapshots import LISTS, MAPS, VALUES, all_of, filled
from .subject import Law, Subject, same


def changed_all_over(backend: KeyedBackend, turn: int) -> None:
    """Change, add and remove state of all kinds, in place where that is possible."""
    spaces = namespaces()
    values, lists, maps = backend.table(VALUES), backend.table(LISTS), backend.map_table(MAPS)
    for number, key in enumerate(map(canonical_key, KEYS)):
        space = spaces[number % len(spaces)]
        values.put(key, (turn, number))
        loaded = values.load([key], space)
        if key in loaded and isinstance(loaded[key], dict):
            loaded[key]["in"] = turn
            values.changed([key], space)
        lists.append(key, [turn, number], space)
        gathered = lists.load([key], space)
        gathered[key][0].append(turn)
        lists.changed([key], space)
        maps.put(key, turn, [number], space)
        if number % 3 == turn % 3:
            values.remove(key, space)
            lists.remove(key, space)
            maps.clear(key, space)
        backend.timers("event").delete(number % 7, key, space)
        backend.timers("event").register(turn + number, key, space)
        backend.timers("other").register(turn, key, space)


def a_capture_is_of_its_moment_though_it_is_written_later(subject: Subject) -> None:
    backend = filled(subject.backend())
    capture = backend.capture(1)
    changed_all_over(backend, 1)
    list(backend.timers("event").due(3))
    same("what is restored", all_of(subject.backend(groups_of(capture))), all_of(filled(subject.backend())))


def a_capture_is_of_its_moment_while_the_work_goes_on(subject: Subject) -> None:
    backend = filled(subject.backend())
    for turn in range(5):
        changed_all_over(backend, turn)
        expected = groups_of(backend.capture(2 * turn))
        capture = backend.capture(2 * turn + 1)
        snapshots: list[Any] = []
        writing = Thread(target=lambda: snapshots.append(groups_of(capture)))  # noqa: B023  # joined in the same turn
        writing.start()
        changes = 0
        while writing.is_alive() or not changes:
            changes += 1
            changed_all_over(backend, 10 * turn + changes)
        writing.join()
        same(f"turn {turn}", all_of(subject.backend(*snapshots)), all_of(subject.backend(expected)))


def several_captures_may_be_under_way(subject: Subject) -> None:
    backend = filled(subject.backend())
    captures, expected = [], []
    for turn in range(4):
        captures.append(backend.capture(turn))
        expected.append(all_of(subject.backend(groups_of(backend.capture(100 + turn)))))
        changed_all_over(backend, turn)
        if turn == 2:
            backend.abort(0)
            captures.pop(0).release()
            expected.pop(0)
            backend.confirm(1)
            changed_all_over(backend, 9)
    while captures:
        same("a capture", all_of(subject.backend(groups_of(captures.pop()))), expected.pop())
        backend.abort(7)  # no capture has that number
        changed_all_over(backend, len(captures))


def groups_of(capture: KeyedCapture) -> dict[int, bytes]:
    """Write a capture as a savepoint, release it, and return its key groups."""
    inline = InlineSnapshots()
    try:
        return {group: inline.read(blob) for group, blob in capture.write(inline).groups.items()}
    finally:
        capture.release()


LAWS: tuple[Law, ...] = (
    a_capture_is_of_its_moment_though_it_is_written_later,
    a_capture_is_of_its_moment_while_the_work_goes_on,
    several_captures_may_be_under_way,
)
