"""The call of a process table function, as its operator takes it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ...plan.changelog import ChangelogMode
from ...plan.process_tables import TableArgument
from ...plan.typed import Expr, Session
from ...types import DataType
from ...user_functions.process.kernels import ProcessKernel


@dataclass(frozen=True)
class ProcessSpec:
    """A call of a process table function.

    Args:
        kernel: the function.
        tables: what the call says of each table.
        rows: types of the rows of each table, with the names of its columns.
        modes: the kinds of changes of each table.
        scalars: values of the other arguments by name.
        schema: of the result.
        mode: the kinds of the function's rows.
        session: what evaluation depends on.
        ttl_ms: how long state is known where its declaration does not say; 0: for ever.
    """

    kernel: ProcessKernel
    tables: tuple[TableArgument, ...]
    rows: tuple[DataType, ...]
    modes: tuple[ChangelogMode, ...]
    scalars: tuple[tuple[str, Expr], ...]
    schema: pa.Schema
    mode: ChangelogMode
    session: Session
    ttl_ms: int = 0

    @property
    def has_time(self) -> bool:
        """Return whether the last column of the result is the time of the row."""
        return any(table.time is not None for table in self.tables)


__all__ = ["ProcessSpec"]
