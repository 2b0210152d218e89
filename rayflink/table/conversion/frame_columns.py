"""Columns of pandas with values inside, as columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.arrow_values import shaped
from rayflink.user_types import UserValue

from ..types import DataType, Root, RowField
from .pickled_values import objects_of, python_values
from .python_values import plain_of

if TYPE_CHECKING:
    import pyarrow

    from ..plan.logical import Schema


def has_objects(kind: DataType) -> bool:
    """Return whether a map or a pickled object is within values of a type: Arrow sees structs in dicts of pandas."""
    parts = (*kind.items, *(field.type for field in kind.fields))
    return kind.root in (Root.MAP, Root.MULTISET, Root.RAW) or any(map(has_objects, parts))


def frame_values(column: Any) -> list[Any]:
    """Return the values of a Series, or the rows of a DataFrame as dicts; those that are missing are None."""
    import pandas  # type: ignore[import-untyped]

    if isinstance(column, pandas.DataFrame):
        return list(column.to_dict("records"))
    return [None if value is pandas.NA or value is pandas.NaT or _is_nan(value) else value for value in column]


def _is_nan(value: UserValue) -> bool:
    return isinstance(value, Number) and value != value


def frame_of_rows(table: pyarrow.Table, schema: Schema) -> UserValue:
    """Return the rows of a table as a DataFrame, with the objects that are pickled in its columns."""
    import pandas

    frame = table.to_pandas(maps_as_pydicts="lossy")
    for place, column in enumerate(schema):
        if objects_of(column.type) is not None:
            values = python_values(table.column(place), column.type)
            frame.isetitem(place, pandas.Series(values, dtype=object))
    return frame


def frame_table(frame: Any, fields: Sequence[RowField]) -> pyarrow.Table:
    """Return the columns of a DataFrame, by their places, in the types of fields.

    Raises:
        InvalidTypesError: there are more fields than columns, or fewer.
    """
    import pyarrow

    if len(frame.columns) != len(fields):
        problem = f"the DataFrame has {len(frame.columns)} columns, and the schema {len(fields)} fields"
        raise InvalidTypesError(problem, "give each column a field")
    schema = pyarrow.schema([field.type.to_arrow_field(field.name) for field in fields])
    columns = [_column(frame.iloc[:, place], field.type) for place, field in enumerate(fields)]
    return pyarrow.table([column.cast(target.type) for column, target in zip(columns, schema, strict=True)], schema)


def inferred_table(frame: Any) -> pyarrow.Table:
    """Return the columns of a DataFrame in the types of their values.

    Raises:
        InvalidTypesError: there is no column, there are two of one name, or values of a column are of several types.
    """
    import pyarrow

    names = [str(name) for name in frame.columns]
    if not names or len(set(names)) < len(names):
        problem = f"the DataFrame has the columns {names!r:.80}"
        raise InvalidTypesError(problem, "give it at least one column, and each a name of its own")
    try:
        return pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        problem = f"a column of the DataFrame has no type of SQL: {' '.join(map(str, error.args))}"
        raise InvalidTypesError(problem, "give its values one type, as by frame['a'].astype(str)") from error


def _column(series: Any, kind: DataType) -> pyarrow.Array:
    import pyarrow

    if not has_objects(kind):
        return pyarrow.array(series, from_pandas=True)
    plain = plain_of(kind)
    return pyarrow.array([shaped(plain, value) for value in frame_values(series)], kind.to_arrow())


__all__ = ["frame_of_rows", "frame_table", "frame_values", "has_objects", "inferred_table"]
