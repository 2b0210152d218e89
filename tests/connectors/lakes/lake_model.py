"""A sink of a lake under faults: writers and a committer, driven by hand, with an attempt that may die at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from rayflink.common import Row
from rayflink.common.connector_base.sink import Sink
from rayflink.operators.base import UserCodeError
from rayflink.operators.global_commits import GlobalCommitterOperator, SinkWriterOperator
from rayflink.testing import OperatorHarness, Place
from rayflink.testing.harness import Snapshots


class Killed(BaseException):
    """The process is gone."""


class Faults:
    """Counts the crash points that an attempt passes; at one of them something happens."""

    def __init__(self) -> None:
        self.passed, self.point, self.fault = 0, -1, ""

    def arm(self, fault: str, after: int) -> None:
        self.fault, self.point = fault, self.passed + after

    @contextmanager
    def around(self, action: str) -> Iterator[None]:
        """Kill before or after an action; "lost": the action is done, and its answer is lost."""
        mine, fault = self.passed == self.point, self.fault
        self.passed += 1
        if mine and fault == "before":
            raise Killed
        yield
        if mine and fault == "after":
            raise Killed
        if mine and fault == "lost" and action == "commit":
            raise OSError("the answer was lost")

    @contextmanager
    def installed(self, *methods: tuple[type, str, str]) -> Iterator[None]:
        """Put crash points around methods of classes: (class, method, action)."""
        patch, faults = pytest.MonkeyPatch(), self

        def surrounded(real: Callable[..., Any], action: str) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                with faults.around(action):
                    return real(*args, **kwargs)

            return call

        for owner, method, action in methods:
            patch.setattr(owner, method, surrounded(getattr(owner, method), action))
        try:
            yield
        finally:
            patch.undo()


class LakeModel:
    """Subtasks of one sink, fed with rows (n, word) of 0, 1, 2, ..., of which a checkpoint knows how far it came.

    Args:
        sink: makes the sink.
        numbers: reads the table from outside, with the bare library.
    """

    def __init__(
        self,
        sink: Callable[[], Sink[Any]],
        numbers: Callable[[], list[int]],
        parallelism: int,
    ) -> None:
        self.sink, self.numbers = sink, numbers
        self.next, self.number, self.filled = 0, 0, 0
        self.last: tuple[int, Snapshots, int] = (0, {}, 0)
        self.writers: list[OperatorHarness] = []
        self.committer: OperatorHarness | None = None
        self.zombies: list[OperatorHarness] = []
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        if self.committer is not None:
            self.zombies.append(self.committer)
        self.next, taken, self.filled = self.last
        create = self.sink().create_global_committer
        self.committer = None
        self.committer = OperatorHarness(lambda: GlobalCommitterOperator(create), restore=[taken] if taken else [])
        self.writers = [
            OperatorHarness(lambda: SinkWriterOperator(self.sink()), place=Place(subtask, parallelism))
            for subtask in range(parallelism)
        ]  # fmt: skip

    def write(self, count: int) -> None:
        for _ in range(count):
            self.writers[self.next % len(self.writers)].process(Row(n=self.next, word=f"w{self.next % 3}"))
            self.next += 1

    def checkpoint(self, how: str) -> None:
        """how: "complete"; "unheard": complete, and the notification is lost; "aborted"."""
        assert self.committer is not None
        self.number += 1
        before = self.filled
        for writer in self.writers:
            seen = len(writer.output_values())
            writer.snapshot(self.number)
            for committable in writer.output_values()[seen:]:
                self.committer.process(committable)
        taken = self.committer.snapshot(self.number)
        if self.next > self.last[0] and self.next > before:
            self.filled = self.next
        if how != "aborted":
            self.last = (self.next, taken, self.filled)
        if how == "complete":
            self.committer.notify_checkpoint_complete(self.number)

    def haunt(self) -> None:
        """Attempts that should be dead go on to commit what they know of."""
        for zombie in self.zombies:
            with suppress(UserCodeError, AssertionError, Killed):
                zombie.notify_checkpoint_complete(self.number)

    def check(self) -> None:
        seen = self.numbers()
        assert len(set(seen)) == len(seen), "rows twice"
        assert all(number < self.last[0] for number in seen), "seen before its checkpoint was complete"

    def finish(self) -> None:
        self.checkpoint("complete")
        self.check_all()

    def check_all(self) -> None:
        assert self.numbers() == list(range(self.next))


STORY: list[tuple[str, Any]] = [
    ("write", 3), ("checkpoint", "complete"), ("write", 3), ("checkpoint", "unheard"), ("write", 2),
    ("checkpoint", "aborted"), ("write", 2), ("checkpoint", "complete"),
]  # fmt: skip


def kill_at_every_point(new_model: Callable[[], LakeModel], faults: Faults, fault: str, stride: int = 1) -> int:
    """Play the story, killed at each of its crash points in turn, or at some of them; return their number."""
    point, was_hit = 0, True
    while was_hit:
        faults.point = -1
        model = new_model()
        faults.arm(fault, point)
        is_killed = False
        try:
            for step, argument in STORY:
                getattr(model, step)(argument)
        except (Killed, UserCodeError):
            is_killed = True
        was_hit, faults.point = faults.passed > faults.point, -1
        if is_killed:
            model.start(1 + point % 3)
        model.check()
        model.write(12 - model.next)
        model.finish()
        model.haunt()
        model.check_all()
        point += stride
    return point
