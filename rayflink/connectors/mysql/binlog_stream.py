"""The binary log as a stream of events, by the library python-mysql-replication."""

from __future__ import annotations

import logging
import select
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from rayflink.common.errors import ConnectorError

from .binlog_events import LogEvent
from .mysql_session import Address, MySqlError, driver, is_lost, line_of

if TYPE_CHECKING:
    import pymysql

_SILENCE_S = 30
"""Seconds without an event, even of the server's heartbeat, after which the connection is lost."""
_HEARTBEAT_S = 1
"""As often the server sees whether the reader is still there: only then is its server id free for another one."""
_LOCK_S = 15
"""Seconds to wait for the server id of an attempt that has just ended."""
_GONE, _REFUSED, _UNREACHABLE = (1236, 1373, 1789, 1955), (1044, 1045, 1227), (1040, 1203, 2002, 2003)
"""Numbers of errors: the log is gone, the user may not read it, and the server cannot be reached for a while."""
_BLOCK = 1 << 16


class LogConnectionLost(ConnectorError):
    """The connection that reads the log is lost, and can be opened again."""


class _StreamConnection(Protocol):
    is_streaming: bool
    open: bool

    def has_data(self, wait_s: float) -> bool: ...
    def cursor(self) -> pymysql.cursors.Cursor: ...
    def thread_id(self) -> int: ...
    def close(self) -> None: ...


@cache
def _connection_class() -> Any:
    """Return the connection of PyMySQL whose bytes are read ahead, so that it is known whether there are any."""
    base = driver().connections.Connection

    class StreamConnection(base):  # type: ignore[misc, valid-type]  # the library is loaded late
        """A connection with a buffer of its own.

        The library that reads the log opens a connection that is lost again by itself, without end. As the error raised
        here is none that it knows, it does not.
        """

        is_streaming = False

        def __init__(self, **settings: object) -> None:
            self._ahead = bytearray()
            super().__init__(**settings)

        def _read_bytes(self, num_bytes: int) -> bytes:
            ahead = self._ahead
            while len(ahead) < num_bytes:
                try:
                    block = self._sock.recv(_BLOCK)
                except OSError as error:
                    self._force_close()
                    raise self._lost(str(error)) from error
                if not block:
                    self._force_close()
                    raise self._lost("the server has closed it")
                ahead += block
            data = bytes(ahead[:num_bytes])
            del ahead[:num_bytes]
            return data

        def _lost(self, reason: str) -> Exception:
            if self.is_streaming:
                return LogConnectionLost(f"the connection is lost: {reason}", "it is opened again")
            return driver().err.OperationalError(2013, f"the connection is lost: {reason}")  # type: ignore[no-any-return]

        def has_data(self, wait_s: float) -> bool:
            """Return whether bytes have arrived, within some seconds."""
            if self._ahead or (hasattr(self._sock, "pending") and self._sock.pending()):
                return True
            if self._sock is None:
                raise self._lost("it was closed")
            return bool(select.select([self._sock], [], [], wait_s)[0])

    return StreamConnection


