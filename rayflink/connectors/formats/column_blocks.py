"""Files that hold columns in blocks: read block by block, written as blocks of many records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.split_reader import share_of
from rayflink.common.errors import shorten
from rayflink.common.records.arrow_rows import arrow_to_rows, rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch
from rayflink.common.records.row_kinds import has_kinds
from rayflink.common.serialization import BulkWriter
from rayflink.user_types import UserRecord

from ..files.file_blocks import FileSplit

if TYPE_CHECKING:
    import pyarrow

BLOCK_ROWS = 1 << 16
"""Records of a block that is written."""


class ColumnCursor:
    """Reads some blocks of a file; the position is a block's number and the records given of it.

    Args:
        split: what to read; its `offset` is the number of a block.
        blocks: numbers of the split's blocks, ascending.
        read_block: gives a block's columns, in order.
        emitted: puts columns into the wanted form.
        close_file: releases the file.
    """

    def __init__(
        self,
        split: FileSplit,
        blocks: Sequence[int],
        read_block: Callable[[int], Iterator[pyarrow.RecordBatch]],
        emitted: Callable[[pyarrow.RecordBatch], Batch],
        close_file: Callable[[], None],
    ) -> None:
        self._split, self._read_block, self._emitted, self._close = split, read_block, emitted, close_file
        first = split.offset
        self._blocks = [block for block in blocks if first is None or block >= first]
        self._skip = split.skip if self._blocks[:1] == [first] else 0
        self._given = self._skip
        self._parts: Iterator[pyarrow.RecordBatch] | None = None
        self._part: Any = None

    def read(self, max_records: int) -> Batch | None:
        while self._part is None or not self._part.num_rows:
            if not self._blocks:
                return None
            if self._parts is None:
                self._parts = self._read_block(self._blocks[0])
            self._part = next(self._parts, None)
            if self._part is None:
                self._blocks.pop(0)
                self._parts, self._given = None, 0
                continue
            skipped = min(self._skip, self._part.num_rows)
            self._skip -= skipped
            self._part = self._part.slice(skipped)
        block = self._part.slice(0, share_of(self._part.num_rows, max_records))
        self._part = self._part.slice(block.num_rows)
        self._given += block.num_rows
        return self._emitted(block)

    def position(self) -> FileSplit:
        at_end = not self._blocks
        return replace(self._split, offset=2**62 if at_end else self._blocks[0], skip=0 if at_end else self._given)

    def close(self) -> None:
        self._close()


class ColumnShape:
    """The choice of columns, of their types, and between columns and `Row` objects.

    Args:
        schema: names and types; None: as the file has them.
        rows: emit `Row` objects.
        is_case_sensitive: False finds a file's column whose name differs in case alone.
    """

    def __init__(self, schema: pyarrow.Schema | None, rows: bool = False, is_case_sensitive: bool = True) -> None:
        self.schema, self._rows, self._is_case_sensitive = schema, rows, is_case_sensitive

    def names_in(self, there: Sequence[str], path: str) -> list[str] | None:
        """Return the names of the wanted columns in the file; None for all.

        Raises:
            ValueError: the file lacks one.
        """
        if self.schema is None:
            return None
        form: Callable[[str], str] = str if self._is_case_sensitive else str.lower
        names_by_form = {form(name): name for name in there}
        missing = [name for name in self.schema.names if form(name) not in names_by_form]
        if missing:
            remedy = f"leave them out of the row type; it has {', '.join(there)}"
            raise ValueError(f"{path!r} has no column {', '.join(missing)}; {remedy}")
        return [names_by_form[form(name)] for name in self.schema.names]

    def paths_in(self, there: pyarrow.Schema, names: Sequence[str] | None) -> list[str] | None:
        """Return the paths of the fields that are read of a file, with dots between names; None for all.

        Args:
            there: the file's columns.
            names: the wanted ones, as `names_in` returns them.
        """
        if self.schema is None or names is None:
            return None
        pairs = zip(names, self.schema, strict=True)
        return [path for name, field in pairs for path in field_paths(name, there.field(name).type, field.type)]

    def emitted(self, data: pyarrow.RecordBatch, names: Sequence[str] | None, path: str) -> Batch:
        """Return the wanted columns in the wanted form.

        Raises:
            ValueError: a column cannot be of its type.
        """
        import pyarrow

        if self.schema is not None and names is not None:
            columns = []
            for name, field in zip(names, self.schema, strict=True):
                column = data.column(data.schema.get_field_index(name))
                try:
                    columns.append(column if column.type == field.type else column.cast(field.type))
                except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
                    problem = f"{path!r}: column {name!r} is {column.type}, {field.type} is wanted ({error})"
                    raise ValueError(f"{problem}; declare the type the file has") from error
            data = pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)
        return RowBatch(arrow_to_rows(data)) if self._rows else ArrowBatch(data)


class ColumnWriter(BulkWriter):
    """Gathers records as columns and writes a block when there are enough.

    Args:
        schema: of the file.
        writer: Arrow's, of the file.
    """

    def __init__(self, schema: pyarrow.Schema, writer: Any) -> None:
        self._schema, self._writer = schema, writer
        self._batches: list[Any] = []
        self._rows = 0

    def write_block(self, table: pyarrow.Table) -> None:
        """Append a block to the file."""
        self._writer.write_table(table)

    def add_element(self, element: UserRecord) -> None:
        self.add_batch(RowBatch([element]))

    def add_batch(self, batch: Batch) -> None:
        self._batches.append(as_schema(batch, self._schema))
        self._rows += len(batch)
        if self._rows >= BLOCK_ROWS:
            self.flush()

    def flush(self) -> None:
        import pyarrow

        if self._rows:
            batches, self._batches, self._rows = self._batches, [], 0
            self.write_block(pyarrow.Table.from_batches(batches, self._schema).combine_chunks())

    def finish(self) -> None:
        self.flush()
        self._writer.close()

    def abandon(self) -> None:
        self._writer.close()


def field_paths(
    name: str, file_type: pyarrow.DataType, wanted: pyarrow.DataType, renamed: pyarrow.DataType | None = None
) -> list[str]:
    """Return the paths of the fields of a column that are to be read, with dots between names.

    Of a struct that has none of the wanted fields the first is read: it shows which rows are null.

    >>> import pyarrow
    >>> there = pyarrow.struct([("price", pyarrow.int64()), ("url", pyarrow.string())])
    >>> field_paths("bid", there, pyarrow.struct([("url", pyarrow.string())]))
    ['bid.url']

    Args:
        file_type: the type that the file has.
        wanted: the type to read, which may have fewer fields.
        renamed: the file's type with the names by which fields are wanted; None: they have those in the file, too.
    """
    from pyarrow import types

    if not (types.is_struct(file_type) and types.is_struct(wanted) and file_type.num_fields):
        return [name]
    names = file_type if renamed is None else renamed
    paths: list[str] = []
    for field in wanted:
        index = names.get_field_index(field.name)
        if index >= 0:
            inner = file_type.field(index)
            paths += field_paths(f"{name}.{inner.name}", inner.type, field.type, names.field(index).type)
    first = file_type.field(0)
    return paths or field_paths(f"{name}.{first.name}", first.type, first.type)[:1]


@contextmanager
def opening(path: str, kind: str, close: Callable[[], None]) -> Iterator[None]:
    """Guard the reading of a file's head: when it fails, the file is closed.

    Args:
        kind: what the file should be, with its format's name.

    Raises:
        ValueError: it is none, or does not have what is wanted of it.
    """
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        close()
        raise ValueError(f"{path!r} is no whole {kind} ({str(error).strip()}); write it anew") from error
    except ValueError:
        close()
        raise


@contextmanager
def reading(path: str, part: str) -> Iterator[None]:
    """Guard the reading of `part` of a file.

    Raises:
        ValueError: it cannot be read.
    """
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path!r}: {part} cannot be read ({error}); write the file anew") from error


def as_schema(batch: Batch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Convert records to columns of a schema.

    Raises:
        ValueError: a record does not fit; names the first such.
    """
    import pyarrow

    problems = (pyarrow.ArrowException, ValueError, TypeError, KeyError)
    if isinstance(batch, ArrowBatch):
        if has_kinds(batch.data.schema) and not has_kinds(schema):
            remedy = "say in a map() before what each row does, as a field, or give rows that only come"
            raise ValueError(f"rows take back or replace others, which columns {schema.names} do not say; {remedy}")
        try:
            return batch.data.select(schema.names).cast(schema)
        except problems as error:
            columns = f"columns {batch.data.schema.to_string(show_schema_metadata=False)!r}"
            remedy = "make them so in a map_batches() before, or declare another row type"
            raise ValueError(f"{columns} are not those of the sink ({error}); {remedy}") from error
    try:
        return rows_to_arrow(batch.values, schema)
    except problems:
        for value in batch.values:
            try:
                rows_to_arrow([value], schema)
            except problems as error:
                remedy = "make it so in a map() before, or declare another row type"
                raise ValueError(f"record {shorten(value, 200)} does not fit the sink ({error}); {remedy}") from error
        raise
