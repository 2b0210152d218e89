"""The formats of files: how rows lie in them, and their options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.records.csv_marks import CsvMarks
from rayflink.common.serialization import BulkWriterFactory
from rayflink.connectors.avro.container_blocks import CODECS
from rayflink.connectors.avro.container_files import AvroFormat, AvroWriterFactory
from rayflink.connectors.files.file_source import FileFormat
from rayflink.connectors.formats.arrow_files import ArrowBulkWriters, ArrowFormat
from rayflink.connectors.formats.csv_dialect import CsvDialect
from rayflink.connectors.formats.csv_files import CsvFormat
from rayflink.connectors.formats.parquet_files import ParquetBulkWriters, ParquetFormat

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.logical import Attribute, Schema
from ..types import DataType, Root
from .avro_types import avro_schema_of
from .contract import Option
from .csv_columns import CsvColumns
from .csv_skipping import SkippingCsvFormat
from .json_format import JsonFormat
from .option_values import one_of
from .print_and_blackhole import truth

if TYPE_CHECKING:
    from .json_strings import JsonColumns


class Format(ABC):
    """A file format of rows."""

    options: Mapping[str, Option] = {}
    """Option name without the format's prefix -> option."""
    has_statistics = False
    """True if files contain the least and greatest values of their parts."""
    changes = Change.INSERT
    """The kinds of change of the rows; more than INSERT where lines are messages of change data capture."""
    has_nested_projection = False
    """True if a ROW column may be read with some of its fields only."""

    @abstractmethod
    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        """Return the format that reads some columns of a file.

        Args:
            options: the options, parsed.
        """

    @abstractmethod
    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        """Return the factory of writers of files.

        Raises:
            SqlError: it has no form of a column.
        """

    def check(self, options: Mapping[str, Any]) -> None:  # noqa: B027
        """Check whether the options go together.

        Raises:
            SqlError: they do not.
        """


def _character(text: str) -> str:
    character = {"\\t": "\t"}.get(text, text)
    if len(character.encode()) != 1:
        raise ValueError("one character of ASCII")
    return character


class Csv(Format):
    """Lines of values between delimiters."""

    options: Mapping[str, Option] = {
        "field-delimiter": Option(_character, ","),
        "quote-character": Option(_character, '"'),
        "disable-quote-character": Option(truth, False),
        "null-literal": Option(str),
        "allow-comments": Option(truth, False),
        "escape-character": Option(_character),
        "ignore-parse-errors": Option(truth, False),
        "newlines-in-values": Option(truth, False),
        "ignore-surplus-values": Option(truth, False),
        "write-bigdecimal-in-scientific-notation": Option(truth, True),
    }

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        import pyarrow

        refuse_nested(tuple(column_named(schema, name) for name in names))
        quote = None if options["disable-quote-character"] else options["quote-character"]
        dialect = CsvDialect(
            options["field-delimiter"], (options["null-literal"] or "",), quote=quote,
            escape=options["escape-character"], comments=options["allow-comments"],
            strings_can_be_null=options["null-literal"] is not None,
            newlines_in_values=options["newlines-in-values"],
        )  # fmt: skip
        fields = pyarrow.schema([pyarrow.field(column.name, column.type.to_arrow()) for column in schema])
        if options["ignore-parse-errors"]:
            return SkippingCsvFormat(fields, dialect, header="none", columns=tuple(names), types=tuple(schema))
        surplus = options["ignore-surplus-values"]
        return CsvFormat(fields, dialect, header="none", columns=tuple(names), surplus=surplus)

    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        return self.columns(schema, options)

    def columns(self, schema: Schema, options: Mapping[str, Any]) -> CsvColumns:
        """Return what makes lines of columns.

        Raises:
            SqlError: CSV cannot represent a column.
        """
        refuse_nested(schema)
        quote = None if options["disable-quote-character"] else options["quote-character"]
        marks = CsvMarks(
            options["field-delimiter"], quote, options["escape-character"], null=options["null-literal"] or "",
        )  # fmt: skip
        return CsvColumns(marks, not options["write-bigdecimal-in-scientific-notation"])


