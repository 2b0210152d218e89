"""Changes of a table in a database as columns of SQL, with their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import ROW_KIND, has_kinds
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.table_changes import TableChanges

from ...errors import SqlError
from ...plan.logical import Schema
from ...types import Root
from ..contract import Connected

if TYPE_CHECKING:
    import pyarrow

METADATA: Mapping[str, tuple[Root, ...]] = {
    "table_name": (Root.VARCHAR,),
    "schema_name": (Root.VARCHAR,),
    "database_name": (Root.VARCHAR,),
    "op_ts": (Root.TIMESTAMP_LTZ,),
}
"""Key of metadata -> the types that its column may have."""


@dataclass(frozen=True)
class ColumnChanges(ChangeDeserializationSchema):
    """Makes columns of changes, with their metadata and the kinds of the changes.

    Args:
        schema: the columns of the table.
        metadata: their numbers -> key of the metadata.
    """

    schema: Schema
    metadata: tuple[tuple[int, str], ...]

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        import pyarrow

        rows, keys = changes.rows, dict(self.metadata)
        columns, fields = [], []
        for number, column in enumerate(self.schema):
            target = column.type.to_arrow()
            if number in keys:
                columns.append(_metadata_of(changes, keys[number], target))
            else:
                columns.append(rows.column(column.name))
            fields.append(pyarrow.field(column.name, target))
        if has_kinds(rows.schema):
            columns.append(rows.column(rows.num_columns - 1))
            fields.append(pyarrow.field(ROW_KIND, pyarrow.int8(), nullable=False))
        return ArrowBatch(pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(fields)))


def _metadata_of(changes: TableChanges, key: str, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    if key != "op_ts":
        names = {"table_name": changes.table, "schema_name": changes.schema, "database_name": changes.database}
        return pyarrow.repeat(pyarrow.scalar(names[key], target), len(changes))
    moment = pyarrow.timestamp("ms", "UTC")
    if changes.op_ms is None:
        return pyarrow.repeat(pyarrow.scalar(0, moment), len(changes)).cast(target)
    return pyarrow.array(changes.op_ms).cast(moment).cast(target, safe=False)


def check_metadata(table: Connected) -> None:
    """Check that columns of metadata have the types that they can have.

    Raises:
        SqlError: one has another type.
    """
    for number, key in table.metadata.items():
        if table.schema[number].type.root not in METADATA[key]:
            expected = "TIMESTAMP_LTZ(3)" if key == "op_ts" else "STRING"
            problem = f"{table.table} has {key!r} as {table.schema[number].type}"
            raise SqlError(problem, f"declare the column as {expected}")


__all__ = ["METADATA", "ColumnChanges", "check_metadata"]