class BinlogStream:
    """Reads events of the log from a place on.

    Args:
        address: of the server.
        server_id: as which the server knows the reader; no other reader may have it.
        file, offset: where to begin.
        gtids: the transactions that are not wanted, in place of file and offset; None: there is a file.
        is_mariadb: the server is MariaDB.

    Raises:
        LogConnectionLost: there is no connection.
        MySqlError: the server refuses, or does not have the log any more.
    """

    def __init__(
        self, address: Address, server_id: int, file: str = "", offset: int = 4, gtids: str | None = None,
        is_mariadb: bool = False,
    ) -> None:  # fmt: skip
        self._library = driver()
        from pymysqlreplication import BinLogStreamReader

        logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # it advises settings that are not needed
        self._address, self._server_id = address, server_id
        self._wanted = f"GTIDs beyond {gtids}" if gtids is not None else f"{file}:{offset}"
        self._connection: _StreamConnection | None = None
        settings = {**address.arguments(), "read_timeout": _SILENCE_S, "autocommit": True}
        by_gtids = {"auto_position": gtids or None, "is_mariadb": is_mariadb} if gtids is not None else {}
        self._reader = BinLogStreamReader(
            settings, server_id, resume_stream=True, blocking=True, log_file=file or None, log_pos=offset,
            filter_non_implemented_events=False, slave_heartbeat=_HEARTBEAT_S, pymysql_wrapper=self._connect,
            enable_logging=False, **by_gtids,
        )  # fmt: skip
        self._first: LogEvent | None = None
        self._first = self.next_event()

    def has_event(self, wait_s: float) -> bool:
        """Return whether an event arrives within some seconds."""
        assert self._connection is not None
        return self._first is not None or self._connection.has_data(wait_s)

    def next_event(self) -> LogEvent:
        """Return the next event, and wait for it.

        Raises: as the constructor.
        """
        first, self._first = self._first, None
        if first is not None:
            return first
        errors = self._library.err
        try:
            event = self._reader.fetchone()
        except (errors.OperationalError, errors.InterfaceError, errors.InternalError) as error:
            raise self._error(error) from error
        except OSError as error:
            raise LogConnectionLost(f"the connection is lost: {line_of(error)}", "it is opened again") from error
        if event is None:
            raise LogConnectionLost("the server has ended the stream", "it is opened again")
        following: LogEvent = event
        return following

    def close(self) -> None:
        """Close the connections; the server's end at once, as it would otherwise keep the server id for a while."""
        if self._connection is not None and self._connection.open:
            with suppress(self._library.MySQLError, OSError):
                killer = self._library.connect(**{**self._address.arguments(), "connect_timeout": 2, "read_timeout": 2})
                with killer, killer.cursor() as cursor:
                    cursor.execute(f"KILL {self._connection.thread_id()}")
        with suppress(self._library.MySQLError, OSError, AttributeError):
            self._reader.close()
        if self._connection is not None and self._connection.open:
            with suppress(self._library.MySQLError, OSError):
                self._connection.close()

    def _connect(self, **settings: object) -> _StreamConnection:
        """Open the connection of the log, which is the first one, or that of the library's own queries."""
        if "db" in settings:
            settings["database"] = settings.pop("db")
        connection: _StreamConnection = _connection_class()(**settings)
        if self._connection is None:
            self._connection = connection
            with connection.cursor() as cursor:
                cursor.execute("SELECT GET_LOCK(%s, %s)", (f"rayflink server id {self._server_id}", _LOCK_S))
                if cursor.fetchone() != (1,):
                    raise server_id_is_used(self._server_id)
            connection.is_streaming = True
        return connection

    def _error(self, error: Exception) -> Exception:
        line, code = line_of(error), error.args[0] if error.args else 0
        lowered = line.lower()
        if code == 1236 and ("same server" in lowered or "server_uuid/server_id" in lowered):
            return server_id_is_used(self._server_id)
        if code in _GONE and "shutdown" not in lowered:
            problem = f"the server does not have the log from {self._wanted} on: {line}"
            remedy = "start the job anew with a snapshot, without its checkpoint"
            return MySqlError(problem, f"keep the log for longer (binlog_expire_logs_seconds), and {remedy}")
        if code in _REFUSED:
            return MySqlError(f"{self._address} may not read the log: {line}", grant_remedy(self._address))
        if is_lost(error) or code in _UNREACHABLE:
            return LogConnectionLost(f"the log cannot be read: {line}", "it is opened again")
        return MySqlError(f"the log cannot be read: {line}", "check the server")


def server_id_is_used(server_id: int) -> MySqlError:
    """Return the error of a server id that another reader has."""
    problem = f"another reader of the log has the server id {server_id}"
    return MySqlError(problem, "set another server_id(...), 'server-id' in SQL, for each job and replica")


def grant_remedy(address: Address) -> str:
    """Return the statement that lets a user read the log."""
    return f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{address.user}'"


__all__ = ["BinlogStream", "LogConnectionLost", "grant_remedy", "server_id_is_used"]
