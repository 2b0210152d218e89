"""Hypothesis state machines for state with a time to live, against lists of times; hypothesis must be installed."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from rayflink.common.functions.state_ttl import StateTtlConfig
from rayflink.common.time import Time

from .expiry import TTL_MS, World
from .samples import namespaces
from .subject import MakeBackend, Subject, same

places = st.tuples(st.integers(0, 1), st.integers(0, 1))
numbers = st.integers(0, 2)
waits = st.sampled_from([0, 1, 2, 4, 5, 9])
Live = list[tuple[int, Any]]
"""(last access in epoch ms, value)."""


class ExpiringHistory(RuleBasedStateMachine):
    """A value, a list and a map that expire, for a few keys and namespaces."""

    make_backend: ClassVar[MakeBackend]

    @initialize(on_read=st.booleans(), in_background=st.booleans(), full=st.booleans(), looks=st.integers(0, 3))
    def begin(self, on_read: bool, in_background: bool, full: bool, looks: int) -> None:
        builder = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
        if not in_background:
            builder.disable_cleanup_in_background()
        if on_read:
            builder.update_ttl_on_read_and_write()
        if full:
            builder.cleanup_full_snapshot()
        if looks:
            builder.cleanup_incrementally(looks, False)
        self.on_read, self.in_background = on_read, in_background
        self.subject = Subject(type(self).make_backend)
        self.world = World(self.subject, builder.build())
        self.value, self.list, self.map = self.world.handles()
        self.values: dict[Any, Live] = {}
        self.lists: dict[Any, Live] = {}
        self.maps: dict[Any, dict[Any, tuple[int, Any]]] = {}

    def teardown(self) -> None:
        if not hasattr(self, "subject"):
            return
        with self.subject:
            for key in range(2):
                for space in range(2):
                    self.read((key, space), 0)
            if self.in_background:
                self.world.sweep(5_000)
                same("entries in the end", [self.world.stored(name) for name in "vlm"], [0, 0, 0])

    def _at(self, place: tuple[int, int]) -> int:
        self.world.context.key, self.world.context.namespace = place[0], namespaces()[place[1]]
        return self.world.clock.now_ms()

    def _accessed(self, time: int, now: int) -> int:
        return now if self.on_read else time

    @rule(place=places, number=numbers, replaces=st.booleans(), ms=waits)
    def write(self, place: tuple[int, int], number: int, replaces: bool, ms: int) -> None:
        self.world.clock.advance(ms)
        now = self._at(place)
        self.value.update(number)
        self.values[place] = [(now, number)]
        if replaces:
            self.list.update([number, number])
            self.lists[place] = [(now, number)] * 2
        else:
            self.list.add(number)
            self.lists.setdefault(place, []).append((now, number))
        self.map.put(number, now)
        self.maps.setdefault(place, {})[number] = now, now

    @rule(place=places, number=st.none() | numbers)
    def remove(self, place: tuple[int, int], number: int | None) -> None:
        self._at(place)
        if number is not None:
            self.map.remove(number)
            self.maps.get(place, {}).pop(number, None)
            return
        for handle, model in ((self.value, self.values), (self.list, self.lists), (self.map, self.maps)):
            handle.clear()
            model.pop(place, None)

    def _live(self, name: str, place: tuple[int, int], values: list[Any], model: dict[Any, Live]) -> Live:
        """Return what has not expired in the model, which is now read."""
        now = self.world.clock.now_ms()
        live = [entry for entry in model.get(place, []) if entry[0] + TTL_MS > now]
        same(f"the {name} of {place}", values, [value for _, value in live])
        return [(self._accessed(time, now), value) for time, value in live]

    @rule(place=places, ms=waits)
    def read(self, place: tuple[int, int], ms: int) -> None:
        self.world.clock.advance(ms)
        now = self._at(place)
        value = self.value.value()
        self.values[place] = self._live("value", place, [] if value is None else [value], self.values)
        self.lists[place] = self._live("list", place, list(self.list), self.lists)
        entries = {map_key: entry for map_key, entry in self.maps.get(place, {}).items() if entry[0] + TTL_MS > now}
        same(f"the map of {place}", dict(self.map.items()), {map_key: value for map_key, (_, value) in entries.items()})
        self.maps[place] = {map_key: (self._accessed(time, now), value) for map_key, (time, value) in entries.items()}

    @rule(ms=waits, most=st.integers(1, 5))
    def sweep(self, ms: int, most: int) -> None:
        self.world.clock.advance(ms)
        for state in self.world.context.swept:
            if state.sweep_at is not None:
                state.sweep(self.world.clock.now_ms(), most, _always)

    @rule()
    def restore(self) -> None:
        self.world = self.world.restored()
        self.value, self.list, self.map = self.world.handles()


def _always() -> bool:
    return True


__all__ = ["ExpiringHistory"]
