"""State while checkpoint files are made: at every step it equals the dicts, and the files equal their barrier."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rayflink.operators.windows.window import TimeWindow
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.rocksdb.column_family import DatabaseError
from rayflink.state.snapshots import KeyedCapture
from rayflink.testing.backend_laws.captures import groups_of
from rayflink.testing.backend_laws.checkpoints import Checkpoints, restore_into
from rayflink.testing.backend_laws.expiry import World
from rayflink.testing.backend_laws.expiry_model import ExpiringHistory
from rayflink.testing.backend_laws.model import check_histories
from rayflink.testing.backend_laws.subject import Subject, content_of, maps_in, same, same_bag
from tests.state.rocksdb.staged_links import StagedBackend, in_steps

KEYS, SPACES = (0, "a", (1, "b"), 2.0, None), (None, TimeWindow(0, 10), "space")
NAMES = ("one", "two", "three")
Place = tuple[Any, Any]


class Run:
    """Random work on one backend and on dicts, with up to two checkpoints pending; a seed gives one run.

    Args:
        seed: of all choices.
        memory: of the backend; below some thousand bytes hardly anything stays in it.
    """

    def __init__(self, seed: int, memory: int) -> None:
        self.random, self.memory = random.Random(seed), memory
        self.subject = Subject(partial(StagedBackend, memory=memory, is_open=True))
        self.backend: Any = self.subject.backend()
        self.values: dict[str, dict[Place, list[int]]] = {}
        self.lists: dict[Place, list[Any]] = {}
        self.maps: dict[Place, dict[int, Any]] = {}
        self.timers: set[tuple[int, Any, Any]] = set()
        self.checkpoints = Checkpoints()
        self.captures: list[tuple[int, KeyedCapture, Any]] = []
        self.opened: tuple[Iterator[Any], dict[int, Any]] | None = None

    def go(self, steps: int) -> None:
        works = [self.value, self.list, self.map, self.timer, self.look, self.step, self.evict, self.clear, self.all]
        works += [self.capture, self.write, self.give_up, self.break_link, self.iterate]
        weights = [8, 6, 8, 5, 8, 8, 4, 0.2, 0.5, 2, 1, 0.5, 0.3, 2]
        with self.subject:
            for work in self.random.choices(works, weights, k=steps):
                work()
            while self.captures:
                self.write()
            self.all()
            self.backend.store.drain()
            same("links that are left", list(self.backend.store.folder.glob("links-*")), [])
        same("files that are left", self.backend.store.folder.exists(), False)

    def place(self) -> Place:
        return self.random.choice(KEYS), self.random.choice(SPACES)

    def table(self) -> tuple[Any, dict[Place, list[int]]]:
        name = self.random.choice(NAMES)
        return self.backend.table(ValueStateDescriptor(name)), self.values.setdefault(name, {})

    @property
    def list_table(self) -> Any:
        return self.backend.table(ListStateDescriptor("list"))

    @property
    def map_table(self) -> Any:
        return self.backend.map_table(MapStateDescriptor("map"))

    # work

    def value(self) -> None:
        (table, model), place, number = self.table(), self.place(), self.random.randrange(100)
        how = self.random.randrange(4)
        if how == 0:
            table.remove(*place)
            model.pop(place, None)
        elif how == 1:
            table.put(place[0], [number], place[1])
            model[place] = [number]
        else:
            loaded = table.load([place[0]], place[1])
            if place[0] in loaded:
                loaded[place[0]].append(number)
            else:
                loaded[place[0]] = [number]
            table.changed([place[0]], place[1])
            model.setdefault(place, []).append(number)

    def list(self) -> None:
        place, how = self.place(), self.random.randrange(8)
        if how == 0:
            self.list_table.remove(*place)
            self.lists.pop(place, None)
        elif how == 1:
            given = [[number] for number in range(self.random.randrange(1, 7))]
            self.list_table.put(place[0], given, place[1])
            self.lists[place] = deepcopy(given)
        else:
            for number in range(how - 1):
                self.list_table.append(place[0], [number], place[1])
                self.lists.setdefault(place, []).append([number])

    def map(self) -> None:
        (key, space), how, at = self.place(), self.random.randrange(8), self.random.randrange(12)
        if how == 0:
            self.map_table.clear(key, space)
            self.maps.pop((key, space), None)
        elif how < 3:
            self.map_table.remove(key, at, space)
            left = self.maps.get((key, space), {})
            left.pop(at, None)
            if not left:
                self.maps.pop((key, space), None)
        else:
            for number in range(at, at + how - 2):
                self.map_table.put(key, number, how, space)
                self.maps.setdefault((key, space), {})[number] = how

    def timer(self) -> None:
        timers, (key, space), time = self.backend.timers("t"), self.place(), self.random.randrange(20)
        how = self.random.randrange(6)
        if how == 0:
            for fired in timers.due(time):
                same("the time that fires", fired[0], min(at for at, _, _ in self.timers))
                self.timers.remove(fired)
        elif how == 1:
            same("whether it is set", timers.contains(time, key, space), (time, key, space) in self.timers)
            timers.delete(time, key, space)
            self.timers.discard((time, key, space))
        else:
            for at in range(time, time + how):
                timers.register(at, key, space)
                self.timers.add((at, key, space))

    def evict(self) -> None:
        kind, table = self.random.choice(list(self.backend._tables.values()) or [("", None)])
        if table is not None:
            table.cache.rotate()

    def clear(self) -> None:
        self.backend.clear()
        self.values, self.lists, self.maps, self.timers, self.opened = {}, {}, {}, set(), None

    # checkpoints

    def capture(self) -> None:
        if len(self.captures) == 2:
            return
        number = self.checkpoints.next_number()
        if self.random.random() < 0.3:
            self.backend.announce(number)
            self.backend.prepare(lambda: False)
        self.captures.append((number, self.backend.capture(number), deepcopy(self.held())))

    def step(self) -> None:
        for link in self.backend.threads.links[-1:]:
            for _ in range(self.random.randrange(1, 5)):
                link.step()
        if self.random.random() < 0.2:
            self.backend.store.drain_some()

    def break_link(self) -> None:
        for link in self.backend.threads.links[-1:]:
            link.breaks = True

    def write(self) -> None:
        if not self.captures:
            return
        number, capture, held = self.captures.pop(0)
        try:
            if self.random.random() < 0.3:
                groups = groups_of(capture)  # a savepoint
                again = self.random.choice([self.subject.backend, self.subject.hashmap])(groups)
                self.compare(again, held)
                self.subject.close(again)
                return
            parts = self.checkpoints.write(number, capture)
        except DatabaseError:
            self.backend.abort(number)
            return
        self.checkpoints.complete(number)
        self.backend.confirm(number)
        again = self.subject.backend()
        self.compare(restore_into(again, self.checkpoints, [parts]), held)
        self.subject.close(again)

    def give_up(self) -> None:
        if self.captures:
            number, capture, _ = self.captures.pop(self.random.randrange(len(self.captures)))
            capture.release()
            self.backend.abort(number)

    # comparisons

    def held(self) -> Any:
        return self.values, self.lists, self.maps, self.timers

    def look(self) -> None:
        (table, model), place = self.table(), self.place()
        same(f"the value of {place}", table.get(*place), model.get(place))
        same(f"the list of {place}", self.list_table.get(*place), self.lists.get(place))
        at = self.random.randrange(12)
        same(
            f"{at} in the map of {place}", self.map_table.get(place[0], at, place[1]), self.maps.get(place, {}).get(at)
        )
        same(f"the map of {place}", dict(self.map_table.items(*place)), self.maps.get(place, {}))

    def iterate(self) -> None:
        """Read a map as it was at the first entry, whatever is written meanwhile."""
        if self.opened is None:
            place = self.place()
            self.opened = iter(self.map_table.items(*place)), dict(self.maps.get(place, {}))
            return
        (rest, wanted), self.opened = self.opened, None
        same("a map that was being read", dict(rest), wanted)

    def all(self) -> None:
        self.compare(self.backend, self.held())

    def compare(self, backend: Any, held: Any) -> None:
        values, lists, maps, timers = held
        for name in NAMES:
            same(f"values {name}", content_of(backend.table(ValueStateDescriptor(name))), values.get(name, {}))
        same("lists", content_of(backend.table(ListStateDescriptor("list"))), lists)
        same("maps", maps_in(backend.map_table(MapStateDescriptor("map"))), maps)
        same_bag("timers", backend.timers("t"), timers)


LONG = [pytest.mark.slow, pytest.mark.soak]


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    in_steps(monkeypatch)


@pytest.mark.parametrize("memory", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (8_000, 64 << 20))])
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=LONG) for part in range(1, 4))])
def test_state_is_as_in_dicts_and_files_are_of_their_barrier(part: int, memory: int) -> None:
    for seed in range(part * 40, part * 40 + (40 if part else 1)):
        try:
            Run(seed, memory).go(120)
        except Exception as error:
            raise AssertionError(f"seed {seed}, memory {memory}") from error


class StagedExpiringHistory(ExpiringHistory):
    """A history of state that expires, with a pending checkpoint from which it restores."""

    taken: Any = None

    @precondition(lambda self: self.taken is None)
    @rule()
    def capture(self) -> None:
        models = deepcopy((self.values, self.lists, self.maps))
        self.checkpoints, backend = Checkpoints(), self.world.backend
        assert isinstance(backend, StagedBackend)
        self.taken = backend.capture(self.checkpoints.next_number()), backend.threads, models

    @precondition(lambda self: self.taken is not None)
    @rule(steps=st.integers(1, 4))
    def go_on_with_links(self, steps: int) -> None:
        for link in self.taken[1].links[-1:]:
            for _ in range(steps):
                link.step()

    @precondition(lambda self: self.taken is not None)
    @rule()
    def go_back(self) -> None:
        (capture, _, models), self.taken = self.taken, None
        parts, again = self.checkpoints.write(1, capture), self.subject.backend()
        restore_into(again, self.checkpoints, [parts])
        self.world = World(self.subject, self.world.config, clock=self.world.clock, backend=again)
        self.value, self.list, self.map = self.world.handles()
        self.values, self.lists, self.maps = models

    def teardown(self) -> None:
        if self.taken is not None:
            self.taken[0].release()
        super().teardown()


@pytest.mark.slow
@pytest.mark.parametrize("memory", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (8_000, 64 << 20))])
def test_state_that_expires_loses_nothing_fresh_at_any_step_of_the_links(memory: int) -> None:
    check_histories(partial(StagedBackend, memory=memory, is_open=True), 30, 50, StagedExpiringHistory, False)


def test_what_is_written_during_an_idle_sweep_round_is_swept_too() -> None:
    """Found by the histories above: the round had begun with what a sweep before it had removed."""
    backend = staticmethod(partial(StagedBackend, memory=1, is_open=True))
    history = type("History", (StagedExpiringHistory,), {"make_backend": backend})()
    history.begin(looks=1, full=True, in_background=True, on_read=False)
    history.write(ms=9, number=2, place=(0, 0), replaces=True)
    for most, ms in [(4, 1), (5, 9), (5, 5)]:
        history.sweep(most=most, ms=ms)
    history.write(ms=9, number=2, place=(1, 0), replaces=True)
    for most, ms in [(3, 9), (5, 0), (3, 5), (4, 5)]:
        history.sweep(most=most, ms=ms)
    history.write(ms=2, number=2, place=(1, 0), replaces=False)
    for most, ms in [(2, 4), (3, 2), (3, 9), (5, 4), (1, 0), (5, 5)]:
        history.sweep(most=most, ms=ms)
    history.write(ms=4, number=1, place=(0, 0), replaces=False)
    history.teardown()
