"""Calls of a process table function: what it is given for a row, and what it asks for meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from rayflink.common.errors import shorten
from rayflink.common.records.row_kinds import KINDS, kinds_of, without_kinds
from rayflink.common.types import Row
from rayflink.user_types import UserValue

from ...conversion.pickled_values import python_values
from ...plan.typed import Evaluation, RowError
from ...types import RowField
from ...user_functions.process.contexts import (
    ProcessTableFunctionContext,
    ProcessTableFunctionTableSemantics,
    unknown_name,
)
from ...user_functions.process.function_classes import eval_of, on_timer_of
from .process_spec import ProcessSpec
from .process_timers import PartitionTimers

_NO_TIMERS = (
    "timers need a table argument with set semantics, on_time => DESCRIPTOR(ts) in the call, and a method on_timer"
)


class ProcessCall:
    """The call that is made now; a `CallInProgress`.

    Args:
        spec: of the function.
        states: names of its states.
        watermark: returns the last watermark.
    """

    def __init__(self, spec: ProcessSpec, states: Sequence[str], watermark: Callable[[], int | None]) -> None:
        self._watermark, self._states = watermark, list(states)
        self._semantics = {
            table.name: ProcessTableFunctionTableSemantics(
                table.name, row, table.partition, tuple(column for column, _, _ in table.order),
                -1 if table.time is None else table.time, mode,
            )
            for table, row, mode in zip(spec.tables, spec.rows, spec.modes, strict=True)
        }  # fmt: skip
        self.timers: PartitionTimers | None = None
        """None where the function has no timers."""
        self.time_ms: int | None = None
        self.timer: str | None = None
        self.cleared: set[str] = set()
        """Names of states that are cleared when the call returns."""

    @property
    def watermark_ms(self) -> int | None:
        return self._watermark()

    def register(self, time_ms: int, name: str | None) -> None:
        self._own_timers().register(time_ms, name)

    def clear_timer(self, time_ms: int | None, name: str | None) -> None:
        self._own_timers().clear(time_ms, name)

    def clear_timers(self) -> None:
        if self.timers is not None:
            self.timers.clear_all()

    def _own_timers(self) -> PartitionTimers:
        if self.timers is None:
            raise RowError("the call has no timers", _NO_TIMERS)
        return self.timers

    def clear_states(self, names: Sequence[str] | None) -> None:
        for name in names or ():
            if name not in self._states:
                raise unknown_name(name, "state", self._states)
        self.cleared.update(self._states if names is None else names)

    def semantics(self, argument: str) -> ProcessTableFunctionTableSemantics:
        if argument not in self._semantics:
            raise unknown_name(argument, "table argument", list(self._semantics))
        return self._semantics[argument]


class FunctionCalls:
    """Calls a process table function for rows and timers.

    Args:
        spec: of the function.
        call: what its context shows.
    """

    def __init__(self, spec: ProcessSpec, call: ProcessCall) -> None:
        declaration = spec.kernel.declaration
        self._spec, self._name = spec, spec.kernel.name
        self._context = ProcessTableFunctionContext(call)
        self._eval, self._on_timer = eval_of(declaration.function), on_timer_of(declaration.function)
        self._arguments = _argument_values(spec)
        names = [argument.name for argument in declaration.arguments]
        self._places = [names.index(table.name) if table.name in names else None for table in spec.tables]

    def eval(self, table: int, row: Row, states: Sequence[UserValue]) -> UserValue:
        """Call the function for a row of a table.

        Raises:
            RowError: it raised; the error says for which row.
        """
        arguments, place = list(self._arguments), self._places[table]
        if place is not None:
            arguments[place] = row
        try:
            return _listed(self._eval(self._context, *states, *arguments))
        except Exception as error:
            raise self._failure(f"the row {shorten(row, 200)}", error) from error

    def on_timer(self, states: Sequence[UserValue], time_ms: int, key: UserValue) -> UserValue:
        """Call the function for a timer.

        Raises:
            RowError: it raised; the error says for which timer.
        """
        assert self._on_timer is not None, "only a function with on_timer has timers"
        try:
            return _listed(self._on_timer(self._context, *states))
        except Exception as error:
            raise self._failure(f"the timer {time_ms} of the partition {shorten(key, 200)}", error) from error

    def _failure(self, what: str, error: Exception) -> RowError:
        problem = f"function {self._name} failed for {what}: {type(error).__name__}: {error}"
        return RowError(problem, "fix the function")


def _listed(results: UserValue) -> UserValue:
    """Return what a call gave; what it yields is taken now, while its states are at hand."""
    return list(results) if hasattr(results, "__next__") else results


def _argument_values(spec: ProcessSpec) -> list[UserValue]:
    """Return the arguments of each call, with None in the place of tables."""
    declaration, given_values = spec.kernel.declaration, dict(spec.scalars)
    evaluation = Evaluation([], 1, spec.session)
    values: list[UserValue] = []
    for argument, default in zip(declaration.arguments, declaration.defaults, strict=True):
        expr = given_values.get(argument.name)
        if expr is not None:
            [value] = python_values(evaluation.column(expr), expr.type)
            values.append(value)
        else:
            values.append(None if argument.is_table else default)
    return values


def rows_of(data: pa.RecordBatch, fields: Sequence[RowField]) -> list[Row]:
    """Return rows of these columns as the function is given them, with their kinds."""
    if not fields:
        return [Row() for _ in range(data.num_rows)]
    kinds, plain = kinds_of(data), without_kinds(data)
    columns = [python_values(column, field.type) for column, field in zip(plain.columns, fields, strict=True)]
    shaped = Row(*(field.name for field in fields))
    rows = [shaped(*values) for values in zip(*columns, strict=True)]
    if kinds is not None:
        for row, kind in zip(rows, kinds.tolist(), strict=True):
            row.set_row_kind(KINDS[kind])
    return rows


__all__ = ["FunctionCalls", "ProcessCall", "rows_of"]
