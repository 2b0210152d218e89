"""Connections: one session of SQL, in this process or at a gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rayflink.table.definitions import quoted

from . import exceptions
from .cursor import Cursor
from .exceptions import InterfaceError, NotSupportedError
from .gateway_client import Gateway, GatewayClient
from .in_process import InProcess
from .statements import StatementRunner

__all__ = ["Connection", "connect"]


class Connection:
    """A session of SQL; `connect` makes it.

    Tables, views, functions and options belong to it. Its with-block closes it.

    Args:
        runner: runs its statements.
        has_changelog: whether rows that are taken back or changed are shown.
    """

    Warning, Error, InterfaceError, DatabaseError = (
        exceptions.Warning, exceptions.Error, exceptions.InterfaceError, exceptions.DatabaseError
    )  # fmt: skip
    DataError, OperationalError, IntegrityError, InternalError = (
        exceptions.DataError, exceptions.OperationalError, exceptions.IntegrityError, exceptions.InternalError
    )  # fmt: skip
    ProgrammingError, NotSupportedError = exceptions.ProgrammingError, exceptions.NotSupportedError

    def __init__(self, runner: StatementRunner, has_changelog: bool) -> None:
        self._runner: StatementRunner | None = runner
        self._has_changelog = has_changelog

    def cursor(self) -> Cursor:
        """Return a new cursor.

        Raises:
            InterfaceError: the connection is closed.
        """
        if self._runner is None:
            raise InterfaceError("the connection is closed; connect again")
        return Cursor(self, self._runner, self._has_changelog)

    def execute(self, operation: str, parameters: Sequence[object] = ()) -> Cursor:
        """Run a statement with a new cursor, and return that; as `sqlite3` has it beside PEP 249."""
        return self.cursor().execute(operation, parameters)

    @property
    def is_closed(self) -> bool:
        """Return whether it was closed."""
        return self._runner is None

    def commit(self) -> None:
        """Do nothing: each INSERT commits its own rows, with the checkpoints of its job."""
        if self._runner is None:
            raise InterfaceError("the connection is closed; connect again")

    def rollback(self) -> None:
        """Raise NotSupportedError: rows that were written are not taken back."""
        raise NotSupportedError("streams have no transactions over statements; there is nothing to roll back")

    def close(self) -> None:
        """Close the session; its queries end. May be called more than once."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    gateway: str | Gateway | None = None, *, mode: str = "batch", changelog: bool = False,
    options: Mapping[str, str] | None = None, catalog: str | None = None, database: str | None = None,
) -> Connection:  # fmt: skip
    """Open a session of SQL.

    >>> connection = connect(options={"execution.target": "local", "table.local-time-zone": "Europe/Vienna"})
    >>> connection.execute("SELECT 1 + 1 AS two").fetchone()
    (2,)
    >>> connection.close()

    Args:
        gateway: a SQL gateway, of rayflink or of Flink: its URL, such as "http://localhost:8083", or a `Gateway`; None:
            statements run in this process, and their jobs where the options say (`execution.target`).
        mode: "batch": queries end with their last rows, and INSERT returns when its rows are written; "streaming":
            queries go on as long as their sources, and INSERT returns when its job runs.
        changelog: each row of a query begins with what happens to it, in a column `op`: +I, -U, +U or -D. Without it, a
            streaming query whose rows change later is refused at the first such row.
        options: of Flink and rayflink, for this session.
        catalog, database: that are used at first; None: the session's own.

    Raises:
        InterfaceError: an argument is wrong, or urllib3 is not installed.
        OperationalError: the gateway cannot be reached, or refuses.
        ProgrammingError: an option is wrong, or there is no such catalog or database.
    """
    if mode not in ("batch", "streaming"):
        raise InterfaceError(f"found the mode {mode!r}, expected 'batch' or 'streaming'")
    session = {"execution.runtime-mode": mode, "table.dml-sync": str(mode == "batch").lower(), **(options or {})}
    if isinstance(gateway, str):
        gateway = Gateway(gateway)
    runner: StatementRunner = InProcess(session) if gateway is None else GatewayClient(gateway, session)
    connection = Connection(runner, changelog)
    try:
        for words, name in (("USE CATALOG", catalog), ("USE", database)):
            if name is not None:
                connection.execute(f"{words} {quoted(name)}")
    except exceptions.Error:
        connection.close()
        raise
    return connection
