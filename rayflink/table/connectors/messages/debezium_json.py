"""`debezium-json` and `ogg-json`: envelopes with the whole row before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.serialization import SerializationSchema

from ...errors import SqlError
from ...plan.logical import Attribute, Schema
from ...types import DataType, DataTypes
from ..contract import Option
from ..print_and_blackhole import truth
from .change_json import ChangeJson, ChangeJsonDecoder, Changes, milliseconds, refuse_missing, refuse_unknown
from .change_rows import DELETE, INSERT, UPDATE, operations_of, struct_columns

if TYPE_CHECKING:
    import pyarrow

_SOURCE = {"source.timestamp": "ts_ms", "source.database": "db", "source.schema": "schema", "source.table": "table"}
"""Key of metadata -> field of the envelope's `source`."""


class _BothRowsDecoder(ChangeJsonDecoder):
    """Decodes envelopes with fields `before` and `after`."""

    operation = ""
    """The field that names the operation."""
    operations: Mapping[str, int] = {}
    instead = ""
    """The remedy where an update has no row before."""

    def body(self) -> Schema:
        """Return the fields of the envelope around the rows."""
        row = self._wanted.row_type()
        return (
            Attribute("before", row), Attribute("after", row), Attribute(self.operation, DataTypes.STRING()),
        )  # fmt: skip

    def inner(self, data: pyarrow.RecordBatch) -> dict[str, pyarrow.Array]:
        """Return the fields of `body` by name."""
        return dict(zip(data.schema.names, data.columns, strict=True))

    def changes(self, data: pyarrow.RecordBatch, messages: Sequence[bytes]) -> Changes:
        import numpy

        fields = self.inner(data)
        operations, unknown = operations_of(fields[self.operation], dict(self.operations))
        refuse_unknown(fields[self.operation], unknown, self.operation, list(self.operations))
        before, after = fields["before"], fields["after"]
        refuse_missing(before, operations == UPDATE, f"'before' of an update is null; {self.instead}")
        refuse_missing(before, operations == DELETE, f"'before' of a deletion is null; {self.instead}")
        refuse_missing(after, (operations == UPDATE) | (operations == INSERT), "'after' is null, a row is wanted")
        names = self._wanted.names
        columns = struct_columns(before, names), struct_columns(after, names)
        return Changes(*columns, operations, numpy.arange(data.num_rows))


class DebeziumJsonDecoder(_BothRowsDecoder):
    """Decodes Debezium's envelopes."""

    operation = "op"
    operations = {"c": INSERT, "r": INSERT, "u": UPDATE, "d": DELETE}
    instead = "for PostgreSQL, set REPLICA IDENTITY FULL on the table, so that changes have the whole row before"

    @property
    def _has_schema(self) -> bool:
        return bool(self._wanted.options["schema-include"])

    def envelope(self) -> Schema:
        fields = list(self.body())
        if "ingestion-timestamp" in self._wanted.keys:
            fields.append(Attribute("ts_ms", DataTypes.BIGINT()))
        if self._wanted.keys.intersection((*_SOURCE, "source.properties")):
            fields.append(Attribute("source", self._source()))
        if not self._has_schema:
            if "schema" in self._wanted.keys:
                fields.append(Attribute("schema", DataTypes.STRING()))
            return tuple(fields)
        payload = DataTypes.ROW([DataTypes.FIELD(field.name, field.type) for field in fields])
        schema = (Attribute("schema", DataTypes.STRING()),) if "schema" in self._wanted.keys else ()
        return (Attribute("payload", payload), *schema)

    def _source(self) -> DataType:
        if "source.properties" in self._wanted.keys:
            return DataTypes.MAP(DataTypes.STRING(), DataTypes.STRING())
        kinds = {"ts_ms": DataTypes.BIGINT()}
        names = [name for key, name in _SOURCE.items() if key in self._wanted.keys]
        return DataTypes.ROW([DataTypes.FIELD(name, kinds.get(name, DataTypes.STRING())) for name in names])

    def inner(self, data: pyarrow.RecordBatch) -> dict[str, pyarrow.Array]:
        if not self._has_schema:
            return super().inner(data)
        payload = data.column(0)
        names = [field.name for field in payload.type]
        return dict(zip(names, struct_columns(payload, names), strict=True))

    def metadata(self, key: str, data: pyarrow.RecordBatch) -> pyarrow.Array:
        from pyarrow import compute

        if key == "schema":
            return data.column(data.schema.get_field_index("schema"))
        fields = self.inner(data)
        if key == "ingestion-timestamp":
            return milliseconds(fields["ts_ms"])
        source = fields["source"]
        if key == "source.properties":
            return source
        name = _SOURCE[key]
        if "source.properties" in self._wanted.keys:
            column = compute.map_lookup(source, name, "first")
        else:
            column = struct_columns(source, [name])[0]
        return milliseconds(column) if key == "source.timestamp" else column


