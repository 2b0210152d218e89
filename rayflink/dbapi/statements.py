"""The contract between a cursor and what runs its statements, in this process or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rayflink.common.types import RowKind
from rayflink.table.types import DataType

__all__ = ["Column", "Follow", "RunningStatement", "StatementRunner"]


@dataclass(frozen=True)
class Column:
    """A column of a result.

    Args:
        name: of the column.
        type: of its values.
    """

    name: str
    type: DataType


class RunningStatement(Protocol):
    """A statement that was begun.

    Attributes:
        columns: of its rows; (): it gives none.
        job_id: of the job that it started; None: it started none.
    """

    columns: Sequence[Column]
    job_id: str | None

    def rows(self) -> Iterator[tuple[RowKind, tuple[object, ...]]]:
        """Yield the rows as they come, each with its kind.

        Raises:
            DatabaseError: the statement failed.
        """
        ...

    def cancel(self) -> None:
        """End the statement; another thread that waits for rows gets no more. May be called more than once."""
        ...


Follow = Callable[[RunningStatement], None]


class StatementRunner(Protocol):
    """Runs statements one after the other."""

    def run(self, statement: str, follow: Follow | None = None) -> RunningStatement:
        """Begin a statement.

        Args:
            follow: is called with it before it is waited for, so that another thread can cancel it.

        Raises:
            DatabaseError: it means nothing, or cannot be run.
        """
        ...

    def close(self) -> None:
        """End what is left, and give everything back."""
        ...
