"""What is kept: no file of a kept checkpoint is ever named for deletion, and in the end nothing is left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rayflink.state.manifest import OperatorManifest
from rayflink.state.retention import Retained, SharedFiles, abandoned_files
from rayflink.state.snapshots import FileSlice, StoredSnapshot
from tests.state.manifests import whole_manifest


def test_the_newest_are_kept():
    retained = Retained(3)
    assert [retained.add(checkpoint) for checkpoint in (1, 2, 3, 7, 8)] == [(), (), (), (1,), (2,)]
    assert retained.ids == (3, 7, 8)
    retained.drop(7)
    retained.drop(99)
    assert retained.add(9) == () and retained.ids == (3, 8, 9)
    assert retained.add(9) == ()


def test_a_file_goes_with_the_last_checkpoint_that_refers_to_it():
    files = SharedFiles()
    for checkpoint, paths in ((1, ["a", "b"]), (2, ["b", "c"]), (3, ["c"])):
        files.register(checkpoint, paths)
    assert files.discard(1) == ("a",)
    assert files.discard(2) == ("b",)
    assert files.needed == {"c"}
    assert files.discard(3) == ("c",) and files.needed == frozenset()
    assert files.discard(3) == ()


def test_a_file_waits_for_checkpoints_under_way_that_may_have_built_on_it():
    files = SharedFiles()
    files.register(1, ["a", "b"])
    files.complete(1)
    files.begin(2)
    files.begin(3)
    files.register(2, ["c"])
    assert files.complete(2) == ()
    assert files.discard(1) == ()
    assert files.needed == {"a", "b", "c"}
    files.register(3, ["a"])
    assert files.complete(3) == ("b",)
    assert files.discard(2) == ("c",) and files.discard(3) == ("a",)


def test_a_file_does_not_wait_for_checkpoints_that_began_later():
    files = SharedFiles()
    files.register(1, ["a"])
    files.begin(2)
    assert files.discard(1) == ()
    files.begin(3)
    assert files.discard(2) == ("a",)


def test_what_a_failed_checkpoint_stored_goes_also_where_it_is_acknowledged_late():
    files = SharedFiles()
    files.begin(1)
    files.register(1, ["a"])
    assert files.discard(1) == ("a",)
    files.register(1, ["b"])
    assert files.discard(1) == ("b",) and files.needed == frozenset()


class Checkpoints(RuleBasedStateMachine):
    """A coordinator with several checkpoints under way; tasks build on any that was complete when theirs began."""

    def __init__(self) -> None:
        super().__init__()
        self.files = SharedFiles()
        self.ids = self.names = 0
        self.under_way: dict[int, set[str]] = {}
        self.bases: dict[int, set[str]] = {}
        self.kept: dict[int, set[str]] = {}
        self.stored: set[str] = set()

    def deleted(self, paths: tuple[str, ...]) -> None:
        for path in paths:
            assert path in self.stored, f"{path} is named twice, or was never stored"
            self.stored.remove(path)

    @rule()
    def trigger(self) -> None:
        self.ids += 1
        self.files.begin(self.ids)
        self.under_way[self.ids] = set()
        self.bases[self.ids] = set().union(*self.kept.values()) if self.kept else set()

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), new=st.integers(0, 2))
    def acknowledge(self, data: st.DataObject, new: int) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.under_way)))
        base = sorted(self.bases[checkpoint])
        reused = data.draw(st.lists(st.sampled_from(base))) if base else []
        paths = [f"{self.names + number}" for number in range(new)]
        self.names += new
        self.stored.update(paths)
        self.files.register(checkpoint, [*paths, *reused])
        self.under_way[checkpoint] |= {*paths, *reused}

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.under_way)))
        self.kept[checkpoint] = self.under_way.pop(checkpoint)
        self.deleted(self.files.complete(checkpoint))

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.under_way)))
        del self.under_way[checkpoint]
        self.deleted(self.files.discard(checkpoint))

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def subsume(self, data: st.DataObject) -> None:
        checkpoint = data.draw(st.sampled_from(sorted(self.kept)))
        del self.kept[checkpoint]
        self.deleted(self.files.discard(checkpoint))

    @invariant()
    def what_somebody_needs_is_there(self) -> None:
        bases = [self.bases[checkpoint] for checkpoint in self.under_way]
        needed = set().union(*self.kept.values(), *self.under_way.values(), *bases)
        assert needed <= self.stored
        assert self.files.needed == self.stored

    def teardown(self) -> None:
        for checkpoint in (*self.under_way, *self.kept):
            self.deleted(self.files.discard(checkpoint))
        assert not self.stored and not self.files.needed


TestCheckpoints = pytest.mark.slow(Checkpoints.TestCase)
TestCheckpoints.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_what_nobody_refers_to_is_abandoned_and_nothing_else():
    def checkpoint(number: int, *paths: str):
        snapshot = StoredSnapshot({group: FileSlice(path, 0, 1, 0) for group, path in enumerate(paths)})
        operator = OperatorManifest("a" * 32, "", "", 1, 128, (snapshot,))
        return replace(whole_manifest(), checkpoint_id=number, operators=(operator,))

    kept = [checkpoint(7, "chk-7/a", "shared/1"), checkpoint(9, "chk-9/a", "shared/1", "shared/2")]
    needed = ["chk-7/_metadata", "chk-7/a", "chk-9/_metadata", "chk-9/a", "shared/1", "shared/2"]
    left_alone = ["chk-8/_metadata", "chk-8/x", "readme.txt", "other/x", "chk-1", "sharedx/y"]
    abandoned = ["chk-10/a", "chk-10/b", "chk-7/of a failed attempt", "shared/3"]
    assert abandoned_files([*needed, *left_alone, *abandoned], kept) == tuple(sorted(abandoned))
