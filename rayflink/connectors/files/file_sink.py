"""Records written to part files in buckets, and what is chosen for that."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError
from rayflink.common.metrics.metric_names import NUM_STORE_RETRIES
from rayflink.common.options.store_options import storage_options
from rayflink.common.serialization import BulkWriterFactory, Encoder
from rayflink.common.time import Length, to_millis
from rayflink.common.user_code.call_sites import call_site

from ..file_systems.object_paths import is_object_address
from ..file_systems.object_store import ObjectStores
from .buckets import BucketAssigner
from .file_source import rooted_path
from .file_writing import FileWriter
from .part_places import committer_of, place_of
from .rolling import OnCheckpointRollingPolicy, RollingPolicy
from .success_files import MarkingCommitter, MarkingFileWriter, SuccessFiles

BUCKET_CHECK_MS = 60_000
MOST_OPEN = 1 << 30
"""No limit: one file for each bucket."""


class OutputFileConfig:
    """The names of part files: `<prefix>-<job and sink>-<subtask>-<number><suffix>`.

    >>> OutputFileConfig.builder().with_part_suffix(".txt").build().get_part_suffix()
    '.txt'

    Raises:
        ValueError: a part holds a slash, or the prefix would hide the files.
    """

    def __init__(self, part_prefix: str, part_suffix: str) -> None:
        if "/" in part_prefix + part_suffix or part_prefix[:1] in (".", "_", ""):
            remedy = "use a word as prefix, and buckets for folders"
            raise ValueError(f"part files cannot be named {part_prefix!r} ... {part_suffix!r}; {remedy}")
        self._part_prefix, self._part_suffix = part_prefix, part_suffix

    def get_part_prefix(self) -> str:
        """Return the beginning of every name."""
        return self._part_prefix

    def get_part_suffix(self) -> str:
        """Return the end of every name, with its dot."""
        return self._part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Return a builder with prefix "part" and no suffix."""
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Collects prefix and suffix."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the beginning of every name."""
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Set the end of every name, with its dot."""
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """Return the configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)


@dataclass(frozen=True)
class FileSinkSettings:
    """The settings of a file sink.

    Args:
        buckets: where in the folder a record goes.
        rolling: when a file ends.
        names: of files.
        check_ms: pause between looks for files that are due to end.
        names_bear_job: files of two jobs, and of two sinks of one job, have different names; without, a later job
            replaces those of an earlier.
        most_open: files that one subtask writes to at the same time; one more ends another.
        marks: reports when a folder is complete; None: nothing does.
    """

    buckets: BucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    rolling: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    names: OutputFileConfig = field(default_factory=lambda: OutputFileConfig("part", ""))
    check_ms: int = BUCKET_CHECK_MS
    names_bear_job: bool = True
    most_open: int = MOST_OPEN
    marks: SuccessFiles | None = None