def refuse_nested(schema: Schema) -> None:
    """Check that values of columns are no bytes, and not nested.

    Raises:
        SqlError: those of one are.
    """
    nested = [column for column in schema if column.type.items or column.type.fields or column.type.is_bytes]
    if nested:
        problem = f"CSV cannot represent column {nested[0].name!r}, which is {nested[0].type}"
        raise SqlError(problem, "take json, parquet or arrow, or make the column a STRING")


class Json(Format):
    """One object a line."""

    has_nested_projection = True

    options: Mapping[str, Option] = {
        "fail-on-missing-field": Option(truth, False),
        "ignore-parse-errors": Option(truth, False),
        "timestamp-format.standard": Option(one_of("SQL", "ISO-8601"), "SQL"),
        "map-null-key.mode": Option(one_of("FAIL", "DROP", "LITERAL"), "FAIL"),
        "map-null-key.literal": Option(str, "null"),
        "encode.decimal-as-plain-number": Option(truth, False),
        "encode.ignore-null-fields": Option(truth, False),
        "decode.json-parser.enabled": Option(truth, True),
    }

    def check(self, options: Mapping[str, Any]) -> None:
        if options["fail-on-missing-field"] and options["ignore-parse-errors"]:
            problem = "'json.fail-on-missing-field' and 'json.ignore-parse-errors' are both true"
            raise SqlError(problem, "set only one of them")

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        refuse_maps(schema)
        return JsonFormat(
            tuple(column_named(schema, name) for name in names),
            options["timestamp-format.standard"] == "ISO-8601",
            options["fail-on-missing-field"],
            options["ignore-parse-errors"],
        )

    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        return self.columns(schema, options)

    def columns(self, schema: Schema, options: Mapping[str, Any]) -> JsonColumns:
        """Return what makes objects of columns.

        Raises:
            SqlError: JSON cannot represent a column.
        """
        from .json_strings import JsonColumns  # slow: it loads pyarrow

        refuse_maps(schema)
        return JsonColumns(
            schema,
            options["timestamp-format.standard"] == "ISO-8601",
            options["encode.ignore-null-fields"],
            options["encode.decimal-as-plain-number"],
        )


def refuse_maps(schema: Schema) -> None:
    """Check that the keys of maps are strings.

    Raises:
        SqlError: those of a column are not.
    """

    def within(kind: DataType) -> Sequence[DataType]:
        inner = [*kind.items, *(field.type for field in kind.fields)]
        return [kind, *(nested for item in inner for nested in within(item))]

    for column in schema:
        for kind in within(column.type):
            if kind.root in (Root.MAP, Root.MULTISET) and not kind.items[0].is_text:
                problem = f"JSON cannot represent column {column.name!r}: keys of its {kind} are not strings"
                raise SqlError(problem, "make the keys STRING, or take parquet or arrow")


class Parquet(Format):
    """Parquet files."""

    has_statistics = True
    has_nested_projection = True

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        return ParquetFormat(arrow_schema(tuple(column_named(schema, name) for name in names)))

    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        return ParquetBulkWriters.for_row_type(arrow_schema(schema))


class Arrow(Format):
    """Arrow IPC files."""

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        return ArrowFormat(arrow_schema(tuple(column_named(schema, name) for name in names)))

    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        return ArrowBulkWriters.for_row_type(arrow_schema(schema))


class Avro(Format):
    """Avro files."""

    options: Mapping[str, Option] = {
        "codec": Option(one_of(*CODECS), "snappy"),
        "timestamp_mapping.legacy": Option(truth, True),
        "encoding": Option(one_of("binary"), "binary"),
    }

    def reads(self, schema: Schema, names: Sequence[str], options: Mapping[str, Any]) -> FileFormat:
        return AvroFormat(arrow_schema(tuple(column_named(schema, name) for name in names)))

    def writes(self, schema: Schema, options: Mapping[str, Any]) -> BulkWriterFactory:
        return AvroWriterFactory(avro_schema_of(schema, options["timestamp_mapping.legacy"]), options["codec"])


def column_named(schema: Schema, name: str) -> Attribute:
    """Return the column of a name."""
    return next(column for column in schema if column.name == name)


FORMATS: dict[str, Format] = {"csv": Csv(), "json": Json(), "parquet": Parquet(), "arrow": Arrow(), "avro": Avro()}
