"""Cursors: one statement at a time, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING

from rayflink.common.types import RowKind
from rayflink.table.types import Root

from .exceptions import DatabaseError, InterfaceError, NotSupportedError, ProgrammingError
from .parameters import with_parameters
from .statements import Column, RunningStatement, StatementRunner

if TYPE_CHECKING:
    from .connection import Connection

__all__ = ["Cursor"]

_CLOSED = "the connection is closed; connect again"
Fields = tuple[object, ...]
Description = tuple[str, str, None, None, "int | None", "int | None", bool]


class Cursor:
    """Runs statements, and reads their rows as they come; `Connection.cursor` makes it.

    Args:
        connection: to which it belongs.
        runner: of the connection.
        has_changelog: whether rows begin with what happens to them.

    Attributes:
        arraysize: rows that `fetchmany` returns without an argument.
        rowcount: always -1: streams are not counted beforehand.
    """

    arraysize = 1
    rowcount = -1

    def __init__(self, connection: Connection, runner: StatementRunner, has_changelog: bool) -> None:
        self.connection = connection
        self._runner, self._has_changelog = runner, has_changelog
        self._statement: RunningStatement | None = None
        self._begun: RunningStatement | None = None
        """The statement from its beginning on, while `execute` waits for it."""
        self._rows: Iterator[Fields] | None = None
        self._failure: DatabaseError | None = None
        """The error that ended the rows; each later fetch raises it again."""
        self._is_closed = False

    # statements

    def execute(self, operation: str, parameters: Sequence[object] = ()) -> Cursor:
        """Run a statement of SQL; rows of the one before that were not read are given up.

        Args:
            operation: one statement, with a question mark for each parameter.
            parameters: values in their order; `rayflink.dbapi.parameters.literal` says which there are.

        Returns:
            the cursor itself.

        Raises:
            InterfaceError: the cursor is closed, or a parameter has no form in SQL.
            DatabaseError: the statement means nothing, or failed.
        """
        self._check_open()
        self._end_statement()
        self._statement = self._runner.run(with_parameters(operation, parameters), self._follow)
        self._rows = self._fields(self._statement)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[object]]) -> None:
        """Run a statement once with each of several lists of parameters.

        Each INSERT is a job of its own: to insert many rows, write one INSERT with many VALUES.

        Raises:
            ProgrammingError: it gives rows; use `execute`.
            DatabaseError: as `execute` does.
        """
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            if self.description is not None:
                self._end_statement()
                raise ProgrammingError("executemany() does not return rows; run the query with execute()")

    def cancel(self) -> None:
        """End the statement that runs, from any thread; a fetch that waits returns what there is.

        An `execute` that waits, as for the rows of an INSERT, raises OperationalError.
        """
        statement = self._begun
        if statement is not None:
            statement.cancel()

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    # results

    @property
    def description(self) -> list[Description] | None:
        """Return seven values of each column; None: the statement gives no rows.

        They are the name, the kind of type (equal to one of `STRING`, `BINARY`, `NUMBER`, `DATETIME` where it is of
        that kind), None, None, precision, scale, and whether a value may be null.
        """
        if self._statement is None or not self._statement.columns:
            return None
        columns = [_describe(column) for column in self._statement.columns]
        if self._has_changelog:
            columns.insert(0, ("op", Root.CHAR.value, None, None, None, None, False))
        return columns

    @property
    def job_id(self) -> str | None:
        """Return the id of the job that the statement started; None: it started none."""
        return None if self._statement is None else self._statement.job_id

    def fetchone(self) -> Fields | None:
        """Return the next row, waiting for it; None: there are no more.

        Raises:
            ProgrammingError: no statement was run.
            InterfaceError: the cursor or the connection is closed, also by another thread during the fetch.
            NotSupportedError: the row takes back or changes another one, and the connection shows no changelog.
            DatabaseError: the statement failed; each later fetch raises the same error.
        """
        return next(self._open_rows(), None)

    def fetchmany(self, size: int | None = None) -> list[Fields]:
        """Return the next rows, waiting for them, `arraysize` where no number is given; fewer at the end.

        Raises:
            InterfaceError: the number is negative.
            DatabaseError: as `fetchone` does.
        """
        number = self.arraysize if size is None else size
        if number < 0:
            raise InterfaceError(f"found the number of rows {number}, expected 0 or more; fetchall() returns all")
        return list(islice(self._open_rows(), number))

    def fetchall(self) -> list[Fields]:
        """Return all rows that are left; a query that never ends is read with `fetchmany` or a loop instead."""
        return list(self._open_rows())

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Fields:
        return next(self._open_rows())

    # life

    def close(self) -> None:
        """End the statement, and the cursor. May be called more than once."""
        self._is_closed = True
        self._end_statement()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed; take another one")
        if self.connection.is_closed:
            raise InterfaceError(_CLOSED)

    def _open_rows(self) -> Iterator[Fields]:
        self._check_open()
        if self._rows is None:
            raise ProgrammingError("there are no rows: no statement was run")
        if self._failure is not None:
            raise self._failure
        return self._rows

    def _end_statement(self) -> None:
        statement, self._begun, self._statement, self._rows = self._begun, None, None, None
        self._failure = None
        if statement is not None:
            statement.cancel()

    def _follow(self, statement: RunningStatement) -> None:
        self._begun = statement

    def _fields(self, statement: RunningStatement) -> Iterator[Fields]:
        """Yield the rows of a statement; the end of rows whose connection was closed meanwhile is none of theirs."""
        try:
            yield from self._shown(statement)
        except DatabaseError as error:
            if self.connection.is_closed:
                raise InterfaceError(_CLOSED) from error
            self._failure = error
            raise
        if self.connection.is_closed:
            raise InterfaceError(_CLOSED)

    def _shown(self, statement: RunningStatement) -> Iterator[Fields]:
        with closing(statement.rows()) as rows:  # type: ignore[type-var]
            for kind, values in rows:
                if self._has_changelog:
                    yield (str(kind), *values)
                elif kind is RowKind.INSERT:
                    yield values
                else:
                    statement.cancel()
                    raise NotSupportedError(
                        f"a row of the query is {kind}: rows before it are taken back or changed; "
                        "connect with changelog=True to see what happens to each, or with mode='batch'"
                    )


def _describe(column: Column) -> Description:
    kind = column.type
    is_decimal = kind.root is Root.DECIMAL
    precision = kind.precision if is_decimal else None
    return (column.name, kind.root.value, None, None, precision, kind.scale if is_decimal else None, kind.is_nullable)
