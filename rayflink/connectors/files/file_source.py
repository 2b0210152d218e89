"""Files as a source: a format says how one is read, an enumerator which and by whom."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import IO, Any, Generic

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError
from rayflink.common.functions.callables import ensure_takes
from rayflink.common.functions.type_variables import Output, Result
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.metric_names import NUM_BYTES_IN, NUM_STORE_RETRIES, PENDING_BYTES, PENDING_RECORDS
from rayflink.common.options.store_options import storage_options
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.time import Duration, to_millis

from ..file_systems.object_paths import ObjectEntry, is_object_address
from ..file_systems.object_store import ObjectStores
from .compression import open_bytes
from .file_blocks import FileSplit, refuse_special, splits_of
from .file_enumeration import (
    FileEnumerator,
    FileEnumeratorProvider,
    FileEnumeratorState,
    FileSplitAssignerProvider,
)
from .prefetching import LOOK_MS, PrefetchingCursor


class FileFormat(ABC, Generic[Output]):
    """A format that reads the records of a file; a value that can be pickled."""

    divisible = False
    """True if several readers may read parts of one file; parts are ranges of bytes."""
    most_rows: int | None = None
    """Records of a reader that are enough: then it opens no other split, and ends; None: all are read."""

    @property
    def produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None: it is unknown."""
        return None

    @abstractmethod
    def open_split(self, split: FileSplit) -> SplitCursor:
        """Start to read a split, at the position it carries."""

    def with_malformed_records(self, policy: MalformedRecords) -> FileFormat[Output]:
        """Return this format with a policy for records that cannot be read.

        Raises:
            PlanError: their ends are unknown in this format, so that nothing behind one could be read.
        """
        if policy.fails:
            return self
        problem = f"{type(self).__name__} cannot pass over what it cannot read"
        raise PlanError(problem, "leave set_malformed_records() out; formats of lines take it: text, JSON and CSV")

    def counting(self, metrics: MetricGroup) -> FileFormat[Output]:
        """Return this format, extended to count the records it leaves out in a reader's metrics."""
        return self


