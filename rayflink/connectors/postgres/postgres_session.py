"""One connection to PostgreSQL, opened when it is needed and again when it was lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rayflink.common.errors import ConnectorError, described
from rayflink.common.metrics.metric_group import Counter
from rayflink.common.text_output.logs import get_logger

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
log = get_logger(__name__)

PAUSES_S = (0.1, 0.4, 1.6)
"""Seconds before each further try after a connection was lost."""
DEADLINES = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}  # fmt: skip
"""Settings for strings that lack them: a connection to a server that is gone without notice is lost in 30 s."""

_SERVERS_DEADLINES = {
    "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "4",
    "tcp_user_timeout": "30000",
}  # fmt: skip
"""The same of the server, so that what an attempt on a lost node had locked is free in 30 s."""
_SET = """
SELECT set_config(name, value, false)
FROM unnest(%s::text[], %s::text[]) AS asked (name, value) JOIN pg_settings USING (name)
"""


class PostgresError(ConnectorError):
    """PostgreSQL cannot be used as the sink needs it."""


def driver() -> Any:
    """Return the module psycopg.

    Raises:
        PostgresError: it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        remedy = "pip install 'rayflink[postgres]' on every node"
        raise PostgresError(f"psycopg is missing ({error})", remedy) from error
    return psycopg


def place_of(dsn: str) -> str:
    """Return the server and database that a connection string leads to, without password.

    >>> place_of("postgresql://me:secret@db.example:5433/shop")
    "host='db.example' port='5433' dbname='shop' user='me'"

    Raises:
        PostgresError: it is no connection string.
    """
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        wanted = "give 'postgresql://user:password@host:5432/database' or 'host=... dbname=...'"
        raise PostgresError(f"no connection string of PostgreSQL: {str(error).strip()}", wanted) from None
    return " ".join(f"{key}={parts[key]!r}" for key in ("host", "port", "dbname", "user") if parts.get(key))


def wait_at_most(cursor: psycopg.Cursor[Any], seconds: int) -> None:
    """Limit the wait for locks in this transaction, unless the server sets a limit."""
    text = "SELECT set_config('lock_timeout', %s, true) WHERE current_setting('lock_timeout') = '0'"
    cursor.execute(text, (f"{seconds}s",))


def open_connection(dsn: str) -> psycopg.Connection[Any]:
    """Return a new connection, on which each statement is a transaction of its own, with the deadlines of this module.

    Raises:
        psycopg.Error: the server cannot be reached, or refuses.
    """
    library = driver()
    from psycopg.types.json import JsonbDumper

    parameters = library.conninfo.conninfo_to_dict(dsn)
    connection: psycopg.Connection[Any] = library.connect(**{**DEADLINES, **parameters}, autocommit=True)
    connection.execute(_SET, (list(_SERVERS_DEADLINES), list(_SERVERS_DEADLINES.values())))
    connection.adapters.register_dumper(dict, JsonbDumper)
    return connection


class Session:
    """One connection, for one thread at a time.

    Args:
        dsn: connection string.
        reconnects: counts how often a lost connection had to be opened again; several sessions may share it.
    """

    def __init__(self, dsn: str, reconnects: Counter | None = None) -> None:
        self._dsn = dsn
        self._connection: psycopg.Connection[Any] | None = None
        self._was_connected = False
        self._reconnects = reconnects or Counter()

    def run(self, work: Callable[[psycopg.Cursor[Any]], T], pauses_s: tuple[float, ...] = PAUSES_S) -> T:
        """Do `work` in one transaction, and anew where the connection is lost or the transaction has to be repeated.

        When the connection is lost at the commit it is unknown whether it happened: `work` looks.

        Args:
            pauses_s: seconds before each further try.

        Raises:
            PostgresError: there is no connection.
            psycopg.Error: what `work` raised with the connection alive.
        """
        errors = driver().errors
        for pause in (*pauses_s, None):
            try:
                connection = self._connected()
                with connection.transaction(), connection.cursor() as cursor:
                    return work(cursor)
            except (errors.SerializationFailure, errors.DeadlockDetected):
                if pause is None:
                    raise
            except (errors.OperationalError, errors.InterfaceError) as error:
                if self._connection is not None and not (self._connection.closed or self._connection.broken):
                    raise
                self.close()
                if pause is None or not self._was_connected:
                    raise self._unreachable(error) from error
                log.warning("connection to PostgreSQL lost: %s", str(error).strip())
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close the connection; `run` opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = open_connection(self._dsn)
            if self._was_connected:
                self._reconnects.inc()
            self._was_connected = True
        return self._connection

    def _unreachable(self, error: Exception) -> PostgresError:
        reason = " ".join(described(error).split())
        return PostgresError(f"no connection to PostgreSQL at {place_of(self._dsn)}: {reason}", "check dsn and server")


__all__ = ["PostgresError", "Session", "driver", "open_connection", "place_of", "wait_at_most"]