class FileSink(Sink):
    """Writes records to part files in buckets; made by `for_row_format(...).build()` or `for_bulk_format(...).build()`.

    The folder is local, or the address of an object store, where a file is an upload until it is visible.

    A file is hidden (its name begins with a dot) until it has ended and a checkpoint after that is complete, or until
    the end of a job without checkpoints. After a failure, of a file that was still written to at the checkpoint, what
    the checkpoint had becomes visible. A cancelled or failed job leaves no half file that a reader of the folder would
    see, a sink without records no folder.

    Args:
        base_path: the folder; made at the first record.
        form: an Encoder for record after record, a BulkWriterFactory for blocks.
        settings: buckets, names and when files end.
    """

    name = "Sink: Files"

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        form: Encoder | BulkWriterFactory,
        settings: FileSinkSettings | None = None,
    ) -> None:
        self._folder = rooted_path(base_path)
        self._stores = ObjectStores()
        self._form, self._settings = form, settings or FileSinkSettings()

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        """Return a builder of a sink that appends record after record.

        Raises:
            TypeError: `encoder` is none.
        """
        if not isinstance(encoder, Encoder):
            remedy = "use Encoder.simple_string_encoder(), or for_bulk_format for columns"
            raise TypeError(f"an Encoder is wanted, found {type(encoder).__name__}; {remedy}")
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileSink.BulkFormatBuilder:
        """Return a builder of a sink that writes blocks; its files end at checkpoints.

        Raises:
            TypeError: `writer_factory` is none.
        """
        if not isinstance(writer_factory, BulkWriterFactory):
            remedy = "use for example ParquetBulkWriters.for_row_type(...)"
            raise TypeError(f"a BulkWriterFactory is wanted, found {type(writer_factory).__name__}; {remedy}")
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    @property
    def writes_alone_to(self) -> str:
        names = self._settings.names
        alone = os.path.join(self._folder, f"{names.get_part_prefix()}-*{names.get_part_suffix()}")
        return "" if self._settings.names_bear_job else alone

    def for_type(self, type_info: TypeInformation | None) -> Sink:
        return type(self)(self._folder, self._form.for_type(type_info), self._settings)

    def configured(self, config: Mapping[str, object]) -> Sink:
        if not is_object_address(self._folder):
            return self
        sink = copy(self)
        sink._stores = ObjectStores(storage_options(config))
        return sink

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        chosen = self._settings
        beginning = f"{chosen.names.get_part_prefix()}-"
        if chosen.names_bear_job:
            beginning += f"{int(ctx.job_id[:8], 16) ^ int(ctx.operator_id[:8], 16):08x}-"
        writer = FileWriter if chosen.marks is None else MarkingFileWriter
        counter = None if ctx.metrics is None else ctx.metrics.counter(NUM_STORE_RETRIES)
        place = place_of(self._folder, ObjectStores(self._stores.options, counter))
        return writer(ctx, (self._folder, place), self._form, chosen, beginning)

    def create_committer(self) -> Committer:
        files = committer_of(self._folder, self._stores)
        return files if self._settings.marks is None else MarkingCommitter(files, self._stores)

    class BaseBuilder:
        """Settles buckets, names and when files end.

        Args:
            base_path: the folder.
            form: how records become bytes.
        """

        _first_rolling: Callable[[], RollingPolicy] = staticmethod(RollingPolicy.default_rolling_policy)

        def __init__(self, base_path: str, form: Encoder | BulkWriterFactory) -> None:
            self._base_path, self._form = base_path, form
            self._settings = FileSinkSettings(rolling=self._first_rolling())

        def with_bucket_check_interval(self, interval: Length) -> Any:
            """Look for files that are due to end at this interval: a Duration, or milliseconds.

            Raises:
                ValueError: it is below 1 ms.
            """
            if to_millis(interval) < 1:
                raise ValueError(f"the check interval must be at least 1 ms, found {interval}")
            self._settings = replace(self._settings, check_ms=to_millis(interval))
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Any:
            """Choose the sub-folder of each record."""
            _ensure(bucket_assigner, BucketAssigner)
            self._settings = replace(self._settings, buckets=bucket_assigner)
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Any:
            """Choose the names of files."""
            _ensure(output_file_config, OutputFileConfig)
            self._settings = replace(self._settings, names=output_file_config)
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Any:
            """Choose when files end."""
            _ensure(rolling_policy, RollingPolicy)
            self._settings = replace(self._settings, rolling=rolling_policy)
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Any:
            """Refuse compaction: this sink does not join files.

            Raises:
                PlanError: always.
            """
            del strategy, compactor
            remedy = "roll larger files with with_rolling_policy(), or leave enable_compact() out"
            raise PlanError("a file sink does not join its part files", remedy, call_site())

        def disable_compact(self) -> Any:
            """Leave files separate; the default."""
            return self

        def build(self) -> Any:
            """Return the sink."""
            return FileSink(self._base_path, self._form, self._settings)

    class RowFormatBuilder(BaseBuilder):
        """A builder of a sink that appends record after record."""

    class BulkFormatBuilder(BaseBuilder):
        """A builder of a sink that writes blocks."""

        _first_rolling: Callable[[], RollingPolicy] = OnCheckpointRollingPolicy

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Any:
            """Roll files at checkpoints, which is the default already.

            Raises:
                ValueError: it is another policy.
            """
            if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                raise ValueError("rolling_policy must be OnCheckpointRollingPolicy for bulk format")
            return super().with_rolling_policy(rolling_policy)


class StreamingFileSink(FileSink):
    """`FileSink` under the name it had before Flink 1.15; `add_sink` and `sink_to` take it."""

    class BaseBuilder(FileSink.BaseBuilder):
        """Settles buckets, names and when files end."""

        def with_rolling_policy(self, policy: RollingPolicy) -> Any:
            """Choose when files end."""
            return super().with_rolling_policy(policy)

        def build(self) -> StreamingFileSink:
            """Return the sink."""
            return StreamingFileSink(self._base_path, self._form, self._settings)

    class DefaultRowFormatBuilder(BaseBuilder):
        """A builder of a sink that appends record after record."""

    class DefaultBulkFormatBuilder(BaseBuilder):
        """A builder of a sink that writes blocks."""

        _first_rolling: Callable[[], RollingPolicy] = OnCheckpointRollingPolicy

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> Any:
        """Return a builder of a sink that appends record after record."""
        FileSink.for_row_format(base_path, encoder)
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> Any:
        """Return a builder of a sink that writes blocks."""
        FileSink.for_bulk_format(base_path, writer_factory)
        return StreamingFileSink.DefaultBulkFormatBuilder(base_path, writer_factory)


class FileCompactStrategy:
    """The times at which part files would be joined; no sink joins them yet, see `enable_compact`.

    Args:
        checkpoints: after this number of checkpoints; -1: never by checkpoints.
        size_threshold: when they have this many bytes together; -1: at any size.
        threads: that join.
    """

    def __init__(self, checkpoints: int = -1, size_threshold: int = -1, threads: int = 1) -> None:
        self.checkpoints, self.size_threshold, self.threads = checkpoints, size_threshold, threads

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Return a builder of a strategy."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Collects the limits."""

        def __init__(self) -> None:
            self._chosen = FileCompactStrategy()

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compact after this number of checkpoints."""
            self._chosen.checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact when the files reach this number of bytes together."""
            self._chosen.size_threshold = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Compact with this number of threads."""
            self._chosen.threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            """Return the strategy."""
            return self._chosen


@dataclass(frozen=True)
class FileCompactor:
    """The way in which part files would be joined; no sink joins them yet, see `enable_compact`."""

    delimiter: bytes | None = None

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Return a compactor that concatenates files, with `file_delimiter` between them."""
        return FileCompactor(file_delimiter)

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Return a compactor that keeps a single file as it is."""
        return FileCompactor()


def _ensure(value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise TypeError(f"a {wanted.__name__} is wanted, found {type(value).__name__}")
