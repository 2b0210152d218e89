"""Calls of aggregate functions of the user's own: accumulators of groups, their results, and their bytes in state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.errors import shorten
from rayflink.common.types import Row
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes
from rayflink.user_types import UserValue

from ..conversion.pickled_values import python_values
from ..plan.typed import Arguments, Function, RowError, Values
from ..types import DataType, Root
from .aggregate_classes import AggregateFunction, ImperativeAggregateFunction, TableAggregateFunction
from .user_kernels import UserKernel, column_form, frame_of, rows_of_call, values_of_row

if TYPE_CHECKING:
    import pyarrow

    ArgumentRow: TypeAlias = "tuple[UserValue, ...]"

Template: TypeAlias = "tuple[tuple[UserValue] | None, ...]"
"""The arguments of a call: None for the next column, a constant in a tuple."""


class AggregateKernel(UserKernel):
    """A user's aggregate function in queries, or a function of columns of pandas, Arrow or polars.

    Args:
        function: an ImperativeAggregateFunction; a callable where it is given columns.
        kind: what it is given: values of a row, or columns.
        name: for messages.
        row_names: of the columns of the row that it is given; none: it is given their values.
    """

    def __init__(self, function: UserValue, kind: str, name: str, row_names: tuple[str, ...] = ()) -> None:
        super().__init__(function, kind, name)
        self.row_names = row_names

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, AggregateKernel) and self.row_names == other.row_names

    def __hash__(self) -> int:
        return super().__hash__()

    def __call__(self, arguments: Arguments) -> Values:
        raise AssertionError(f"{self._name} is called by aggregations, not for each row")

    @property
    def function(self) -> UserValue:
        """Return the function."""
        return self._function

    @property
    def name(self) -> str:
        """Return its name, for messages."""
        return self._name

    @property
    def kind(self) -> str:
        """Return what it is given: "general" for the values of a row, or a kind of columns."""
        return self._kind

    @property
    def gives_rows(self) -> bool:
        """Return whether its result is rows."""
        return isinstance(self._function, TableAggregateFunction)

    @property
    def takes_columns(self) -> bool:
        """Return whether it is called with all values of a group at once."""
        return self._kind != "general"

    @property
    def retracts(self) -> bool:
        """Return whether rows can be taken back."""
        return not self.takes_columns and _overrides(self._function, "retract")

    @property
    def merges(self) -> bool:
        """Return whether accumulators of parts of the rows can be merged."""
        return not self.takes_columns and _overrides(self._function, "merge")


def kernel_of(function: Function) -> AggregateKernel:
    """Return the kernel of an aggregate function of the user's own."""
    assert isinstance(function.kernel, AggregateKernel), f"{function.name} is no aggregate function"
    return function.kernel


def _overrides(function: ImperativeAggregateFunction[UserValue, UserValue], name: str) -> bool:
    own, base = getattr(type(function), name), getattr(ImperativeAggregateFunction, name)
    return own is not base or name in vars(function)


