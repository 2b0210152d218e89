"""A connection to PostgreSQL in replication mode, driven without blocking.

psycopg has no cursor for replication, but its binding of libpq has COPY in both directions, which is all that
streaming needs.
"""

from __future__ import annotations

import contextlib
import select
import time
from typing import TYPE_CHECKING

from .pgoutput import Keepalive, lsn_text, status_frame
from .postgres_cdc_preparation import CdcSettings, find_slot, log_is_lost, slot_is_gone
from .postgres_session import DEADLINES, PostgresError, Session, driver

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

_STATUS_S = 10.0
"""Seconds between two statuses, below `wal_sender_timeout`, 60 s by default."""
_ACTIVE_S = 30.0
"""How long to wait until the server notices that the slot's previous reader is gone."""
_IN_USE = "55006"
_NO_SUCH_SLOT = "42704"
_LOST_LOG = ("55000", "58P01")


class ConnectionLost(Exception):
    """The replication connection cannot be opened, or was lost; another one may go on from the same position."""


class ReplicationConnection:
    """Streams the messages of a replication slot.

    Args:
        settings: of the source.
        session: an ordinary connection, for questions about the slot.
        position: where to start.

    Raises:
        PostgresError: the slot is gone, its log is deleted, somebody else reads it, or it is confirmed further.
        ConnectionLost: the server cannot be reached.
    """

    def __init__(self, settings: CdcSettings, session: Session, position: int) -> None:
        self._settings, self._position = settings, position
        self.confirmed = 0
        """The position up to which the log is needed no more; 0: nothing has been confirmed yet."""
        self._reported = 0
        self._reported_s = self._heartbeat_s = time.monotonic()
        try:
            confirmed = session.run(lambda cursor: find_slot(cursor, settings.slot), ())
        except PostgresError as error:
            if isinstance(error.__cause__, driver().OperationalError):
                raise ConnectionLost(str(error)) from error
            raise
        if confirmed is None:
            raise slot_is_gone(settings.slot)
        if confirmed > position:
            problem = (
                f"the job continues from {lsn_text(position)}, and replication slot {settings.slot!r} is confirmed "
                f"up to {lsn_text(confirmed)}: the changes in between are gone"
            )
            remedy = "restore the newest checkpoint, or start the job anew with a snapshot"
            raise PostgresError(problem, remedy)
        self._connection = self._open()

    def next_frame(self) -> bytes | None:
        """Return the next frame; None: nothing has arrived.

        Raises:
            ConnectionLost: the connection is gone.
            PostgresError: the server refuses to go on.
        """
        connection = self._connection
        try:
            size, data = connection.get_copy_data(1)
            if size == 0:
                connection.consume_input()
                size, data = connection.get_copy_data(1)
        except driver().OperationalError as error:
            raise ConnectionLost(f"connection lost: {_line(str(error))}") from error
        if size > 0:
            return bytes(data)
        if size == 0:
            return None
        result = connection.get_result()
        message = result.error_message.decode(errors="replace") if result is not None else ""
        raise self._explained(_state(result), message or "the server has ended the connection")

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives; return whether it has."""
        try:
            return bool(select.select([self._connection.socket], [], [], seconds)[0])
        except (OSError, ValueError, driver().OperationalError) as error:
            raise ConnectionLost(f"connection lost: {error}") from error

    def confirm(self, position: int) -> None:
        """Let the server delete the log before a position, with the next status; any thread may call it."""
        self.confirmed = max(self.confirmed, position)

    def send_status_if_due(self) -> None:
        """Send a status where a position was confirmed or time has passed; ask for a heartbeat where it is due."""
        now_s = time.monotonic()
        beats = (now_s - self._heartbeat_s) * 1000 >= self._settings.heartbeat_ms
        if beats or self.confirmed > self._reported or now_s - self._reported_s >= _STATUS_S:
            if beats:
                self._heartbeat_s = now_s
            self._send(beats)

    def answer(self, keepalive: Keepalive) -> None:
        """Answer a keepalive where the server wants that."""
        if keepalive.wants_reply:
            self._send(False)

    def _send(self, wants_reply: bool) -> None:
        # What was read and not confirmed counts as unwritten too: the server may stop only when all of it is confirmed.
        self._reported, self._reported_s = self.confirmed, time.monotonic()
        position = max(self.confirmed, 0)
        try:
            self._connection.put_copy_data(status_frame(position, position, int(time.time() * 1000), wants_reply))
            self._connection.flush()
        except driver().OperationalError as error:
            raise ConnectionLost(f"connection lost: {_line(str(error))}") from error

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(driver().Error):
            self._connection.finish()

    def _open(self) -> PGconn:
        """Connect and start to stream; wait where the slot's previous reader is not gone yet."""
        deadline_s = time.monotonic() + _ACTIVE_S
        while True:
            connection = self._connected()
            slot, publication = _quoted(self._settings.slot), self._settings.publication.replace("'", "''")
            options = f"proto_version '1', publication_names '{_quoted(publication)}'"
            command = f"START_REPLICATION SLOT {slot} LOGICAL {lsn_text(self._position)} ({options})"
            result = connection.exec_(command.encode())
            if result.status == driver().pq.ExecStatus.COPY_BOTH:
                connection.nonblocking = 1
                return connection
            state, message = _state(result), result.error_message.decode(errors="replace")
            connection.finish()
            if state != _IN_USE:
                raise self._explained(state, message)
            if time.monotonic() > deadline_s:
                problem = f"replication slot {self._settings.slot!r} has another reader: {_line(message)}"
                raise PostgresError(problem, "end the other job, or set another slot.name for this one")
            time.sleep(0.2)

    def _connected(self) -> PGconn:
        psycopg = driver()
        parameters = psycopg.conninfo.conninfo_to_dict(self._settings.dsn)
        text = psycopg.conninfo.make_conninfo("", **{**DEADLINES, **parameters, "replication": "database"})
        connection: PGconn = psycopg.pq.PGconn.connect(text.encode())
        if connection.status != psycopg.pq.ConnStatus.OK:
            problem = _line(connection.error_message.decode(errors="replace"))
            connection.finish()
            raise ConnectionLost(f"no replication connection: {problem}")
        return connection

    def _explained(self, state: str, message: str) -> Exception:
        line = _line(message)
        if state == _NO_SUCH_SLOT and "slot" in line:
            return slot_is_gone(self._settings.slot)
        if state == _NO_SUCH_SLOT and "publication" in line:
            problem = f"publication {self._settings.publication!r} is gone, or was created after the slot: {line}"
            return PostgresError(problem, "start the job anew with a new slot")
        if state in _LOST_LOG and ("no longer" in line or "removed" in line or "invalidated" in line):
            return log_is_lost(self._settings.slot)
        if state in ("42501", "28000", "28P01"):
            return PostgresError(line, "let the user read the slot: ALTER ROLE ... REPLICATION, and pg_hba.conf")
        return ConnectionLost(f"replication ended: {line}")


def _state(result: PGresult | None) -> str:
    if result is None:
        return ""
    code = result.error_field(driver().pq.DiagnosticField.SQLSTATE)
    return "" if code is None else code.decode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(message: str) -> str:
    return " ".join(message.split())


__all__ = ["ConnectionLost", "ReplicationConnection"]
