"""Hypothesis state machines for a backend, against plain dicts; hypothesis must be installed."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.keys import canonical_key
from rayflink.state.snapshots import KeyedCapture, KeyedParts

from .checkpoints import Checkpoints, restore_into
from .samples import namespaces
from .subject import MakeBackend, Subject, content_of, maps_in, same, same_bag, snapshot_of

VALUES, LISTS, MAPS = ValueStateDescriptor("values"), ListStateDescriptor("lists"), MapStateDescriptor("maps")
_ABSENT = "nothing"

keys = st.sampled_from([0, 1, 2, -1, 2**70 + 1, "a", "ab", "", (1, "a"), None, float("nan"), True, 2.0])
batches = st.lists(keys, min_size=1, max_size=8)
spaces = st.integers(0, 5)
numbers = st.integers(0, 99)
times = st.integers(-3, 12)


def space_of(number: int) -> Any:
    """Return a namespace, a new object each time."""
    return namespaces()[number]


class Model:
    """The expected content of a backend by (key, namespace)."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.lists: dict[Any, list[Any]] = {}
        self.maps: dict[Any, dict[Any, Any]] = {}
        self.timers: set[Any] = set()


class History(RuleBasedStateMachine):
    """One backend, restored from itself now and then, and its model."""

    make_backend: ClassVar[MakeBackend]

    def __init__(self) -> None:
        super().__init__()
        self.subject, self.model = Subject(type(self).make_backend), Model()
        self.backend = self.subject.backend()
        self.saved: tuple[Any, Model] = (snapshot_of(self.backend), Model())
        self.checkpoints = Checkpoints()
        self.captures: list[tuple[int, KeyedCapture, Model]] = []
        self.written: list[tuple[int, Model]] = []
        self.complete: tuple[list[KeyedParts], Model] | None = None
        self._open()

    def _open(self) -> None:
        self.values, self.lists = self.backend.table(VALUES), self.backend.table(LISTS)
        self.maps, self.queue = self.backend.map_table(MAPS), self.backend.timers("event")
        self.walk: Iterator[Any] = iter(())
        self.walked: set[Any] = set()
        self.steady: set[Any] = set()

    def teardown(self) -> None:
        with self.subject:
            self.compare_all()
            while self.captures:
                self.write(0)
            while self.written:
                self.end_checkpoint(0, True)
            self.restore_checkpoint(2, True)
            self.compare_all()

    @rule(key=keys, space=spaces, number=numbers)
    def put(self, key: Any, space: int, number: int) -> None:
        key, namespace = canonical_key(key), space_of(space)
        self.values.put(key, [number], namespace)
        self.model.values[key, namespace] = [number]

    @rule(key=keys, space=spaces)
    def get(self, key: Any, space: int) -> None:
        place = canonical_key(key), space_of(space)
        same(f"the value of {place}", self.values.get(*place, _ABSENT), self.model.values.get(place, _ABSENT))
        same(f"the list of {place}", self.lists.get(*place, _ABSENT), self.model.lists.get(place, _ABSENT))
        same(f"the map of {place}", dict(self.maps.items(*place)), self.model.maps.get(place, {}))

    @rule(some=batches, space=spaces, most=st.integers(0, 8))
    def remove(self, some: list[Any], space: int, most: int) -> None:
        chosen, namespace = [canonical_key(key) for key in some], space_of(space)
        chosen += [key for key, where in self.model.values if where == namespace][:most]
        self.values.remove_all(chosen, namespace)
        self.lists.remove(chosen[0], namespace)
        self.lists.remove_all(chosen[1:], namespace)
        for key in chosen:
            self.model.values.pop((key, namespace), None)
            self.model.lists.pop((key, namespace), None)
            self.steady.discard((key, namespace))

    @rule(some=batches)
    def prefetch(self, some: list[Any]) -> None:
        self.backend.prefetch(some)

    @rule(some=batches, others=batches, space=spaces, number=numbers, in_place=st.booleans())
    def work_a_batch(self, some: list[Any], others: list[Any], space: int, number: int, in_place: bool) -> None:
        namespace = space_of(space)
        loaded = self.values.load([*some, *others], namespace)
        for key in map(canonical_key, [*some, *others]):
            expected = self.model.values.get((key, namespace), _ABSENT)
            same(f"the loaded value of {key!r}", loaded.get(key, _ABSENT), expected)
        for key in map(canonical_key, some):
            if in_place and key in loaded:
                loaded[key].append(number)
            else:
                loaded[key] = [*loaded.get(key, ()), number]
            self.model.values[key, namespace] = [*self.model.values.get((key, namespace), ()), number]
        self.values.changed([*some, *others] if number % 2 else some, space_of(space))

    @rule(some=batches, space=spaces, number=numbers)
    def append(self, some: list[Any], space: int, number: int) -> None:
        namespace = space_of(space)
        for key in map(canonical_key, some):
            self.lists.append(key, number, namespace)
            self.model.lists.setdefault((key, namespace), []).append(number)

    @rule(some=batches, space=spaces, number=numbers)
    def append_in_place(self, some: list[Any], space: int, number: int) -> None:
        namespace = space_of(space)
        loaded = self.lists.load(some, namespace)
        for key in map(canonical_key, some):
            loaded.setdefault(key, []).append(number)
            self.model.lists.setdefault((key, namespace), []).append(number)
        self.lists.changed(some, namespace)

    @rule(key=keys, space=spaces, map_keys=st.lists(numbers, max_size=5), number=numbers)
    def put_in_map(self, key: Any, space: int, map_keys: list[int], number: int) -> None:
        place = canonical_key(key), space_of(space)
        for map_key in map_keys:
            self.maps.put(place[0], map_key, number, place[1])
            self.model.maps.setdefault(place, {})[map_key] = number

    @rule(key=keys, space=spaces, map_keys=st.lists(numbers, max_size=5), clears=st.booleans())
    def remove_from_map(self, key: Any, space: int, map_keys: list[int], clears: bool) -> None:
        place = canonical_key(key), space_of(space)
        entries = self.model.maps.get(place, {})
        if clears:
            self.maps.clear(*place)
            entries.clear()
        for map_key in [*map_keys, *list(entries)[:2]]:
            same(f"presence of {map_key}", self.maps.contains(place[0], map_key, place[1]), map_key in entries)
            value = self.maps.get(place[0], map_key, place[1], _ABSENT)
            same(f"the value at {map_key}", value, entries.get(map_key, _ABSENT))
            self.maps.remove(place[0], map_key, place[1])
            entries.pop(map_key, None)
        if not entries:
            self.model.maps.pop(place, None)

    @rule(some=batches, space=spaces, timestamps=st.lists(times, min_size=1, max_size=4), as_dict=st.booleans())
    def set_timers(self, some: list[Any], space: int, timestamps: list[int], as_dict: bool) -> None:
        chosen, namespace = [canonical_key(key) for key in some], space_of(space)
        for time in timestamps:
            if as_dict:
                self.queue.keys_at(time, namespace).update(dict.fromkeys(chosen))
            else:
                for key in chosen:
                    self.queue.register(time, key, namespace)
            self.model.timers.update((time, key, namespace) for key in chosen)

    @rule(number=numbers, key=keys, space=spaces, time=times)
    def delete_timers(self, number: int, key: Any, space: int, time: int) -> None:
        gone = [(time, canonical_key(key), space_of(space)), *sorted(self.model.timers, key=repr)[number : number + 2]]
        for timer in gone:
            same(f"whether {timer} is set", self.queue.contains(*timer), timer in self.model.timers)
            self.queue.delete(*timer)
            self.model.timers.discard(timer)

    @rule(until=times, most=st.integers(0, 99), again=st.sampled_from([None, -1, 0, 1, 4]))
    def fire(self, until: int, most: int, again: int | None) -> None:
        for count, timer in enumerate(self.queue.due(until)):
            expected = min(time for time, _, _ in self.model.timers)
            same("the time that fires", timer[0], expected)
            same("whether the timer is set", timer in self.model.timers, True)
            self.model.timers.discard(timer)
            if again is not None and count < 4:
                later = (timer[0] + again, timer[1], timer[2])
                self.queue.register(*later)
                self.model.timers.add(later)
            if count >= most:
                return
        left = [timer for timer in self.model.timers if timer[0] <= until]
        same(f"timers up to {until} that did not fire", left, [])

    @rule(until=times, limit=st.integers(1, 3), most=st.integers(0, 4))
    def fire_in_pieces(self, until: int, limit: int, most: int) -> None:
        for count, (time, namespace, some) in enumerate(self.queue.due_keys(until, limit)):
            same("the time that fires", time, min(timer[0] for timer in self.model.timers))
            piece = {(time, key, namespace) for key in some}
            same("the piece", (len(piece), piece <= self.model.timers), (len(some), True))
            same("its size", len(some) <= limit, True)
            self.model.timers -= piece
            if count >= most:
                return
        same("timers that did not fire", [timer for timer in self.model.timers if timer[0] <= until], [])

    @rule()
    def save(self) -> None:
        self.saved = snapshot_of(self.backend), deepcopy_of(self.model)

    @rule(saves=st.booleans(), by_hashmap=st.booleans())
    def restore(self, saves: bool, by_hashmap: bool) -> None:
        if saves:
            self.save()
        snapshot, model = self.saved
        if by_hashmap:
            snapshot = snapshot_of(self.subject.hashmap(snapshot))
        for _, capture, _ in self.captures:
            capture.release()
        self.captures, self.written = [], []
        self.subject.close(self.backend)
        self.backend, self.model = self.subject.backend(snapshot), deepcopy_of(model)
        self._open()

    @rule(prepares=st.integers(0, 3))
    def capture(self, prepares: int) -> None:
        number = self.checkpoints.next_number()
        if prepares:
            self.backend.announce(number)
        for _ in range(prepares):
            self.backend.prepare(lambda: False)
        self.captures.append((number, self.backend.capture(number), deepcopy_of(self.model)))

    @precondition(lambda self: self.captures)
    @rule(which=st.integers(0, 3))
    def write(self, which: int) -> None:
        number, capture, model = self.captures.pop(which % len(self.captures))
        self.checkpoints.write(number, capture)
        self.written.append((number, model))

    @precondition(lambda self: self.written)
    @rule(which=st.integers(0, 3), is_complete=st.booleans())
    def end_checkpoint(self, which: int, is_complete: bool) -> None:
        number, model = self.written.pop(which % len(self.written))
        if not is_complete:
            self.backend.abort(number)
            return
        self.complete = [self.checkpoints.complete(number)], model
        self.backend.confirm(number)
        self.written = [later for later in self.written if later[0] > number]
        for earlier in [capture for capture in self.captures if capture[0] < number]:
            self.captures.remove(earlier)
            earlier[1].release()

    @precondition(lambda self: self.complete)
    @rule(parallelism=st.integers(1, 3), is_same_job=st.booleans())
    def restore_checkpoint(self, parallelism: int, is_same_job: bool) -> None:
        if self.complete is None:
            return
        for _, capture, _ in self.captures:
            capture.release()
        self.captures, self.written = [], []
        parts, model = self.complete
        if parallelism > 1:
            some = [self.subject.backend(subtask=i, parallelism=parallelism) for i in range(parallelism)]
            numbers = [self.checkpoints.next_number() for _ in some]
            captures = [
                restore_into(backend, self.checkpoints, parts).capture(n)
                for backend, n in zip(some, numbers, strict=True)
            ]
            parts = [self.checkpoints.write(n, capture) for n, capture in zip(numbers, captures, strict=True)]
            self.checkpoints.keep(max(numbers), *parts)
            self.complete = parts, model
            for backend in some:
                self.subject.close(backend)
        self.subject.close(self.backend)
        self.backend = restore_into(self.subject.backend(), self.checkpoints, parts, is_same_job)
        self.model = deepcopy_of(model)
        self._open()

    @precondition(lambda self: len(self.model.values) > 8)
    @rule()
    def clear(self) -> None:
        self.backend.clear()
        self.model = Model()
        self.steady.clear()

    @rule(steps=st.integers(1, 5))
    def go_on_with_the_walk(self, steps: int) -> None:
        for _ in range(steps):
            place = next(self.walk, None)
            if place is None:
                same("places that the walk missed", self.steady - self.walked, set())
                self.walk, self.walked, self.steady = self.values.walk(), set(), set(self.model.values)
                return
            self.walked.add(place)

    @rule()
    def compare_all(self) -> None:
        same("all values", content_of(self.values), self.model.values)
        same("all lists", content_of(self.lists), self.model.lists)
        same("all maps", maps_in(self.maps), self.model.maps)
        same("number of timers", len(self.queue), len(self.model.timers))
        same_bag("all timers", self.queue, self.model.timers)
        earliest = min((time for time, _, _ in self.model.timers), default=None)
        same("the earliest timer", self.queue.next_timestamp(), earliest)
        again = self.subject.backend(snapshot_of(self.backend))
        same_bag("timers of a snapshot", again.timers("event").due(2**62), self.model.timers)
        self.subject.close(again)


