"""One connection to MySQL or MariaDB, opened when it is needed and again when it was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from rayflink.common.errors import ConnectorError
from rayflink.common.text_output.logs import get_logger

if TYPE_CHECKING:
    import pymysql

T = TypeVar("T")
log = get_logger(__name__)

PAUSES_S = (0.1, 0.4, 1.6)
"""Seconds before each further try after a connection was lost."""
_READ_S = 600
"""The longest that a statement may be silent."""
_LOST = frozenset({2006, 2013, 2014, 2055, 1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031})
"""Numbers of errors after which a connection is of no use."""
SETTINGS = "SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = 600, wait_timeout = 28800"
"""Settings on which the notation of values depends, and how long a reader may pause."""


class MySqlError(ConnectorError):
    """MySQL or MariaDB cannot be used as the source needs it."""


def driver() -> Any:
    """Return the module pymysql.

    Raises:
        MySqlError: it or python-mysql-replication is not installed.
    """
    try:
        import pymysql
        import pymysqlreplication  # noqa: F401 - both are needed
    except ImportError as error:
        remedy = "pip install 'rayflink[mysql]' on every node"
        raise MySqlError(f"PyMySQL or mysql-replication is missing ({error})", remedy) from error
    return pymysql


@dataclass(frozen=True)
class Address:
    """A server and the user.

    Args:
        options: further arguments of `pymysql.connect`, such as `ssl_ca` or `unix_socket`.
    """

    host: str = ""
    port: int = 3306
    user: str = ""
    password: str = field(default="", repr=False)
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.user}@{self.options.get('unix_socket') or f'{self.host}:{self.port}'}"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `pymysql.connect`."""
        return {
            "host": self.host, "port": self.port, "user": self.user, "password": self.password, "charset": "utf8mb4",
            "connect_timeout": 10, "read_timeout": _READ_S, "write_timeout": 30, **self.options,
        }  # fmt: skip


def line_of(error: Exception) -> str:
    """Return an error of the server in one line, with its number."""
    parts = error.args
    shown = f"{parts[1]} ({parts[0]})" if len(parts) == 2 else str(error) or type(error).__name__
    return " ".join(shown.split())


def is_lost(error: Exception) -> bool:
    """Return whether an error means that the connection is of no use any more."""
    return bool(error.args) and error.args[0] in (*_LOST, 0)


class Session:
    """One connection, for one thread, on which each statement is a transaction of its own.

    Args:
        address: of the server.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: pymysql.Connection[Any] | None = None
        self._was_connected = False

    @property
    def thread_id(self) -> int | None:
        """Return the server's number of the connection; None: there is none."""
        return None if self._connection is None else int(self._connection.thread_id())

    def run(self, work: Callable[[pymysql.cursors.Cursor], T], pauses_s: tuple[float, ...] = PAUSES_S) -> T:
        """Do `work`, and anew where the connection is lost.

        Args:
            pauses_s: seconds before each further try.

        Raises:
            MySqlError: there is no connection.
            pymysql.MySQLError: what `work` raised with the connection alive.
        """
        errors = driver().err
        for pause in (*pauses_s, None):
            try:
                with self._connected().cursor() as cursor:
                    return work(cursor)
            except (errors.OperationalError, errors.InterfaceError, OSError) as error:
                if self._connection is not None and not is_lost(error):
                    raise
                self.close()
                if pause is None or not self._was_connected:
                    raise unreachable(self._address, error) from error
                log.warning("connection to %s lost: %s", self._address, line_of(error))
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close the connection; `run` opens another."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()

    def _connected(self) -> pymysql.Connection[Any]:
        if self._connection is None:
            self._connection = driver().connect(**self._address.arguments(), autocommit=True, init_command=SETTINGS)
            self._was_connected = True
        return self._connection


def unreachable(address: Address, error: Exception) -> MySqlError:
    """Return the error of a server that cannot be reached, or refuses."""
    remedy = "check hostname, port, username and password, and that the server runs"
    return MySqlError(f"no connection to MySQL at {address}: {line_of(error)}", remedy)


def one(cursor: pymysql.cursors.Cursor, statement: str, arguments: object = None) -> tuple[Any, ...]:
    """Return the only row of a query."""
    cursor.execute(statement, arguments)
    row = cursor.fetchone()
    assert row is not None, statement
    return tuple(row)


def named(cursor: pymysql.cursors.Cursor, statement: str) -> dict[str, str]:
    """Return the rows `name, value` of a SHOW statement, by their names in lower case."""
    cursor.execute(statement)
    return {str(row[0]).lower(): str(row[1]) for row in cursor.fetchall()}


__all__ = ["Address", "MySqlError", "Session", "driver", "is_lost", "line_of", "named", "one", "unreachable"]
