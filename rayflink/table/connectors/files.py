"""`filesystem`: files of CSV, Parquet or Arrow."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.serialization import BulkWriterFactory
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.arrow_files import ArrowBulkWriters, ArrowFormat
from rayflink.connectors.buckets import BucketAssigner
from rayflink.connectors.csv_dialect import CsvDialect
from rayflink.connectors.csv_files import CsvFormat
from rayflink.connectors.file_sink import FileSink, OutputFileConfig
from rayflink.connectors.file_source import FileFormat, FileSource
from rayflink.connectors.parquet_files import ParquetBulkWriters, ParquetFormat

from ..errors import SqlError, nearest
from ..logical import Attribute, Schema
from .contract import Connected, Connector, Option, TableSink, TableSource
from .csv_columns import CsvColumns

if TYPE_CHECKING:
    import pyarrow

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams import DataStream


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """The columns as Arrow's schema."""
    import pyarrow

    return pyarrow.schema([one.type.to_arrow_field(one.name) for one in schema])


CSV_OPTIONS = {"field-delimiter": ",", "quote-character": '"', "null-literal": "", "allow-comments": "false",
               "disable-quote-character": "false", "escape-character": ""}  # fmt: skip


class Format(ABC):
    """How rows lie in a file."""

    options: Mapping[str, str] = {}
    """With their defaults."""

    @abstractmethod
    def reads(self, schema: Schema, names: Sequence[str], given: Mapping[str, str]) -> FileFormat:
        """What reads some columns of a file."""

    @abstractmethod
    def writes(self, schema: Schema, given: Mapping[str, str]) -> BulkWriterFactory:
        """What writes a file."""


class _Csv(Format):
    options = CSV_OPTIONS

    def reads(self, schema: Schema, names: Sequence[str], given: Mapping[str, str]) -> FileFormat:
        import pyarrow

        quote = None if given["disable-quote-character"] == "true" else given["quote-character"]
        dialect = CsvDialect(
            _delimiter(given), (given["null-literal"],), quote=quote, escape=given["escape-character"] or None,
            comments=given["allow-comments"] == "true",
        )  # fmt: skip
        fields = [pyarrow.field(one.name, one.type.to_arrow()) for one in schema]
        return CsvFormat(pyarrow.schema(fields), dialect, header="none", columns=tuple(names))

    def writes(self, schema: Schema, given: Mapping[str, str]) -> BulkWriterFactory:
        nested = [one.name for one in schema if one.type.items or one.type.fields or one.type.is_bytes]
        if nested:
            remedy = "write parquet or arrow, or CAST the column to STRING"
            raise SqlError(f"CSV has no form of column {nested[0]!r}", remedy)
        return CsvColumns(_delimiter(given), given["null-literal"])


def _delimiter(given: Mapping[str, str]) -> str:
    return {"\\t": "\t"}.get(given["field-delimiter"], given["field-delimiter"])


class _Parquet(Format):
    def reads(self, schema: Schema, names: Sequence[str], given: Mapping[str, str]) -> FileFormat:
        return ParquetFormat(arrow_schema(tuple(_named(schema, name) for name in names)))

    def writes(self, schema: Schema, given: Mapping[str, str]) -> BulkWriterFactory:
        return ParquetBulkWriters.for_row_type(arrow_schema(schema))


class _Arrow(Format):
    def reads(self, schema: Schema, names: Sequence[str], given: Mapping[str, str]) -> FileFormat:
        return ArrowFormat(arrow_schema(tuple(_named(schema, name) for name in names)))

    def writes(self, schema: Schema, given: Mapping[str, str]) -> BulkWriterFactory:
        return ArrowBulkWriters.for_row_type(arrow_schema(schema))


def _named(schema: Schema, name: str) -> Attribute:
    return next(one for one in schema if one.name == name)


_FORMATS: dict[str, Format] = {"csv": _Csv(), "parquet": _Parquet(), "arrow": _Arrow()}


@dataclass(frozen=True)
class FilesSource(TableSource):
    """Reads the files of a folder.

    Args:
        schema: the columns of the files.
        names: those that are read.
        options: of the format.
    """

    path: str
    format: str
    schema: Schema
    names: tuple[str, ...]
    options: tuple[tuple[str, str], ...]

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names))

    def pushed(self) -> tuple[str, ...]:
        whole = list(self.names) == [one.name for one in self.schema]
        return () if whole else (f"project=[{', '.join(self.names)}]",)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        form = _FORMATS[self.format].reads(self.schema, self.names, dict(self.options))
        return env.from_source(FileSource(form, [self.path]), strategy, name)


@dataclass(frozen=True)
class FilesSink(TableSink):
    """Writes files into a folder; they appear whole, with the checkpoint that holds their rows, or at the end.

    Args:
        writer: of a file.
        suffix: of its name.
    """

    path: str
    writer: BulkWriterFactory
    suffix: str

    def attach(self, stream: DataStream, name: str) -> Any:
        sink = (
            FileSink.for_bulk_format(self.path, self.writer)
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_output_file_config(OutputFileConfig.builder().with_part_suffix(self.suffix).build())
        )
        return stream.sink_to(sink.build()).name(name)


class Filesystem(Connector):
    """Tables in files."""

    name = "filesystem"
    options: Mapping[str, Option] = {
        "path": Option(str, required=True, about="a folder, or a file"),
        "format": Option(str, required=True, about="csv, parquet or arrow"),
    }
    prefixes = tuple(f"{name}." for name in _FORMATS)

    def source(self, table: Connected) -> TableSource:
        path, form, options = self._place(table)
        if not os.path.exists(path):
            raise SqlError(f"{table.table} is at {path!r}, where nothing is", "correct the option 'path'")
        return FilesSource(path, form, table.schema, tuple(one.name for one in table.schema), tuple(options.items()))

    def sink(self, table: Connected) -> TableSink:
        path, form, options = self._place(table)
        return FilesSink(path, _FORMATS[form].writes(table.schema, options), f".{form}")

    def _place(self, table: Connected) -> tuple[str, str, dict[str, str]]:
        """The folder, the format, and the options of that.

        Raises:
            SqlError: the format is not known, or does not know an option.
        """
        path, form = _local(table.options["path"]), table.options["format"]
        if form not in _FORMATS:
            raise SqlError(
                f"{table.table} has the format {form!r}{nearest(form, _FORMATS)}", f"known are {', '.join(_FORMATS)}"
            )
        if table.partition_keys:
            remedy = "leave out PARTITIONED BY; give a folder of its own to each table"
            raise SqlError(f"{table.table} is partitioned, which 'filesystem' does not support", remedy)
        known = _FORMATS[form].options
        own = [key for key in table.formats if key.startswith(f"{form}.")]
        given = {key.removeprefix(f"{form}."): table.formats[key] for key in own}
        for key in [*given, *(key for key in table.formats if key not in own)]:
            if key not in known:
                problem = f"the format {form!r} of {table.table} does not know an option {key!r}{nearest(key, known)}"
                raise SqlError(problem, f"its options are {', '.join(known) or 'none'}")
        return path, form, {**known, **given}


def _local(path: str) -> str:
    return path.removeprefix("file://")