class StreamFormat(FileFormat[Output]):
    """A format whose records follow each other in the file; packed files are unpacked by their ending."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat[str]:
        """Return a format that reads lines of text without their ends.

        Raises:
            LookupError: the character set is unknown.
        """
        from ..formats.text_files import TextLineFormat  # which imports this module

        return TextLineFormat(charset_name)

    @staticmethod
    def of(read: Callable[[IO[bytes]], Iterable[Result]]) -> StreamFormat[Result]:
        """Return a format that calls a function with the open file to yield its records; a restored job skips those
        read before.

        Raises:
            InvalidFunction: it does not take one argument.
        """
        ensure_takes(1, read, "StreamFormat.of")
        return _FunctionFormat(read)


class BulkFormat(FileFormat[Output]):
    """A format whose records come in blocks: columns, row groups."""


class FileSource(Source[Output]):
    """Emits the records of files, once or as files appear; made by `for_record_stream_format(...).build()`.

    Args:
        form: how a file is read.
        paths: files, folders or glob patterns; relative ones from the program's working directory.
        discovery_ms: pause between looks for new files; None: those there at the start.
        enumerator: lists and splits them.
        assigner: chooses what a reader gets.

    Raises:
        ValueError: there is no path, or one names a pipe, socket or device.
    """

    def __init__(
        self,
        form: FileFormat[Output],
        paths: Iterable[str | os.PathLike[str]],
        discovery_ms: int | None = None,
        enumerator: FileEnumeratorProvider | None = None,
        assigner: FileSplitAssignerProvider | None = None,
    ) -> None:
        self._paths = [rooted_path(path) for path in paths]
        if not self._paths:
            raise ValueError("at least one path is needed")
        for path in self._paths:
            refuse_special(path)
        self._format, self._discovery_ms = form, discovery_ms
        self._enumerator = enumerator or FileEnumeratorProvider()
        self._assigner = assigner or FileSplitAssignerProvider()
        self._stores = ObjectStores()

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat[Result], *paths: str) -> FileSourceBuilder[Result]:
        """Return a builder of a source of records that follow each other."""
        return FileSourceBuilder(_checked(stream_format, StreamFormat), paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat[Result], *paths: str) -> FileSourceBuilder[Result]:
        """Return a builder of a source of records in blocks."""
        return FileSourceBuilder(_checked(bulk_format, BulkFormat), paths)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._discovery_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def configured(self, config: Mapping[str, object]) -> FileSource[Output]:
        if not any(map(is_object_address, self._paths)):
            return self
        source = copy(self)
        source._stores = ObjectStores(storage_options(config))
        return source

    def check(self) -> None:
        self._list_files()

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._format.produced_type

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return self._enumerator_of(ctx, None)

    def restore_enumerator(self, ctx: EnumeratorContext, state: FileEnumeratorState) -> SplitEnumerator:
        return self._enumerator_of(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _FileReader(self._format, ctx, self._stores, is_bounded=self._discovery_ms is None)

    def _enumerator_of(self, ctx: EnumeratorContext, state: FileEnumeratorState | None) -> SplitEnumerator:
        divisible = self._format.divisible and self._enumerator.divides
        divide = partial(splits_of, divisible=divisible)
        return FileEnumerator(ctx, self._list_files, divide, self._assigner.choose, self._discovery_ms, state)

    def _list_files(self) -> list[str]:
        return self._enumerator.list_files(self._located_paths(), self._discovery_ms is not None)

    def _located_paths(self) -> list[str]:
        """Return the paths; those in object stores with the stores."""
        return [self._stores.path(path) if is_object_address(path) else path for path in self._paths]


class FileSourceBuilder(Generic[Output]):
    """Settles how a `FileSource` finds its files.

    Args:
        form: how a file is read.
        paths: files, folders or glob patterns.
    """

    def __init__(self, form: FileFormat[Output], paths: Iterable[str]) -> None:
        self._format, self._paths = form, tuple(paths)
        self._discovery_ms: int | None = None
        self._enumerator: FileEnumeratorProvider | None = None
        self._assigner: FileSplitAssignerProvider | None = None

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder[Output]:
        """Look for new files at this interval, without end; each is read once, with the bytes it has when found.

        Raises:
            ValueError: the interval is not above zero.
        """
        interval = to_millis(discovery_interval)
        if interval <= 0:
            raise ValueError(f"the discovery interval must be at least 1 ms, found {interval} ms")
        self._discovery_ms = interval
        return self

    def process_static_file_set(self) -> FileSourceBuilder[Output]:
        """Read the files there at the start, then end; the default."""
        self._discovery_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder[Output]:
        """Choose files and splits in another way."""
        self._enumerator = _checked(file_enumerator, FileEnumeratorProvider)
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder[Output]:
        """Choose in another way what a reader gets."""
        self._assigner = _checked(split_assigner, FileSplitAssignerProvider)
        return self

    def set_malformed_records(self, malformed_records: MalformedRecords) -> FileSourceBuilder[Output]:
        """Set the policy for lines that cannot be read; by default they fail the job.

        Raises:
            PlanError: the format has no lines.
        """
        self._format = self._format.with_malformed_records(malformed_records)
        return self

    def build(self) -> FileSource[Output]:
        """Return the source."""
        return FileSource(self._format, self._paths, self._discovery_ms, self._enumerator, self._assigner)


def rooted_path(path: str | os.PathLike[str]) -> str:
    """Return the path from the root, as tasks have another working directory, the local path that a `file:` address
    names, or the address of an object store without slashes on end.

    Raises:
        ValueError: the address is of something else.
    """
    address = os.fspath(path)
    if is_object_address(address):
        return address.rstrip("/")
    return os.path.abspath(address.removeprefix("file://").removeprefix("file:"))


def _checked(value: object, wanted: type) -> Any:
    if not isinstance(value, wanted):
        type_name = value.__name__ if isinstance(value, type) else type(value).__name__
        raise TypeError(f"a {wanted.__name__} is wanted, found {type_name}")
    return value


class _FileReader(OneByOneReader):
    def __init__(self, form: FileFormat, ctx: ReaderContext, stores: ObjectStores, is_bounded: bool) -> None:
        super().__init__()
        self._most_rows, self._is_bounded, self._emitted = form.most_rows, is_bounded, 0
        self._format = form if ctx.metrics is None else form.counting(ctx.metrics)
        counter = None if ctx.metrics is None else ctx.metrics.counter(NUM_STORE_RETRIES)
        self._ctx, self._stores = ctx, ObjectStores(stores.options, counter)
        self._finished_bytes = 0
        if ctx.metrics is not None:
            ctx.metrics.gauge(PENDING_BYTES, self._pending_bytes)
            ctx.metrics.gauge(PENDING_RECORDS, self._pending_records)
            ctx.metrics.gauge(NUM_BYTES_IN, lambda: self._progress()[0])

    def poll(self, max_records: int) -> Polled:
        if self._most_rows is not None and self._emitted >= self._most_rows:
            self._leave_the_rest()
        answer = super().poll(max_records)
        if isinstance(answer, RowBatch | ArrowBatch):
            self._emitted += len(answer)
        return answer

    def _progress(self) -> tuple[int, int]:
        """Return the bytes that were read, up to the newest place that a position names, and the records behind it."""
        if self._cursor is None or not self._splits:
            return self._finished_bytes, 0
        split: FileSplit = self._cursor.position()
        offset = split.start if split.offset is None else split.offset
        return self._finished_bytes + max(0, min(offset, split.stop) - split.start), split.skip

    def _pending_bytes(self) -> int:
        at_hand: int = sum(split.stop - split.start for split in self._splits)
        return max(0, at_hand - (self._progress()[0] - self._finished_bytes))

    def _pending_records(self) -> int | None:
        """Return the records in the bytes at hand, as many a byte as so far; None before that is known."""
        read, behind = self._progress()
        return max(0, round(self._pending_bytes() * (self._emitted - behind) / read) - behind) if read else None

    def _finish_split(self) -> None:
        self._finished_bytes += self._splits[0].stop - self._splits[0].start
        super()._finish_split()

    def _leave_the_rest(self) -> None:
        """Drop the splits; of files that are watched there are more to come, which are dropped too."""
        while self._splits:
            self._finish_split()
        self._no_more = self._no_more or self._is_bounded

    def open_split(self, split: FileSplit) -> SplitCursor:
        if not is_object_address(split.path):
            return self._format.open_split(split)
        entry = ObjectEntry(split.size, split.version, 0) if split.version else None
        located = replace(split, path=self._stores.path(split.path, entry, split.stop))
        return PrefetchingCursor(located, partial(self._format.open_split, located))

    def next_poll_ms(self) -> int | None:
        return self._ctx.now_ms() + LOOK_MS if isinstance(self._cursor, PrefetchingCursor) else None


class _FunctionFormat(StreamFormat[Output]):
    def __init__(self, read: Callable[[IO[bytes]], Iterable[Output]]) -> None:
        self._read = read

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _FunctionCursor(split, self._read)


class _FunctionCursor:
    """Reads a whole file by a user's function; the position is the number of records given."""

    def __init__(self, split: FileSplit, read: Callable[[IO[bytes]], Iterable[Any]]) -> None:
        self._split = split
        self._file = open_bytes(split.path)
        self._records: Iterator[Any] = iter(read(self._file))
        count = sum(1 for _ in islice(self._records, split.skip))
        if count < split.skip:
            raise ValueError(f"{split.path!r} has {count} records; before the restore {split.skip} had been read")
        self._given = count

    def read(self, max_records: int) -> RowBatch | None:
        values = list(islice(self._records, max_records))
        self._given += len(values)
        return RowBatch(values) if values else None

    def position(self) -> FileSplit:
        return replace(self._split, skip=self._given)

    def close(self) -> None:
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
        self._file.close()
