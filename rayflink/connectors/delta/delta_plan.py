"""The data files that a Delta source reads: those of a version, and those that later versions append."""

from __future__ import annotations

import datetime
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..formats.parquet_pruning import Wanted
from ..lakes.data_file_reading import DataFileSplit
from ..lakes.lake_errors import LakeError
from ..lakes.lake_source import Discovered, of_schema
from .delta_table import READER_FEATURES, DeltaPlace, path_in_log
from .delta_values import parsed_partition_value

if TYPE_CHECKING:
    import deltalake
    import pyarrow
    import pyarrow.fs

MOST_VERSIONS = 100
"""Versions that one look for new ones reads."""


@dataclass(frozen=True)
class DeltaPlan:
    """The choice of files of a Delta table.

    Args:
        columns: names of those that are read; None: all.
        version: of the snapshot; None: the newest.
        timestamp_ms: the snapshot is the newest version at this time, in epoch milliseconds.
        starting_version: the first version whose appends are read, instead of a snapshot; None: a snapshot is.
        starts_at_newest: only versions after the newest one at the start are read.
        ignore_deletes: versions that only delete are passed over; else they are an error.
        skip_change_commits: versions that delete or replace are passed over; else they are an error.
        wanted: conditions by whose statistics files are passed over.
    """

    place: DeltaPlace
    columns: tuple[str, ...] | None = None
    version: int | None = None
    timestamp_ms: int | None = None
    starting_version: int | None = None
    starts_at_newest: bool = False
    ignore_deletes: bool = False
    skip_change_commits: bool = False
    wanted: tuple[Wanted, ...] = ()

    def first(self) -> Discovered:
        """Return the files of the snapshot, or the version before the first whose appends are read."""
        if self.starts_at_newest:
            return Discovered(self.open().version())
        if self.starting_version is not None:
            return Discovered(self.starting_version - 1)
        table = self.open()
        version = table.version()
        kinds = self._partition_types(table)
        deleted = _deletion_vectors(table)
        splits = [
            DataFileSplit(
                path_in_log(action["path"]),
                version,
                _typed(action.get("partition"), kinds),
                deleted.get(_file(action["path"])),
            )
            for action in _add_actions(table)
            if all(_may_be_in(wanted, action) for wanted in self.wanted)
        ]  # fmt: skip
        return Discovered(version, tuple(splits))

    def after(self, position: int | None) -> Discovered:
        """Return the files that later versions appended.

        Raises:
            LakeError: a version is no append, changes the table so that it cannot be read on, or is gone from the log.
        """
        assert position is not None, "a table has a version"
        files = self.place.filesystem()
        splits: list[DataFileSplit] = []
        skipped = 0
        kinds: Mapping[str, pyarrow.DataType] | None = None
        for _ in range(MOST_VERSIONS):
            actions = self._log_of(position + 1, files)
            if actions is None:
                break
            position += 1
            self._check_metadata(actions, position)
            if self._is_passed_over(actions, position):
                skipped += 1
                continue
            for add in _of_kind(actions, "add"):
                if not add.get("dataChange", True):
                    continue
                if kinds is None:
                    kinds = self._partition_types(self.open())
                if add.get("deletionVector"):
                    problem = f"version {position} of {self.place} appends a file with deleted rows"
                    raise LakeError(problem, "read the table as a snapshot")
                values = add.get("partitionValues") or {}
                pairs = [(name, parsed_partition_value(values.get(name), kind)) for name, kind in kinds.items()]
                splits.append(DataFileSplit(path_in_log(add["path"]), position, tuple(pairs), None, skipped))
                skipped = 0
        return Discovered(position, tuple(splits), skipped)

    def open(self) -> deltalake.DeltaTable:
        """Return the table at the version that is asked for.

        Raises:
            LakeError: there is no such table or version.
        """
        if not self.place.exists():
            raise LakeError(f"{self.place} does not exist", "correct the path, or write to the table first")
        if self.timestamp_ms is None:
            return self.place.open(self.version)
        table = self.place.open()
        moment = datetime.datetime.fromtimestamp(self.timestamp_ms / 1000, datetime.timezone.utc)
        with self.place.errors(f"read as of {moment.isoformat()}"):
            table.load_as_version(moment)
        return table

    def schema(self) -> pyarrow.Schema:
        """Return names and types of the columns that are read.

        Raises:
            LakeError: the table lacks one.
        """
        import pyarrow

        schema = pyarrow.schema(self.open().schema().to_arrow())
        if self.columns is None:
            return schema
        of_schema(self.columns, schema.names, str(self.place))
        return pyarrow.schema([schema.field(name) for name in self.columns])

    def _log_of(self, version: int, files: pyarrow.fs.FileSystem) -> list[dict[str, Any]] | None:
        """Return the actions of a version; None: there is no such version yet.

        Raises:
            LakeError: the version is no longer in the log.
        """
        from pyarrow import fs

        path = f"_delta_log/{version:020d}.json"
        with self.place.errors("read"):
            if files.get_file_info([path])[0].type is not fs.FileType.File:
                newest = self.place.open().version()
                if newest < version or files.get_file_info([path])[0].type is fs.FileType.File:
                    return None
                problem = f"version {version} of {self.place} is gone from its log, the newest is {newest}"
                raise LakeError(problem, "start again from a snapshot, and keep the log for longer than a job may stop")
            with files.open_input_stream(path) as stream:
                return [json.loads(line) for line in stream.read().splitlines() if line.strip()]

    def _is_passed_over(self, actions: Sequence[Mapping[str, Any]], version: int) -> bool:
        """Return whether a version is to be passed over, as it deletes rows.

        Raises:
            LakeError: it deletes rows, and no option says that such versions are passed over.
        """
        if not any(remove.get("dataChange", True) for remove in _of_kind(actions, "remove")):
            return False
        only_deletes = not any(add.get("dataChange", True) for add in _of_kind(actions, "add"))
        if self.skip_change_commits or (only_deletes and self.ignore_deletes):
            return True
        what = "deletes rows" if only_deletes else "replaces rows"
        operation = next((info.get("operation") for info in _of_kind(actions, "commitInfo")), None)
        problem = f"version {version} of {self.place} {what} ({operation or 'unknown operation'})"
        remedy = "pass such versions over with skip_change_commits(True) (in SQL: 'skip-change-commits' = 'true')"
        if only_deletes:
            remedy = "pass such versions over with ignore_deletes(True) (in SQL: 'ignore-deletes' = 'true')"
        raise LakeError(problem, f"{remedy}, or start again from a snapshot")

    def _check_metadata(self, actions: Sequence[Mapping[str, Any]], version: int) -> None:
        """Check that a version leaves the table readable.

        Raises:
            LakeError: a column that is read is gone, or the protocol has a feature that is not supported.
        """
        for protocol in _of_kind(actions, "protocol"):
            unknown = sorted(set(protocol.get("readerFeatures") or ()) - READER_FEATURES)
            if unknown:
                problem = f"version {version} of {self.place} adds the feature {', '.join(unknown)}"
                raise LakeError(problem, f"supported are {', '.join(sorted(READER_FEATURES))}")
        for metadata in _of_kind(actions, "metaData"):
            names = [field["name"] for field in json.loads(metadata["schemaString"])["fields"]]
            gone = [name for name in self.columns or () if name not in names]
            if gone:
                problem = f"version {version} of {self.place} has no column {gone[0]!r} any more"
                raise LakeError(problem, "start again from a snapshot, with the columns that there are")

    def _partition_types(self, table: deltalake.DeltaTable) -> dict[str, pyarrow.DataType]:
        import pyarrow

        schema = pyarrow.schema(table.schema().to_arrow())
        return {name: schema.field(name).type for name in table.metadata().partition_columns}


