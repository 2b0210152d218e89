"""Streams as tables, and tables as streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rayflink.common.arrow_types import to_arrow_schema
from rayflink.common.errors import InvalidTypesError
from rayflink.datastream.streams import DataStream
from rayflink.operators.factory import Factory

from .arrow_columns import arrow_schema, type_of
from .connectors.contract import Connected, Connector, TableSource
from .definitions import ColumnDefinition, TableDefinition
from .dsl.written import column_tree
from .errors import SqlError
from .logical import Relation, Schema
from .parsing.program_nodes import WindowPart
from .parsing.statements import Tree
from .physical import PhysicalPlanner
from .runtime.stream_columns import ColumnsOperator, TimesOperator
from .schema import Schema as SchemaOfTable
from .types import DataTypes

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment

ROWTIME = "rowtime"
"""The metadata key of the event time that records of a stream have."""


class StreamSource(TableSource):
    """The records of a stream.

    Args:
        stream: of Rows, tuples, dicts or columns.
        schema: the columns of the table.
        time: number of the column that is the records' event time.
    """

    def __init__(self, stream: DataStream, schema: Schema, time: int | None) -> None:
        self._stream, self._schema, self._time = stream, schema, time

    def stream(self, env: StreamExecutionEnvironment, strategy: Any, name: str) -> DataStream:
        factory = Factory(ColumnsOperator, arrow_schema(self._schema), self._time)
        made = self._stream._one_input("Columns", factory)
        return made if strategy is None else made.assign_timestamps_and_watermarks(strategy)


class StreamConnector(Connector):
    """The table that a stream is."""

    name = "stream"
    metadata_keys = frozenset({ROWTIME})

    def __init__(self, stream: DataStream) -> None:
        self._stream = stream

    def source(self, table: Connected) -> TableSource:
        time = next((at for at, key in table.metadata.items() if key == ROWTIME), None)
        return StreamSource(self._stream, table.schema, time)


def columns_of(stream: DataStream) -> tuple[ColumnDefinition, ...]:
    """The columns that the stream's declared type has.

    Raises:
        InvalidTypesError: none is declared, or it has no fields.
    """
    declared = stream._transformation.declared_type()
    try:
        schema = to_arrow_schema(declared)
    except InvalidTypesError as error:
        remedy = "declare one, as in map(f, Types.ROW_NAMED([...], [...])), or give schema="
        raise InvalidTypesError(f"the columns of {stream.get_name()!r} are not known", remedy) from error
    return tuple(ColumnDefinition(field.name, type_of(field)) for field in schema)


def definition_of(stream: DataStream, schema: SchemaOfTable) -> TableDefinition:
    """The table that a stream is; its columns are all that the stream's type has, then what the schema computes.

    Args:
        schema: types of columns, and columns that are computed; without physical columns those of the stream's type.

    Raises:
        InvalidTypesError: neither says which columns there are.
    """
    given = {one.name: one for one in schema.columns if one.is_physical}
    columns: tuple[ColumnDefinition, ...] = tuple(given.values())
    try:
        of_type = columns_of(stream)
    except InvalidTypesError:
        if not given:
            raise
    else:
        if given.keys() <= {one.name for one in of_type}:
            columns = tuple(given.get(one.name, one) for one in of_type)
    others = tuple(one for one in schema.columns if not one.is_physical)
    connected = StreamConnector(stream)
    return TableDefinition((*columns, *others), schema.watermark, schema.key, connected=connected)


def columns_asked(fields: Sequence[Tree], names: Sequence[str]) -> tuple[SchemaOfTable, list[Tree]]:
    """What `from_data_stream(stream, col("a"), col("ts").rowtime)` asks for: further columns, and what to select.

    Args:
        names: the columns of the stream; columns that are named otherwise are renamed, in order.

    Raises:
        SqlError: there are more than the stream has.
    """
    plain = [one for one in fields if not isinstance(one, WindowPart)]
    asked = [(one.this if isinstance(one, exp.Alias) else one).name for one in plain]
    by_name = set(asked) <= set(names)
    if not by_name and len(asked) > len(names):
        raise SqlError(f"{len(asked)} columns of a stream of {len(names)}", f"its columns are {', '.join(names)}")
    builder, selected, number = SchemaOfTable.new_builder(), [], 0
    for one in fields:
        if isinstance(one, WindowPart):
            name = _TIME.format(one.this.name)
            if one.args["part"] == "PROCTIME":
                builder.column_by_expression(name, "PROCTIME()")
            else:
                builder.column_by_metadata(name, DataTypes.TIMESTAMP_LTZ(3), ROWTIME).watermark(
                    name, "SOURCE_WATERMARK()"
                )
            selected.append(exp.Alias(this=column_tree(name), alias=exp.to_identifier(one.this.name, quoted=True)))
            continue
        alias = exp.to_identifier(one.alias_or_name, quoted=True)
        selected.append(one if by_name else exp.Alias(this=column_tree(names[number]), alias=alias))
        number += 1
    return builder.build(), selected


_TIME = "time of {}"
"""Name of a time attribute before it is selected, for a column of the stream may have the name that it gets."""


def to_data_stream(planner: PhysicalPlanner, plan: Relation) -> DataStream:
    """See `StreamTableEnvironment.to_data_stream`."""
    stream = planner.stream(plan)
    time = next((at for at, one in enumerate(plan.schema) if one.is_event_time), None)
    return stream if time is None else stream._one_input("Times", Factory(TimesOperator, time))
