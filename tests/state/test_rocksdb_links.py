"""While the files of a checkpoint are made, at whatever step, state is as dicts would have it, and the files are of
their barrier.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rayflink.state.rocksdb_column import DatabaseError
from rayflink.testing.backend_laws.checkpoints import Checkpoints, restore_into
from rayflink.testing.backend_laws.expiry import World
from rayflink.testing.backend_laws.expiry_model import ExpiringHistory
from rayflink.testing.backend_laws.model import History, check_histories
from rayflink.testing.backend_laws.subject import content_of, maps_in, same, same_bag
from tests.state.staged_links import StagedBackend, in_steps


class StagedHistory(History):
    """A history in which links go on by steps, and now and then fail."""

    backend: Any

    @rule(steps=st.integers(1, 4))
    def go_on_with_links(self, steps: int) -> None:
        for link in self.backend.threads.links[-1:]:
            for _ in range(steps):
                link.step()

    @rule()
    def break_links(self) -> None:
        for link in self.backend.threads.links[-1:]:
            link.breaks = True

    def write(self, which: int) -> None:
        number, _, _ = self.captures[which % len(self.captures)]
        try:
            super().write(which)
        except DatabaseError as error:
            assert "the disk is gone" in str(error)
            self.backend.abort(number)

    @rule()
    def compare_all(self) -> None:
        same("all values", content_of(self.values), self.model.values)
        same("all lists", content_of(self.lists), self.model.lists)
        same("all maps", maps_in(self.maps), self.model.maps)
        same_bag("all timers", self.queue, self.model.timers)
        if not self.backend.store.is_linking:
            super().compare_all()


class StagedExpiringHistory(ExpiringHistory):
    """A history of state that expires, with a checkpoint under way to which it goes back."""

    taken: Any = None

    @precondition(lambda self: self.taken is None)
    @rule()
    def capture(self) -> None:
        models = deepcopy((self.values, self.lists, self.maps))
        self.checkpoints = Checkpoints()
        self.taken = self.world.backend.capture(self.checkpoints.next_number()), self.world.backend.threads, models  # type: ignore[attr-defined]

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


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    in_steps(monkeypatch)


BACKENDS = pytest.mark.parametrize(
    "make",
    [
        pytest.param(StagedBackend, id="hardly any memory"),
        pytest.param(partial(StagedBackend, memory=64 << 20, is_open=True), id="large cache"),
    ],
)


@BACKENDS
@pytest.mark.slow
def test_a_history_gives_what_dicts_would_give_at_every_step_of_the_links(make: Any) -> None:
    check_histories(make, 60, 60, StagedHistory)


@BACKENDS
@pytest.mark.slow
def test_state_that_expires_loses_nothing_fresh_at_any_step_of_the_links(make: Any) -> None:
    check_histories(make, 60, 50, StagedExpiringHistory)
