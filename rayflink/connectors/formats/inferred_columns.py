"""Records as columns, of declared types or of those that their values have, joined as more of them come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import shorten
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.mixed_arrow_types import refuse_mixture, refuse_types
from rayflink.common.types import Row
from rayflink.user_types import UserRecord

from .column_blocks import as_schema

if TYPE_CHECKING:
    import pyarrow

_REMEDY = "make it so in a map() before, or give a schema"


class InferredColumns:
    """Makes columns of batches of one stream.

    Of columns the types are theirs. Of records a type is that of the values: whole numbers may become broken ones, None
    fits all, and nothing else is mixed. A record that is a dict need not have every column.

    >>> from rayflink.common.records.batches import RowBatch
    >>> columns = InferredColumns()
    >>> _ = columns.of(RowBatch([("a", 1), ("b", None)])), columns.of(RowBatch([("c", 2.5)]))
    >>> columns.schema
    f0: string
    f1: double

    Args:
        schema: the wanted columns; None: as the records have them.
    """

    def __init__(self, schema: pyarrow.Schema | None = None) -> None:
        self.schema, self._is_given = schema, schema is not None
        self.is_open = False
        """True if records may lack columns that others have."""

    def of(self, batch: Batch) -> pyarrow.RecordBatch:
        """Return the columns of a batch; of columns that `schema` has too by now it may lack some, or have them
        narrower.

        Raises:
            ValueError: a record does not fit; names it.
        """
        if isinstance(batch, ArrowBatch):
            return self._of_columns(batch)
        if self._is_given and self.schema is not None:
            named = [_named(record, self.schema.names) for record in batch.values]
            for record, names in zip(batch.values, named, strict=True):
                if not names.keys() <= set(self.schema.names):
                    raise _unfit(record, f"it has {', '.join(names)}, columns are {', '.join(self.schema.names)}")
            return _as_declared(named, self.schema, batch.values)
        try:
            columns, is_open = _inferred(batch.values)
            self._join(columns.schema, is_open)
        except _problems() as error:
            raise self._first_unfit(batch.values, error) from error
        return columns

    def _of_columns(self, batch: ArrowBatch) -> pyarrow.RecordBatch:
        if self._is_given and self.schema is not None:
            return as_schema(batch, self.schema)
        columns = batch.data.replace_schema_metadata(None)
        try:
            self._join(columns.schema, False)
        except _problems() as error:
            remedy = "make them equal in a map_batches() before"
            raise ValueError(f"columns of one stream differ: {error}; {remedy}") from error
        return columns

    def _join(self, schema: pyarrow.Schema, is_open: bool) -> None:
        is_open = is_open or self.is_open
        self.schema = schema if self.schema is None else joined([self.schema, schema], is_open)
        self.is_open = is_open

    def _first_unfit(self, records: Sequence[Any], error: BaseException) -> ValueError:
        for record in records:
            try:
                columns, is_open = _inferred([record])
                self._join(columns.schema, is_open)
            except _problems() as its:
                return _unfit(record, str(its))
        return ValueError(f"records do not become columns: {error}; {_REMEDY}")


def _as_declared(
    named: Sequence[dict[str, Any]], schema: pyarrow.Schema, records: Sequence[Any]
) -> pyarrow.RecordBatch:
    """Return records, as values by name, as columns of a schema.

    Raises:
        ValueError: one does not fit; names it.
    """
    names = schema.names
    rows = [tuple(map(values.get, names)) for values in named]
    try:
        return rows_to_arrow(rows, schema)
    except _problems():
        for row, record in zip(rows, records, strict=True):
            try:
                rows_to_arrow([row], schema)
            except _problems() as error:
                raise _unfit(record, str(error)) from error
        raise


def joined(schemas: Sequence[pyarrow.Schema], is_open: bool = False) -> pyarrow.Schema:
    """Return the narrowest schema that values of all schemas fit into.

    Args:
        is_open: columns may be missing.

    Raises:
        TypeError: there is none.
    """
    import pyarrow

    names = [schema.names for schema in schemas]
    if not is_open and any(other != names[0] for other in names):
        other = next(other for other in names if other != names[0])
        raise TypeError(f"columns {', '.join(names[0])} and columns {', '.join(other)}")
    for name in dict.fromkeys(chain.from_iterable(names)):
        kinds = [schema.field(name).type for schema in schemas if name in schema.names]
        refuse_types(name, kinds)
        if len({kind.tz for kind in kinds if pyarrow.types.is_timestamp(kind)}) > 1:
            schemas = [_in_utc(schema, name) for schema in schemas]
    schema: pyarrow.Schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    return schema


def _in_utc(schema: pyarrow.Schema, name: str) -> pyarrow.Schema:
    """Return a schema with the moments of a column in UTC, if they have a zone."""
    import pyarrow

    index = schema.get_field_index(name)
    if index < 0 or not pyarrow.types.is_timestamp(schema.field(index).type):
        return schema
    field = schema.field(index)
    return schema.set(index, field.with_type(pyarrow.timestamp(field.type.unit, "UTC")))


def fitted(block: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return the columns of a block as those of a schema; columns that it lacks are null.

    Raises:
        pyarrow.ArrowInvalid: a value does not go into its type.
    """
    import pyarrow

    if block.schema.equals(schema):
        return block
    columns = []
    for field in schema:
        index = block.schema.get_field_index(field.name)
        column = pyarrow.nulls(block.num_rows, field.type) if index < 0 else block.column(index).cast(field.type)
        columns.append(column)
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _inferred(records: Sequence[Any]) -> tuple[pyarrow.RecordBatch, bool]:
    """Return records as columns of their own types, and whether they may lack columns."""
    import pyarrow

    named = [_named(record, None) for record in records]
    is_open = all(isinstance(record, dict) for record in records)
    names = list(dict.fromkeys(chain.from_iterable(named)))
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"a field has the name {shorten(name, 80)} of type {type(name).__name__}, wanted a text")
    for values in named:
        if not is_open and len(values) != len(names):
            raise ValueError(f"found {len(values)} fields beside others, wanted {', '.join(names)} in each record")
    arrays = []
    for name in names:
        column = [values.get(name) for values in named]
        refuse_mixture(name, column)
        arrays.append(_array(column))
    if not arrays:  # columns without names have their number of rows from others
        return pyarrow.RecordBatch.from_arrays([pyarrow.nulls(len(records))], names=[""]).select([]), is_open
    return pyarrow.RecordBatch.from_arrays(arrays, names=names), is_open


