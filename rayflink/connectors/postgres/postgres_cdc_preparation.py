"""The preparations for change data capture on a server: a publication, a replication slot, and the chunks of tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.cdc.chunks import Chunk, chunks_between
from rayflink.connectors.cdc.snapshot_enumeration import Database, Prepared

from .pgoutput import lsn_text, position_of
from .postgres_cdc_tables import CapturedTable, TableChoice
from .postgres_session import PostgresError, Session, driver, place_of

if TYPE_CHECKING:
    import psycopg

log = get_logger(__name__)

_SLOT = """
SELECT plugin, slot_type, database, active_pid, confirmed_flush_lsn::text, wal_status, current_database()
FROM pg_replication_slots WHERE slot_name = %s
"""
_OLDER = """
SELECT count(*), min(pid), max(now() - xact_start)::text FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""
_SLOT_WAIT_S = 60
_DENSE = 4
"""A key of whole numbers is divided without reading it if its range has at most this many numbers a row."""


@dataclass(frozen=True)
class CdcSettings:
    """The settings of a source, as far as the server is concerned.

    Args:
        dsn: connection string with the settings on which the notation of values depends.
        choice: the tables.
        slot: name of the replication slot.
        publication: its name.
        startup: `initial`, `latest`, `committed` or `snapshot`.
        split_size: rows of a chunk, about.
        heartbeat_ms: how often the position advances while the tables do not change.
        retries: how often a lost connection is opened again.
        skips_truncates: False: the job fails when a table is truncated.
        upserts: updates are emitted without the row before.
    """

    dsn: str
    choice: TableChoice
    slot: str
    publication: str
    startup: str = "initial"
    split_size: int = 8096
    heartbeat_ms: int = 30_000
    retries: int = 3
    skips_truncates: bool = False
    upserts: bool = False

    def __repr__(self) -> str:
        return f"CdcSettings({place_of(self.dsn)}, slot={self.slot!r})"

    @property
    def reads_log(self) -> bool:
        """Return whether the source goes on with the log after the snapshot."""
        return self.startup != "snapshot"

    @property
    def has_snapshot(self) -> bool:
        """Return whether the source begins with the rows that are there."""
        return self.startup in ("initial", "snapshot")


