"""Calls of functions of the user's own over the columns of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import shorten
from rayflink.common.types import Row
from rayflink.user_types import UserValue

from ..conversion.column_values import pandas_value, rows_of_table
from ..conversion.frame_columns import frame_values, has_objects
from ..conversion.pickled_values import python_values
from ..conversion.python_values import plain_of
from ..plan.typed import Arguments, RowError, Values
from ..types import DataType, stored_type
from .function_classes import (
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
    UserDefinedFunction,
)

if TYPE_CHECKING:
    import pyarrow

KINDS = ("general", "pandas", "arrow", "polars")
"""The forms of arguments that a function takes: the values of a row, or columns."""
ROW_NUMBER = "row"


def body_of(function: Any) -> Callable[..., Any]:
    """Return the callable: `eval` of a function for rows, asynchronous or not, else the callable itself."""
    body: Callable[..., Any] = function.eval if isinstance(function, _WITH_EVAL) else function
    return body


_WITH_EVAL = (ScalarFunction, TableFunction, AsyncScalarFunction, AsyncTableFunction)


class UserKernel:
    """Calls a user's scalar function in an operator.

    Args:
        function: a UserDefinedFunction, or a callable.
        kind: what it is given: values of a row, or columns of pandas, Arrow or polars.
        name: for messages.
    """

    input_types: tuple[DataType | None, ...] = ()
    """The user-defined types of arguments, None for other arguments."""
    result_type: DataType | None = None
    """The declared type of results with user-defined types in it; None: there are none."""

    def __init__(self, function: Any, kind: str, name: str) -> None:
        self._function, self._kind, self._name = function, kind, name
        self._call = body_of(function)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserKernel):
            return NotImplemented
        return (type(self), self._kind) == (type(other), other._kind) and self._function is other._function

    def __hash__(self) -> int:
        return hash((type(self), self._kind, id(self._function)))

    def open(self, context: FunctionContext) -> None:
        """Open the user's function."""
        if isinstance(self._function, UserDefinedFunction):
            self._function.open(context)

    def close(self) -> None:
        """Close it."""
        if isinstance(self._function, UserDefinedFunction):
            self._function.close()

    def argument_types(self, types: Sequence[DataType]) -> list[DataType]:
        """Return the types of arguments of these types as the function has them: user-defined types where declared."""
        declared = (*self.input_types, *[None] * len(types))
        return [kind if own is None else own for kind, own in zip(types, declared, strict=False)]

    def column_of(self, values: list[UserValue], kind: DataType) -> pyarrow.Array:
        """Return the function's results as a column.

        Raises:
            RowError: one of them is of another type.
        """
        return self._column(values, self.result_type or kind, self._name)

    def __call__(self, arguments: Arguments) -> Values:
        import pyarrow

        if self._kind == "general":
            output = self._by_row(arguments, lambda value: value)
            return self.column_of(output, arguments.call.type)
        result = self._of_columns(arguments)
        is_plain = self.result_type is None and not has_objects(arguments.call.type)
        if hasattr(result, "iloc") and not is_plain:  # dicts, of which Arrow would guess a struct
            result = self.column_of(frame_values(result), arguments.call.type)
        result = self._values_of(result, arguments.result)
        if isinstance(result, pyarrow.ChunkedArray):
            result = result.combine_chunks()
        if len(result) != arguments.rows:
            problem = f"function {self._name} returned {len(result)} values for {arguments.rows} rows"
            raise RowError(problem, "return one for each row")
        try:
            return result.cast(arguments.result)
        except pyarrow.ArrowException as error:
            problem = f"function {self._name} returned values of type {result.type}: {error}"
            raise RowError(problem, f"return {arguments.call.type}, or declare another result type") from error

    def _values_of(self, result: Any, target: pyarrow.DataType) -> Any:
        """Return a column of what a function of columns gave; a frame is a column of rows.

        Raises:
            RowError: it is none.
        """
        import pyarrow

        try:
            column = _arrow(result)
            if pyarrow.types.is_struct(target) and isinstance(column, (pyarrow.Table, pyarrow.RecordBatch)):
                return rows_of_table(pyarrow.table(column), target)
            return pyarrow.array(column, from_pandas=True)
        except (TypeError, ValueError) as error:  # also those of Arrow
            description = f"{shorten(result, 80)} of type {type(result).__name__}"
            problem = f"function {self._name} returned {description}, which is not a column"
            raise RowError(problem, f"return a column of {self._kind} with one value for each row") from error

    def _of_columns(self, arguments: Arguments) -> Any:
        """Call the function with columns."""
        form = column_form(self._kind)
        kinds = self.argument_types([arg.type for arg in arguments.call.args])
        pairs = zip(arguments.values, kinds, strict=True)
        columns = [form(_column(values, arguments.rows), kind) for values, kind in pairs]
        try:
            return self._call(*columns)
        except Exception as error:
            problem = f"function {self._name} failed for {arguments.rows} rows: {type(error).__name__}: {error}"
            raise RowError(problem, "fix the function") from error

    def _by_row(self, arguments: Arguments, convert: Callable[[Any], Any]) -> list[Any]:
        """Call the function for each row."""
        kinds = self.argument_types([arg.type for arg in arguments.call.args])
        pairs = zip(arguments.values, kinds, strict=True)
        columns = [python_values(_column(values, arguments.rows), kind) for values, kind in pairs]
        rows: list[Any] = list(zip(*columns, strict=True)) if columns else [()] * arguments.rows
        left, call = iter(rows), self._call
        try:
            return [convert(call(*row)) for row in left]
        except Exception as error:
            row = rows[len(rows) - length_hint(left) - 1]
            described = f"{type(error).__name__}: {error}"
            problem = f"function {self._name} failed for the arguments {shorten(row, 200)}: {described}"
            raise RowError(problem, "fix the function, or filter such rows out first") from error

    @staticmethod
    def _column(values: list[Any], kind: DataType, name: str) -> pyarrow.Array:
        """Convert Python values to a column.

        Raises:
            RowError: one of them is of another type.
        """
        import pyarrow

        wrong = (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError)
        target = stored_type(kind).to_arrow()
        plain = plain_of(kind)
        values = values if plain is None else [None if value is None else plain(value) for value in values]
        try:
            return _exactly(values, target)
        except wrong as error:
            for value in values:
                try:
                    _exactly([value], target)
                except wrong:
                    problem = f"function {name} returned {shorten(value, 80)} of type {type(value).__name__}"
                    remedy = f"return {kind}, or declare another result type"
                    raise RowError(problem, remedy) from error
            raise