class DebeziumJson(ChangeJson):
    """Debezium's envelopes, with or without their schema."""

    name = "debezium-json"
    options = {"schema-include": Option(truth, False), **ChangeJson.options}
    decoder_class = DebeziumJsonDecoder
    insertion = ('{"before":null,"after":', ',"op":"c"}')
    deletion = ('{"before":', ',"after":null,"op":"d"}')
    metadata = {
        "schema": "STRING",
        "ingestion-timestamp": "TIMESTAMP_LTZ(3)",
        "source.timestamp": "TIMESTAMP_LTZ(3)",
        "source.database": "STRING",
        "source.schema": "STRING",
        "source.table": "STRING",
        "source.properties": "MAP<STRING, STRING>",
    }

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        if options["schema-include"]:
            problem = "'debezium-json.schema-include' is true for a table that is written"
            raise SqlError(problem, "rows are written without Debezium's schema: leave the option out")
        return super().encoder(schema, options)


class OggJsonDecoder(_BothRowsDecoder):
    """Decodes the envelopes of Oracle GoldenGate."""

    operation = "op_type"
    operations = {"I": INSERT, "U": UPDATE, "D": DELETE}
    instead = "configure Ogg to write all columns of the row before (GETUPDATEBEFORES, NOCOMPRESSUPDATES)"

    def envelope(self) -> Schema:
        kinds = {
            "table": DataTypes.STRING(), "primary_keys": DataTypes.ARRAY(DataTypes.STRING()),
            "current_ts": DataTypes.STRING(), "op_ts": DataTypes.STRING(),
        }  # fmt: skip
        fields = [_OGG[key] for key in self._wanted.metadata.values()]
        return (*self.body(), *(Attribute(name, kinds[name]) for name in dict.fromkeys(fields)))

    def metadata(self, key: str, data: pyarrow.RecordBatch) -> pyarrow.Array:
        import pyarrow
        from pyarrow import compute

        column = self.inner(data)[_OGG[key]]
        if not key.endswith("-timestamp"):
            return column
        return (
            compute.replace_substring(column, "T", " ")
            .cast(pyarrow.timestamp("us"))
            .cast(pyarrow.timestamp("us", "UTC"))
        )


_OGG = {
    "table": "table", "primary-keys": "primary_keys", "ingestion-timestamp": "current_ts", "event-timestamp": "op_ts",
}  # fmt: skip
"""Key of metadata -> field of the envelope."""


class OggJson(ChangeJson):
    """The envelopes of Oracle GoldenGate."""

    name = "ogg-json"
    decoder_class = OggJsonDecoder
    insertion = ('{"before":null,"after":', ',"op_type":"I"}')
    deletion = ('{"before":', ',"after":null,"op_type":"D"}')
    metadata = {
        "table": "STRING",
        "primary-keys": "ARRAY<STRING>",
        "ingestion-timestamp": "TIMESTAMP_LTZ(6)",
        "event-timestamp": "TIMESTAMP_LTZ(6)",
    }


__all__ = ["DebeziumJson", "OggJson"]