class PostgresDatabase(Database[CapturedTable]):
    """Prepares a database for change data capture."""

    def __init__(self, settings: CdcSettings) -> None:
        self._settings = settings

    def prepare(self) -> Prepared[CapturedTable]:
        """Check the server and the tables, create what is missing, and divide the tables into chunks.

        Raises:
            PostgresError: something is not as it has to be; the remedy says what to do.
        """
        settings = self._settings
        session = Session(settings.dsn)
        try:
            tables = session.run(self._find_tables)
            start = 0
            if settings.reads_log:
                session.run(check_server)
                session.run(lambda cursor: ensure_publication(cursor, settings.publication, tables))
                start = self._ensure_slot(session)
            chunks: list[Chunk] = []
            if settings.has_snapshot:
                for table in tables.values():
                    chunks += session.run(partial(divide, table=table, split_size=settings.split_size))
            return Prepared(tables, tuple(chunks), start)
        finally:
            session.close()

    def check(self) -> None:
        """Check that the server and the tables are as they have to be, and change nothing.

        Raises:
            PostgresError: they are not.
        """
        session = Session(self._settings.dsn)
        try:
            session.run(self._find_tables)
            if self._settings.reads_log:
                session.run(check_server)
        finally:
            session.close()

    def resume(self, prepared: Prepared[CapturedTable]) -> None:
        """Check that the slot is still there.

        Raises:
            PostgresError: it is not.
        """
        if not self._settings.reads_log:
            return
        session = Session(self._settings.dsn)
        try:
            if session.run(lambda cursor: find_slot(cursor, self._settings.slot)) is None:
                raise slot_is_gone(self._settings.slot)
        finally:
            session.close()

    def _find_tables(self, cursor: psycopg.Cursor[Any]) -> dict[str, CapturedTable]:
        tables = self._settings.choice.find(cursor)
        for table in tables.values():
            cursor.execute("SELECT has_table_privilege(%s::oid, 'SELECT')", (table.oid,))
            if cursor.fetchone() != (True,):
                user = place_of(self._settings.dsn)
                raise PostgresError(f"{user} may not read {table.full_name}", "GRANT SELECT ON the table TO the user")
        return tables

    def _ensure_slot(self, session: Session) -> int:
        """Create the slot where it is missing, and return the position from which the log is to be read."""
        settings = self._settings
        position = session.run(lambda cursor: find_slot(cursor, settings.slot))
        if position is None:
            if settings.startup == "committed":
                problem = f"there is no replication slot {settings.slot!r}, and the job is to start where it stands"
                raise PostgresError(problem, "create it, or start with StartupOptions.initial() or .latest()")
            position = self._create_slot(session)
            wait_for_older_transactions(session)
        if settings.startup == "latest":
            return session.run(_end_of_log)
        return position

    def _create_slot(self, session: Session) -> int:
        slot = self._settings.slot

        def create(cursor: psycopg.Cursor[Any]) -> int:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", (f"{_SLOT_WAIT_S}s",))
            cursor.execute("SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
            return position_of(_one(cursor))

        errors = driver().errors
        try:
            return session.run(create)
        except errors.QueryCanceled as error:
            raise too_long(session) from error
        except errors.ConfigurationLimitExceeded as error:
            remedy = "raise max_replication_slots, or drop a slot without use (SELECT * FROM pg_replication_slots)"
            raise PostgresError(f"replication slot {slot!r} cannot be created: {_line(error)}", remedy) from error
        except errors.InvalidName as error:
            remedy = "use lower case letters, digits and underscores"
            raise PostgresError(f"slot_name {slot!r}: {_line(error)}", remedy) from error
        except errors.InsufficientPrivilege as error:
            raise PostgresError(_line(error), "ALTER ROLE the user REPLICATION") from error


def check_server(cursor: psycopg.Cursor[Any]) -> None:
    """Check that the server writes a log that can be decoded, and that the user may read it.

    Raises:
        PostgresError: it does not.
    """
    cursor.execute("SELECT current_setting('wal_level'), current_setting('server_version_num')::int, "
                   "(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_user, "
                   "pg_is_in_recovery()")  # fmt: skip
    row = cursor.fetchone()
    assert row is not None
    level, version, may_replicate, user, is_standby = row
    if version < 130_000:
        problem = f"the server is version {version // 10_000}, whose snapshots cannot be compared with its log"
        raise PostgresError(problem, "use PostgreSQL 13 or later")
    if level != "logical":
        remedy = "set wal_level = logical in postgresql.conf and restart the server"
        raise PostgresError(f"the server has wal_level = {level}, and its log cannot be decoded", remedy)
    if not may_replicate:
        raise PostgresError(f"user {user!r} may not replicate", f'run ALTER ROLE "{user}" REPLICATION')
    if is_standby:
        raise PostgresError("the server is a standby", "connect to the primary")


def ensure_publication(cursor: psycopg.Cursor[Any], name: str, tables: dict[str, CapturedTable]) -> None:
    """Create a publication of the tables, or check that the one that is there has them.

    Raises:
        PostgresError: the publication lacks a table or a kind of change, or the user may not create it.
    """
    sql, errors = driver().sql, driver().errors
    places = [sql.Identifier(table.schema, table.table) for table in tables.values()]
    cursor.execute("SELECT pubinsert AND pubupdate AND pubdelete FROM pg_publication WHERE pubname = %s", (name,))
    row = cursor.fetchone()
    if row is None:
        statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)")
        try:
            cursor.execute(statement.format(sql.Identifier(name), sql.SQL(", ").join(places)))
        except errors.InsufficientPrivilege as error:
            remedy = f'let the owner run CREATE PUBLICATION "{name}" FOR TABLE {", ".join(tables)}'
            raise PostgresError(f"publication {name!r} cannot be created: {_line(error)}", remedy) from error
        return
    if not row[0]:
        remedy = f"run ALTER PUBLICATION \"{name}\" SET (publish = 'insert, update, delete, truncate')"
        raise PostgresError(f"publication {name!r} does not publish insertions, updates and deletions", remedy)
    cursor.execute("SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s", (name,))
    published = {full_name for (full_name,) in cursor.fetchall()}
    missing = [table for table in tables if table not in published]
    if missing:
        remedy = f'run ALTER PUBLICATION "{name}" ADD TABLE {", ".join(missing)}, or set another publication.name'
        raise PostgresError(f"publication {name!r} lacks {', '.join(missing)}", remedy)


