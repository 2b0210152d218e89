"""Functions that are given a row, or a table of rows, in the place of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.common.types import Row
from rayflink.user_types import UserCode, UserValue

from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..udf import UserFunction, udf
from ..user_functions.async_kernels import is_async
from ..user_functions.function_classes import (
    AsyncScalarFunction,
    FunctionContext,
    ScalarFunction,
    UserDefinedFunction,
)
from ..user_functions.user_kernels import body_of, frame_of
from .expression_text import column_tree


class OnRow(ScalarFunction):
    """Gives a function the values of a row as one.

    Args:
        function: of a Row; of a DataFrame where it is vectorised over pandas, and so on.
        names: of the columns.
        kind: what it is given.
        results: names of the fields of its result; empty: it is a single value.
    """

    def __init__(self, function: Any, names: Sequence[str], kind: str, results: Sequence[str]) -> None:
        self._function, self._names, self._kind, self._results = function, list(names), kind, list(results)

    def open(self, function_context: FunctionContext) -> None:
        """Open the function."""
        if isinstance(self._function, UserDefinedFunction):
            self._function.open(function_context)

    def close(self) -> None:
        """Close it."""
        if isinstance(self._function, UserDefinedFunction):
            self._function.close()

    def eval(self, *args: Any) -> Any:
        """Return the result for a row's values, or for columns."""
        call = body_of(self._function)
        if self._kind == "general":
            row = Row(*args)
            row.set_field_names(self._names)
            return self._fields(call(row))
        return self._structs(call(frame_of(self._kind, self._names, args)))

    def _fields(self, result: Any) -> Any:
        if not self._results or result is None or isinstance(result, dict):
            return result
        return dict(zip(self._results, result, strict=True))

    def _structs(self, result: Any) -> Any:
        """Return a table of results as one column of rows."""
        if not self._results:
            return result
        import pyarrow

        if self._kind == "polars":
            return result.rename(dict(zip(result.columns, self._results, strict=True))).to_struct("f0")
        if self._kind == "pandas":
            result = pyarrow.RecordBatch.from_pandas(result, preserve_index=False)
        return pyarrow.StructArray.from_arrays(result.columns, names=self._results)


class AwaitedOnRow(AsyncScalarFunction):
    """Gives an asynchronous function, which gives a value or rows, the values of a row as a Row.

    Args:
        function: of a Row.
        names: of the columns.
    """

    def __init__(self, function: UserCode, names: Sequence[str]) -> None:
        self._function, self._names = function, list(names)

    def open(self, function_context: FunctionContext) -> UserValue:
        """Open the function; the result is awaited where it can be."""
        if isinstance(self._function, UserDefinedFunction):
            return self._function.open(function_context)
        return None

    def close(self) -> UserValue:
        """Close it."""
        if isinstance(self._function, UserDefinedFunction):
            return self._function.close()
        return None

    def eval(self, *args: UserValue) -> UserValue:
        """Return what is awaited for a row's values."""
        row = Row(*args)
        row.set_field_names(self._names)
        return body_of(self._function)(row)


def of_row(func: Any, names: Sequence[str]) -> Tree:
    """Return a call of a function with all columns as a row.

    Args:
        func: what `udf` or `udtf` made, or what `udf` takes.
    """
    user = func if isinstance(func, UserFunction) else udf(func)
    results = [field.name for field in user.result_type.fields]
    wrapped: UserDefinedFunction = OnRow(user.function, names, user.kind, results)
    if is_async(user.function):
        wrapped = AwaitedOnRow(user.function, names)
    function = type(user)(wrapped, user.result_type, user.kind, user.name, user.deterministic)
    return Applied(this=function.registered(user.name), expressions=[column_tree(name) for name in names])


__all__ = ["of_row"]