def _of_kind(actions: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    return (action[kind] for action in actions if kind in action)


def _add_actions(table: deltalake.DeltaTable) -> list[dict[str, Any]]:
    import pyarrow

    return pyarrow.table(table.get_add_actions(flatten=False)).to_pylist()  # type: ignore[no-any-return]


def _typed(
    values: Mapping[str, UserValue] | None, kinds: Mapping[str, pyarrow.DataType]
) -> tuple[tuple[str, UserValue], ...]:
    known_values = values or {}
    return tuple((name, known_values.get(name)) for name in kinds)


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _deletion_vectors(table: deltalake.DeltaTable) -> dict[str, bytes]:
    """Return the deleted rows of each file that has some; see `deleted_rows`.

    Args:
        table: names of its files are unique, as each contains a random number.
    """
    import numpy
    import pyarrow

    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    vectors = {}
    for vector in pyarrow.table(table.deletion_vectors()).to_pylist():
        deleted = ~numpy.array(vector["selection_vector"], dtype=bool)
        packed = numpy.packbits(deleted, bitorder="little").tobytes()
        vectors[_file(vector["filepath"])] = len(deleted).to_bytes(8, "little") + zlib.compress(packed)
    return vectors


def deleted_rows(packed: bytes) -> pyarrow.BooleanArray:
    """Return the deleted rows of a file, true for each, from the form in which a split has them."""
    import pyarrow

    rows = int.from_bytes(packed[:8], "little")
    bits = pyarrow.py_buffer(zlib.decompress(packed[8:]))
    return pyarrow.BooleanArray.from_buffers(pyarrow.bool_(), rows, [None, bits])


def _may_be_in(wanted: Wanted, action: Mapping[str, Any]) -> bool:
    """Return whether a file may contain a wanted row; True where that is not known."""
    name = wanted.column
    partition = action.get("partition") or {}
    if name in partition:
        return _is_within(wanted, partition[name], partition[name], partition[name] is None)
    nulls, rows = (action.get("null_count") or {}).get(name), action.get("num_records")
    if nulls is not None and rows is not None:
        if wanted.sign == "IS NULL":
            return bool(nulls)
        if nulls == rows:
            return False
    low, high = ((action.get(bound) or {}).get(name) for bound in ("min", "max"))
    if wanted.sign in ("IS NULL", "IS NOT NULL") or low is None or high is None:
        return True
    if isinstance(high, datetime.datetime):  # writers cut both bounds to milliseconds
        high = high.replace(microsecond=high.microsecond // 1000 * 1000 + 999)
    return _is_within(wanted, low, high, False)


def _is_within(wanted: Wanted, low: UserValue, high: UserValue, is_null: bool) -> bool:
    if wanted.sign in ("IS NULL", "IS NOT NULL") or is_null:
        return is_null == (wanted.sign == "IS NULL")
    signs = {
        "=": lambda value: low <= value <= high,
        "IN": lambda value: low <= value <= high,
        "<": lambda value: low < value,
        "<=": lambda value: low <= value,
        ">": lambda value: high > value,
        ">=": lambda value: high >= value,
    }
    try:
        return any(signs[wanted.sign](value) for value in wanted.values)
    except TypeError:  # the table has another type than the query
        return True


__all__ = ["DeltaPlan", "deleted_rows"]
