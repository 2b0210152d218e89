"""Snapshots of a server without locks, and the position in the log that each is of.

MariaDB and Percona Server say it: `Binlog_snapshot_position` is exact, as transactions are committed in the order of
the log, and a snapshot is taken between two of them. MySQL does not. There a transaction is in the log somewhat before
others see it. So the position is asked for before and after the snapshot is taken, until no transaction has been
written in between and none waits for a replica; the ones before have then been committed for `_SETTLED_S`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .binlog_positions import position_in
from .mysql_session import MySqlError, driver, line_of, named

if TYPE_CHECKING:
    import pymysql

_SETTLED_S = 0.002
_DEADLINE_S = 30.0


class NoQuietMoment(MySqlError):
    """A server writes its log without a pause, and no snapshot could be taken between two transactions."""


def log_status(cursor: pymysql.cursors.Cursor) -> tuple[str, int, str]:
    """Return the end of the log: file, offset, and the set of GTIDs of MySQL.

    Raises:
        MySqlError: there is no log, or the user may not see it.
    """
    errors = driver().err
    try:
        try:
            cursor.execute("SHOW BINARY LOG STATUS")
        except errors.ProgrammingError:  # before MySQL 8.2, and MariaDB before 10.5
            cursor.execute("SHOW MASTER STATUS")
    except errors.OperationalError as error:
        if error.args[0] != 1227:
            raise
        raise MySqlError(line_of(error), "GRANT REPLICATION CLIENT ON *.* TO the user") from error
    row = cursor.fetchone()
    if row is None:
        raise MySqlError("the server has no binary log", "set log_bin, and restart the server")
    gtids = str(row[4]).replace("\n", "") if len(row) > 4 and row[4] else ""
    return str(row[0]), int(row[1]), gtids


def open_snapshot(cursor: pymysql.cursors.Cursor) -> int:
    """Begin a transaction with a snapshot, and return the position in the log that it is of.

    Raises:
        NoQuietMoment: MySQL writes its log without a pause.
    """
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    place = named(cursor, "SHOW STATUS LIKE 'binlog_snapshot_%'")
    if place.get("binlog_snapshot_file"):
        return position_in(place["binlog_snapshot_file"], int(place["binlog_snapshot_position"]))
    return _open_between(cursor)


def _open_between(cursor: pymysql.cursors.Cursor) -> int:
    deadline = time.monotonic() + _DEADLINE_S
    pause = _SETTLED_S
    while time.monotonic() < deadline:
        cursor.execute("ROLLBACK")
        before = log_status(cursor)
        time.sleep(pause)
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        waiting = named(cursor, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_wait_sessions'")
        if before == log_status(cursor) and all(count == "0" for count in waiting.values()):
            return position_in(before[0], before[1])
        pause = max(pause * 0.9, _SETTLED_S / 20)
    problem = f"the server wrote transactions without a pause for {_DEADLINE_S:.0f} s"
    raise NoQuietMoment(problem, "take the snapshot while it has less to do, or begin with StartupOptions.latest()")


__all__ = ["NoQuietMoment", "log_status", "open_snapshot"]
