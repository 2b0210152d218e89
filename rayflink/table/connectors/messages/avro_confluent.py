"""`avro-confluent` and `debezium-avro-confluent`: Avro with the id of its schema in a registry before each datum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.common.types import RowKind
from rayflink.connectors.avro.avro_schema import AvroSchema, BadAvroSchema
from rayflink.connectors.avro.datum_encoding import DatumEncoder
from rayflink.connectors.avro.registry_client import RegistryError, RegistryOptions, SchemaRegistry
from rayflink.connectors.avro.registry_messages import RegistryColumns, header_of

from ...errors import SqlError
from ...plan.changelog import Change
from ...plan.logical import Schema
from ..avro_types import avro_schema_of, change_schema_of
from ..contract import Option
from ..option_values import whole_from
from ..print_and_blackhole import truth
from .avro_messages import plain_nulls, wanted_columns
from .change_json import BadEnvelopes, refuse_missing, refuse_unknown
from .change_rows import DELETE, INSERT, UPDATE, change_batch, operations_of, struct_columns, unfold
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow


def _urls(text: str) -> tuple[str, ...]:
    urls = tuple(part.strip() for part in text.split(",") if part.strip())
    if any("@" in urlsplit(url).netloc or urlsplit(url).query for url in urls):
        wanted = "URLs without user, password and query; credentials belong into the options 'basic-auth.user-info' "
        raise ValueError(f"{wanted}and 'bearer-auth.token'")
    return urls


def _source(*allowed: str) -> Option:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(" or ".join(allowed))
        return text

    return Option(parse)


REGISTRY_OPTIONS: Mapping[str, Option] = {
    "url": Option(_urls),
    "schema-registry.url": Option(_urls),
    "subject": Option(str),
    "schema-registry.subject": Option(str),
    "schema": Option(str),
    "schema-registry.schema": Option(str),
    "auto.register.schemas": Option(truth, True),
    "ssl.truststore.location": Option(str),
    "ssl.truststore.password": Option(str),
    "ssl.keystore.location": Option(str),
    "ssl.keystore.password": Option(str),
    "basic-auth.credentials-source": _source("USER_INFO"),
    "basic-auth.user-info": Option(str),
    "bearer-auth.credentials-source": _source("STATIC_TOKEN"),
    "bearer-auth.token": Option(str),
    "timestamp_mapping.legacy": Option(truth, True),
    "properties.http.connect.timeout.ms": Option(whole_from(1), 5_000),
    "properties.http.read.timeout.ms": Option(whole_from(1), 10_000),
    "properties.max.retries": Option(whole_from(0), 3),
}


class RegistryFormat(MessageFormat):
    """A format whose schemas are in a registry."""

    options = REGISTRY_OPTIONS
    topic_option = "subject"

    def check(self, options: Mapping[str, object]) -> None:
        self.registry(options)
        self.given_schema(options)

    def registry(self, options: Mapping[str, object]) -> SchemaRegistry:
        """Return a client of the registry.

        Raises:
            SqlError: there is no URL, or a file is in another form.
        """
        urls = options["url"] or options["schema-registry.url"]
        if not urls:
            raise SqlError(f"the format {self.name!r} has no URL of a schema registry", f"set '{self.name}.url'")

        def text(name: str) -> str:
            return str(options[name] or "")

        def seconds(name: str) -> float:
            return float(str(options[name])) / 1000

        try:
            return SchemaRegistry(RegistryOptions(
                tuple(map(str, urls)) if isinstance(urls, tuple) else (str(urls),), text("basic-auth.user-info"),
                text("bearer-auth.token"), text("ssl.truststore.location"), text("ssl.keystore.location"),
                key_password=text("ssl.keystore.password"),
                connect_timeout_s=seconds("properties.http.connect.timeout.ms"),
                read_timeout_s=seconds("properties.http.read.timeout.ms"),
                retries=int(str(options["properties.max.retries"])), registers=bool(options["auto.register.schemas"]),
            ))  # fmt: skip
        except RegistryError as error:
            raise SqlError(error.problem, error.remedy) from error

    def given_schema(self, options: Mapping[str, object]) -> AvroSchema | None:
        """Return the schema in the options; None: there is none.

        Raises:
            SqlError: it is no record.
        """
        text = options["schema"] or options["schema-registry.schema"]
        if text is None:
            return None
        try:
            schema = AvroSchema.parse_string(str(text))
            if schema.root.value.kind != "record":
                raise BadAvroSchema(f"the schema is {schema.root}, a record is wanted", "wrap it in a record")
        except BadAvroSchema as error:
            raise SqlError(f"option '{self.name}.schema': {error.problem}", error.remedy) from error
        return schema

    def subject(self, options: Mapping[str, object]) -> str:
        """Return the subject under which schemas are registered.

        Raises:
            SqlError: there is none.
        """
        subject = options["subject"] or options["schema-registry.subject"]
        if not subject:
            remedy = f"set '{self.name}.subject', for example to the topic's name with '-value' behind it"
            raise SqlError(f"the format {self.name!r} has no subject to register a schema under", remedy)
        return str(subject)

    def encoder_for(self, schema: Schema, avro: AvroSchema) -> DatumEncoder:
        """Return the encoder of rows, for a schema that has their columns.

        Raises:
            SqlError: it does not fit the table.
        """
        names = {column.name for column in schema}
        missing = [field.name for field in avro.root.value.fields if field.name not in names]
        if missing:
            problem = f"the schema has a field {missing[0]!r}, which the table does not have as a column"
            raise SqlError(problem, "add the column, or leave the field out of the schema")
        try:
            return DatumEncoder(avro)
        except BadAvroSchema as error:
            raise SqlError(error.problem, error.remedy) from error


class AvroConfluent(RegistryFormat):
    """Datums whose schemas are in a registry that speaks Confluent's API."""

    name = "avro-confluent"

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        wanted = wanted_columns(schema, names)
        return RegistryDecoder(RegistryColumns(self.registry(options), wanted, self.given_schema(options)))

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        avro = self.given_schema(options) or avro_schema_of(schema, bool(options["timestamp_mapping.legacy"]))
        self.encoder_for(schema, avro)
        return RegistryEncoder(schema, avro, self.subject(options), self.registry(options))


