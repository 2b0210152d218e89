"""Changes of one table, as columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TableChanges:
    """Changes of the rows of one table, in order.

    Args:
        database: its name.
        schema: of the table.
        table: its name.
        rows: the columns of the table and, at the end, the kinds of the changes, see
            `rayflink.common.records.row_kinds`; without kinds all rows are insertions. An UPDATE_BEFORE stands directly
            before its UPDATE_AFTER; where the log lacks the row before an update, there is none. A DELETE has nulls
            where the log lacks values.
        op_ms: when each change was committed, int64[n] of epoch milliseconds; None: the rows are from the snapshot.
        keys: names of the columns of the primary key.
        positions: of each change in the log, int64[n]; None: the rows are from the snapshot.
        connector: Debezium's name of the database's kind.
        log_file: the file of the log that `positions` are in, where the log has several.
    """

    database: str
    schema: str
    table: str
    rows: pyarrow.RecordBatch
    op_ms: NDArray[np.int64] | None = None
    keys: tuple[str, ...] = ()
    positions: NDArray[np.int64] | None = None
    connector: str = "postgresql"
    log_file: str = ""

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def is_snapshot(self) -> bool:
        """Return whether the rows are from the snapshot, and not from the log."""
        return self.op_ms is None

    def slice(self, start: int, stop: int) -> TableChanges:
        """Return changes [start, stop), as a view."""
        op_ms = None if self.op_ms is None else self.op_ms[start:stop]
        positions = None if self.positions is None else self.positions[start:stop]
        return replace(self, rows=self.rows.slice(start, stop - start), op_ms=op_ms, positions=positions)


__all__ = ["TableChanges"]
