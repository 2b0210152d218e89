"""Evaluates units of conditions on columns, by kernels, for many events at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rayflink.common.data_types.composite_types import RowTypeInfo
from rayflink.common.data_types.type_base import TypeInformation

from ..column_conditions import BoundCondition, ColumnCondition, EventColumns, no_column
from ..conditions import AllOf, Always, AnyOf, Condition, Negation, Test
from ..errors import MalformedPatternException
from .automaton import Automaton, Unit

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

    Truths = NDArray[np.bool_]


class ColumnUnit:
    """A unit all conditions of which are on columns.

    Args:
        unit: of the automaton.
    """

    def __init__(self, unit: Unit) -> None:
        self._condition = unit.condition
        self._tests = {id(test): _ColumnTest(test) for test in unit.tests}

    def of_columns(self, data: pyarrow.RecordBatch, failed: set[int]) -> Truths:
        """Return which rows meet the unit: bool[n].

        Args:
            failed: the places of rows for which a condition raises are added to it.
        Raises:
            MalformedPatternException: a condition does not take the columns.
        """
        return self._combine(lambda test: test.of_columns(data, failed), data.num_rows, self._condition)

    def of_events(self, events: EventColumns, count: int, failed: set[int]) -> Truths:
        """Return the same for rows, of which there are `count`."""
        return self._combine(lambda test: test.of_events(events, count, failed), count, self._condition)

    def _combine(self, evaluate: Callable[[_ColumnTest], Truths], count: int, condition: Condition) -> Truths:
        if isinstance(condition, Test):
            return evaluate(self._tests[id(condition)])
        if isinstance(condition, Always):
            return np.ones(count, dtype=np.bool_)
        if isinstance(condition, Negation):
            return ~self._combine(evaluate, count, condition.condition)
        first = self._combine(evaluate, count, condition.first)
        second = self._combine(evaluate, count, condition.second)
        if isinstance(condition, AllOf):
            return first & second
        assert isinstance(condition, AnyOf), condition
        return first | second


class _ColumnTest:
    """A condition on columns, bound to each schema once."""

    def __init__(self, test: Test) -> None:
        assert test.columns is not None, f"{test} is no condition on columns"
        self._condition: ColumnCondition = test.columns
        self._line = test.call_site
        self._bound: dict[pyarrow.Schema, BoundCondition] = {}

    def of_columns(self, data: pyarrow.RecordBatch, failed: set[int]) -> Truths:
        import pyarrow

        names = self._condition.columns
        places = [data.schema.get_field_index(name) for name in names]
        if -1 in places:
            missing = no_column(names[places.index(-1)], data.schema.names)
            raise MalformedPatternException(missing.problem, missing.remedy, self._line)
        schema = pyarrow.schema([data.schema.field(place) for place in places])
        columns = [data.column(place) for place in places]
        return self._truths(schema, columns, range(data.num_rows), failed)

    def of_events(self, events: EventColumns, count: int, failed: set[int]) -> Truths:
        try:
            groups = events.groups(self._condition.columns)
        except MalformedPatternException as error:
            raise MalformedPatternException(error.problem, error.remedy, self._line) from None
        except Exception:  # found again, and raised, where the answer is needed
            return self._one_by_one(events, count, failed)
        if len(groups) == 1:
            ((_, schema, columns),) = groups
            return self._truths(schema, columns, range(count), failed)
        truths = np.zeros(count, dtype=np.bool_)
        for places, schema, columns in groups:
            chosen = range(count) if places is None else places
            truths[chosen] = self._truths(schema, columns, chosen, failed)
        return truths

    def _one_by_one(self, events: EventColumns, count: int, failed: set[int]) -> Truths:
        """Return the same where a value of an event is none of a column."""
        truths = np.zeros(count, dtype=np.bool_)
        for place in range(count):
            if count == 1:
                failed.add(place)
                break
            errors: set[int] = set()
            truths[place] = self.of_events(events.single(place), 1, errors)[0]
            failed.update(place for _ in errors)
        return truths

    def _truths(
        self, schema: pyarrow.Schema, columns: list[pyarrow.Array], places: Sequence[int], failed: set[int]
    ) -> Truths:
        bound = self._bind(schema)
        try:
            return _as_truths(bound(columns, len(places)))
        except Exception:  # found again, and raised, where the answer is needed
            return self._truths_one_by_one(bound, columns, places, failed)

    def _truths_one_by_one(
        self, bound: BoundCondition, columns: list[pyarrow.Array], places: Sequence[int], failed: set[int]
    ) -> Truths:
        truths = np.zeros(len(places), dtype=np.bool_)
        for row, place in enumerate(places):
            try:
                truths[row] = _as_truths(bound([column.slice(row, 1) for column in columns], 1))[0]
            except Exception:  # found again, and raised, where the answer is needed
                failed.add(place)
        return truths

    def _bind(self, schema: pyarrow.Schema) -> BoundCondition:
        bound = self._bound.get(schema)
        if bound is None:
            try:
                bound = self._bound[schema] = self._condition.bind(schema)
            except MalformedPatternException as error:
                raise MalformedPatternException(error.problem, error.remedy, self._line) from error
        return bound


def _as_truths(answers: pyarrow.BooleanArray) -> Truths:
    truths: Truths = answers.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return truths


def check_columns(automaton: Automaton, declared: TypeInformation | None) -> None:
    """Check the conditions on columns against the type that a stream declares, as far as it declares one.

    Raises:
        MalformedPatternException: the events lack a column, or a condition does not take its type; names its line.
    """
    if not isinstance(declared, RowTypeInfo):
        return
    schema, names = declared.arrow_schema(), declared.get_field_names()
    for unit in automaton.units:
        for test in unit.tests:
            condition = test.columns
            if condition is None:
                continue
            try:
                condition.check_names(names)
                if schema is not None:
                    condition.bind(schema.empty_table().select(list(condition.columns)).schema)
            except MalformedPatternException as error:
                raise MalformedPatternException(error.problem, error.remedy, test.call_site) from error


__all__ = ["ColumnUnit", "check_columns"]
