"""`filesystem`: files of CSV, JSON lines, Parquet or Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.csv_dialect import CsvDialect
from rayflink.connectors.csv_files import CsvFormat
from rayflink.connectors.file_source import FileFormat, FileSource

from ..errors import SqlError
from ..logical import Schema
from .contract import Connected, Connector, Option, TableSource

if TYPE_CHECKING:
    import pyarrow

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams import DataStream


def arrow_schema(schema: Schema) -> pyarrow.Schema:
    """The columns as Arrow's schema."""
    import pyarrow

    return pyarrow.schema([one.type.to_arrow_field(one.name) for one in schema])


def _csv(schema: Schema, names: Sequence[str], given: Mapping[str, str]) -> FileFormat:
    import pyarrow

    known = {"field-delimiter": ",", "quote-character": '"', "null-literal": "", "allow-comments": "false",
             "disable-quote-character": "false", "escape-character": ""}  # fmt: skip
    for key in given:
        if key not in known:
            raise SqlError(f"the CSV format does not know an option 'csv.{key}'", f"known are {', '.join(known)}")
    settings = {**known, **given}
    quote = None if settings["disable-quote-character"] == "true" else settings["quote-character"]
    delimiter = {"\\t": "\t"}.get(settings["field-delimiter"], settings["field-delimiter"])
    dialect = CsvDialect(
        delimiter, (settings["null-literal"],), quote=quote, escape=settings["escape-character"] or None,
        comments=settings["allow-comments"] == "true",
    )  # fmt: skip
    fields = [pyarrow.field(one.name, one.type.to_arrow()) for one in schema]
    return CsvFormat(pyarrow.schema(fields), dialect, header="none", columns=tuple(names))


_FORMATS: dict[str, Callable[[Schema, Sequence[str], Mapping[str, str]], FileFormat]] = {"csv": _csv}


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
        form = _FORMATS[self.format](self.schema, self.names, dict(self.options))
        return env.from_source(FileSource(form, [self.path]), strategy, name)


class Filesystem(Connector):
    """Tables in files."""

    name = "filesystem"
    options: Mapping[str, Option] = {
        "path": Option(str, required=True, about="a folder, or a file"),
        "format": Option(str, required=True, about="csv"),
    }
    prefixes = tuple(f"{name}." for name in _FORMATS)

    def source(self, table: Connected) -> TableSource:
        path, form = _local(table.options["path"]), table.options["format"]
        if form not in _FORMATS:
            raise SqlError(f"{table.table} has the format {form!r}", f"known are {', '.join(_FORMATS)}")
        if not os.path.exists(path):
            raise SqlError(f"{table.table} is at {path!r}, where nothing is", "correct the option 'path'")
        options = tuple((key.removeprefix(f"{form}."), text) for key, text in table.formats.items())
        return FilesSource(path, form, table.schema, tuple(one.name for one in table.schema), options)


def _local(path: str) -> str:
    return path.removeprefix("file://")
