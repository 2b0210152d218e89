"""`filesystem`: tables in files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import PlanError
from rayflink.common.options.option_types import DURATION, MEMORY
from rayflink.common.serialization import BulkWriterFactory
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.file_systems.object_paths import is_object_address
from rayflink.connectors.files.buckets import BucketAssigner
from rayflink.connectors.files.file_replacing import HiddenFilesOperator, ReplaceFiles
from rayflink.connectors.files.file_sink import FileSink, FileSinkSettings, OutputFileConfig
from rayflink.connectors.files.file_source import FileFormat, FileSource, rooted_path
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.connectors.files.row_limit import FirstRows
from rayflink.connectors.formats.parquet_files import ParquetFormat
from rayflink.connectors.formats.parquet_pruning import RowGroupFilter, Wanted
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError, nearest
from ..plan.changelog import Change
from ..plan.logical import Schema
from ..plan.typed import Column, Expr
from ..runtime.key_columns import columns_key
from ..runtime.lookups.lookup_function import TableLookup
from ..types import DataType, Root
from .contract import Connected, Connector, Option, TableSink, TableSource
from .file_dead_letters import write_dead_letters
from .formats import FORMATS, Format, column_named
from .located_rows import METADATA, LocatedFormat, check_metadata_types
from .lookups.lookup_options import RELOAD_OPTIONS, LookupOptions, check_lookup_options, lookup_options
from .lookups.whole_tables import BoundedTable, whole_lookup
from .messages.malformed_options import DEAD_LETTER, FAIL, SKIP, malformed_policy
from .messages.message_files import MESSAGE_FILES
from .narrow_columns import narrower, paths_of
from .option_values import one_of, typed
from .partition_buckets import PartitionBuckets, partition_folder
from .partition_commits import OPTIONS as COMMIT_OPTIONS
from .partition_commits import success_files
from .partitions import DEFAULT_NAME, Partitions, TableFiles, check_partition_types
from .print_and_blackhole import truth
from .row_conditions import wanted
from .statistics.file_statistics import statistics_of
from .statistics.table_statistics import TableStatistics

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream

_FORMATS: dict[str, Format] = {**FORMATS, **MESSAGE_FILES}
"""All formats of files, by name."""
MOST_OPEN = 64
"""Partitions to which a subtask writes at the same time."""


@dataclass(frozen=True)
class FilesSource(TableSource):
    """Reads the files of a folder.

    Args:
        schema: all columns of the table.
        names: those that are read.
        options: of the format.
        partitions: how the folder is divided; None: it is not.
        metadata: name of a column -> the property of its file.
        pattern: what whole paths are to match; None: any.
        monitor_ms: pause between looks for new files; None: those there at the start.
        conditions: over the partition keys alone: other partitions are not read.
        wanted: what parts of a file are passed over by, as far as its statistics tell.
        most: rows of a reader that are enough; None: all are read.
        malformed: what becomes of lines that cannot be read: an option `malformed-records`.
        dead_letters: the folder for them; "": there is none.
        narrow: types of the columns of which some fields are read only.
        lookups: when the files are read again for lookups.
    """

    path: str
    format: str
    schema: Schema
    names: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]
    partitions: Partitions | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    pattern: str | None = None
    monitor_ms: int | None = None
    conditions: tuple[Expr, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    most: int | None = None
    narrow: tuple[tuple[str, DataType], ...] = ()
    malformed: str = FAIL
    dead_letters: str = ""
    lookups: LookupOptions = LookupOptions("FULL")

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]  # a property here, as it depends on an option
        """Return whether the files are those there at the start."""
        return self.monitor_ms is None

    @property
    def changes(self) -> Change:  # type: ignore[override]  # a property here, as it depends on the format
        """Return the kinds of change of the rows."""
        return _FORMATS[self.format].changes

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names))

    def narrowed(self, types: Mapping[str, DataType]) -> TableSource | None:
        if not _FORMATS[self.format].has_nested_projection:
            return None
        return replace(self, narrow=narrower(self.schema, self.narrow, types))

    def filtered(self, conditions: Sequence[Expr]) -> tuple[TableSource, Sequence[Expr]] | None:
        keys = (
            {}
            if self.partitions is None
            else {condition.name: index for index, condition in enumerate(self.partitions.keys)}
        )
        by_partition = [condition for condition in conditions if _is_over(condition, keys)]
        moved = [condition.mapped(lambda node: _at(node, keys)) for condition in by_partition]
        left = [condition for condition in conditions if condition not in by_partition]
        searches = [
            search for condition in left if (search := wanted(condition)) and _FORMATS[self.format].has_statistics
        ]
        if not by_partition and not searches:
            return None
        source = replace(self, conditions=(*self.conditions, *moved), wanted=(*self.wanted, *searches))
        return source, left  # statistics are of many rows

    def limited(self, rows: int) -> TableSource | None:
        return replace(self, most=rows) if self.changes is Change.INSERT else None

    def statistics(self) -> TableStatistics | None:
        if not self.is_bounded or is_object_address(self.path):  # nothing is requested while a query is planned
            return None
        try:
            paths = self._files().list_files([self.path], False)
        except (OSError, ValueError):  # an unreadable file is reported when it is read
            return None
        return statistics_of(paths, self.format)

    def pushed(self) -> tuple[str, ...]:
        whole = not self.narrow and list(self.names) == [column.name for column in self.schema]
        shown = {
            "partitions": map(str, self.conditions),
            "filter": map(str, self.wanted),
            "project": () if whole else [path for name in self.names for path in paths_of(name, dict(self.narrow))],
            "limit": () if self.most is None else (str(self.most),),
        }
        described = {what: ", ".join(parts) for what, parts in shown.items()}
        return tuple(f"{what}=[{text}]" for what, text in described.items() if text)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        source = FileSource(self._form(), [self.path], self.monitor_ms, self._files())
        stream = env.from_source(source, strategy, name)
        if self.dead_letters:
            write_dead_letters(stream, self.dead_letters, name)
        return stream

    def lookup(self, keys: Sequence[str]) -> TableLookup | None:
        if self.changes is not Change.INSERT:
            return None  # rows that were deleted later would be found
        chosen = replace(self, names=tuple(dict.fromkeys([*self.names, *keys])), monitor_ms=None, most=None)
        source = FileSource(chosen._form(), [self.path], None, chosen._files())
        columns = tuple(column_named(chosen._read_schema(), name) for name in chosen.names)
        return whole_lookup(BoundedTable(source, arrow_schema(columns)), keys, self.lookups)

    def check_malformed(self) -> None:
        """Check whether the format has lines that can be passed over, if some are to be.

        Raises:
            PlanError: it has none.
        """
        self._whole_form()

    def _files(self) -> TableFiles:
        return TableFiles(self.partitions, self.conditions, self.pattern)

    def _form(self) -> FileFormat:
        return self._whole_form() if self.most is None else FirstRows(self._whole_form(), self.most)

    def _whole_form(self) -> FileFormat:
        keys = () if self.partitions is None else tuple(column.name for column in self.partitions.keys)
        beside = {*keys, *(name for name, _ in self.metadata)}
        schema = self._read_schema()
        stored = tuple(column for column in schema if column.name not in beside)
        read = [name for name in self.names if name not in beside]
        form = _FORMATS[self.format].reads(stored, read or [stored[0].name], dict(self.options))
        form = form.with_malformed_records(malformed_policy(self.malformed))
        if self.wanted and isinstance(form, ParquetFormat):
            form = form.of_groups(RowGroupFilter(self.wanted))
        if len(read) == len(self.names):
            return form
        metadata = tuple((name, key) for name, key in self.metadata if name in self.names)
        columns = tuple(column_named(schema, name) for name in self.names)
        return LocatedFormat(form, columns, self.partitions, metadata)

    def _read_schema(self) -> Schema:
        kinds = dict(self.narrow)
        return tuple(replace(column, type=kinds.get(column.name, column.type)) for column in self.schema)


def _is_over(condition: Expr, keys: Mapping[str, int]) -> bool:
    """Return whether partitions alone decide on a condition, in whatever time zone."""
    parts = list(condition.walk())
    columns = [part for part in parts if isinstance(part, Column)]
    zoned = any(part.type.root is Root.TIMESTAMP_LTZ for part in parts)
    return bool(columns) and all(part.name in keys for part in columns) and not zoned


def _at(node: Expr, keys: Mapping[str, int]) -> Expr:
    return replace(node, index=keys[node.name]) if isinstance(node, Column) else node


@dataclass(frozen=True)
class FilesSink(TableSink):
    """Writes files into a folder; they appear whole, with the checkpoint that holds their rows, or at the end.

    Args:
        writer: of a file.
        settings: names, folders and when files end.
        partitions: how the folder is divided; None: it is not.
        overwrites: what was in the folders of new files goes when all are written.
        emptied: a folder of which that is so even where no new files come.
        is_partitioned: rows of one partition go to one subtask, as they must where the end of a partition is marked.
        is_append_only: whether the format has new rows alone.
    """

    path: str
    writer: BulkWriterFactory
    settings: FileSinkSettings
    partitions: Partitions | None = None
    overwrites: bool = False
    emptied: str | None = None
    is_partitioned: bool = False
    is_append_only: bool = True
    instead = "write into a table that takes changes, such as one of 'print', or files with 'format' = 'debezium-json'"

    @property
    def reads_watermarks(self) -> bool:  # type: ignore[override]  # it depends on options
        """Return whether partitions are complete by event time."""
        return self.settings.marks is not None and self.settings.marks.time_of is not None

    def overwriting(self, partition: Mapping[str, Any]) -> TableSink:
        keys = () if self.partitions is None else self.partitions.keys
        whole = all(key.name in partition for key in keys)
        folder = self.path
        if self.partitions is not None and whole:
            folder = os.path.join(self.path, partition_folder(self.partitions, partition))
        return replace(self, overwrites=True, emptied=folder if whole else None)

    def attach(self, stream: DataStream, name: str) -> Step:
        sink = FileSink(self.path, self.writer, self.settings)
        if self.partitions is not None and (self.is_partitioned or self.settings.marks is not None):
            key = columns_key([column.name for column in self.partitions.keys])
            stream = StreamBuilder(stream).hash_partition(key).stream
        if not self.overwrites:
            return stream.sink_to(sink).name(name)
        writer = StreamBuilder(stream).add_operator(f"{name}: Writer", Factory(HiddenFilesOperator, sink))
        folders = () if self.emptied is None else (rooted_path(self.emptied),)
        replacer = writer.single_partition().add_operator(f"{name}: Replace", Factory(ReplaceFiles, folders))
        replacer.set_parallelism(1)
        return replacer.stream.sink_to(DiscardingSink()).name(name).set_parallelism(1)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


class Filesystem(Connector):
    """Tables in files."""

    name = "filesystem"
    options: Mapping[str, Option] = {
        "path": Option(str, required=True, about="a folder, or a file"),
        "format": Option(str, required=True, about="csv, json, parquet, arrow, avro, raw, debezium-json and others"),
        "partition.default-name": Option(str, DEFAULT_NAME),
        "source.monitor-interval": Option(typed(DURATION)),
        "source.path.regex-pattern": Option(_pattern),
        "malformed-records": Option(one_of(FAIL, SKIP, DEAD_LETTER), FAIL),
        "dead-letter.path": Option(str, about="a folder for lines that cannot be read, with what is wrong, as JSON"),
        "sink.rolling-policy.file-size": Option(typed(MEMORY)),
        "sink.rolling-policy.rollover-interval": Option(typed(DURATION)),
        "sink.rolling-policy.inactivity-interval": Option(typed(DURATION)),
        "sink.rolling-policy.check-interval": Option(typed(DURATION)),
        "sink.shuffle-by-partition.enable": Option(truth, False),
        **COMMIT_OPTIONS,
        **RELOAD_OPTIONS,
    }
    metadata_keys = frozenset(METADATA)
    prefixes = tuple(f"{name}." for name in _FORMATS)

    def source(self, table: Connected) -> TableSource:
        path, form, options = self._place(table)
        monitor = table.options["source.monitor-interval"]
        if monitor is not None and monitor.to_millis() <= 0:
            problem = f"option 'source.monitor-interval' of {table.table} is {monitor.to_millis()} ms"
            raise SqlError(problem, "write a duration above 0, such as '10 s', or leave it out to read once")
        if not is_object_address(path) and not os.path.exists(path):
            raise SqlError(f"{table.table} has the path {path!r}, which does not exist", "correct the option 'path'")
        check_metadata_types(table.table, table.schema, table.metadata)
        check_lookup_options(table.table, table.options)
        malformed = _malformed(table)
        source = FilesSource(
            path,
            form,
            table.schema,
            tuple(column.name for column in table.schema),
            tuple(options.items()),
            self._partitions(path, table),
            tuple((table.schema[index].name, key) for index, key in table.metadata.items()),
            table.options["source.path.regex-pattern"],
            None if monitor is None else monitor.to_millis(),
            malformed=malformed,
            dead_letters=_rooted(table.options["dead-letter.path"] or ""),
            lookups=lookup_options(table.options),
        )
        try:
            source.check_malformed()
        except PlanError as error:
            problem = f"{table.table} has 'malformed-records' = {malformed!r}: {error.problem}"
            remedy = "leave the option out; formats of lines have it: csv without 'csv.newlines-in-values', json, raw"
            raise SqlError(problem, remedy) from None
        return source

    def sink(self, table: Connected) -> TableSink:
        path, form, options = self._place(table)
        if table.metadata:
            name = table.schema[next(iter(table.metadata))].name
            problem = f"{table.table} has the metadata column {name!r}, which cannot be written"
            raise SqlError(problem, f"declare it {name} ... METADATA VIRTUAL")
        partitions = self._partitions(path, table)
        stored = tuple(column for column in table.schema if column.name not in table.partition_keys)
        buckets = BucketAssigner.base_path_bucket_assigner()
        is_append_only = _FORMATS[form].changes is Change.INSERT
        if partitions is not None:
            if not is_append_only:
                problem = f"{table.table} is partitioned, and its format {form!r} has changes of rows"
                raise SqlError(problem, "leave PARTITIONED BY out, or write one of json, csv, parquet, arrow or avro")
            buckets = PartitionBuckets(partitions, [column.name for column in stored])
        writer = _FORMATS[form].writes(stored, options)
        partitioned = table.options["sink.shuffle-by-partition.enable"]
        settings = self._settings(table, f".{form}", buckets)
        return FilesSink(
            path, writer, settings, partitions, is_partitioned=partitioned, is_append_only=is_append_only
        )

    def _settings(self, table: Connected, suffix: str, buckets: BucketAssigner) -> FileSinkSettings:
        def chosen(name: str, otherwise: int) -> int:
            value = table.options[f"sink.rolling-policy.{name}"]
            return otherwise if value is None else int(value.to_millis())

        size = table.options["sink.rolling-policy.file-size"]
        policy = RollingPolicy(
            128 << 20 if size is None else size.get_bytes(),
            chosen("rollover-interval", 30 * 60_000),
            chosen("inactivity-interval", 30 * 60_000),
        )
        check_ms = chosen("check-interval", 60_000)
        names = OutputFileConfig.builder().with_part_suffix(suffix).build()
        return FileSinkSettings(buckets, policy, names, check_ms, most_open=MOST_OPEN, marks=success_files(table))

    def _partitions(self, path: str, table: Connected) -> Partitions | None:
        """Return the partitioning of the table.

        Raises:
            SqlError: by columns that cannot be names of folders, or by all that it has.
        """
        if not table.partition_keys:
            return None
        keys = tuple(column_named(table.schema, name) for name in table.partition_keys)
        check_partition_types(table.table, keys)
        if len(keys) + len(table.metadata) == len(table.schema):
            raise SqlError(f"{table.table} has only partition columns", "add a column that the files contain")
        return Partitions(path, keys, table.options["partition.default-name"])

    def _place(self, table: Connected) -> tuple[str, str, dict[str, Any]]:
        """Return the folder, the format, and the options of that.

        Raises:
            SqlError: the format is not known, or does not know an option.
        """
        path, form = _rooted(table.options["path"]), table.options["format"]
        if form not in _FORMATS:
            raise SqlError(
                f"{table.table} has the format {form!r}{nearest(form, _FORMATS)}",
                f"the formats are {', '.join(_FORMATS)}",
            )
        names = _FORMATS[form].options
        own = [key for key in table.formats if key.startswith(f"{form}.")]
        options = {key.removeprefix(f"{form}."): table.formats[key] for key in own}
        for key in [*options, *(key for key in table.formats if key not in own)]:
            if key not in names:
                problem = f"the format {form!r} of {table.table} does not know an option {key!r}{nearest(key, names)}"
                raise SqlError(problem, f"its options are {', '.join(names) or 'none'}")
        parsed = {key: option.default for key, option in names.items()}
        for key, text in options.items():
            try:
                parsed[key] = names[key].parse(text)
            except ValueError as error:
                raise SqlError(f"option '{form}.{key}' of {table.table} is {text!r}", f"expected {error}") from error
        _FORMATS[form].check(parsed)
        return path, form, parsed


def _malformed(table: Connected) -> str:
    """Return the option `malformed-records`.

    Raises:
        SqlError: a folder for dead letters is missing or has no use.
    """
    asked, folder = str(table.options["malformed-records"]), table.options["dead-letter.path"]
    if asked == DEAD_LETTER and not folder:
        problem = f"{table.table} has 'malformed-records' = 'dead-letter' and no option 'dead-letter.path'"
        raise SqlError(problem, "name the folder for lines that cannot be read")
    if asked != DEAD_LETTER and folder:
        problem = f"{table.table} has 'dead-letter.path', and 'malformed-records' is {asked!r}"
        raise SqlError(problem, "write 'malformed-records' = 'dead-letter', or leave the folder out")
    return asked


def _rooted(path: str) -> str:
    """Return the path from the root: a relative one begins where the program runs, not where its subtasks do.

    Raises:
        SqlError: it is an address of something else than files or an object store.
    """
    try:
        return rooted_path(path) if path else path
    except ValueError as error:
        problem, _, remedy = str(error).partition("; ")
        raise SqlError(f"option 'path': {problem}", remedy) from error


__all__ = ["Filesystem"]
