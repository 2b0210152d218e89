"""Arrow rows as Python values and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserRecord

from ..time import Instant
from ..types import Row
from .arrow_values import plain_guess, plain_of, values_of
from .lossy_arrow_casts import refuse_losses
from .row_kinds import KINDS, kinds_of, without_kinds

if TYPE_CHECKING:
    import pyarrow


def arrow_to_rows(data: pyarrow.RecordBatch) -> list[Row]:
    """Convert each row of `data` to a `Row` with the schema's names.

    At any depth a struct is a `Row` with the names of its fields, a map a dict, a list a list, a float of 32 bits the
    shortest number that is the same in 32 bits, and a moment in nanoseconds with a time zone an `Instant`.

    A column of kinds, see `row_kinds`, gives the rows their kinds.

    Raises:
        ValueError: Python has no such value, as of moments before the year 1; names the column.
    """
    kinds = kinds_of(data)
    if kinds is not None:
        rows = arrow_to_rows(without_kinds(data))
        for row, kind in zip(rows, kinds.tolist(), strict=True):
            row._row_kind = KINDS[kind]
        return rows
    names = data.schema.names
    if not names:
        return [Row() for _ in range(data.num_rows)]
    columns = [python_values(name, column) for name, column in zip(names, data.columns, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError(f"columns with equal names cannot become fields of a Row: {names}; rename them")
    shaped = Row(*names)
    return [shaped(*values) for values in zip(*columns, strict=True)]


def python_values(name: str, column: pyarrow.Array) -> list[Any]:
    """Return the values of a column, see `arrow_to_rows`.

    Raises:
        ValueError: Python has no such value; names the column.
    """
    try:
        return values_of(column)
    except (OverflowError, ValueError) as error:
        remedy = "Python's dates and moments are of the years 1 to 9999, also in UTC; read it by map_batches(), or cast"
        raise ValueError(
            f"column {name!r} ({column.type}) has a value that Python lacks ({error}); {remedy}"
        ) from error


def rows_to_arrow(
    rows: Sequence[Any], schema: pyarrow.Schema | None = None, names: Sequence[str] | None = None
) -> pyarrow.RecordBatch:
    """Convert records of fields (Row, tuple, list, dict) to columns; others become the one column `value`.

    Args:
        schema: names and types; None: types are inferred from the values.
        names: column names for records without any; None: those of the first record, else f0, f1, ...

    Raises:
        ValueError: records differ in their number of fields, or a value would lose a part in a column of the schema, or
            is None in one that is not nullable.
    """
    import pyarrow

    if schema is not None:
        names = schema.names
    first = rows[0] if rows else None
    if names is None:
        names = _names_of(first)
    if not rows:
        columns: list[list[Any]] = [[] for _ in names or ("value",)]
    elif isinstance(first, dict):
        columns = [[row.get(name) for row in rows] for name in names or ()]
    elif isinstance(first, Row):
        columns = _transposed([_row_fields(row, names) for row in rows])
    elif isinstance(first, (tuple, list)):
        columns = _transposed(rows)
    else:
        columns = [list(rows)]
        names = names or ["value"]
    names = [f"f{index}" for index in range(len(columns))] if names is None else list(names)
    if len(names) != len(columns):
        raise ValueError(f"records have {len(columns)} fields, but {len(names)} columns are wanted: {names}")
    types = [None] * len(names) if schema is None else schema.types
    if schema is None:
        columns = [_guessed(column) for column in columns]
    else:
        columns = [_plain(column, kind) for column, kind in zip(columns, types, strict=True)]
        columns = [without_instants(column, kind) for column, kind in zip(columns, types, strict=True)]
        for name, column, kind in zip(names, columns, types, strict=True):
            refuse_losses(column, kind, name)
    arrays = [pyarrow.array(column, type=kind) for column, kind in zip(columns, types, strict=True)]
    if schema is None:
        return pyarrow.RecordBatch.from_arrays(arrays, names=names)
    for field, array in zip(schema, arrays, strict=True):
        if array.null_count and not field.nullable:
            raise ValueError(f"{field.name}: found None, wanted {field.type} that is not null")
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(column: list[Any], kind: pyarrow.DataType) -> list[Any]:
    """Return the values as pyarrow takes them for a type: dicts for nested rows, pairs for maps."""
    plain = plain_of(kind)
    return column if plain is None else [None if value is None else plain(value) for value in column]


def _guessed(column: list[Any]) -> list[Any]:
    """Return the values as pyarrow infers a type from them: dicts for nested rows."""
    nests = any(issubclass(kind, (Row, dict, list, tuple)) for kind in set(map(type, column)))
    return [plain_guess(value) for value in column] if nests else column


def without_instants(column: list[Any], kind: pyarrow.DataType) -> list[Any]:
    """Return the values, with each `Instant` as the number that Arrow takes for a time of this type."""
    import pyarrow

    if not pyarrow.types.is_timestamp(kind) or not any(isinstance(value, Instant) for value in column):
        return column
    per_second = _PER_SECOND[kind.unit]
    nanoseconds = 1_000_000_000 // per_second
    return [
        value.seconds * per_second + value.nanos // nanoseconds if isinstance(value, Instant) else value
        for value in column
    ]


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _names_of(record: UserRecord) -> Sequence[str] | None:
    if isinstance(record, dict):
        return list(record)
    if isinstance(record, Row):
        return record._names
    return getattr(record, "_fields", None) if isinstance(record, tuple) else None


def _row_fields(row: Row, names: Sequence[str] | None) -> list[Any]:
    return row._values if names is None or row._names is None else row.get_fields_by_names(list(names))


def _transposed(rows: Sequence[Sequence[Any]]) -> list[Any]:
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            raise ValueError(f"records differ in their number of fields: {width} and {len(row)} (in {row!r:.200})")
    return [list(column) for column in zip(*rows, strict=True)]