def _exactly(values: list[Any], target: pyarrow.DataType) -> pyarrow.Array:
    """Convert values to a column; fractions are refused where whole numbers are wanted, which Arrow would cut."""
    import numpy
    import pyarrow

    fractions = float | numpy.floating
    if pyarrow.types.is_integer(target) and any(
        issubclass(value_class, fractions) for value_class in set(map(type, values))
    ):
        return pyarrow.array(values).cast(target)
    return pyarrow.array(values, target)


class RowsKernel(UserKernel):
    """Calls a user's table function; the rows for one row are a list of structs."""

    def __call__(self, arguments: Arguments) -> Values:
        kind = arguments.call.type.items[0]
        return self._by_values(arguments, kind) if self._kind == "general" else self._by_columns(arguments, kind)

    def _by_values(self, arguments: Arguments, kind: DataType) -> pyarrow.Array:
        return self.column_of_rows(self._by_row(arguments, rows_of_call), kind)

    def column_of_rows(self, lists: Sequence[list[Any]], kind: DataType) -> pyarrow.Array:
        """Return lists of rows as a column.

        Args:
            kind: of the rows.

        Raises:
            RowError: a row has more or fewer values, or one of them is of another type.
        """
        import numpy
        import pyarrow

        offsets = numpy.zeros(len(lists) + 1, numpy.int32)
        numpy.cumsum([len(part) for part in lists], out=offsets[1:])
        rows = [row for part in lists for row in part]
        width = len(kind.fields)
        values = [values_of_row(row, width, self._name) for row in rows]
        columns = list(zip(*values, strict=True)) if values else [()] * width
        declared = kind if self.result_type is None else self.result_type.items[0]
        arrays = [
            self._column(list(column), field.type, self._name)
            for column, field in zip(columns, declared.fields, strict=True)
        ]
        return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), _struct(arrays, kind))

    def _by_columns(self, arguments: Arguments, kind: DataType) -> pyarrow.Array:
        import numpy
        import pyarrow

        result = _arrow(self._of_columns(arguments))
        if not isinstance(result, (pyarrow.Table, pyarrow.RecordBatch)):
            problem = f"function {self._name} returned a {type(result).__name__} for columns"
            raise RowError(problem, f"return a table: a column {ROW_NUMBER!r} of row numbers, and those of the result")
        result = pyarrow.Table.from_batches([result]) if isinstance(result, pyarrow.RecordBatch) else result
        if result.num_columns != 1 + len(kind.fields):
            problem = f"function {self._name} returned {result.num_columns} columns: {', '.join(result.column_names)}"
            raise RowError(problem, f"return {1 + len(kind.fields)}: row numbers, and {kind}")
        numbers = result.column(0).combine_chunks().cast(pyarrow.int64())
        rows = numbers.to_numpy(zero_copy_only=False)
        if numbers.null_count or (len(rows) and not 0 <= rows.min() <= rows.max() < arguments.rows):
            problem = f"function {self._name} returned row numbers outside of 0 to {arguments.rows - 1}"
            raise RowError(problem, "the first column says the input row to which each row belongs")
        order = pyarrow.array(numpy.argsort(rows, kind="stable"))
        arrays = [
            result.column(index + 1).combine_chunks().cast(field.type.to_arrow()).take(order)
            for index, field in enumerate(kind.fields)
        ]
        offsets = numpy.searchsorted(rows[order], numpy.arange(arguments.rows + 1)).astype(numpy.int32)
        return pyarrow.ListArray.from_arrays(pyarrow.array(offsets), _struct(arrays, kind))


