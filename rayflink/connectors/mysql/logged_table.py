"""Changes of one table from the binary log, as columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rayflink.common.records.row_kinds import with_kinds
from rayflink.connectors.cdc.chunks import ChunkMarks
from rayflink.connectors.cdc.logged_changes import LoggedChanges
from rayflink.connectors.cdc.table_changes import TableChanges

from .binlog_events import LogColumn, LogEvent
from .binlog_rows import BinlogRows, RowsFrame
from .binlog_values import LoggedColumn, is_of_kind, layout_of
from .mysql_cdc_tables import CapturedTable
from .mysql_session import MySqlError
from .mysql_values import MySqlColumn

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

Locate = Callable[[MySqlColumn, Sequence[str], Sequence[str]], list[int]]
"""Computes the numbers of the chunks of strings: chunk key, strings, bounds of the chunks -> numbers."""
ANEW = "start the job anew, without its checkpoint and with the new columns"


def signature_of(event: LogEvent) -> tuple[object, ...]:
    """Return the parts of a description of a table by which it differs from another one.

    Args:
        event: TableMapEvent of python-mysql-replication.
    """
    columns = tuple(tuple(sorted((key, str(value)) for key, value in column.data.items())) for column in event.columns)
    return (event.schema, event.table, columns)


class LoggedTable:
    """A captured table with the columns that it has in the log at present.

    Args:
        table: as it was when the job started.
        event: TableMapEvent of python-mysql-replication.

    Raises:
        MySqlError: the table was altered, and a captured column is gone or has another type.
    """

    def __init__(self, table: CapturedTable, event: LogEvent) -> None:
        self.table, logged = table, event.columns
        names = event.optional_metadata.column_name_list
        self.has_names = bool(names)
        if names:
            places = {name.lower(): place for place, name in enumerate(names)}
        else:
            places = {column.name.lower(): place for place, column in enumerate(table.all_columns)}
            if len(logged) != len(table.all_columns):
                raise columns_changed(table, f"has {len(logged)} columns and had {len(table.all_columns)}")
        unsigned = event.optional_metadata.unsigned_column_list
        known = {column.name.lower(): column for column in table.all_columns}
        checked = table.columns if names else table.all_columns
        for column in checked:
            place = places.get(column.name.lower())
            if place is None:
                problem = f"column {column.name!r} of {table.full_name} was dropped or renamed while changes were read"
                raise MySqlError(problem, ANEW)
            _check_type(table, column, logged[place], bool(unsigned and unsigned[place]), bool(unsigned))
        self.layouts = [layout_of(column) for column in logged]
        if None in self.layouts:
            number = logged[self.layouts.index(None)].type
            problem = f"{table.full_name} has a column whose values in the log have the unknown type {number}"
            raise MySqlError(problem, "leave the table out, or change the type of the column")

        def decoder(column: MySqlColumn) -> LoggedColumn:
            place = places[column.name.lower()]
            return LoggedColumn(column, logged[place], place)

        self.columns = [decoder(column) for column in table.columns]
        for key in table.keys:
            if key.lower() not in places:
                problem = f"column {key!r} of the primary key of {table.full_name} was dropped or renamed"
                raise MySqlError(f"{problem} while changes were read", ANEW)
        self._keys = [decoder(known[key.lower()]) for key in table.keys]
        self._chunk_key = None if table.chunk_key is None else decoder(table.chunk_key)

    @property
    def zeros(self) -> int:
        """Return how many dates such as `0000-00-00` became NULL."""
        return sum(column.zeros for column in self.columns)

    def parsed(self, frames: Sequence[RowsFrame]) -> LoggedChanges[BinlogRows]:
        """Return the changes of some events of the table, in order."""
        import numpy

        layouts = [layout for layout in self.layouts if layout is not None]
        rows = BinlogRows(frames, layouts)
        origins = numpy.array([(frame.transaction, frame.moment_ms) for frame in frames], numpy.int64).reshape(-1, 2)
        transactions, moments_ms = origins[rows.frame_of].T
        old_is_key = numpy.zeros(rows.kinds.size, bool)
        return LoggedChanges(rows, rows.kinds, rows.old, old_is_key, rows.new, transactions, transactions, moments_ms)

    def changes(
        self, logged: LoggedChanges[BinlogRows], marks: ChunkMarks | None, locate: Locate, upserts: bool, file: str
    ) -> TableChanges | None:
        """Return changes without those that the snapshots of chunks contain; None: there are none.

        Args:
            marks: of the chunks of the snapshot; None: there was none, or it is over.
            upserts: leave out the rows before updates.
            file: of the log.

        Raises:
            MySqlError: a value has no counterpart in the type of its column.
        """
        import pyarrow

        rows = logged.rows
        if marks is not None:
            bounds = marks.bounds
            logged = logged.without_snapshot(marks, lambda chosen: self._chunks_of(rows, chosen, bounds, locate))
        if not logged.kinds.size:
            return None
        emitted = logged.emitted(upserts, lambda chosen: [key.values(rows, chosen) for key in self._keys])
        table = self.table
        arrays = [column.values(rows, emitted.rows) for column in self.columns]
        batch = pyarrow.RecordBatch.from_arrays(arrays, schema=table.arrow_schema)
        return TableChanges(
            table.database, "", table.table, with_kinds(batch, pyarrow.array(emitted.kinds)), emitted.moments_ms,
            table.keys, emitted.commits, "mysql", file,
        )  # fmt: skip

    def _chunks_of(
        self, rows: BinlogRows, chosen: NDArray[np.int64], bounds: Sequence[str], locate: Locate
    ) -> list[int]:
        key = self._chunk_key
        assert key is not None
        values = key.values(rows, chosen)
        if key.column.kind in ("char", "varchar"):
            return locate(key.column, values.to_pylist(), bounds)
        return chunks_of_numbers(key.column, values, bounds)


def chunks_of_numbers(column: MySqlColumn, values: pyarrow.Array, bounds: Sequence[str]) -> list[int]:
    """Return the numbers of the chunks of keys that are numbers, dates or moments.

    Args:
        values: in the Arrow type of the column.
        bounds: in the server's notation.
    """
    import numpy
    import pyarrow

    kind = values.type
    divided = pyarrow.array(list(bounds), pyarrow.string())
    if pyarrow.types.is_timestamp(kind):
        divided = divided.cast(pyarrow.timestamp("us")).cast(kind)
    elif pyarrow.types.is_decimal256(kind):
        divided = divided.cast(kind)
        edges = divided.to_pylist()
        return [bisect_right(edges, value) for value in values.to_pylist()]
    else:
        divided = divided.cast(kind)
    if pyarrow.types.is_decimal(kind):
        edges = divided.to_pylist()
        return [bisect_right(edges, value) for value in values.to_pylist()]
    numbers: list[int] = numpy.searchsorted(divided.to_numpy(False), values.to_numpy(False), "right").tolist()
    return numbers


def columns_changed(table: CapturedTable, change: str) -> MySqlError:
    """Return the error of a table that was altered while the log has no names of columns."""
    problem = f"table {table.full_name} was altered while changes were read: it {change}, and the log lacks their names"
    return MySqlError(problem, f"set binlog_row_metadata = FULL on the server, and {ANEW}")


def _check_type(table: CapturedTable, column: MySqlColumn, logged: LogColumn, unsigned: bool, is_known: bool) -> None:
    is_same = is_of_kind(logged.type, column.kind)
    if is_same and column.kind == "decimal":
        is_same = (logged.precision, logged.decimals) == (column.precision, column.scale)
    if is_same and is_known and column.kind in ("tinyint", "smallint", "mediumint", "int", "bigint"):
        is_same = unsigned == column.is_unsigned
    if not is_same:
        raise MySqlError(f"column {column.name!r} of {table.full_name} is {column.shown_type} no longer", ANEW)


__all__ = ["LoggedTable", "Locate", "chunks_of_numbers", "columns_changed", "signature_of"]
