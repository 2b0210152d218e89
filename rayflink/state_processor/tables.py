"""Tables as rows of state: the meaning of each column, and values of the program's classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rayflink.common.records.arrow_rows import python_values
from rayflink.common.types import Row
from rayflink.operators.windows.window import TimeWindow
from rayflink.state.classes.class_schemas import found_class, is_named_tuple
from rayflink.state.clock import epoch_ms
from rayflink.state.errors import StateError
from rayflink.state.schema.state_summary import StateSummary
from rayflink.user_types import UserValue

from .rows import StateRow

Column = str | Sequence[str] | Callable[[dict[str, Any]], Any]
"""A column; several, which make a tuple; or a function of a row as a dict."""


class ColumnError(StateError):
    """Raised when a table lacks a column that state is to be made of.

    Args:
        column: that is missing.
        actual: those it has.
    """

    def __init__(self, column: str, actual: str) -> None:
        super().__init__(column, actual)
        self.column, self.actual = column, actual

    def __str__(self) -> str:
        return (
            f"the table has no column {self.column!r}, but {self.actual}; name the columns of key and value, as in "
            "with_state(..., key='user', value='total'), or give functions of a row"
        )


def dicts_of(table: Any) -> Iterator[dict[str, Any]]:
    """Return the rows of a pyarrow Table or RecordBatch, a polars or pandas DataFrame, or of dicts as they are."""
    for name in ("to_arrow", "__arrow_c_stream__"):
        if hasattr(table, name) and not hasattr(table, "to_batches"):
            import pyarrow as pa

            table = pa.table(table.to_arrow() if name == "to_arrow" else table)
            break
    if hasattr(table, "to_batches"):
        for batch in table.to_batches():
            try:
                columns = [python_values(*named) for named in zip(batch.schema.names, batch.columns, strict=True)]
            except ValueError as error:
                raise StateError(f"a table of state: {error}") from error
            yield from (dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True))
    elif hasattr(table, "to_pylist"):
        yield from table.to_pylist()
    else:
        for row in table:
            if not isinstance(row, dict):
                raise StateError(f"a table of state has a row {row!r:.100}; give a table of Arrow or polars, or dicts")
            yield row


def rows_of(table: Any, key: Column, value: Column, summary: StateSummary) -> Iterator[StateRow]:
    """Return the rows of a state.

    In addition to key and value it takes the columns `window_start` and `window_end`, `namespace`, `map_key` or
    `position`, and `last_access`, where the table has them.

    Args:
        summary: of the state; where its values are of one class, structs become objects of it.

    Raises:
        ColumnError: a column is missing.
        StateError: a window is not of epoch milliseconds.
    """
    if not isinstance(table, (str, bytes, Mapping)) and isinstance(table, Iterable):
        table, first = _peeked(table)
        if isinstance(first, StateRow):
            yield from table
            return
    make = maker_of(summary)
    part_of = "map_key" if summary.kind.endswith(("map", "broadcast")) else "position"
    for row in dicts_of(table):
        namespace = native(row.get("namespace")) if row.get("window_start") is None else _window(row)
        part = _in(row, part_of) if part_of == "map_key" else row.get(part_of)
        yield StateRow(
            _taken(row, key, native), _taken(row, value, make), namespace, native(part), row.get("last_access")
        )


def _window(row: dict[str, Any]) -> TimeWindow:
    start, end = row["window_start"], _in(row, "window_end")
    try:
        return TimeWindow(epoch_ms(start, "the start of a window"), epoch_ms(end, "the end of a window"))
    except (TypeError, ValueError) as error:
        raise StateError(f"{error}; unix_millis(column) is that of Spark's timestamps") from error


def maker_of(summary: StateSummary) -> Callable[[Any], Any]:
    """Return a function from a struct to a value of the program's class; to dicts and tuples where the class is
    unknown.
    """
    names = summary.parsed_schema.get("values", ())
    cls = found_class(names[0]) if len(names) == 1 else None
    if cls is None or not (dataclasses.is_dataclass(cls) or is_named_tuple(cls)):
        return native
    value_class: Callable[..., Any] = cls

    def make(value: UserValue) -> Any:
        value = _struct(value)
        if not isinstance(value, dict):
            return native(value)
        return value_class(**{name: native(part) for name, part in value.items()})

    return make


def native(value: UserValue) -> Any:
    """Return a value of Arrow as Python's: structs are dicts, those of f0, f1 and so on tuples."""
    value = _struct(value)
    if isinstance(value, dict):
        parts = {name: native(part) for name, part in value.items()}
        if parts and list(parts) == [f"f{index}" for index in range(len(parts))]:
            return tuple(parts.values())
        return parts
    return [native(part) for part in value] if isinstance(value, list) else value


def _struct(value: UserValue) -> Any:
    """Return a struct as a dict of its fields, everything else as it is."""
    return value.as_dict() if isinstance(value, Row) else value


def _taken(row: dict[str, Any], column: Column, make: Callable[[Any], Any]) -> Any:
    if callable(column):
        return column(row)
    if isinstance(column, str):
        return make(_in(row, column))
    return tuple(native(_in(row, name)) for name in column)


def _in(row: dict[str, Any], column: str) -> Any:
    if column not in row:
        raise ColumnError(column, ", ".join(map(repr, row)) or "none at all")
    return row[column]


def _peeked(table: Iterable[Any]) -> tuple[Any, Any]:
    """Return the table, and its first row where it is no table of columns."""
    if hasattr(table, "to_batches") or hasattr(table, "to_arrow") or hasattr(table, "__arrow_c_stream__"):
        return table, None
    rows = list(table)
    return rows, rows[0] if rows else None


__all__ = ["Column", "ColumnError", "dicts_of", "maker_of", "native", "rows_of"]
