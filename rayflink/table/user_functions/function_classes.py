"""Base classes of user functions in queries, with PyFlink's names, and the context they are opened with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rayflink.common.functions.runtime_context import RuntimeContext
from rayflink.operators.base import OperatorContext


class FunctionContext:
    """The context in which a function is opened.

    Args:
        context: of the subtask in which it runs.
    """

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    @classmethod
    def of(cls, ctx: OperatorContext) -> FunctionContext:
        """Return the context of an operator."""
        return cls(RuntimeContext(ctx, None))

    def get_metric_group(self) -> Any:
        """Return the metrics of the operator in which it runs."""
        return self._context.get_metrics_group()

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a parameter of `pipeline.global-job-parameters`, or another option of the job."""
        return str(self._context.get_job_parameter(key, default_value))

    def get_task_name(self) -> str:
        """Name of the task."""
        return self._context.get_task_name()

    def get_task_name_with_subtasks(self) -> str:
        """Name of the task with its subtask, such as "Calc (3/6)"."""
        return self._context.get_task_name_with_subtasks()

    def get_number_of_parallel_subtasks(self) -> int:
        """Return the parallelism of the task."""
        return self._context.get_number_of_parallel_subtasks()

    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the number of key groups."""
        return self._context.get_max_number_of_parallel_subtasks()

    def get_index_of_this_subtask(self) -> int:
        """Number of the subtask, from 0."""
        return self._context.get_index_of_this_subtask()

    def get_attempt_number(self) -> int:
        """0 for the first attempt of the subtask."""
        return self._context.get_attempt_number()


class UserDefinedFunction(ABC):  # noqa: B024
    """A function that is opened before the first row and closed after the last."""

    def open(self, function_context: FunctionContext) -> None:  # noqa: B027
        """Called once a subtask before the first row."""

    def close(self) -> None:  # noqa: B027
        """Called once a subtask after the last row."""

    def is_deterministic(self) -> bool:
        """Return whether it gives the same for the same arguments."""
        return True


class ScalarFunction(UserDefinedFunction):
    """A function of the values of a row, or, as a vectorised one, of columns."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the result for a row's values, or for columns."""


class AsyncScalarFunction(UserDefinedFunction):
    """A function of the values of a row whose results are awaited, those of many rows at the same time.

    >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import udf
    >>> class Price(AsyncScalarFunction):
    ...     async def open(self, function_context):
    ...         self.prices = {"ACME": 12, "INIT": 30}
    ...     async def eval(self, symbol):
    ...         return self.prices.get(symbol)
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("price", udf(Price(), result_type=DataTypes.BIGINT()))
    >>> list(t_env.execute_sql("SELECT s, price(s) FROM (VALUES ('INIT'), ('ACME')) AS t(s)").collect())
    [<Row('INIT', 30)>, <Row('ACME', 12)>]

    `open`, `close` and all calls of a subtask run in one event loop; `open` and `close` may be async, too.
    """

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the result for a row's values."""


class AsyncTableFunction(UserDefinedFunction):
    """A function that gives rows for the values of a row, which are awaited for many rows at the same time.

    >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import udtf
    >>> class Letters(AsyncTableFunction):
    ...     async def eval(self, word):
    ...         return list(word)
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("letters", udtf(Letters(), result_types=[DataTypes.STRING()]))
    >>> query = "SELECT w, l FROM (VALUES ('ab'), ('c')) AS t(w), LATERAL TABLE(letters(w)) AS f(l)"
    >>> list(t_env.execute_sql(query).collect())
    [<Row('ab', 'a')>, <Row('ab', 'b')>, <Row('c', 'c')>]
    """

    @abstractmethod
    async def eval(self, *args: Any) -> Any:
        """Return the rows in a list, or yield them; a row is a tuple, a Row, or, where it has one column, a value."""


class TableFunction(UserDefinedFunction):
    """A function that gives rows for the values of a row, or, as a vectorised one, for columns."""

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the rows, yielded or in a list; a row is a tuple, a Row, or, where it has one column, a value."""


__all__ = ["AsyncScalarFunction", "AsyncTableFunction", "FunctionContext", "ScalarFunction", "TableFunction",
           "UserDefinedFunction"]  # fmt: skip
