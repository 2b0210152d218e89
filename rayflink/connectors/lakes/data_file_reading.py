"""Splits that are data files of a table, and the cursor that reads one as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.connector_base.split_reader import share_of
from rayflink.common.records.batches import ArrowBatch
from rayflink.user_types import UserValue

from ..formats.column_blocks import field_paths
from ..formats.parquet_pruning import RowGroupFilter
from .lake_errors import LakeError, without_secrets

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class DataFileSplit:
    """A data file with the position up to which it has been read.

    Args:
        path: as the table's connector opens it.
        commit: the version or snapshot that added it, for messages and ids.
        constants: (column, value) of columns that the file lacks because the partition has them.
        deleted: where its deleted rows are listed, in the form of the table's connector; None: none are deleted.
        skipped_commits: commits before this one that were passed over because they are no appends.
        offset: number of a row group; None: the first.
        skip: rows of it that were read.
    """

    path: str
    commit: int
    constants: tuple[tuple[str, UserValue], ...] = ()
    deleted: UserValue = None
    skipped_commits: int = 0
    offset: int | None = None
    skip: int = 0

    @property
    def split_id(self) -> str:
        """Return the commit and the path, which together are unique."""
        return f"{self.commit}:{self.path}"


class DataFileCursor:
    """Reads some row groups of a data file; the position is a row group and the rows read of it.

    Args:
        split: what to read.
        groups: numbers of row groups, ascending.
        read_group: returns the rows of a row group that are not deleted, in order.
        emitted: puts columns into the wanted form.
        close_file: releases the file.
    """

    def __init__(
        self,
        split: DataFileSplit,
        groups: Sequence[int],
        read_group: Callable[[int], Iterator[pyarrow.RecordBatch]],
        emitted: Callable[[pyarrow.RecordBatch], ArrowBatch],
        close_file: Callable[[], None],
    ) -> None:
        self._split, self._read_group, self._emitted, self._close = split, read_group, emitted, close_file
        first = split.offset
        self._groups = [group for group in groups if first is None or group >= first]
        self._skip = split.skip if self._groups[:1] == [first] else 0
        self._read = self._skip
        self._parts: Iterator[pyarrow.RecordBatch] | None = None
        self._part: pyarrow.RecordBatch | None = None

    def read(self, max_records: int) -> ArrowBatch | None:
        """Return the next rows, which are of one row group; None at the end."""
        part = self._part
        while part is None or not part.num_rows:
            if not self._groups:
                return None
            if self._parts is None:
                self._parts = self._read_group(self._groups[0])
            part = next(self._parts, None)
            if part is None:
                self._groups.pop(0)
                self._parts, self._read = None, 0
                continue
            skipped = min(self._skip, part.num_rows)
            self._skip -= skipped
            part = part.slice(skipped)
        rows = share_of(part.num_rows, max_records)
        self._part = part.slice(rows)
        self._read += rows
        return self._emitted(part.slice(0, rows))

    def position(self) -> DataFileSplit:
        """Return the split with the position behind the last rows."""
        at_end = not self._groups
        return replace(self._split, offset=2**62 if at_end else self._groups[0], skip=0 if at_end else self._read)

    def close(self) -> None:
        """Release the file."""
        self._close()


@dataclass(frozen=True)
class FileReading:
    """The way in which a data file becomes columns; a value that can be pickled.

    Args:
        schema: names and types of the columns that are wanted, in their order.
        wanted: conditions by whose statistics row groups are passed over.
        field_names: id -> name of each field of the table, those within rows too, where files have ids: a field that
            was renamed is found by its id. None: by its name.
    """

    schema: pyarrow.Schema
    wanted: RowGroupFilter = RowGroupFilter()
    field_names: Mapping[int, str] | None = None

    def cursor(
        self, split: DataFileSplit, file: pyarrow.NativeFile, deleted: pyarrow.BooleanArray | None
    ) -> DataFileCursor:
        """Return a cursor on an open file.

        Args:
            file: the cursor closes it.
            deleted: true for each deleted row of the file, shorter if the last ones are not; None: none is deleted.

        Raises:
            LakeError: it is no Parquet file.
        """
        import pyarrow
        from pyarrow import parquet

        try:
            opened = parquet.ParquetFile(file, pre_buffer=True)
        except (pyarrow.ArrowException, OSError) as error:
            file.close()
            problem = f"the data file {split.path!r} of commit {split.commit} is no whole Parquet file"
            raise LakeError(f"{problem} ({without_secrets(error)})", "restore it, or read another version") from error
        names = self._names(opened.schema_arrow)
        paths = self._paths(opened.schema_arrow, names)
        wanted = self.wanted.renamed(names)
        groups = [group for group in range(opened.num_row_groups) if wanted(opened.metadata.row_group(group))]
        starts = _starts(opened)
        read = partial(_read_group, opened, paths, starts, deleted, split)
        return DataFileCursor(split, groups, read, partial(self._emitted, split, names), file.close)

    def _names(self, there: pyarrow.Schema) -> dict[str, str]:
        """Return the wanted columns that are in a file, with their names there."""
        names = {self._current_name(field): field.name for field in there}
        return {name: names[name] for name in self.schema.names if name in names}

    def _paths(self, there: pyarrow.Schema, names: Mapping[str, str]) -> list[str]:
        """Return the paths of the fields that are read of a file."""
        paths = []
        for current, name in names.items():
            kind = there.field(name).type
            paths += field_paths(name, kind, self.schema.field(current).type, self._renamed(kind))
        return sorted(paths)

    def _current_name(self, field: pyarrow.Field) -> str:
        """Return the name that a field of a file has in the table."""
        number = _field_id(field)
        if self.field_names is None or number is None:
            return str(field.name)
        return self.field_names.get(number, f"\0{number}")  # of a field that was dropped

    def _renamed(self, kind: pyarrow.DataType) -> pyarrow.DataType:
        """Return a type of a file with the names that the fields of its rows have in the table."""
        import pyarrow
        from pyarrow import types

        if self.field_names is None or not types.is_nested(kind):
            return kind
        if types.is_struct(kind):
            return pyarrow.struct(
                [field.with_name(self._current_name(field)).with_type(self._renamed(field.type)) for field in kind]
            )
        if types.is_map(kind):
            items = kind.item_field
            return pyarrow.map_(kind.key_field.with_type(self._renamed(kind.key_type)),
                                items.with_type(self._renamed(items.type)))  # fmt: skip
        if not (types.is_list(kind) or types.is_large_list(kind)):
            return kind
        create = pyarrow.large_list if types.is_large_list(kind) else pyarrow.list_
        return create(kind.value_field.with_type(self._renamed(kind.value_type)))

    def _emitted(self, split: DataFileSplit, present: Mapping[str, str], data: pyarrow.RecordBatch) -> ArrowBatch:
        """Return the columns of the schema: those of the file, those of the partition, and NULL for others.

        Raises:
            LakeError: a column cannot be of its type, or a file lacks a column that must not be NULL.
        """
        import pyarrow

        constants, columns = dict(split.constants), []
        for field in self.schema:
            if field.name in present:
                column = data.column(present[field.name])
                renamed = self._renamed(column.type)
                columns.append(_cast(column if renamed == column.type else column.view(renamed), field, split))
            elif field.name in constants:
                value = pyarrow.array([constants[field.name]])  # of the type that the value has, then of the column's
                columns.append(pyarrow.repeat(_cast(value, field, split)[0], data.num_rows))
            elif field.nullable:
                columns.append(pyarrow.nulls(data.num_rows, field.type))
            else:
                problem = f"the data file {split.path!r} has no column {field.name!r}, which must not be NULL"
                raise LakeError(problem, "declare the column as one that may be NULL")
        return ArrowBatch(pyarrow.RecordBatch.from_arrays(columns, schema=self.schema))


def _read_group(
    opened: pyarrow.parquet.ParquetFile,
    paths: Sequence[str],
    starts: Sequence[int],
    deleted: pyarrow.BooleanArray | None,
    split: DataFileSplit,
    group: int,
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow
    import pyarrow.compute as pc

    first = starts[group]
    try:
        batches = opened.iter_batches(BATCH_ROWS, row_groups=[group], columns=list(paths))
        for data in batches:
            rows = data.num_rows
            if deleted is not None:
                marks = deleted.slice(first, rows)
                if marks.true_count:
                    rest = pyarrow.repeat(pyarrow.scalar(False), rows - len(marks))
                    data = data.filter(pc.invert(pyarrow.concat_arrays([marks, rest])))
            first += rows
            yield data
    except (pyarrow.ArrowException, OSError) as error:
        problem = f"row group {group} of the data file {split.path!r} cannot be read ({without_secrets(error)})"
        raise LakeError(problem, "look whether the file is damaged, or was removed by a clean-up") from error


def _cast(column: pyarrow.Array, field: pyarrow.Field, split: DataFileSplit) -> pyarrow.Array:
    import pyarrow
    import pyarrow.compute as pc

    if column.type == field.type:
        return column
    times = pyarrow.types.is_timestamp(column.type) and pyarrow.types.is_timestamp(field.type)
    try:
        return pc.cast(column, field.type, safe=not times)  # fractions beyond the declared precision are cut off
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        problem = f"column {field.name!r} of the data file {split.path!r} is {column.type}, {field.type} is wanted"
        raise LakeError(f"{problem} ({error})", "declare the type that the table has") from error


def _starts(opened: pyarrow.parquet.ParquetFile) -> list[int]:
    """Return the number of the first row of each row group."""
    starts, row = [], 0
    for group in range(opened.num_row_groups):
        starts.append(row)
        row += opened.metadata.row_group(group).num_rows
    return starts


def _field_id(field: pyarrow.Field) -> int | None:
    field_id = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if field_id is None else int(field_id)


__all__ = ["DataFileCursor", "DataFileSplit", "FileReading"]
