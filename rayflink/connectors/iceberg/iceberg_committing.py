"""The committer of an Iceberg sink: one snapshot for each checkpoint, recognized when it is repeated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import CommitterContext, GlobalCommitter
from rayflink.user_types import UserValue

from ..lakes.background_compaction import BackgroundCompaction
from ..lakes.lake_errors import LakeError, library
from .iceberg_table import NewTable, TableLoader

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

JOB, OPERATOR, CHECKPOINT = "flink.job-id", "flink.operator-id", "flink.max-committed-checkpoint-id"
"""Properties of a snapshot, named as Flink's sink names them."""
MOST_RACES = 5
"""Commits of others that one commit yields to before it is put off."""


@dataclass(frozen=True)
class IcebergFile:
    """A data file that a checkpoint adds to an Iceberg table.

    Args:
        location: its address.
        partition: values in the order of the partition spec, as Iceberg stores them.
        spec_id: of the partition spec.
        statistics: of columns by their ids, as `DataFile` takes them.
    """

    location: str
    size: int
    partition: tuple[UserValue, ...]
    spec_id: int
    statistics: dict[str, Any] = dataclasses.field(repr=False)

    def data_file(self, format_version: int) -> DataFile:
        """Return the library's object."""
        manifest = library("pyiceberg.manifest", "iceberg")
        typedef = library("pyiceberg.typedef", "iceberg")
        file = manifest.DataFile.from_args(
            _table_format_version=format_version,
            content=manifest.DataFileContent.DATA,
            file_path=self.location,
            file_format=manifest.FileFormat.PARQUET,
            partition=typedef.Record(*self.partition),
            file_size_in_bytes=self.size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **self.statistics,
        )
        file.spec_id = self.spec_id
        return file  # type: ignore[no-any-return]


@dataclass(frozen=True)
class IcebergCommit:
    """All files that a checkpoint adds."""

    job_id: str
    operator_id: str
    checkpoint_id: int
    files: tuple[IcebergFile, ...] = dataclasses.field(repr=False)


class IcebergCommitter(GlobalCommitter):
    """Appends the files of a checkpoint in one snapshot, whose properties name the job, its sink and the checkpoint.

    A commit finds the highest checkpoint of its job and sink among the ancestors of the current snapshot, and adds
    nothing if it is not lower than its own. The catalog accepts a snapshot only if its parent is still the current
    one, so of two attempts that commit at the same time the later one looks again.

    Args:
        new: how the table is created where it does not exist; None: it must exist.
        properties: of each snapshot, beside those.
        compaction: is started by commits.

    Source: apache/iceberg IcebergFilesCommitter.
    """

    def __init__(
        self,
        loader: TableLoader,
        new: NewTable | None,
        properties: tuple[tuple[str, str], ...],
        compaction: BackgroundCompaction,
        ctx: CommitterContext,
    ) -> None:
        self._loader, self._new, self._properties, self._compaction = loader, new, properties, compaction
        self._job_id, self._operator_id = ctx.job_id, ctx.operator_id

    def combine(self, checkpoint_id: int, committables: Sequence[IcebergFile]) -> IcebergCommit:
        files = sorted(committables, key=lambda file: file.location)
        return IcebergCommit(self._job_id, self._operator_id, checkpoint_id, tuple(files))

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        for request in requests:
            if not self._commit(request.get_committable()):
                request.signal_already_committed()

    def close(self) -> None:
        self._compaction.close()

    def _commit(self, commit: IcebergCommit) -> bool:
        """Append the files of a checkpoint; False: they have been appended before.

        Raises:
            LakeError: they cannot be appended now.
        """
        errors = library("pyiceberg.exceptions", "iceberg")
        for _ in range(MOST_RACES):
            table = self._loader.load_or_create(self._new)
            if last_checkpoint(table, commit.job_id, commit.operator_id) >= commit.checkpoint_id:
                return False
            with self._loader.errors("written"):
                try:
                    self._append(table, commit)
                except errors.CommitFailedException:
                    continue  # another writer was first: look again, as it may have been an attempt of this job
            self._compaction.count_commit()
            return True
        problem = f"{self._loader} was changed by others {MOST_RACES} times while a snapshot was committed"
        raise LakeError(problem, "the commit is tried again later")

    def _append(self, table: Table, commit: IcebergCommit) -> None:
        properties = {
            **dict(self._properties),
            JOB: commit.job_id,
            OPERATOR: commit.operator_id,
            CHECKPOINT: str(commit.checkpoint_id),
        }
        merges = table.metadata.properties.get("commit.manifest-merge.enabled", "true").lower() == "true"
        # The library would repeat a refused commit without another look for the checkpoint.
        table.metadata.properties["commit.retry.num-retries"] = "0"
        with table.transaction() as transaction:
            update = transaction.update_snapshot(snapshot_properties=properties)
            with update.merge_append() if merges else update.fast_append() as append:
                for file in commit.files:
                    append.append_data_file(file.data_file(table.metadata.format_version))


def last_checkpoint(table: Table, job_id: str, operator_id: str) -> int:
    """Return the highest checkpoint that a sink of a job has committed; -1: none.

    Args:
        table: the ancestors of its current snapshot are looked at, from the newest on.
    """
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary
        properties = {} if summary is None else summary.additional_properties
        if properties.get(JOB) == job_id and properties.get(OPERATOR) == operator_id:
            return int(properties[CHECKPOINT])
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return -1


__all__ = ["CHECKPOINT", "JOB", "OPERATOR", "IcebergCommit", "IcebergCommitter", "IcebergFile", "last_checkpoint"]
