"""An Iceberg table as a source: a snapshot, what later snapshots append, or both."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
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
from ..lakes.lake_errors import LakeError, library
from ..lakes.lake_source import LakeSource, TablePlan
from .iceberg_plan import IcebergPlan, StreamingStartingStrategy, deleted_rows
from .iceberg_table import TableLoader, open_data_file

if TYPE_CHECKING:
    import pyarrow
    from pyiceberg.table import Table

MONITOR_MS = 60_000


class IcebergSource(LakeSource):
    """Reads an Iceberg table as columns; made by `IcebergSource.for_row_data()`.

    Needs `pip install 'rayflink[iceberg]'`. Data files are splits. A streaming source reads each appended row once, and
    assigns the files of a snapshot before those of the next one.

    Args:
        plan: which files are read.
        monitor_ms: milliseconds between looks for new snapshots; None: the source is bounded.
        schema: names and types of the columns that are read; None: those of the table.
    """

    def __init__(self, plan: IcebergPlan, monitor_ms: int | None = None, schema: pyarrow.Schema | None = None) -> None:
        self._plan, self.monitor_ms, self._schema = plan, monitor_ms, schema

    @staticmethod
    def for_row_data() -> IcebergSourceBuilder:
        """Return a builder of a source."""
        return IcebergSourceBuilder()

    @property
    def plan(self) -> TablePlan:
        return self._plan

    @property
    def is_local(self) -> bool:
        return local_path(self._table.metadata.location) is not None

    def check(self) -> None:
        self._plan.schema()

    def __repr__(self) -> str:
        return f"IcebergSource({self._plan.loader.identifier!r})"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_table", "_reading")}

    def open_data_file(self, split: DataFileSplit) -> BlockCursor:
        loader = self._plan.loader
        try:
            with loader.errors("read"):
                deleted = None if split.deleted is None else deleted_rows(self._table, split.path, split.deleted)
                file = open_data_file(self._table, split.path)
        except LakeError as error:
            if not isinstance(error.__context__, FileNotFoundError):
                raise
            problem = (
                f"a file of snapshot {split.commit} of {loader} is gone: {split.path!r} or the list of its deletes"
            )
            raise LakeError(problem, "expire snapshots later than the slowest reader, or read a newer one") from None
        return self._reading.cursor(split, file, deleted)

    @cached_property
    def _table(self) -> Table:
        return self._plan.loader.load()

    @cached_property
    def _reading(self) -> FileReading:
        schema = self._plan.schema() if self._schema is None else self._schema
        fields = library("pyiceberg.schema", "iceberg").index_by_id(self._table.schema())
        names = {number: field.name for number, field in fields.items()}
        return FileReading(schema, RowGroupFilter(self._plan.wanted), names)


class IcebergSourceBuilder:
    """Settles what an `IcebergSource` reads."""

    def __init__(self) -> None:
        self._changes: dict[str, object] = {}
        self._loader: TableLoader | None = None
        self._streaming = False
        self._monitor_ms = MONITOR_MS
        self._schema: pyarrow.Schema | None = None

    def table_loader(self, loader: TableLoader) -> IcebergSourceBuilder:
        """Read this table."""
        self._loader = loader
        return self

    def project(self, *columns: str) -> IcebergSourceBuilder:
        """Read these columns alone, in this order; the others are not read from the files."""
        return self._with("columns", columns)

    def row_type(self, row_type: TypeHint) -> IcebergSourceBuilder:
        """Read the columns of a row type, with its types.

        Args:
            row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
        """
        self._schema = to_arrow_schema(row_type)
        return self.project(*self._schema.names)

    def filters(self, conditions: Sequence[Wanted]) -> IcebergSourceBuilder:
        """Pass over files and row groups that contain no wanted row, by their statistics and partitions."""
        return self._with("wanted", tuple(conditions))

    def snapshot_id(self, snapshot_id: int) -> IcebergSourceBuilder:
        """Read this snapshot; of a bounded source."""
        return self._with("snapshot_id", snapshot_id)

    def as_of_timestamp(self, timestamp_ms: int) -> IcebergSourceBuilder:
        """Read the newest snapshot at this time, in epoch milliseconds; of a bounded source."""
        return self._with("timestamp_ms", timestamp_ms)

    def branch(self, branch: str) -> IcebergSourceBuilder:
        """Read a branch; of a bounded source."""
        return self._with("reference", branch)

    def tag(self, tag: str) -> IcebergSourceBuilder:
        """Read a tag; of a bounded source."""
        return self._with("reference", tag)

    def streaming(self, streaming: bool) -> IcebergSourceBuilder:
        """Read what is appended, without end."""
        self._streaming = streaming
        return self

    def monitor_interval(self, interval: Duration | datetime.timedelta) -> IcebergSourceBuilder:
        """Look for new snapshots at this interval, of 60 s by default.

        Raises:
            LakeError: it is below 1 ms.
        """
        self._monitor_ms = to_millis(interval)
        if self._monitor_ms < 1:
            raise LakeError(f"the interval is {self._monitor_ms} ms", "write one of at least 1 ms")
        return self

    def streaming_starting_strategy(self, starting_strategy: StreamingStartingStrategy) -> IcebergSourceBuilder:
        """Choose where a streaming source begins; by default with a scan of the table."""
        return self._with("start", starting_strategy)

    def start_snapshot_id(self, start_snapshot_id: int) -> IcebergSourceBuilder:
        """Begin with the appends of this snapshot; of a streaming source."""
        self._with("start_snapshot_id", start_snapshot_id)
        return self.streaming_starting_strategy(StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID)

    def start_snapshot_timestamp(self, timestamp_ms: int) -> IcebergSourceBuilder:
        """Begin with the appends from this time on, in epoch milliseconds; of a streaming source."""
        self._with("start_timestamp_ms", timestamp_ms)
        return self.streaming_starting_strategy(StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP)

    def skip_overwrite_snapshots(self, skip: bool) -> IcebergSourceBuilder:
        """Pass over snapshots that replace rows; else they fail the job. Of a streaming source."""
        return self._with("skip_overwrites", skip)

    def skip_delete_snapshots(self, skip: bool) -> IcebergSourceBuilder:
        """Pass over snapshots that delete rows; else they fail the job. Of a streaming source."""
        return self._with("skip_deletes", skip)

    def build(self) -> IcebergSource:
        """Return the source.

        Raises:
            LakeError: no table was set, or a setting is of the other kind of sources.
        """
        if self._loader is None:
            raise LakeError("the Iceberg source has no table", "call table_loader(...) before")
        streaming = {"start", "start_snapshot_id", "start_timestamp_ms", "skip_overwrites", "skip_deletes"}
        bounded = {"snapshot_id", "timestamp_ms", "reference"}
        wrong = sorted((bounded if self._streaming else streaming) & self._changes.keys())
        if wrong:
            kind = "bounded" if self._streaming else "streaming"
            raise LakeError(f"{wrong[0]} is a setting of {kind} sources", f"call streaming({not self._streaming})")
        plan = replace(IcebergPlan(self._loader), **self._changes)  # type: ignore[arg-type]  # by the methods above
        return IcebergSource(plan, self._monitor_ms if self._streaming else None, self._schema)

    def _with(self, name: str, value: object) -> IcebergSourceBuilder:
        self._changes[name] = value
        return self


__all__ = ["IcebergSource", "IcebergSourceBuilder"]
