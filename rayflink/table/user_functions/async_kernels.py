"""Calls of asynchronous functions of the user's own, one row each, whose results are awaited."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rayflink.user_types import UserCode, UserValue

from ..plan.typed import Arguments, RowError, Values
from ..types import DataType
from .function_classes import AsyncScalarFunction, AsyncTableFunction, FunctionContext, UserDefinedFunction
from .user_kernels import RowsKernel, UserKernel, body_of, rows_of_call

if TYPE_CHECKING:
    import pyarrow


def is_async(function: UserCode) -> bool:
    """Return whether calls of a function give results that are awaited."""
    if isinstance(function, AsyncScalarFunction | AsyncTableFunction):
        return True
    body = body_of(function)
    call = body if inspect.isroutine(body) else getattr(body, "__call__", None)  # noqa: B004
    return any(inspect.iscoroutinefunction(part) or inspect.isasyncgenfunction(part) for part in (body, call))


class AsyncKernel(UserKernel):
    """Awaits a user's function of the values of a row; all of it runs in an event loop.

    It computes no column by itself: the planner gives its calls to an operator that awaits many at a time.
    """

    @property
    def name(self) -> str:
        """Name of the function, for messages."""
        return self._name

    def __call__(self, arguments: Arguments) -> Values:
        problem = f"function {self._name} is asynchronous, and its results are awaited in SELECT and WHERE only"
        raise RowError(problem, "call it in a subquery, and use the column that it gives")

    async def start(self, context: FunctionContext) -> None:
        """Open the user's function."""
        if isinstance(self._function, UserDefinedFunction):
            await _finished(self._function.open, context)

    async def stop(self) -> None:
        """Close it."""
        if isinstance(self._function, UserDefinedFunction):
            await _finished(self._function.close)

    async def answer(self, args: tuple[UserValue, ...]) -> UserValue:
        """Return the result for the values of a row.

        Raises:
            TypeError: the function is not asynchronous.
        """
        result = self._call(*args)
        if not inspect.isawaitable(result):
            problem = f"function {self._name} returned {type(result).__name__}, which cannot be awaited"
            raise TypeError(f"{problem}; define it by `async def` and return its result")
        return await result

    def column(self, results: Sequence[UserValue], kind: DataType) -> pyarrow.Array:
        """Return the results as a column; None is NULL.

        Raises:
            RowError: one of them is of another type.
        """
        return self.column_of(list(results), kind)


class AsyncRowsKernel(AsyncKernel, RowsKernel):
    """Awaits a user's table function; the rows for one row are a list of structs."""

    def __call__(self, arguments: Arguments) -> Values:
        return AsyncKernel.__call__(self, arguments)

    async def answer(self, args: tuple[UserValue, ...]) -> UserValue:
        result = self._call(*args)
        if inspect.isasyncgen(result):
            return [row async for row in result]
        if not inspect.isawaitable(result):
            problem = f"function {self._name} returned {type(result).__name__}, which cannot be awaited"
            raise TypeError(f"{problem}; define it by `async def` and return or yield its rows")
        return rows_of_call(await result)

    def column(self, results: Sequence[UserValue], kind: DataType) -> pyarrow.Array:
        return self.column_of_rows([[] if rows is None else rows for rows in results], kind.items[0])


async def _finished(function: Callable[..., UserValue], *arguments: FunctionContext) -> None:
    """Call a function, plain or async, and wait for it."""
    result = function(*arguments)
    if inspect.isawaitable(result):
        await result


__all__ = ["AsyncKernel", "AsyncRowsKernel", "is_async"]