def _array(column: Sequence[Any]) -> pyarrow.Array:
    """Return values as Arrow has them; moments of several zones in UTC, as when they come in several batches."""
    import pyarrow

    array = pyarrow.array(column)
    if pyarrow.types.is_timestamp(array.type) and array.type.tz is not None:
        zones = {value.tzinfo: value for value in column if value is not None}
        if len({pyarrow.array([value]).type for value in zones.values()}) > 1:
            return array.cast(pyarrow.timestamp(array.type.unit, "UTC"))
    return array


def _named(record: UserRecord, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the fields of a record by name.

    Args:
        names: for records that have none; None: f0, f1, ...
    """
    if isinstance(record, dict):
        return record
    if isinstance(record, Row) and record._names is not None:
        return record.as_dict(recursive=True)
    if is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, tuple) and hasattr(record, "_asdict"):
        named: dict[str, Any] = record._asdict()
        return named
    if isinstance(record, (tuple, list, Row)):
        values = list(record)
        if names is not None and len(names) != len(values):
            raise _unfit(record, f"it has {len(values)} fields, columns are {', '.join(names)}")
        return dict(zip(names or [f"f{index}" for index in range(len(values))], values, strict=True))
    if names is not None and len(names) != 1:
        raise _unfit(record, f"it is one value, columns are {', '.join(names)}")
    return {names[0] if names else "value": record}


def _problems() -> tuple[type[Exception], ...]:
    import pyarrow

    return pyarrow.ArrowException, ValueError, TypeError, KeyError, OverflowError


def _unfit(record: UserRecord, why: str) -> ValueError:
    return ValueError(f"record {shorten(record, 200)} does not fit the columns ({why}); {_REMEDY}")


__all__ = ["InferredColumns", "fitted", "joined"]
