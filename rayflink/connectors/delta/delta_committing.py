"""The committer of a Delta sink: one version of the table for each checkpoint, recognized when it is repeated."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import CommitterContext, GlobalCommitter

from ..lakes.background_compaction import BackgroundCompaction
from ..lakes.lake_errors import LakeError, library
from .delta_table import DeltaPlace

if TYPE_CHECKING:
    import deltalake
    import pyarrow


@dataclass(frozen=True)
class DeltaFile:
    """A data file that a checkpoint adds to a Delta table.

    Args:
        path: relative to the table.
        partition: column -> value as a string.
        statistics: JSON.
    """

    path: str
    size: int
    rows: int
    partition: tuple[tuple[str, str | None], ...]
    statistics: str = dataclasses.field(repr=False)


@dataclass(frozen=True)
class DeltaCommit:
    """All files that a checkpoint adds.

    Args:
        application: of the transaction, the job and its sink.
        version: of the transaction, the checkpoint's id.
    """

    application: str
    version: int
    files: tuple[DeltaFile, ...] = dataclasses.field(repr=False)


class DeltaCommitter(GlobalCommitter):
    """Adds the files of a checkpoint to the table, in one version that names the checkpoint.

    The version has a transaction (`txn`) of the application, which is the job and its sink, with the id of the
    checkpoint. A commit finds the highest id of its application in the table, and adds nothing if it is not lower than
    its own. If another attempt commits at the same time, the library refuses the later one.

    Args:
        schema: of the table where it does not exist yet.
        merge_schema: new columns are added to the table.
        compact_every: commits after which small files are merged; None: never.
    """

    def __init__(
        self,
        place: DeltaPlace,
        schema: pyarrow.Schema,
        partition_columns: Sequence[str],
        merge_schema: bool,
        compact_every: int | None,
        ctx: CommitterContext,
    ) -> None:
        self._place, self._schema, self._partition_columns = place, schema, list(partition_columns)
        self._merge_schema = merge_schema
        self._application = f"rayflink-{ctx.job_id}-{ctx.operator_id}"
        self._compaction = BackgroundCompaction(str(place), self._merge_small_files, compact_every, ctx.metrics)

    def combine(self, checkpoint_id: int, committables: Sequence[DeltaFile]) -> DeltaCommit:
        files = sorted(committables, key=lambda file: file.path)
        return DeltaCommit(self._application, checkpoint_id, tuple(files))

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        for request in requests:
            if not self._commit(request.get_committable()):
                request.signal_already_committed()

    def close(self) -> None:
        self._compaction.close()

    def _commit(self, commit: DeltaCommit) -> bool:
        """Add the files of a checkpoint; False: they have been added before.

        Raises:
            LakeError: they cannot be added now.
        """
        transactions = library("deltalake.transaction", "delta")
        table = self._table()
        with self._place.errors("written"):
            last = table.transaction_version(commit.application)
            if last is not None and last >= commit.version:
                return False
            now_ms = int(time.time() * 1000)
            adds = [
                transactions.AddAction(file.path, file.size, dict(file.partition), now_ms, True, file.statistics)
                for file in commit.files
            ]  # fmt: skip
            mark = library("deltalake", "delta").Transaction(commit.application, commit.version)
            about = {"rayflink.checkpoint-id": str(commit.version), "rayflink.application": commit.application}
            properties = transactions.CommitProperties(custom_metadata=about, app_transactions=[mark])
            table.create_write_transaction(
                adds, "append", table.schema(), self._partition_columns, commit_properties=properties
            )
        self._compaction.count_commit()
        return True

    def _table(self) -> deltalake.DeltaTable:
        """Return the table; create it if it does not exist, and add columns that it lacks.

        Raises:
            LakeError: it cannot take the rows.
        """
        if not self._place.exists():
            self._place.create(self._schema, self._partition_columns)
        table = self._place.open()
        missing = missing_columns(self._place, table, self._schema, self._merge_schema)
        if missing:
            deltalake = library("deltalake", "delta")
            wanted = deltalake.Schema.from_arrow(self._schema)
            fields = [field for field in wanted.fields if field.name in missing]
            with self._place.errors("extended by columns"):
                table.alter.add_columns(fields)
            table = self._place.open()
        return table

    def _merge_small_files(self) -> object:
        return self._place.open().optimize.compact()


def missing_columns(
    place: DeltaPlace, table: deltalake.DeltaTable, schema: pyarrow.Schema, may_be_missing: bool
) -> list[str]:
    """Return the columns of a sink that a table lacks.

    Raises:
        LakeError: it lacks some and `may_be_missing` is false, or a column has another type, or the sink lacks one
            that must not be NULL.
    """
    import pyarrow

    deltalake = library("deltalake", "delta")
    with place.errors("created with these columns"):
        wanted = {field.name: field for field in pyarrow.schema(deltalake.Schema.from_arrow(schema).to_arrow())}
    there = {field.name: field for field in pyarrow.schema(table.schema().to_arrow())}
    missing = [name for name in wanted if name not in there]
    if missing and not may_be_missing:
        remedy = "leave them out, or call with_merge_schema(True) (in SQL: 'merge-schema' = 'true') to add them"
        raise LakeError(f"{place} has no column {', '.join(map(repr, missing))}", remedy)
    for name, field in there.items():
        if name not in wanted and not field.nullable:
            raise LakeError(f"the sink has no column {name!r}, which must not be NULL in {place}", "add it")
        if name in wanted and wanted[name].type != field.type:
            problem = f"column {name!r} is {wanted[name].type} in the sink and {field.type} in {place}"
            raise LakeError(problem, "declare the type that the table has")
    return missing


__all__ = ["DeltaCommit", "DeltaCommitter", "DeltaFile", "missing_columns"]
