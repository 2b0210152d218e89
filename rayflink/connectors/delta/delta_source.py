"""A Delta table as a source: a snapshot, the versions that follow it, or both."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.time import Duration, to_millis
from rayflink.user_types import TypeHint

from ..formats.parquet_pruning import RowGroupFilter, Wanted
from ..lakes.background_reading import BlockCursor
from ..lakes.data_file_reading import DataFileSplit, FileReading
from ..lakes.data_file_writing import local_path
from ..lakes.lake_errors import LakeError
from ..lakes.lake_source import LakeSource, TablePlan
from .delta_plan import DeltaPlan, deleted_rows
from .delta_table import DeltaPlace

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.fs

MONITOR_MS = 5_000


class DeltaSource(LakeSource):
    """Reads a Delta table as columns; made by `for_bounded_row_data(...)` or `for_continuous_row_data(...)`.

    Needs `pip install 'rayflink[delta]'`. Data files are splits. A continuous source reads each appended row once, and
    assigns the files of a version before those of the next one.

    Args:
        plan: which files are read.
        monitor_ms: milliseconds between looks for new versions; None: the source is bounded.
        schema: names and types of the columns that are read; None: those of the table.
    """

    def __init__(self, plan: DeltaPlan, monitor_ms: int | None = None, schema: pyarrow.Schema | None = None) -> None:
        self._plan, self.monitor_ms, self._schema = plan, monitor_ms, schema

    @staticmethod
    def for_bounded_row_data(
        table_path: str | os.PathLike[str], options: Mapping[str, str] | None = None
    ) -> DeltaSourceBuilder:
        """Return a builder of a source that reads one version of a table.

        Args:
            table_path: a folder, or a URL such as `s3://bucket/table`.
            options: of the object store: the `s3.` options of rayflink, or those of the library deltalake.
        """
        return DeltaSourceBuilder(DeltaPlan(DeltaPlace.at(os.fspath(table_path), options)), None)

    @staticmethod
    def for_continuous_row_data(
        table_path: str | os.PathLike[str], options: Mapping[str, str] | None = None
    ) -> DeltaSourceBuilder:
        """Return a builder of a source that reads a snapshot of a table, and then what is appended to it.

        Args:
            table_path: see `for_bounded_row_data`.
        """
        return DeltaSourceBuilder(DeltaPlan(DeltaPlace.at(os.fspath(table_path), options)), MONITOR_MS)

    @property
    def plan(self) -> TablePlan:
        return self._plan

    @property
    def is_local(self) -> bool:
        return self._plan.place.is_local

    def check(self) -> None:
        self._plan.schema()

    def __repr__(self) -> str:
        return f"DeltaSource({self._plan.place.path!r})"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_files", "_reading")}

    def open_data_file(self, split: DataFileSplit) -> BlockCursor:
        import pyarrow

        place = self._plan.place
        deleted = None if split.deleted is None else deleted_rows(split.deleted)
        try:
            if local := local_path(place.path):
                file = pyarrow.OSFile(os.path.join(local, split.path))
            else:
                file = self._files.open_input_file(split.path)
        except FileNotFoundError as error:
            problem = f"the data file {split.path!r} of version {split.commit} of {place} is gone"
            raise LakeError(problem, "vacuum later than the slowest reader, or read a newer version") from error
        return self._reading.cursor(split, file, deleted)

    @cached_property
    def _files(self) -> pyarrow.fs.FileSystem:
        return self._plan.place.filesystem()

    @cached_property
    def _reading(self) -> FileReading:
        schema = self._plan.schema() if self._schema is None else self._schema
        return FileReading(schema, RowGroupFilter(self._plan.wanted))


class DeltaSourceBuilder:
    """Settles what a `DeltaSource` reads.

    Args:
        plan: which files are read.
        monitor_ms: milliseconds between looks for new versions; None: the source is bounded.
    """

    def __init__(self, plan: DeltaPlan, monitor_ms: int | None) -> None:
        self._plan, self._monitor_ms = plan, monitor_ms
        self._schema: pyarrow.Schema | None = None

    def column_names(self, *column_names: str) -> DeltaSourceBuilder:
        """Read these columns alone, in this order; the others are not read from the files."""
        self._plan = replace(self._plan, columns=column_names)
        return self

    def row_type(self, row_type: TypeHint) -> DeltaSourceBuilder:
        """Read the columns of a row type, with its types.

        Args:
            row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
        """
        self._schema = to_arrow_schema(row_type)
        return self.column_names(*self._schema.names)

    def version_as_of(self, snapshot_version: int) -> DeltaSourceBuilder:
        """Read this version; of a bounded source."""
        return self._bounded("version_as_of", version=snapshot_version)

    def timestamp_as_of(self, snapshot_timestamp: str | datetime.datetime) -> DeltaSourceBuilder:
        """Read the newest version at a time; of a bounded source.

        Args:
            snapshot_timestamp: a datetime, or one in ISO 8601; without a zone it is UTC.

        Raises:
            LakeError: it is no time.
        """
        return self._bounded("timestamp_as_of", timestamp_ms=_epoch_ms(snapshot_timestamp))

    def starting_version(self, starting_version: int | str) -> DeltaSourceBuilder:
        """Read the appends of this version and later ones instead of a snapshot; of a continuous source.

        Args:
            starting_version: its number, or "latest" for versions after the newest at the start.

        Raises:
            LakeError: it is neither.
        """
        self._continuous("starting_version")
        if starting_version == "latest":
            self._plan = replace(self._plan, starts_at_newest=True)
            return self
        if isinstance(starting_version, str) or starting_version < 0:
            raise LakeError(f"the starting version is {starting_version!r}", 'write a number from 0 on, or "latest"')
        self._plan = replace(self._plan, starting_version=starting_version)
        return self

    def update_check_interval(self, interval: Duration | datetime.timedelta) -> DeltaSourceBuilder:
        """Look for new versions at this interval, of 5 s by default; of a continuous source.

        Raises:
            LakeError: it is below 1 ms.
        """
        self._continuous("update_check_interval")
        if to_millis(interval) < 1:
            raise LakeError(f"the interval is {to_millis(interval)} ms", "write one of at least 1 ms")
        self._monitor_ms = to_millis(interval)
        return self

    def ignore_deletes(self, ignore_deletes: bool) -> DeltaSourceBuilder:
        """Pass over versions that only delete rows; else they fail the job. Of a continuous source."""
        self._continuous("ignore_deletes")
        self._plan = replace(self._plan, ignore_deletes=ignore_deletes)
        return self

    def skip_change_commits(self, skip_change_commits: bool) -> DeltaSourceBuilder:
        """Pass over versions that delete or replace rows, with all that they add; else they fail the job.

        Of a continuous source.
        """
        self._continuous("skip_change_commits")
        self._plan = replace(self._plan, skip_change_commits=skip_change_commits)
        return self

    def filtered(self, conditions: Sequence[Wanted]) -> DeltaSourceBuilder:
        """Pass over files and row groups that contain no wanted row, by their statistics."""
        self._plan = replace(self._plan, wanted=tuple(conditions))
        return self

    def build(self) -> DeltaSource:
        """Return the source."""
        return DeltaSource(self._plan, self._monitor_ms, self._schema)

    def _bounded(self, method: str, version: int | None = None, timestamp_ms: int | None = None) -> DeltaSourceBuilder:
        if self._monitor_ms is not None:
            raise LakeError(
                f"{method} is of bounded sources", "begin with for_bounded_row_data, or use starting_version"
            )
        self._plan = replace(self._plan, version=version, timestamp_ms=timestamp_ms)
        return self

    def _continuous(self, method: str) -> None:
        if self._monitor_ms is None:
            raise LakeError(f"{method} is of continuous sources", "begin with for_continuous_row_data")


def _epoch_ms(moment: str | datetime.datetime) -> int:
    try:
        instant = datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")) if isinstance(moment, str) else moment
    except ValueError as error:
        raise LakeError(f"{moment!r} is no time", "write it as 2024-02-01T00:00:00Z") from error
    zoned = instant if instant.tzinfo is not None else instant.replace(tzinfo=datetime.timezone.utc)
    return int(zoned.timestamp() * 1000)


__all__ = ["DeltaSource", "DeltaSourceBuilder"]
