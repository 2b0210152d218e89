"""Changelog inference: the changes that each step of a plan produces, and whether updates include the row before.

A step is asked three things: what it gives when its inputs give this, what it takes, and whether it wants to know
what was there before an update. The answers are followed up the plan and down again.

Source: apache/flink FlinkChangelogModeInferenceProgram.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import Protocol

from ..errors import SqlError
from .typed import Place


class Change(Flag):
    """A kind of change of a row."""

    NONE = 0
    INSERT = 1
    UPDATE = 2
    DELETE = 4
    ALL = 7


class Step(Protocol):
    """A step of a plan; equal ones are one."""

    @property
    def inputs(self) -> tuple[Step, ...]:
        """Return the steps whose rows it takes."""

    @property
    def place(self) -> Place | None:
        """Return its place in the text."""

    def explain_line(self) -> str:
        """Return its line of the plan."""

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        """Return the changes of its rows, for the changes of its inputs."""

    def takes_changes(self) -> Change:
        """Return the changes that its inputs may have."""

    def requires_update_before(self, is_wanted: bool) -> bool:
        """Return whether its inputs must send the row before an update; `is_wanted`: whether it must itself."""

    @property
    def produces_update_before(self) -> bool:
        """Return whether it can send the row before an update."""

    @property
    def instead(self) -> str:
        """Return the remedy where it does not take the changes of its inputs, or cannot give what is asked for."""


@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of changes that a step produces, or that a stream is to have.

    >>> str(ChangelogMode(Change.INSERT | Change.UPDATE, before=True))
    '[I,UB,UA]'

    Args:
        changes: what happens to rows.
        before: whether a row that replaces another comes behind an UPDATE_BEFORE with what was there.
    """

    changes: Change
    before: bool = False

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Return rows that only come."""
        return ChangelogMode(Change.INSERT)

    @staticmethod
    def upsert() -> ChangelogMode:
        """Return rows that replace those of their key, and deletions: INSERT, UPDATE_AFTER and DELETE."""
        return ChangelogMode(Change.ALL)

    @staticmethod
    def all() -> ChangelogMode:
        """Return all kinds."""
        return ChangelogMode(Change.ALL, before=True)

    @property
    def is_append_only(self) -> bool:
        """Return whether rows only come, and stay."""
        return self.changes in (Change.INSERT, Change.NONE)

    def __str__(self) -> str:
        shown = ["I"] if Change.INSERT in self.changes else []
        if Change.UPDATE in self.changes:
            shown += ["UB", "UA"] if self.before else ["UA"]
        if Change.DELETE in self.changes:
            shown.append("D")
        return f"[{','.join(shown) or 'NONE'}]"


def changes_of(step: Step) -> Change:
    """Return the changes of a step's rows, whether or not other steps take them."""
    return step.gives_changes([changes_of(below) for below in step.inputs])


class ChangelogModes:
    """The changelog modes of the steps of plans.

    Args:
        roots: what gives the results.
        before: whether updates of results must include the row before.

    Raises:
        SqlError: a step does not take what another gives.
    """

    def __init__(self, roots: Iterable[Step], before: bool = False) -> None:
        self._changes: dict[Step, Change] = {}
        self._before: dict[Step, bool] = {}
        for root in roots:
            self._rise(root)
            self.ask(root, before)

    def of(self, step: Step) -> ChangelogMode:
        """Return the changelog mode of a step."""
        return ChangelogMode(self._changes[step], self._before[step])

    def wants_before(self, step: Step) -> bool:
        """Return whether updates of a step must include the row before; those of unknown ones do."""
        return self._before.get(step, True)

    def _rise(self, step: Step) -> Change:
        known = self._changes.get(step)
        if known is None:
            input_changes = [self._rise(below) for below in step.inputs]
            for below, changes in zip(step.inputs, input_changes, strict=True):
                if refused := changes & ~step.takes_changes():
                    raise _refusal(step, below, refused)
            known = self._changes[step] = step.gives_changes(input_changes)
        return known

    def can_give_before(self, step: Step) -> bool:
        """Return whether updates of a step, if it gives any, can include the row before."""
        if Change.UPDATE not in self._changes[step]:
            return True
        is_passed_on = step.requires_update_before(True)
        return step.produces_update_before and (not is_passed_on or all(map(self.can_give_before, step.inputs)))

    def ask(self, step: Step, is_wanted: bool) -> None:
        """Let the most demanding consumer of a step decide."""
        if self._before.get(step) in (True, is_wanted):
            return
        if is_wanted and Change.UPDATE in self._changes[step] and not step.produces_update_before:
            problem = f"{step.explain_line()} gives updates without the row before, which is asked for"
            raise SqlError(problem, step.instead, "", step.place)
        self._before[step] = is_wanted
        for below in step.inputs:
            self.ask(below, step.requires_update_before(is_wanted))


def changelog_modes(roots: Sequence[Step]) -> ChangelogModes:
    """Return the changelog modes of the steps of plans, whose results include the row before where they can."""
    modes = ChangelogModes(roots)
    for root in roots:
        if modes.can_give_before(root):
            modes.ask(root, True)
    return modes


def _refusal(step: Step, below: Step, refused: Change) -> SqlError:
    kinds = {Change.UPDATE: "update", Change.DELETE: "delete", Change.UPDATE | Change.DELETE: "update and delete"}
    kind = kinds.get(refused & ~Change.INSERT, "insert")
    line = step.explain_line()
    name = line[: line.find("(")]
    sink = line.partition("table=[")[2].partition("]")[0] if name == "Sink" else ""
    what = f"Table sink {sink!r}" if sink else name
    problem = f"{what} doesn't support consuming {kind} changes which is produced by node {below.explain_line()}"
    remedy = f"{step.instead}, or let the query give each row once"
    return SqlError(problem, remedy, "", step.place or below.place)


__all__ = ["Change", "ChangelogMode", "ChangelogModes", "changes_of", "Step", "changelog_modes"]
