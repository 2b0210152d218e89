"""Laws of state with a time to live: fresh entries stay, expired ones are removed and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rayflink.common.functions.state_ttl import StateTtlConfig
from rayflink.common.time import Time
from rayflink.state.backend import KeyContext, KeyedBackend
from rayflink.state.clock import ManualClock
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.handles import StateStore

from .checkpoints import Checkpoints, checkpoint_of, restore_into
from .samples import Gather, add, namespaces
from .subject import OPERATOR_UID, Law, Subject, maps_in, same, same_bag, snapshot_of

_D = TypeVar("_D", bound=StateDescriptor)
TTL_MS = 10


def ttl(ttl_ms: int = TTL_MS) -> StateTtlConfig.Builder:
    """Return a time to live that is cleaned up by reads only."""
    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).disable_cleanup_in_background()


class World:
    """A backend, a manual clock, and handles of state that expires; the key is "k" at first."""

    def __init__(
        self,
        subject: Subject,
        config: StateTtlConfig,
        *snapshots: Mapping[int, bytes],
        clock: ManualClock | None = None,
        backend: KeyedBackend | None = None,
    ) -> None:
        self.subject, self.config = subject, config
        self.clock = ManualClock(100) if clock is None else clock
        self.backend = subject.backend(*snapshots) if backend is None else backend
        self.expired: Counter[str] = Counter()
        self.context = KeyContext(self.clock.now_ms, self._counter_of)
        self.context.key = "k"
        self.store = StateStore(self.backend, self.context, OPERATOR_UID, True)
        self._descriptors: dict[str, StateDescriptor] = {}

    def _counter_of(self, state: str) -> Callable[[int], None]:
        def count(entries: int) -> None:
            self.expired[state] += entries

        return count

    def expiring(self, descriptor: _D) -> _D:
        """Return the descriptor with the time to live."""
        descriptor.enable_time_to_live(self.config)
        self._descriptors[descriptor.name] = descriptor
        return descriptor

    def value(self) -> Any:
        return self.store.get_state(self.expiring(ValueStateDescriptor("v")))

    def list(self) -> Any:
        return self.store.get_list_state(self.expiring(ListStateDescriptor("l")))

    def map(self) -> Any:
        return self.store.get_map_state(self.expiring(MapStateDescriptor("m")))

    def handles(self) -> tuple[Any, Any, Any]:
        return self.value(), self.list(), self.map()

    def stored(self, name: str) -> int:
        """Return the number of places that the table of a state has an entry for."""
        descriptor = self._descriptors[name]
        if descriptor.kind == "map":
            return len(maps_in(self.backend.map_table(descriptor)))
        return len(self.backend.table(descriptor))

    def sweep(self, ms: int, most: int = 100) -> int:
        """Let the clock advance, and the background sweep do what is due meanwhile: the number of slices."""
        slices, end = 0, self.clock.now_ms() + ms
        while True:
            due = min((state.sweep_at for state in self.context.swept if state.sweep_at is not None), default=end + 1)
            if due > end:
                self.clock.advance(end - self.clock.now_ms())
                return slices
            self.clock.advance(max(0, due - self.clock.now_ms()))
            for state in self.context.swept:
                if state.sweep_at is not None and state.sweep_at <= self.clock.now_ms():
                    state.sweep(self.clock.now_ms(), most, lambda: True)
                    slices += 1

    def restored(self) -> World:
        return World(self.subject, self.config, snapshot_of(self.backend), clock=self.clock)

    def restored_from_checkpoint(self) -> World:
        checkpoints, again = Checkpoints(), self.subject.backend()
        restore_into(again, checkpoints, [checkpoint_of(checkpoints, self.backend)])
        return World(self.subject, self.config, clock=self.clock, backend=again)


def a_value_expires_after_its_time_and_a_read_removes_it(subject: Subject) -> None:
    world = World(subject, ttl().build())
    value = world.value()
    value.update(1)
    world.clock.advance(9)
    same("the value after 9 of 10 ms", value.value(), 1)
    world.clock.advance(1)
    same("entries before it is read", world.stored("v"), 1)
    same("the value after 10 ms", value.value(), None)
    same("entries once it was read", (world.stored("v"), world.expired), (0, {"v": 1}))
    value.update(2)
    world.clock.advance(9)
    value.update(3)
    world.clock.advance(9)
    same("a value that was written again", value.value(), 3)


def reading_is_an_access_where_the_update_type_says_so(subject: Subject) -> None:
    for builder, alive in ((ttl(), False), (ttl().update_ttl_on_read_and_write(), True)):
        world = World(subject, builder.build())
        value, listed, mapped = world.handles()
        value.update(1)
        listed.add(1)
        mapped.put("x", 1)
        world.clock.advance(6)
        same("after 6 ms", (value.value(), list(listed), mapped.get("x")), (1, [1], 1))
        world.clock.advance(6)
        presence = value.value() == 1, list(listed) == [1], mapped.contains("x")
        same("whether it lives 6 ms after it was read", presence, (alive,) * 3)


def what_expired_may_be_given_once_more(subject: Subject) -> None:
    world = World(subject, ttl().return_expired_if_not_cleaned_up().build())
    value, listed, mapped = world.handles()
    value.update(1)
    listed.add(1)
    mapped.put("x", 1)
    world.clock.advance(6)
    listed.add(2)
    mapped.put("y", 2)
    world.clock.advance(6)
    same("the value, twice", (value.value(), value.value()), (1, None))
    same("the map, twice", (mapped.get("x"), mapped.get("x"), mapped.get("y")), (1, None, 2))
    same("the list, which goes when all its elements have expired", (list(listed), list(listed)), ([1, 2], [1, 2]))
    world.clock.advance(6)
    same("the list, twice", (list(listed), list(listed)), ([1, 2], []))


def elements_and_map_values_expire_one_by_one(subject: Subject) -> None:
    world = World(subject, ttl().build())
    listed, mapped = world.list(), world.map()
    for number in range(3):
        listed.add(number)
        mapped.put(number, number)
        world.clock.advance(4)
    same("the list", list(listed), [1, 2])
    same_bag("the map", mapped.items(), [(1, 1), (2, 2)])
    same("whether the first is there", mapped.contains(0), False)
    listed.update([7, *listed])
    world.clock.advance(6)
    same("the list, written as a whole", (list(listed), list(mapped.keys())), ([7, 1, 2], []))
    same("the empty map", (mapped.is_empty(), world.stored("m")), (True, 0))
    same("what is counted", world.expired, {"l": 1, "m": 3})


def folded_state_begins_anew(subject: Subject) -> None:
    world = World(subject, ttl().build())
    total = world.store.get_reducing_state(world.expiring(ReducingStateDescriptor("r", add)))
    gathered = world.store.get_aggregating_state(world.expiring(AggregatingStateDescriptor("a", Gather())))
    for step_ms in (9, 9, 10, 0):
        total.add(1)
        gathered.add(step_ms)
        world.clock.advance(step_ms)
    same("each add is an access; after 10 ms without one", (total.get(), gathered.get()), (1, [0]))


def a_restored_entry_is_as_old_as_it_was(subject: Subject) -> None:
    world = World(subject, ttl().build())
    value, listed, mapped = world.handles()
    value.update(1)
    listed.add(1)
    mapped.put("x", 1)
    world.clock.advance(6)
    restored = [world.restored(), world.restored_from_checkpoint()]
    handles = [again.handles() for again in restored]
    for value, listed, mapped in handles:
        same("after 6 ms", (value.value(), list(listed), mapped.get("x")), (1, [1], 1))
    world.clock.advance(4)
    for value, listed, mapped in handles:
        same("after 10 ms", (value.value(), list(listed), mapped.get("x")), (None, [], None))


def a_full_snapshot_may_leave_out_what_expired(subject: Subject) -> None:
    whole, cleaned = ttl().return_expired_if_not_cleaned_up(), ttl().return_expired_if_not_cleaned_up()
    for builder, left in ((whole, [[1, 2], 1, {1, 2}]), (cleaned.cleanup_full_snapshot(), [[2], None, {2}])):
        world = World(subject, builder.build())
        value, listed, mapped = world.handles()
        value.update(1)
        for number in (1, 2):
            listed.add(number)
            mapped.put(number, number)
            world.clock.advance(6)
        for again in (world.restored(), world.restored_from_checkpoint()):
            contents = [list(again.list()), again.value().value(), set(again.map().values())]
            same("what is restored", contents, left)
        same("the state itself", [list(listed), value.value(), set(mapped.values())], [[1, 2], 1, {1, 2}])


def each_access_forgets_what_expired_elsewhere(subject: Subject) -> None:
    for size in (1, 3):
        world = World(subject, ttl().cleanup_incrementally(size, False).build())
        handles = dict(zip("vlm", world.handles(), strict=True))
        for number in range(6):
            world.context.key, world.context.namespace = number, namespaces()[number % 3]
            handles["v"].update(1)
            handles["l"].add(1)
            handles["m"].put("x", 1)
        world.clock.advance(10)
        world.context.key = "another"
        accesses = 0
        while any(world.stored(name) for name in handles):
            accesses += 1
            for handle in handles.values():
                handle.clear()
            if accesses > 6 / size + 7:
                raise AssertionError(f"after {accesses} accesses, {size} looks each, some of 6 keys are still there")
        same("each access looks at a few only", accesses >= 6 / size, True)
        same("what is counted", world.expired, {"v": 6, "l": 6, "m": 6})


def the_background_sweep_forgets_what_is_not_read(subject: Subject) -> None:
    world = World(subject, StateTtlConfig.new_builder(Time.seconds(10)).build())
    value, listed, mapped = world.handles()
    world.sweep(50)
    same("with no entries nothing is due", [state.sweep_at for state in world.context.swept], [None] * 3)
    for number in range(400):
        world.context.key, world.context.namespace = number, namespaces()[number % 5]
        value.update(number)
        listed.add_all([1, 2])
        mapped.put_all({1: 1, 2: 2})
    world.sweep(9_000)
    fresh = [number for number in range(0, 400, 7)]
    for number in fresh:
        world.context.key, world.context.namespace = number, namespaces()[number % 5]
        value.update("fresh")
        listed.add("fresh")
        mapped.put("fresh", 1)
    world.sweep(8_000)
    same("entries left", [world.stored(name) for name in "vlm"], [len(fresh)] * 3)
    same("what is counted", world.expired, {"v": 400 - len(fresh), "l": 800, "m": 800})
    for number in fresh:
        world.context.key, world.context.namespace = number, namespaces()[number % 5]
        same("a fresh entry", (value.value(), list(listed), list(mapped)), ("fresh", ["fresh"], ["fresh"]))
    world.sweep(16_000)
    same("entries in the end", [world.stored(name) for name in "vlm"], [0, 0, 0])
    same("an empty snapshot", snapshot_of(world.backend), {})
    same("and the sweep sleeps", [state.sweep_at for state in world.context.swept], [None] * 3)
    value.update(1)
    same("until there is an entry", world.context.swept[0].sweep_at, world.clock.now_ms() + 10_000)


def a_slice_of_the_sweep_is_bounded(subject: Subject) -> None:
    world = World(subject, StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).build())
    value = world.value()
    for number in range(200):
        world.context.key = number
        value.update(number)
    world.clock.advance(TTL_MS)
    (state,) = world.context.swept
    now = world.clock.now_ms()
    state.sweep(now, 50, lambda: True)
    same("entries after a slice of 50", world.stored("v"), 150)
    state.sweep(now, 100, lambda: False)
    same("a slice that is asked to stop looks at few", 100 < world.stored("v") < 150, True)
    same("the next slice is later", (state.sweep_at or 0) > now, True)
    slices = world.sweep(3_000, most=20)
    same("entries in the end", world.stored("v"), 0)
    same("in more slices", slices > 5, True)


def restored_entries_are_swept(subject: Subject) -> None:
    world = World(subject, StateTtlConfig.new_builder(Time.seconds(10)).build())
    world.value().update(1)
    world.map().put("x", 1)
    world.clock.advance(10_000)
    again = world.restored()
    again.value(), again.map()
    again.sweep(0)
    same("entries after the first slice", (again.stored("v"), again.stored("m")), (0, 0))


LAWS: tuple[Law, ...] = (
    a_value_expires_after_its_time_and_a_read_removes_it,
    reading_is_an_access_where_the_update_type_says_so,
    what_expired_may_be_given_once_more,
    elements_and_map_values_expire_one_by_one,
    folded_state_begins_anew,
    a_restored_entry_is_as_old_as_it_was,
    a_full_snapshot_may_leave_out_what_expired,
    each_access_forgets_what_expired_elsewhere,
    the_background_sweep_forgets_what_is_not_read,
    a_slice_of_the_sweep_is_bounded,
    restored_entries_are_swept,
)
