"""`filesystem`: tables in files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.serialization import BulkWriterFactory
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.buckets import BucketAssigner
from rayflink.connectors.file_sink import FileSink, OutputFileConfig
from rayflink.connectors.file_source import FileSource

from ..errors import SqlError, nearest
from ..logical import Schema
from .contract import Connected, Connector, Option, TableSink, TableSource
from .formats import FORMATS, arrow_schema

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams import DataStream


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
    options: tuple[tuple[str, Any], ...]

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names))

    def pushed(self) -> tuple[str, ...]:
        whole = list(self.names) == [one.name for one in self.schema]
        return () if whole else (f"project=[{', '.join(self.names)}]",)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        form = FORMATS[self.format].reads(self.schema, self.names, dict(self.options))
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
        "format": Option(str, required=True, about="csv, json, parquet or arrow"),
    }
    prefixes = tuple(f"{name}." for name in FORMATS)

    def source(self, table: Connected) -> TableSource:
        path, form, options = self._place(table)
        if not os.path.exists(path):
            raise SqlError(f"{table.table} is at {path!r}, where nothing is", "correct the option 'path'")
        return FilesSource(path, form, table.schema, tuple(one.name for one in table.schema), tuple(options.items()))

    def sink(self, table: Connected) -> TableSink:
        path, form, options = self._place(table)
        return FilesSink(path, FORMATS[form].writes(table.schema, options), f".{form}")

    def _place(self, table: Connected) -> tuple[str, str, dict[str, Any]]:
        """The folder, the format, and the options of that.

        Raises:
            SqlError: the format is not known, or does not know an option.
        """
        path, form = _local(table.options["path"]), table.options["format"]
        if form not in FORMATS:
            raise SqlError(
                f"{table.table} has the format {form!r}{nearest(form, FORMATS)}", f"known are {', '.join(FORMATS)}"
            )
        if table.partition_keys:
            remedy = "leave out PARTITIONED BY; give a folder of its own to each table"
            raise SqlError(f"{table.table} is partitioned, which 'filesystem' does not support", remedy)
        known = FORMATS[form].options
        own = [key for key in table.formats if key.startswith(f"{form}.")]
        given = {key.removeprefix(f"{form}."): table.formats[key] for key in own}
        for key in [*given, *(key for key in table.formats if key not in own)]:
            if key not in known:
                problem = f"the format {form!r} of {table.table} does not know an option {key!r}{nearest(key, known)}"
                raise SqlError(problem, f"its options are {', '.join(known) or 'none'}")
        parsed = {key: option.default for key, option in known.items()}
        for key, text in given.items():
            try:
                parsed[key] = known[key].parse(text)
            except ValueError as error:
                raise SqlError(f"option '{form}.{key}' of {table.table} is {text!r}", f"wanted is {error}") from error
        FORMATS[form].check(parsed)
        return path, form, parsed


def _local(path: str) -> str:
    return path.removeprefix("file://")


__all__ = ["Filesystem", "arrow_schema"]
