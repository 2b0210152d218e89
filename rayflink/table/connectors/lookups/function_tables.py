"""Tables whose rows a function of the program finds by key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING

import numpy

from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.types import Row
from rayflink.connectors.lookup_cache import LookupCache
from rayflink.operators.columnar import FORMS, annotated_form, check_installed, from_form, to_form

from ...conversion.arrow_columns import arrow_schema
from ...conversion.python_values import plain_rows
from ...errors import SqlError, nearest
from ...plan.logical import Schema
from ...runtime.lookups.lookup_function import LookupFailed, LookupFunction, LookupRows, TableLookup
from ..contract import TableSource

if TYPE_CHECKING:
    import pyarrow

    from rayflink.common.watermarks import WatermarkStrategy
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

KEY = "key"
"""The form of functions that take one key."""
_LOOKUP = "the function of a lookup"


class FrameLookup(LookupFunction):
    """Calls a function with a frame of keys; the frame that it returns has the key columns, too.

    Args:
        function: plain or `async def`.
        form: of the frame.
    """

    def __init__(self, function: Callable[..., object], form: str) -> None:
        self._function, self._form = function, form
        self.is_async = iscoroutinefunction(function)
        self.blocks = not self.is_async

    def look_up(self, keys: pyarrow.RecordBatch) -> LookupRows | Awaitable[LookupRows]:
        answer = self._function(to_form(keys, self._form))
        return self._awaited(answer) if isawaitable(answer) else LookupRows(from_form(answer, _LOOKUP))

    async def _awaited(self, answer: Awaitable[object]) -> LookupRows:
        return LookupRows(from_form(await answer, _LOOKUP))


class KeyLookup(LookupFunction):
    """Calls a function for each key, by the names of the key columns.

    Args:
        function: plain or `async def`; returns a dict or Row, a list of them, or None.
        schema: of the table; rows need not have the key columns.
    """

    def __init__(self, function: Callable[..., object], schema: Schema) -> None:
        self._function, self._schema = function, schema
        self.is_async = iscoroutinefunction(function)
        self.blocks = not self.is_async

    def look_up(self, keys: pyarrow.RecordBatch) -> LookupRows | Awaitable[LookupRows]:
        calls = keys.to_pylist()
        answers = [self._function(**key) for key in calls]
        return self._awaited(calls, answers) if self.is_async else self._rows(calls, answers)

    async def _awaited(self, calls: list[dict[str, object]], answers: list[object]) -> LookupRows:
        return self._rows(calls, await asyncio.gather(*(answer for answer in answers if isawaitable(answer))))

    def _rows(self, calls: Sequence[dict[str, object]], answers: Sequence[object]) -> LookupRows:
        schema = arrow_schema(self._schema)
        names = {*schema.names, *(name for key in calls[:1] for name in key)}
        rows: list[dict[str, object]] = []
        numbers: list[int] = []
        for number, (key, answer) in enumerate(zip(calls, answers, strict=True)):
            listed = answer if isinstance(answer, (list, tuple)) else [] if answer is None else [answer]
            for row in listed:
                fields = row.as_dict() if isinstance(row, Row) else row
                if not isinstance(fields, dict):
                    problem = f"the function of a lookup returned {answer!r} for the key {key}"
                    raise LookupFailed(problem, "return a dict or Row with names for each row, a list of them, or None")
                if unknown := fields.keys() - names:
                    field = min(map(str, unknown))
                    problem = f"the function of a lookup returned a field {field!r}{nearest(field, schema.names)}"
                    raise LookupFailed(problem, f"the fields of the table are {', '.join(schema.names)}")
                rows.append({**key, **fields})
                numbers.append(number)
        plain = list(plain_rows(rows, schema.names, [column.type for column in self._schema]))
        return LookupRows(rows_to_arrow(plain, schema), numpy.array(numbers, numpy.int64))


@dataclass(frozen=True)
class FunctionTable(TableSource):
    """A table that is only looked up.

    Args:
        function: finds its rows.
        names: of the columns that are asked for.
        cache: the limits of rows that are remembered by key; None: none are.
        max_retries: repetitions of calls that raise ConnectionError or TimeoutError.
    """

    function: LookupFunction
    names: tuple[str, ...]
    cache: LookupCache | None = None
    max_retries: int = 3
    takes_constant_keys = False

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names))

    def lookup(self, keys: Sequence[str]) -> TableLookup:
        return TableLookup(self.function, self.cache, self.max_retries)

    def pushed(self) -> tuple[str, ...]:
        return (f"project=[{', '.join(self.names)}]",)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        raise only_looked_up(name)


def only_looked_up(name: str) -> SqlError:
    """Return the error for a table that is read as a whole, and only finds rows by key."""
    remedy = "write FROM a JOIN t FOR SYSTEM_TIME AS OF a.proc_time AS b ON a.k = b.k, see docs/sql-lookup-joins.md"
    return SqlError(f"{name} only finds rows by key, and cannot be read as a whole", remedy)


def function_of(function: Callable[..., object] | LookupFunction, schema: Schema, form: str | None) -> LookupFunction:
    """Return a function of the program as one that is asked for the keys of a batch.

    Raises:
        ValueError: the form is unknown.
        PlanError: the package of the form is not installed.
    """
    if isinstance(function, LookupFunction):
        return function
    if form is not None and form not in (*FORMS, KEY):
        raise ValueError(f"form must be one of {', '.join((*FORMS, KEY))}, found {form!r}")
    if form == KEY:
        return KeyLookup(function, schema)
    chosen = form or annotated_form(function)
    check_installed(chosen)
    return FrameLookup(function, chosen)


__all__ = ["FunctionTable", "function_of", "only_looked_up"]