def deepcopy_of(model: Model) -> Model:
    """Return a copy that shares keys and namespaces, for the NaN among keys is one object."""
    copied = Model()
    copied.values = {place: deepcopy(value) for place, value in model.values.items()}
    copied.lists = {place: list(elements) for place, elements in model.lists.items()}
    copied.maps = {place: dict(entries) for place, entries in model.maps.items()}
    copied.timers = set(model.timers)
    return copied


def check_histories(
    make_backend: MakeBackend,
    histories: int,
    steps: int,
    machine_class: type[RuleBasedStateMachine] = History,
    shrinks: bool = True,
) -> None:
    """Try a number of histories, each of a number of steps at most.

    Args:
        machine_class: the class of the histories, which has a place for `make_backend`.
        shrinks: tell the shortest history that fails.

    Raises:
        AssertionError: one differs from the model.
    """
    machine = type(
        f"{machine_class.__name__}OfThisBackend", (machine_class,), {"make_backend": staticmethod(make_backend)}
    )
    check_machine(machine, histories, steps, shrinks)


def check_machine(machine: type[RuleBasedStateMachine], histories: int, steps: int, shrinks: bool = True) -> None:
    """Try a number of histories of a state machine, each of a number of steps at most.

    Raises:
        AssertionError: one differs from the model.
    """
    chosen = settings(
        max_examples=histories, stateful_step_count=steps, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=chosen)


__all__ = ["History", "check_histories", "check_machine"]