def _struct(columns: Sequence[pyarrow.Array], kind: DataType) -> pyarrow.Array:
    import pyarrow

    return pyarrow.StructArray.from_arrays(columns, fields=list(kind.to_arrow()))


def rows_of_call(result: Any) -> list[Any]:
    """Return the rows that a call gave: none, a list or what yields, or one.

    Source: apache/flink, pyflink fn_execution table_function: normalize_table_function_result.
    """
    if result is None:
        return []
    return list(result) if isinstance(result, (list, range)) or hasattr(result, "__next__") else [result]


def values_of_row(row: Any, width: int, name: str) -> Sequence[Any]:
    """Return the values of a row that a table function gave.

    Raises:
        RowError: there are more or fewer.
    """
    values: Sequence[Any] = tuple(row) if isinstance(row, Row) else row if isinstance(row, (tuple, list)) else (row,)
    if len(values) == width:
        return values
    if width == 1:
        return (row,)
    problem = f"function {name} returned the row {shorten(row, 80)} of {len(values)} values"
    raise RowError(problem, f"its result has {width} columns")


def _arrow(result: Any) -> Any:
    """Return a Series, DataFrame or Table of any kind as Arrow's."""
    import pyarrow

    if hasattr(result, "to_arrow"):
        return result.to_arrow()
    if hasattr(result, "iloc") and hasattr(result, "columns"):
        return pyarrow.Table.from_pandas(result, preserve_index=False)
    return result


def _column(values: Values, rows: int) -> pyarrow.Array:
    import pyarrow

    if isinstance(values, pyarrow.Scalar):
        return pyarrow.repeat(values, rows)
    return values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values


def column_form(kind: str) -> Callable[[pyarrow.Array, DataType | None], UserValue]:
    """Return the conversion of columns with their types to those of a kind: pandas, Arrow or polars."""
    forms: dict[str, Callable[[pyarrow.Array, DataType | None], UserValue]] = {
        "pandas": pandas_value, "polars": lambda column, _: _to_polars(column), "arrow": lambda column, _: column,
    }  # fmt: skip
    return forms[kind]


def frame_of(kind: str, names: Sequence[str], columns: Sequence[UserValue]) -> UserValue:
    """Return columns as a table of a kind: pandas, Arrow or polars; fields of rows are columns of their own in pandas.

    Source: apache/flink, pyflink fn_execution utils operation_utils: wrap_input_series_as_dataframe.
    """
    named = dict(zip(names, columns, strict=True))
    if kind == "pandas":
        import pandas  # type: ignore[import-untyped]

        parts = [
            column if isinstance(column, pandas.DataFrame) else column.rename(name) for name, column in named.items()
        ]
        return pandas.concat(parts, axis=1)
    if kind == "polars":
        import polars

        return polars.DataFrame(named)
    import pyarrow

    return pyarrow.RecordBatch.from_pydict(named)


def _to_polars(column: pyarrow.Array) -> Any:
    import polars

    return polars.Series(column)


__all__ = [
    "KINDS", "RowsKernel", "UserKernel", "body_of", "column_form", "frame_of", "rows_of_call", "values_of_row",
]  # fmt: skip