@dataclass(frozen=True)
class UserAggregation:
    """A call of a user's aggregate function.

    Its arguments that are no constants come in one column: alone, or several as the fields of a struct.

    Args:
        kernel: the function.
        template: which arguments are constants.
        result: type of the results; of a function that gives rows an ARRAY of ROW.
        columns: types of the arguments that are no constants.
    """

    kernel: AggregateKernel
    template: Template
    result: DataType
    columns: tuple[DataType, ...] = ()

    # accumulators

    def create(self) -> UserValue:
        """Return a new accumulator."""
        try:
            return self.kernel.function.create_accumulator()
        except Exception as error:
            raise self._failure("create_accumulator", error) from error

    def load(self, data: bytes | None) -> UserValue:
        """Return a stored accumulator, a new one if there is none."""
        return self.create() if data is None else from_bytes(data)

    def dump(self, accumulator: UserValue) -> bytes:
        """Return an accumulator as it is stored."""
        return to_bytes(accumulator)

    def accumulate(self, accumulator: UserValue, rows: Iterable[ArgumentRow]) -> None:
        """Add rows to an accumulator."""
        accumulate, row = self.kernel.function.accumulate, ()
        try:
            for row in rows:
                accumulate(accumulator, *row)
        except Exception as error:
            raise self._failure("accumulate", error, row) from error

    def change(self, accumulator: UserValue, rows: Iterable[ArgumentRow], weights: Iterable[int]) -> None:
        """Add rows to an accumulator or take them back.

        Args:
            weights: 1, -1, or 0 for rows that do not count.
        """
        function, row = self.kernel.function, ()
        accumulate, retract = function.accumulate, function.retract
        try:
            for row, weight in zip(rows, weights, strict=True):
                if weight > 0:
                    accumulate(accumulator, *row)
                elif weight < 0:
                    retract(accumulator, *row)
        except Exception as error:
            raise self._failure("accumulate or retract", error, row) from error

    def values_behind_rows(
        self, accumulator: UserValue, rows: Iterable[ArgumentRow], weights: Iterable[int]
    ) -> list[UserValue]:
        """Add rows to an accumulator or take them back, and return the value behind each of them."""
        function, row = self.kernel.function, ()
        values: list[UserValue] = []
        accumulate, retract, value = function.accumulate, function.retract, self._value_method(is_last=False)
        append = values.append
        try:
            for row, weight in zip(rows, weights, strict=True):
                if weight > 0:
                    accumulate(accumulator, *row)
                elif weight < 0:
                    retract(accumulator, *row)
                append(value(accumulator))
        except Exception as error:
            raise self._failure("accumulate, retract or get_value", error, row) from error
        return values

    def merge(self, parts: Sequence[bytes]) -> bytes:
        """Return the accumulator that several are merged to."""
        if len(parts) == 1:
            return parts[0]
        first, *others = map(from_bytes, parts)
        try:
            self.kernel.function.merge(first, others)
        except Exception as error:
            raise self._failure("merge", error) from error
        return self.dump(first)

    def value(self, accumulator: UserValue) -> UserValue:
        """Return the value of an accumulator that is not changed any more."""
        try:
            return self._value_method(is_last=True)(accumulator)
        except Exception as error:
            raise self._failure("get_value", error) from error

    def _value_method(self, is_last: bool) -> Callable[[UserValue], UserValue]:
        """Return what makes a value of an accumulator.

        Args:
            is_last: the accumulator does not change behind that; else a value shares nothing with it.
        """
        function = self.kernel.function
        if self.kernel.gives_rows:
            width, name = len(self.result.items[0].fields), self.kernel.name
            emit = function.emit_value
            return lambda accumulator: [
                tuple(copied(value) for value in values_of_row(row, width, name))
                for row in rows_of_call(emit(accumulator))
            ]
        get_value: Callable[[UserValue], UserValue] = function.get_value
        is_atom = not (self.result.items or self.result.fields or self.result.root is Root.RAW)
        if is_last or is_atom and self.kernel.result_type is None:
            return get_value
        return lambda accumulator: copied(get_value(accumulator))

    def _failure(self, method: str, error: Exception, row: ArgumentRow | None = None) -> RowError:
        called = "" if row is None else f" for the arguments {shorten(row, 200)}"
        problem = f"{method} of function {self.kernel.name} failed{called}: {type(error).__name__}: {error}"
        remedy = "fix the function" if row is None else "fix the function, or filter such rows out first"
        return RowError(problem, remedy)

    # columns

    def rows(self, values: pyarrow.Array) -> list[ArgumentRow]:
        """Return the arguments of each row."""
        columns = iter(map(python_values, self._columns(values), self._column_types()))
        parts = [next(columns) if constant is None else repeat(constant[0], len(values)) for constant in self.template]
        rows = list(zip(*parts, strict=True)) if parts else [()] * len(values)
        return [(_named(row, self.kernel.row_names),) for row in rows] if self.kernel.row_names else rows

    def _columns(self, values: pyarrow.Array) -> list[pyarrow.Array]:
        """Return the columns of the arguments that are no constants."""
        count = self.template.count(None)
        return [] if not count else list(values.flatten()) if count > 1 else [values]

    def _column_types(self) -> list[DataType | None]:
        """Return the types of these columns, as the function has them."""
        places = [place for place, constant in enumerate(self.template) if constant is None]
        known = iter(self.columns)
        types = [next(known, None) if constant is None else None for constant in self.template]
        declared = self.kernel.input_types
        return [declared[place] if place < len(declared) and declared[place] else types[place] for place in places]

    def column(self, values: list[UserValue]) -> pyarrow.Array:
        """Return results as a column."""
        return self.kernel.column_of(values, self.result)

    def value_of_columns(self, values: pyarrow.Array) -> UserValue:
        """Return the result for all values of a group."""
        form = column_form(self.kernel.kind)
        columns = list(map(form, self._columns(values), self._column_types()))
        if self.kernel.row_names:
            columns = [frame_of(self.kernel.kind, self.kernel.row_names, columns)]
        function = self.kernel.function
        try:
            if isinstance(function, AggregateFunction):
                accumulator = function.create_accumulator()
                function.accumulate(accumulator, *columns)
                return _scalar(function.get_value(accumulator))
            return _scalar(function(*columns))
        except Exception as error:
            problem = f"function {self.kernel.name} failed for {len(values)} rows: {type(error).__name__}: {error}"
            raise RowError(problem, "fix the function") from error


def _named(values: ArgumentRow, names: Sequence[str]) -> Row:
    row = Row(*values)
    row.set_field_names(list(names))
    return row


def copied(value: UserValue) -> UserValue:
    """Return a value that does not change with an accumulator that it may be part of."""
    return value if isinstance(value, (str, bytes, int, float, type(None))) else copy.deepcopy(value)


def _scalar(value: UserValue) -> UserValue:
    """Return a result as Python's value: NaN and NA of pandas as None, and Arrow's scalars."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_scalar, value)) if type(value) in (tuple, list) else value
    if hasattr(value, "as_py"):
        return value.as_py()
    is_missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    return None if is_missing else value


__all__ = ["AggregateKernel", "Template", "UserAggregation", "copied", "kernel_of"]