class RegistryDecoder(ColumnDecoder):
    """Decodes messages with ids of schemas to columns; messages that are None have no rows."""

    def __init__(self, columns: RegistryColumns) -> None:
        self._columns = columns

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        indices = None
        if None in messages:
            indices = [index for index, message in enumerate(messages) if message is not None]
            messages = [messages[index] for index in indices]
        return ArrowBatch(plain_nulls(self._columns.of_messages(messages))), indices


class RegistryEncoder(ColumnEncoder):
    """Encodes rows as datums, with the id under which their schema is registered when the first one is written."""

    def __init__(self, schema: Schema, avro: AvroSchema, subject: str, registry: SchemaRegistry) -> None:
        super().__init__(schema)
        self._settings = schema, avro, subject, registry
        self._avro, self._subject, self._registry = avro, subject, registry
        self._encoder = DatumEncoder(avro)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._settings

    def rows(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Return the columns that are written."""
        return data

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        if not data.num_rows:
            return []
        header = header_of(self._registry.id_to_write(self._subject, self._avro))
        return list(self._encoder.messages_of(self.rows(data), header))


class DebeziumAvroConfluent(RegistryFormat):
    """Debezium's envelopes as Avro."""

    name = "debezium-avro-confluent"
    changes = Change.ALL
    options = {**REGISTRY_OPTIONS, "ignore-parse-errors": Option(truth, False)}

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        wanted = wanted_columns(schema, names)
        columns = RegistryColumns(self.registry(options), _envelope(wanted), self.given_schema(options))
        return ChangeDecoder(columns, wanted, bool(options["ignore-parse-errors"]))

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        avro = self.given_schema(options) or change_schema_of(schema, bool(options["timestamp_mapping.legacy"]))
        missing = [name for name in ("before", "after", "op") if avro.root.value.field(name) is None]
        if missing:
            problem = f"option '{self.name}.schema' has no field {missing[0]!r}"
            raise SqlError(problem, "write the schema of an envelope with 'before', 'after' and 'op'")
        return ChangeEncoder(schema, avro, self.subject(options), self.registry(options))


def _envelope(wanted: pyarrow.Schema) -> pyarrow.Schema:
    import pyarrow

    # without a column there is nothing to read of a row but that it is there
    row = pyarrow.struct([pyarrow.field(field.name, field.type) for field in wanted])
    return pyarrow.schema([("before", row), ("after", row), ("op", pyarrow.string())])


class ChangeDecoder(ColumnDecoder):
    """Decodes Debezium's envelopes in Avro to rows with kinds; messages without bytes are tombstones.

    Args:
        columns: decodes the envelopes.
        wanted: the columns of the rows.
        skips: envelopes without what they need are left out and counted.
        errors: the counter; None: nothing is counted.
    """

    operations = {"c": INSERT, "r": INSERT, "u": UPDATE, "d": DELETE}

    def __init__(
        self, columns: RegistryColumns, wanted: pyarrow.Schema, skips: bool = False, errors: Counter | None = None
    ) -> None:
        self._columns, self._wanted, self._skips, self._errors = columns, wanted, skips, errors

    def __reduce__(self) -> tuple[object, ...]:
        return ChangeDecoder, (self._columns, self._wanted, self._skips)

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        if not self._skips:
            return self
        return ChangeDecoder(self._columns, self._wanted, True, metrics.counter(NUM_RECORDS_IN_ERRORS))

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        positions = [index for index, message in enumerate(messages) if message]
        while True:
            data = self._columns.of_messages([messages[index] for index in positions])
            try:
                batch, origins = self._rows(data)
            except BadEnvelopes as error:
                if not self._skips:
                    shown = shorten(messages[positions[error.positions[0]]], 80)
                    raise ValueError(f"{shown}: {error.reason}") from error
                if self._errors is not None:
                    self._errors.inc(len(error.positions))
                bad = set(error.positions)
                positions = [index for place, index in enumerate(positions) if place not in bad]
            else:
                return batch, [positions[place] for place in origins]

    def _rows(self, data: pyarrow.RecordBatch) -> tuple[ArrowBatch, Sequence[int]]:
        before, after, names = data.columns
        operations, unknown = operations_of(names, self.operations)
        refuse_unknown(names, unknown, "op", list(self.operations))
        instead = "for PostgreSQL, set REPLICA IDENTITY FULL on the table, so that changes have the whole row before"
        refuse_missing(before, (operations == UPDATE) | (operations == DELETE), f"'before' is null; {instead}")
        refuse_missing(after, (operations == UPDATE) | (operations == INSERT), "'after' is null, a row is wanted")
        columns = self._wanted.names
        rows, kinds, origins = unfold(struct_columns(before, columns), struct_columns(after, columns), operations)
        return ArrowBatch(change_batch(columns, rows, self._wanted.types, kinds)), origins.tolist()


class ChangeEncoder(RegistryEncoder):
    """Encodes rows with kinds as Debezium's envelopes: insertions and deletions."""

    def rows(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import numpy
        import pyarrow

        kinds, rows = kinds_of(data), without_kinds(data)
        is_insert = numpy.ones(len(rows), bool)
        if kinds is not None:
            is_insert = (kinds == RowKind.INSERT.value) | (kinds == RowKind.UPDATE_AFTER.value)
        whole = [
            pyarrow.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=pyarrow.array(mask))
            for mask in (is_insert, ~is_insert)
        ]
        operations = pyarrow.array(numpy.where(is_insert, "c", "d"), pyarrow.string())
        return pyarrow.RecordBatch.from_arrays([*whole, operations], names=["before", "after", "op"])


__all__ = ["AvroConfluent", "DebeziumAvroConfluent"]
