"""Tables as streams."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.common.data_types.basic_types import InstantTypeInfo
from rayflink.common.data_types.composite_types import RowTypeInfo, TupleTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import InvalidTypesError
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.time import Instant
from rayflink.common.types import Row
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..connectors.contract import TableSink
from ..conversion.row_types import TableRows
from ..definitions import ColumnDefinition, TableDefinition
from ..errors import SqlError
from ..plan.changelog import Change, ChangelogMode, ChangelogModes
from ..plan.logical import Attribute, Relation, Sink
from ..plan.type_rules import contains_raw
from ..runtime.stream_columns import ObjectsOperator, RecordsOperator
from ..schema import Schema
from ..types import DataType, RowField
from .stream_tables import ROWTIME

if TYPE_CHECKING:
    from rayflink.datastream.streams.stream import DataStream


@dataclass(frozen=True)
class StreamSink(TableSink):
    """The stream that a table becomes.

    Args:
        columns: of the rows.
        time: number of the column that is their event time; None: none is.
        drops_time: the rows do without that column.
        mode: what the rows do.
        deletes_before: see RecordsOperator.
        key: names of the columns by which a row replaces another.
    """

    columns: tuple[RowField, ...]
    time: int | None
    drops_time: bool = False
    mode: ChangelogMode = ChangelogMode.insert_only()
    deletes_before: bool = False
    key: tuple[str, ...] = ()
    instead = "ask for a changelog_mode that has them, as ChangelogMode.all()"

    @property
    def is_append_only(self) -> bool:  # type: ignore[override]
        return self.mode.is_append_only

    @property
    def requires_update_before(self) -> bool:  # type: ignore[override]
        return self.mode.before

    def attach(self, stream: DataStream, name: str) -> DataStream:
        records = StreamBuilder(stream)
        without = not self.mode.before and not self.mode.is_append_only
        if self.time is not None or without:
            factory = Factory(RecordsOperator, self.time, self.drops_time, without, self.deletes_before)
            records = records.add_operator("Records", factory)
        time = None if self.drops_time else self.time
        columns = [column for index, column in enumerate(self.columns) if not self.drops_time or index != self.time]
        if any(contains_raw(column.type) for column in columns):
            factory = Factory(ObjectsOperator, tuple(column.type for column in columns))
            records = records.add_operator("Objects", factory)
        return records.set_type(TableRows(columns, time)).stream


def sink_of(plan: Relation, definition: TableDefinition | None, mode: ChangelogMode) -> StreamSink:
    """Return the sink that turns a plan's rows into a stream.

    Args:
        definition: the columns that the program asks for; None: those of the plan.

    Raises:
        SqlError: several columns are time attributes.
    """
    columns = tuple(RowField(column.name, column.type) for column in plan.schema)
    key = () if definition is None else tuple(definition.primary_key)
    if definition is not None:
        time = next((index for index, column in enumerate(definition.columns) if column.metadata is not None), None)
        if time is not None:
            return StreamSink(columns, time, True, mode, key=key)
    times = [index for index, column in enumerate(plan.schema) if column.is_event_time]
    if len(times) > 1:
        described = ", ".join(plan.schema[index].name for index in times)
        problem = f"the table has {len(times)} time attributes, {described}, and a record one event time"
        raise SqlError(problem, "CAST the others to TIMESTAMP(3), or leave them out", "", plan.place)
    return StreamSink(columns, times[0] if times else None, False, mode, key=key)


def target(schema: Schema | None, attributes: Sequence[Attribute]) -> TableDefinition | None:
    """Return the columns of the records that a program asks for; None: those of the table.

    Args:
        attributes: the columns of the table.
        schema: with columns for all of the table, in its order; or with metadata columns alone, which stand for the
            table's last ones. Computed columns are passed over, as where a table is written.

    Raises:
        SqlError: a column is something else beside rows than their event time.
    """
    if schema is None:
        return None
    columns = tuple(column for column in schema.columns if column.computed is None)
    metadata_columns = [column for column in columns if column.metadata is not None]
    for column in metadata_columns:
        is_time = column.metadata == ROWTIME and column.type is not None and column.type.is_timestamp
        if not is_time or len(metadata_columns) > 1:
            declared = f"METADATA {column.metadata!r} of type {column.type}"
            problem = f"column {column.name!r} of the target schema is {declared}"
            remedy = "a record has its event time alone: column_by_metadata('rowtime', 'TIMESTAMP_LTZ(3)')"
            raise SqlError(problem, remedy)
    if not any(column.is_physical for column in columns):
        physical = attributes[: len(attributes) - len(columns)]
        columns = (*(ColumnDefinition(column.name, _key_type(column, schema.key)) for column in physical), *columns)
    return TableDefinition(columns, None, schema.key)


def _key_type(column: Attribute, key: Sequence[str]) -> DataType:
    """Return the type of a column, which is NOT NULL in a key."""
    return column.type.not_null() if column.name in key else column.type


def deletes_before(plan: Sink) -> bool:
    """Return whether what replaces a row may be left out on its way, so that the row has to be taken back by itself."""
    modes = ChangelogModes([plan])
    return any(
        node.requires_update_before(False) and any(Change.UPDATE in modes.of(below).changes for below in node.inputs)
        for node in plan.input.walk()
    )


class AsRecord(MapFunction):
    """A row of a table as a record of a type: fields go by their places.

    Args:
        record: the type.
        columns: types of the table's columns.
        is_flagged: records are pairs, of whether a row comes or is taken back, and the row.

    Raises:
        InvalidTypesError: the type has more fields than the table, or fewer.
    """

    def __init__(self, record: TypeInformation, columns: Sequence[DataType], is_flagged: bool) -> None:
        self._record, self._columns, self._is_flagged = record, tuple(columns), is_flagged
        is_wide = isinstance(record, (RowTypeInfo, TupleTypeInfo))
        fields = record.get_field_types() if isinstance(record, (RowTypeInfo, TupleTypeInfo)) else [record]
        if len(fields) != len(self._columns):
            problem = f"{record} has {len(fields)} fields, and the table {len(self._columns)} columns"
            raise InvalidTypesError(problem, "give a Types.ROW or TUPLE with a field for each column, in their order")
        self._is_single, self._instants = not is_wide, [isinstance(field, InstantTypeInfo) for field in fields]

    def map(self, value: Row) -> Any:
        pairs = zip(self._instants, value._values, strict=True)
        values = [_instant(value) if is_instant and value is not None else value for is_instant, value in pairs]
        record: Any = values[0] if self._is_single else tuple(values)
        return (value._is_accumulate_msg(), record) if self._is_flagged else record


def _instant(moment: Any) -> Instant:
    micros = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
__all__ = ["AsRecord", "StreamSink", "deletes_before", "sink_of", "target"]
