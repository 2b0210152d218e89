"""Columns as vectorized functions take and give them: a ROW is a frame of its fields, of pandas or as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.user_types import UserValue

from ..types import DataType, Root
from .pickled_values import objects_of, python_values

if TYPE_CHECKING:
    import pyarrow


def pandas_value(column: pyarrow.Array, kind: DataType | None = None) -> UserValue:
    """Return a column as pandas has it: a Series; of rows a DataFrame of their fields, all None where a row is.

    Args:
        kind: type of the column, which says where objects are; None: there are none.

    >>> import pyarrow
    >>> frame = pandas_value(pyarrow.array([{"a": 1, "b": "x"}, None]))
    >>> list(frame.columns), frame["b"].tolist()[0], frame["b"].isna().tolist()
    (['a', 'b'], 'x', [False, True])
    """
    import pandas  # type: ignore[import-untyped]
    import pyarrow

    if kind is not None and objects_of(kind) is not None:
        if kind.root is not Root.ROW:
            return pandas.Series(python_values(column, kind), dtype=object)
        inner = [pandas_value(part, field.type) for part, field in zip(column.flatten(), kind.fields, strict=True)]
        return pandas.DataFrame(dict(zip((field.name for field in kind.fields), inner, strict=True)))
    if not pyarrow.types.is_struct(column.type):
        return column.to_pandas(maps_as_pydicts="lossy")
    names = [field.name for field in column.type]
    parts = [field.to_pandas(maps_as_pydicts="lossy") for field in column.flatten()]
    return pandas.DataFrame(dict(zip(names, parts, strict=True)), index=pandas.RangeIndex(len(column)))


def rows_of_table(table: pyarrow.Table, target: pyarrow.DataType) -> pyarrow.Array:
    """Return the rows of a table as a column of rows.

    Columns are taken by their names where these are the names of the fields, else by their places.

    >>> import pyarrow
    >>> target = pyarrow.struct([("a", pyarrow.int32()), ("b", pyarrow.string())])
    >>> rows_of_table(pyarrow.table({"b": ["x"], "a": [1]}), target).to_pylist()
    [{'a': 1, 'b': 'x'}]

    Raises:
        ValueError: there are more columns or fewer, or one is of another type, also as pyarrow.ArrowException.
    """
    import pyarrow

    fields = list(target)
    names = [field.name for field in fields]
    if table.num_columns != len(fields):
        raise ValueError(f"{table.num_columns} columns, {', '.join(table.column_names)}, for {len(fields)} fields")
    columns = table.select(names).columns if set(names) == set(table.column_names) else table.columns
    arrays = [column.combine_chunks().cast(field.type) for column, field in zip(columns, fields, strict=True)]
    return pyarrow.StructArray.from_arrays(arrays, fields=fields)


__all__ = ["pandas_value", "rows_of_table"]
