"""Streams as tables, and tables as streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rayflink.common.data_types.basic_types import PickledBytesTypeInfo
from rayflink.common.data_types.composite_types import RowTypeInfo, TupleTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.typeinfo import Types
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.datastream.streams.stream import DataStream
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..connectors.contract import Connected, Connector, TableSource
from ..conversion.arrow_columns import arrow_schema, type_of
from ..conversion.row_types import TableRows
from ..definitions import ColumnDefinition, TableDefinition
from ..dsl.expression_text import column_tree
from ..errors import SqlError
from ..parsing.program_nodes import WindowPart
from ..parsing.statements import Tree
from ..plan.changelog import Change, ChangelogMode
from ..plan.logical import Schema
from ..runtime.stream_columns import AFTER, BEFORE, DELETE, INSERT, ColumnsOperator
from ..schema import Schema as SchemaOfTable
from ..types import DataTypes

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment

ROWTIME = "rowtime"
"""The metadata key of the event time that records of a stream have."""
INSERTIONS = ChangelogMode.insert_only()


class StreamSource(TableSource):
    """The records of a stream.

    Args:
        stream: of Rows, tuples, dicts or columns.
        schema: the columns of the table.
        time: number of the column that is the records' event time.
        mode: what the records do.
        key: names of the columns by which records replace others.
        is_in_order: records stay in their order; they do where they change others.
    """

    def __init__(
        self, stream: DataStream, schema: Schema, time: int | None, mode: ChangelogMode, key: tuple[str, ...] = (),
        is_in_order: bool = False,
    ) -> None:  # fmt: skip
        self._stream, self._schema, self._time, self._mode, self.key = stream, schema, time, mode, key
        self.changes, self.produces_update_before = mode.changes, mode.before
        self._is_in_order = is_in_order or not mode.is_append_only

    def in_order(self) -> TableSource:
        return StreamSource(self._stream, self._schema, self._time, self._mode, self.key, True)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        types = tuple(column.type for column in self._schema)
        records = StreamBuilder(self._stream)
        is_single = _is_single(records.declared_type)
        settings = (arrow_schema(self._schema), types, self._time, _numbers(self._mode), is_single)
        factory = Factory(ColumnsOperator, *settings)
        rows = records.add_operator("Columns", factory)
        timed = rows if strategy is None else rows.assign_watermarks(strategy)
        if self._is_in_order:
            rows.keep_parallelism(records)
            timed.keep_parallelism(records)
        return timed.stream


def _numbers(mode: ChangelogMode) -> tuple[int, ...]:
    """Return numbers of the kinds that records have."""
    updates = [BEFORE, AFTER] if mode.before else [AFTER]
    kinds_of_changes = {Change.INSERT: [INSERT], Change.UPDATE: updates, Change.DELETE: [DELETE]}
    return tuple(kind for change, kinds in kinds_of_changes.items() if change in mode.changes for kind in kinds)


class StreamConnector(Connector):
    """The table that a stream is.

    Args:
        stream: of Rows, tuples, dicts or columns.
        mode: what its records do.
        key: names of the columns by which they replace others.
    """

    name = "stream"
    metadata_keys = frozenset({ROWTIME})

    def __init__(self, stream: DataStream, mode: ChangelogMode, key: Sequence[str] = ()) -> None:
        self._stream, self._mode, self._key = stream, mode, tuple(key)

    def source(self, table: Connected) -> TableSource:
        time = next((index for index, key in table.metadata.items() if key == ROWTIME), None)
        return StreamSource(self._stream, table.schema, time, self._mode, self._key)


def columns_of(stream: DataStream) -> tuple[ColumnDefinition, ...]:
    """Return the columns that the stream's declared type has.

    Raises:
        InvalidTypesError: none is declared, or it has no fields.
    """
    declared = StreamBuilder(stream).declared_type
    if isinstance(declared, TableRows):
        return tuple(ColumnDefinition(column.name, column.type) for column in declared.columns)
    try:
        return _columns_of_row(_with_fields(declared))
    except InvalidTypesError as error:
        remedy = "declare one, as in map(f, Types.ROW_NAMED([...], [...])) or map(f, Types.INT()), or give schema="
        raise InvalidTypesError(f"the columns of {stream.get_name()!r} are not known", remedy) from error


def _columns_of_row(row_type: object) -> tuple[ColumnDefinition, ...]:
    """Return the columns of a row type; what its fields have pickled is RAW."""
    if not isinstance(row_type, RowTypeInfo) or PickledBytesTypeInfo not in set(map(type, row_type.get_field_types())):
        return tuple(ColumnDefinition(field.name, type_of(field)) for field in to_arrow_schema(row_type))
    columns: list[ColumnDefinition] = []
    for name, kind in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True):
        is_pickled = isinstance(kind, PickledBytesTypeInfo)
        columns += _columns_of_row(Types.ROW_NAMED([name], [kind])) if not is_pickled else [
            ColumnDefinition(name, DataTypes.RAW())
        ]
    return tuple(columns)


def _with_fields(declared: Any) -> Any:
    """Return the row type of a declared type: tuples have columns f0, f1, ...; single values, such as INT, f0."""
    if isinstance(declared, TupleTypeInfo):
        types = declared.get_field_types()
        return Types.ROW_NAMED([f"f{index}" for index in range(len(types))], types)
    return Types.ROW_NAMED(["f0"], [declared]) if _is_single(declared) else declared


def _is_single(declared: Any) -> bool:
    """Return whether records are values that are no rows, tuples or columns."""
    if not isinstance(declared, TypeInformation) or isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return False
    try:
        to_arrow_schema(declared)
    except InvalidTypesError:
        return declared.is_declared
    return False


def definition_of(stream: DataStream, schema: SchemaOfTable, mode: ChangelogMode = INSERTIONS) -> TableDefinition:
    """Return the table that a stream is; its columns are all that the stream's type has, then what the schema computes.

    Rows that come from a table have their time attribute again, where the schema says no other.

    Args:
        schema: types of columns, and columns that are computed; without physical columns those of the stream's type.
        mode: what its records do.

    Raises:
        InvalidTypesError: neither says which columns there are.
        SqlError: rows replace others of their key, and there is no key.
    """
    if Change.UPDATE in mode.changes and not mode.before and not schema.key:
        problem = f"a stream whose records are {mode} has updates that lack the row before, and no key"
        raise SqlError(problem, "give a Schema with primary_key(...), or let it have UPDATE_BEFORE records, too")
    by_name = {column.name: column for column in schema.columns if column.is_physical}
    columns: tuple[ColumnDefinition, ...] = tuple(by_name.values())
    try:
        of_type = columns_of(stream)
    except InvalidTypesError:
        if not by_name:
            raise
    else:
        if by_name.keys() <= {column.name for column in of_type}:
            columns = tuple(by_name.get(column.name, column) for column in of_type)
    others = tuple(column for column in schema.columns if not column.is_physical)
    columns = tuple(_in_key(column) if column.name in schema.key else column for column in columns)
    watermark = schema.watermark or _own_watermark(stream, columns)
    connected = StreamConnector(stream, mode, schema.key)
    return TableDefinition((*columns, *others), watermark, schema.key, connected=connected)


def _in_key(column: ColumnDefinition) -> ColumnDefinition:
    return column if column.type is None else ColumnDefinition(column.name, column.type.not_null())


def _own_watermark(stream: DataStream, columns: Sequence[ColumnDefinition]) -> tuple[str, str] | None:
    """Return the watermark of the time attribute that rows had as records; None: they had none, or it is lost."""
    declared = StreamBuilder(stream).declared_type
    if not isinstance(declared, TableRows) or declared.time is None:
        return None
    time = declared.columns[declared.time]
    known = next((column.type for column in columns if column.name == time.name), None)
    return (time.name, "SOURCE_WATERMARK()") if known is not None and known.nullable() == time.type.nullable() else None


def columns_asked(fields: Sequence[Tree], names: Sequence[str]) -> tuple[SchemaOfTable, list[Tree]]:
    """Return the further columns and the select list of `from_data_stream(stream, col("a"), col("ts").rowtime)`.

    Args:
        names: the columns of the stream; columns that are named otherwise are renamed, in order.

    Raises:
        SqlError: there are more than the stream has.
    """
    plain = [field for field in fields if not isinstance(field, WindowPart)]
    asked = [(field.this if isinstance(field, exp.Alias) else field).name for field in plain]
    by_name = set(asked) <= set(names)
    if not by_name and len(asked) > len(names):
        raise SqlError(f"{len(asked)} columns of a stream of {len(names)}", f"its columns are {', '.join(names)}")
    builder, selected, number = SchemaOfTable.new_builder(), [], 0
    for field in fields:
        if isinstance(field, WindowPart):
            name = _TIME.format(field.this.name)
            if field.args["part"] == "PROCTIME":
                builder.column_by_expression(name, "PROCTIME()")
            else:
                builder.column_by_metadata(name, DataTypes.TIMESTAMP_LTZ(3), ROWTIME).watermark(
                    name, "SOURCE_WATERMARK()"
                )
            selected.append(exp.Alias(this=column_tree(name), alias=exp.to_identifier(field.this.name, quoted=True)))
            continue
        alias = exp.to_identifier(field.alias_or_name, quoted=True)
        selected.append(field if by_name else exp.Alias(this=column_tree(names[number]), alias=alias))
        number += 1
    return builder.build(), selected


_TIME = "time of {}"
"""Name of a time attribute before it is selected, for a column of the stream may have the name that it gets."""
