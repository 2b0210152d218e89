"""Columns of Arrow as the CSV that `COPY ... FROM STDIN (FORMAT csv)` reads: an empty value is NULL, `""` is empty."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rayflink.user_types import UserValue

if TYPE_CHECKING:
    import pyarrow

_NUMBERS = frozenset({"int2", "int4", "int8", "float4", "float8", "numeric"})
_DOCUMENTS = frozenset({"json", "jsonb"})
_TYPED = _NUMBERS | frozenset({"bool", "bytea", "date", "time", "timetz", "timestamp", "timestamptz"})
"""Types that a string is no value of, although the server would parse it."""


def is_writable_as(kind: str, source: pyarrow.DataType) -> bool:
    """Return whether values of an Arrow type can be written into a column of PostgreSQL; some values may be too large.

    >>> import pyarrow
    >>> is_writable_as("numeric", pyarrow.int32()), is_writable_as("int4", pyarrow.string())
    (True, False)

    Args:
        kind: the name of the type in `pg_type`; arrays begin with an underscore.
    """
    import pyarrow.types as types

    if types.is_null(source):
        return True
    if types.is_string(source) or types.is_large_string(source):
        return kind not in _TYPED and not kind.startswith("_")
    if types.is_integer(source):
        return kind in _NUMBERS
    if types.is_floating(source) or types.is_decimal(source):
        return kind in ("float4", "float8", "numeric")
    if types.is_list(source) or types.is_large_list(source):
        return kind in _DOCUMENTS or (kind.startswith("_") and is_writable_as(kind[1:], source.value_type))
    if types.is_timestamp(source):
        return kind == ("timestamp" if source.tz is None else "timestamptz")
    if types.is_map(source) or types.is_struct(source):
        return kind in _DOCUMENTS
    is_of_kind = {
        "bool": types.is_boolean, "bytea": types.is_binary, "date": types.is_date, "time": types.is_time,
        "interval": types.is_duration,
    }.get(kind)  # fmt: skip
    return is_of_kind is not None and bool(is_of_kind(source))


def csv_of(columns: Sequence[pyarrow.Array], kinds: Sequence[str]) -> bytes:
    r"""Return rows as CSV.

    >>> import pyarrow
    >>> csv_of([pyarrow.array([1, None]), pyarrow.array(["a,b", ""]), pyarrow.array([[1, None], []])], ["int4", "text", "_int4"])
    b'1,"a,b","{1,NULL}"\n,"","{}"\n'

    Args:
        columns: each of n values.
        kinds: of the columns that they go to, as of `is_writable_as`.
    """  # noqa: E501 - the example is one line
    import pyarrow
    from pyarrow import csv

    rendered = [_rendered(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    batch = pyarrow.RecordBatch.from_arrays(rendered, [str(index) for index in range(len(rendered))])
    out = io.BytesIO()
    csv.write_csv(batch, out, csv.WriteOptions(include_header=False))
    return out.getvalue()


def row_at_line(columns: Sequence[pyarrow.Array], line: int) -> int | None:
    """Return the number of the row in which a line of its CSV ends, counted from zero; None: it cannot be known.

    Args:
        line: counted from one, as the server reports it: it counts line ends within values, too.
    """
    import pyarrow
    from pyarrow import compute

    ends = np.ones(len(columns[0]), np.int64)
    for column in columns:
        if not pyarrow.types.is_string(column.type):
            continue
        if compute.any(compute.match_substring(column, "\r")).as_py():
            return None
        count = compute.fill_null(compute.count_substring(column, "\n"), 0)
        ends += count.to_numpy(zero_copy_only=False)
    ends[0] = 1  # before the first line end outside of quotes, the server counts none
    row = int(np.searchsorted(np.cumsum(ends), line))
    return row if row < len(ends) else None


def _rendered(column: pyarrow.Array, kind: str) -> pyarrow.Array:
    """Return a column of a type that Arrow's CSV writer knows, with the server's notation."""
    import pyarrow
    import pyarrow.types as types

    source = column.type
    if types.is_null(source):
        return pyarrow.nulls(len(column), pyarrow.string())
    if types.is_binary(source):
        return _strings(None if value is None else "\\x" + value.hex() for value in column.to_pylist())
    if types.is_duration(source):
        whole = column.cast(pyarrow.duration("us"), safe=False).cast(pyarrow.int64())
        return _strings(None if value is None else f"{value} microseconds" for value in whole.to_pylist())
    if kind in _DOCUMENTS and not types.is_string(source):
        return _strings(None if value is None else _document(value, source) for value in column.to_pylist())
    if types.is_list(source) or types.is_large_list(source):
        return _strings(None if value is None else _array(value) for value in column.to_pylist())
    return column


def _strings(values: object) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(values, pyarrow.string())


def _document(value: UserValue, source: pyarrow.DataType) -> str:
    import pyarrow.types as types

    whole = dict(value) if types.is_map(source) else value
    return json.dumps(whole, default=str, ensure_ascii=False)


def _array(values: Sequence[UserValue]) -> str:
    r"""Return an array in the server's notation.

    >>> _array([1, None, 'a "b"', [True]])
    '{1,NULL,"a \\"b\\"",{t}}'
    """
    return "{" + ",".join(map(_entry, values)) + "}"


def _entry(value: UserValue) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return _array(value)
    if isinstance(value, int | float):
        return str(value)
    shown = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


__all__ = ["csv_of", "is_writable_as", "row_at_line"]