def find_slot(cursor: psycopg.Cursor[Any], name: str) -> int | None:
    """Return the position up to which a slot is confirmed; None: there is no such slot.

    Raises:
        PostgresError: it is another kind of slot, or has lost its log.
    """
    cursor.execute(_SLOT, (name,))
    row = cursor.fetchone()
    if row is None:
        return None
    plugin, kind, database, _, confirmed, status, here = row
    if kind != "logical" or plugin != "pgoutput" or database != here:
        problem = f"replication slot {name!r} is a {kind} one of database {database!r} with plugin {plugin!r}"
        raise PostgresError(problem, f"set another slot.name, or create a slot of pgoutput in {here!r}")
    if status == "lost" or confirmed is None:
        raise log_is_lost(name)
    return position_of(confirmed)


def wait_for_older_transactions(session: Session) -> None:
    """Wait until all transactions have ended that ran when the slot was created, and did not reach it.

    A transaction is in the log before others see it, and long before where it waits for a synchronous standby: one
    whose commit is before the slot, and which a snapshot taken now does not show yet, would be lost.

    Raises:
        PostgresError: they take too long.
    """
    deadline = time.monotonic() + _SLOT_WAIT_S
    newest = session.run(lambda cursor: _running(cursor)[1])
    while session.run(lambda cursor: _running(cursor)[0]) < newest:
        if time.monotonic() > deadline:
            raise too_long(session)
        time.sleep(0.05)


def divide(cursor: psycopg.Cursor[Any], table: CapturedTable, split_size: int) -> list[Chunk]:
    """Divide a table into chunks of about `split_size` rows by its chunk key.

    Whole numbers without large gaps are divided by calculation; for other keys the index is read once.
    """
    key = table.chunk_key
    if key is None:
        return chunks_between(table.full_name, [])
    sql = driver().sql
    place, column = sql.Identifier(table.schema, table.table), sql.Identifier(key.name)
    if key.kind in ("int2", "int4", "int8") and table.rows > split_size:
        cursor.execute(sql.SQL("SELECT min({0}), max({0}) FROM {1}").format(column, place))
        low, high = cursor.fetchone() or (None, None)
        if low is not None and high is not None and high - low < _DENSE * table.rows:
            step = max(1, round(split_size * (high - low + 1) / table.rows))
            return chunks_between(table.full_name, map(str, range(low + step, high + 1, step)))
    query = sql.SQL(
        "SELECT n.{0}::text AS bound FROM (SELECT {0}, row_number() OVER (ORDER BY {0}) AS place FROM {1}) AS n "
        "WHERE n.place > 1 AND (n.place - 1) % {2} = 0 GROUP BY n.{0} ORDER BY n.{0}"
    ).format(column, place, sql.Literal(split_size))
    cursor.execute(query)
    return chunks_between(table.full_name, [bound for (bound,) in cursor.fetchall() if bound is not None])


def slot_is_gone(name: str) -> PostgresError:
    """Return the error of a slot that somebody dropped."""
    problem = f"replication slot {name!r} is gone, and with it the changes since the last checkpoint"
    return PostgresError(problem, "start the job anew, without its checkpoint, with StartupOptions.initial()")


def log_is_lost(name: str) -> PostgresError:
    """Return the error of a slot whose log the server has deleted."""
    problem = f"the server has deleted the log that replication slot {name!r} needs (max_slot_wal_keep_size)"
    remedy = f"raise that limit, run SELECT pg_drop_replication_slot('{name}'), and start the job anew with a snapshot"
    return PostgresError(problem, remedy)


def too_long(session: Session) -> PostgresError:
    """Return the error of transactions that last longer than the creation of a slot can wait."""

    def running(cursor: psycopg.Cursor[Any]) -> str:
        cursor.execute(_OLDER)
        count, pid, age = cursor.fetchone() or (0, None, None)
        return f"{count} transactions that write, such as that of process {pid}, the oldest for {age}"

    problem = f"a replication slot waits for the transactions that run, and {_SLOT_WAIT_S} s were not enough"
    return PostgresError(f"{problem}: there are {session.run(running)}", "end them, and start the job again")


def _end_of_log(cursor: psycopg.Cursor[Any]) -> int:
    cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
    return position_of(_one(cursor))


def _running(cursor: psycopg.Cursor[Any]) -> tuple[int, int]:
    """Return the oldest transaction that runs, and the number of the next one."""
    cursor.execute("SELECT pg_current_snapshot()::text")
    oldest, following, _ = _one(cursor).split(":")
    return int(oldest), int(following)


def _one(cursor: psycopg.Cursor[Any]) -> str:
    row = cursor.fetchone()
    assert row is not None
    return str(row[0])


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


__all__ = ["CdcSettings", "PostgresDatabase", "find_slot", "log_is_lost", "lsn_text", "slot_is_gone"]
