"""Evaluates the conditions that depend on an event alone, for many events at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rayflink.common.errors import RayflinkError, shorten
from rayflink.user_types import UserRecord

from ..column_conditions import EventColumns
from ..conditions import AllOf, Always, AnyOf, Condition, Negation, Test
from ..errors import MalformedPatternException
from .automaton import Unit
from .column_units import ColumnUnit
from .matcher import UNKNOWN

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

Truths: TypeAlias = "Sequence[bool] | NDArray[np.bool_]"
"""Which events meet a condition."""
_BITS = 62
"""Conditions that fit into the masks of one array."""


class NoBoolean(RayflinkError, TypeError):
    """A condition of a pattern gave something else than a bool.

    Args:
        condition: its name.
        result: what it gave, shortened.
        line: of the program that passed the condition, or "".
    """

    def __init__(self, condition: str, result: str, line: str) -> None:
        super().__init__(condition, result, line)
        self.condition, self.result, self.line = condition, result, line

    def __str__(self) -> str:
        site = f" (passed at {self.line})" if self.line else ""
        return f"the condition {self.condition!r}{site} gave {self.result}; return True or False, such as bool(...)"


class EventConditions:
    """Conditions on an event alone, ready to be evaluated.

    Args:
        units: of an automaton, or of several.
        defers_errors: whether a column that events lack, and an answer that is no bool, is an error where the answer is
            needed, which is then the error of one of several patterns; else it is one at once.

    Attributes:
        tried: number of events for which each unit was evaluated.
        true: number of those that met it.
    """

    def __init__(self, units: Sequence[Unit], defers_errors: bool = False) -> None:
        self._defers_errors = defers_errors
        self._calls = [_call_of(unit.condition) for unit in units]
        self._units = units
        self._on_columns = {index: ColumnUnit(unit) for index, unit in enumerate(units) if unit.is_on_columns}
        self.tried = [0] * len(units)
        self.true = [0] * len(units)

    def masks(self, events: list[UserRecord]) -> list[int]:
        """Return the mask of each event: bit i is set if it meets unit i.

        An event for which a condition raises has the mask UNKNOWN: the condition is evaluated again, and may fail the
        job, only where a partial match needs it.
        """
        answers = self.answers(events)
        failed = set().union(*(places for _, places in answers))
        return combine([column for column, _ in answers], len(events), failed)

    def answers(self, events: list[UserRecord]) -> list[tuple[Truths, set[int]]]:
        """Return for each unit which events meet it, and the places of those for which a condition raises."""
        rows = EventColumns(events) if self._on_columns and events else None
        answers: list[tuple[Truths, set[int]]] = []
        for index in range(len(self._units)):
            failed: set[int] = set()
            if rows is None or index not in self._on_columns:
                truths: Truths = self._answers(index, events, failed)
            else:
                truths = self._counted(index, self._of_columns(index, rows, len(events), failed))
            answers.append((truths, failed))
        return answers

    def _of_columns(self, index: int, rows: EventColumns, count: int, failed: set[int]) -> NDArray[np.bool_]:
        try:
            return self._on_columns[index].of_events(rows, count, failed)
        except MalformedPatternException:
            if not self._defers_errors:
                raise
            failed.update(range(count))
            return np.zeros(count, dtype=np.bool_)

    @property
    def are_on_columns(self) -> bool:
        """Return whether `column_masks` decides some units."""
        return bool(self._on_columns) and len(self._units) <= _BITS

    @property
    def undecided(self) -> tuple[int, ...]:
        """Return the units that need the event as a Python value."""
        return tuple(index for index in range(len(self._units)) if index not in self._on_columns)

    def column_masks(self, data: pyarrow.RecordBatch) -> NDArray[np.int64]:
        """Return the mask of each row of a batch, int64[n]; bits of the undecided units are 0.

        Raises:
            MalformedPatternException: a condition does not take the columns; names its line.
        """
        masks = np.zeros(data.num_rows, dtype=np.int64)
        failed: set[int] = set()
        for index, unit in self._on_columns.items():
            masks |= self._counted(index, unit.of_columns(data, failed)).astype(np.int64) << index
        masks[list(failed)] = UNKNOWN
        return masks

    def complete(self, masks: list[int], events: list[UserRecord]) -> list[int]:
        """Return the masks with the bits of the undecided units.

        Args:
            masks: of `column_masks`.
            events: the same rows as Python values.
        """
        failed = {place for place, mask in enumerate(masks) if mask == UNKNOWN}
        columns = [self._answers(index, events, failed) for index in range(len(self._units))]
        combined = [mask | bits for mask, bits in zip(masks, _combine(columns, len(events)), strict=True)]
        for place in failed:
            combined[place] = UNKNOWN
        return combined

    def _answers(self, index: int, events: list[UserRecord], failed: set[int]) -> Sequence[bool]:
        """Return which events meet a unit; False for all where it is one on columns."""
        if index in self._on_columns:
            return [False] * len(events)
        call, unit = self._calls[index], self._units[index]
        try:
            answers: list[Any] = list(map(call, events))
        except Exception:  # found again, and raised, where the answer is needed
            answers = _one_by_one(call, events, failed)
        if not _BOOLEANS.issuperset(map(type, answers)):
            answers = self._as_bools(answers, unit, failed)
        self.tried[index] += len(events)
        self.true[index] += answers.count(True)
        return answers

    def _as_bools(self, answers: list[Any], unit: Unit, failed: set[int]) -> list[bool]:
        if not self._defers_errors:
            return [_as_bool(answer, unit) for answer in answers]
        return _one_by_one(partial(_as_bool, unit=unit), answers, failed)

    def _counted(self, index: int, answers: NDArray[np.bool_]) -> NDArray[np.bool_]:
        self.tried[index] += len(answers)
        self.true[index] += int(answers.sum())
        return answers

    def evaluate(self, index: int, event: UserRecord) -> bool:
        """Return whether one event meets a unit.

        Raises:
            NoBoolean: the condition gave something else than a bool.
            Exception: what the condition raises.
        """
        answer = _as_bool(self._calls[index](event), self._units[index])
        self.tried[index] += 1
        self.true[index] += answer
        return answer


_BOOLEANS = frozenset({bool})


def as_bool(answer: object, test: Test) -> bool:
    """Return the answer of a test.

    Raises:
        NoBoolean: it is no bool.
    """
    if answer is True or answer is False:
        return answer
    if isinstance(answer, np.bool_):
        return bool(answer)
    raise NoBoolean(test.label, f"{shorten(answer, 80)} of type {type(answer).__name__}", test.call_site)


def _as_bool(answer: object, unit: Unit) -> bool:
    return as_bool(answer, unit.tests[0])


def _one_by_one(call: Callable[[Any], Any], events: list[UserRecord], failed: set[int]) -> list[Any]:
    answers: list[Any] = []
    for place, event in enumerate(events):
        try:
            answers.append(call(event))
        except Exception:  # found again, and raised, where the answer is needed
            failed.add(place)
            answers.append(False)
    return answers


def combine(columns: Sequence[Truths], count: int, failed: Iterable[int]) -> list[int]:
    """Return the masks of `count` events.

    Args:
        columns: which events meet each unit.
        failed: places of the events whose mask is UNKNOWN.
    """
    masks = _combine(columns, count)
    for place in failed:
        masks[place] = UNKNOWN
    return masks


def _combine(columns: Sequence[Truths], count: int) -> list[int]:
    if not columns:
        return [0] * count
    if len(columns) > _BITS:
        return [sum(bool(answer) << index for index, answer in enumerate(row)) for row in zip(*columns, strict=True)]
    masks = np.zeros(count, dtype=np.int64)
    for index, answers in enumerate(columns):
        masks |= np.array(answers, dtype=bool).astype(np.int64) << index
    combined: list[int] = masks.tolist()
    return combined


def _call_of(condition: Condition) -> Callable[[Any], Any]:
    """Return a condition as one call; of combined conditions each part is checked to give a bool."""
    return condition.function.call if isinstance(condition, Test) else _strict(condition)


def _strict(condition: Condition) -> Callable[[Any], bool]:
    if isinstance(condition, Test):
        call, test = condition.function.call, condition
        return lambda event: as_bool(call(event), test)
    if isinstance(condition, Always):
        return lambda event: True
    if isinstance(condition, Negation):
        inner = _strict(condition.condition)
        return lambda event: not inner(event)
    first, second = _strict(condition.first), _strict(condition.second)
    if isinstance(condition, AllOf):
        return lambda event: first(event) and second(event)
    assert isinstance(condition, AnyOf), condition
    return lambda event: first(event) or second(event)


__all__ = ["EventConditions", "NoBoolean", "Truths", "as_bool", "combine"]
