"""The preparations for change data capture on a server: checks, where the log begins, and the chunks of tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.cdc.chunks import Chunk, chunks_between
from rayflink.connectors.cdc.snapshot_enumeration import Database, Prepared

from .binlog_positions import GtidSet, LogToken, file_and_offset, position_in
from .binlog_stream import BinlogStream, grant_remedy
from .mysql_cdc_tables import CapturedTable, TableChoice
from .mysql_session import Address, MySqlError, Session, driver, named, one
from .mysql_values import WHOLE, MySqlColumn, quoted
from .snapshot_positions import log_status, open_snapshot

if TYPE_CHECKING:
    import pymysql

log = get_logger(__name__)

_DENSE = 4
"""A key of whole numbers is divided without reading it if its range has at most this many numbers a row."""
_WANTED = {
    "log_bin": ("ON", "set log_bin, and restart the server"),
    "binlog_format": ("ROW", "set binlog_format = ROW, and restart the sessions that write"),
    "binlog_row_image": ("FULL", "set binlog_row_image = FULL, and restart the sessions that write"),
    "binlog_row_value_options": ("", "set binlog_row_value_options = ''"),
    "binlog_transaction_compression": ("OFF", "set binlog_transaction_compression = OFF"),
    "log_bin_compress": ("OFF", "set log_bin_compress = OFF"),
}
"""Variable of the server -> the value that it must have if there is one, and the remedy."""


@dataclass(frozen=True)
class MySqlSettings:
    """The settings of a source, as far as the server is concerned.

    Args:
        choice: the tables.
        server_id: as which the server knows the first subtask; each other one has the next.
        startup: `initial`, `snapshot`, `latest`, `earliest`, `specific` or `timestamp`.
        start_file, start_offset, start_gtids: of `specific`.
        start_ms: of `timestamp`, epoch milliseconds.
        split_size: rows of a chunk, about.
        heartbeat_ms: how often the position advances while the tables do not change.
        retries: how often a lost connection is opened again.
        skips_truncates: False: the job fails when a table is truncated.
        upserts: updates are emitted without the row before.
    """

    address: Address
    choice: TableChoice = field(default_factory=TableChoice)
    server_id: int = 1
    startup: str = "initial"
    start_file: str = ""
    start_offset: int = 4
    start_gtids: str = ""
    start_ms: int = 0
    split_size: int = 8096
    heartbeat_ms: int = 30_000
    retries: int = 3
    skips_truncates: bool = False
    upserts: bool = False

    @property
    def reads_log(self) -> bool:
        """Return whether the source goes on with the log after the snapshot."""
        return self.startup != "snapshot"

    @property
    def has_snapshot(self) -> bool:
        """Return whether the source begins with the rows that are there."""
        return self.startup in ("initial", "snapshot")


class MySqlDatabase(Database[CapturedTable]):
    """Prepares a server for change data capture; it changes nothing there."""

    def __init__(self, settings: MySqlSettings) -> None:
        self._settings = settings

    def prepare(self) -> Prepared[CapturedTable]:
        """Check the server and the tables, find where to begin, and divide the tables into chunks.

        Raises:
            MySqlError: something is not as it has to be; the remedy says what to do.
        """
        settings, session = self._settings, Session(self._settings.address)
        try:
            tables = session.run(self._find_tables)
            start, token = 0, LogToken()
            if settings.reads_log:
                session.run(partial(check_server, address=settings.address))
                start, token = session.run(self._start)
            chunks: list[Chunk] = []
            if settings.has_snapshot:
                for table in tables.values():
                    chunks += session.run(partial(divide, table=table, split_size=settings.split_size))
            return Prepared(tables, tuple(chunks), start, token.encode())
        finally:
            session.close()

    def check(self) -> None:
        """Check that the server and the tables are as they have to be.

        Raises:
            MySqlError: they are not.
        """
        session = Session(self._settings.address)
        try:
            session.run(self._find_tables)
            if self._settings.reads_log:
                session.run(partial(check_server, address=self._settings.address))
        finally:
            session.close()

    def resume(self, prepared: Prepared[CapturedTable]) -> None:
        """Check that the server still writes a log that can be read.

        Raises:
            MySqlError: it does not.
        """
        if self._settings.reads_log:
            session = Session(self._settings.address)
            try:
                session.run(partial(check_server, address=self._settings.address))
            finally:
                session.close()

    def _find_tables(self, cursor: pymysql.cursors.Cursor) -> dict[str, CapturedTable]:
        tables = self._settings.choice.find(cursor)
        for table in tables.values():
            if self._settings.has_snapshot and not table.has_snapshots:
                problem = f"table {table.full_name} has the engine {table.engine}, which has no snapshots"
                raise MySqlError(problem, "run ALTER TABLE ... ENGINE = InnoDB, or start with StartupOptions.latest()")
        return tables

    def _start(self, cursor: pymysql.cursors.Cursor) -> tuple[int, LogToken]:
        """Return the position from which the log is read."""
        settings = self._settings
        server, _ = identity_of(cursor)
        files = log_files(cursor)
        base = files[0].rpartition(".")[0]
        if settings.startup == "specific" and settings.start_gtids:
            return 0, LogToken(server, base, str(GtidSet(settings.start_gtids)))
        if settings.startup == "specific":
            if settings.start_file not in files:
                problem = f"the server has no log file {settings.start_file!r}"
                raise MySqlError(problem, f"its files are {files[0]} to {files[-1]}")
            return self._at(cursor, settings.start_file, settings.start_offset, server, base)
        if settings.startup == "earliest":
            return self._at(cursor, files[0], 4, server, base)
        if settings.startup == "timestamp":
            return self._at(cursor, self._file_at(files), 4, server, base)
        position = open_snapshot(cursor)
        _, _, gtids = log_status(cursor)
        cursor.execute("ROLLBACK")
        return position, LogToken(server, base, gtids_at(cursor, position, base) or gtids)

    def _at(
        self, cursor: pymysql.cursors.Cursor, file: str, offset: int, server: str, base: str
    ) -> tuple[int, LogToken]:
        position = position_in(file, offset)
        return position, LogToken(server, base, gtids_at(cursor, position, base))

    def _file_at(self, files: list[str]) -> str:
        """Return the last file of the log that begins before the wanted time."""
        settings = self._settings
        for file in reversed(files):
            stream = BinlogStream(settings.address, settings.server_id, file)
            try:
                moment = 0
                while not moment:
                    moment = stream.next_event().timestamp
            finally:
                stream.close()
            if moment * 1000 <= settings.start_ms:
                return file
        return files[0]


def identity_of(cursor: pymysql.cursors.Cursor) -> tuple[str, bool]:
    """Return what no other server has, and whether it is MariaDB."""
    version = str(one(cursor, "SELECT VERSION()")[0])
    names = "'server_uuid', 'server_uid', 'server_id'"
    variables = named(cursor, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    known = variables.get("server_uuid") or variables.get("server_uid") or variables["server_id"]
    return known, "mariadb" in version.lower()


def log_files(cursor: pymysql.cursors.Cursor) -> list[str]:
    """Return the names of the files of the log, the oldest first."""
    cursor.execute("SHOW BINARY LOGS")
    return [str(row[0]) for row in cursor.fetchall()]


def gtids_at(cursor: pymysql.cursors.Cursor, position: int, base: str) -> str:
    """Return the GTIDs before a position of MariaDB; "": it is unknown, or the server is MySQL."""
    if not identity_of(cursor)[1]:
        return ""
    gtids = one(cursor, "SELECT BINLOG_GTID_POS(%s, %s)", file_and_offset(position, base))[0]
    return "" if gtids is None else str(gtids)


def check_server(cursor: pymysql.cursors.Cursor, address: Address) -> None:
    """Check that the server writes a log whose rows can be read, and that the user may read it.

    Raises:
        MySqlError: it does not.
    """
    wanted_names = "Variable_name LIKE '%log_bin%' OR Variable_name LIKE 'binlog%'"
    settings = named(cursor, f"SHOW GLOBAL VARIABLES WHERE {wanted_names}")
    for name, (wanted, remedy) in _WANTED.items():
        if name in settings and settings[name].upper() != wanted:
            raise MySqlError(f"the server has {name} = {settings[name]}, and the changes could not be read", remedy)
    log_status(cursor)
    cursor.execute("SHOW GRANTS")
    grants = " ".join(str(row[0]).upper() for row in cursor.fetchall())
    is_granted = re.search(r"REPLICATION (SLAVE|REPLICA)\b(?! ADMIN)|ALL PRIVILEGES ON \*\.\*|\bSUPER\b", grants)
    if not is_granted and not re.search(r"GRANT [`'\"][^ ]* TO ", grants):  # roles may have more rights
        raise MySqlError(f"{address} may not read the log", grant_remedy(address))


def literal_of(cursor: pymysql.cursors.Cursor, column: MySqlColumn, bound: str) -> str:
    """Return a key as SQL writes it, so that it is compared in the type of its column."""
    if column.kind in WHOLE or column.kind == "decimal":
        return str(driver().converters.escape_string(bound))
    return str(cursor.connection.escape(bound))


def divide(cursor: pymysql.cursors.Cursor, table: CapturedTable, split_size: int) -> list[Chunk]:
    """Divide a table into chunks of about `split_size` rows by its chunk key.

    Whole numbers without large gaps are divided by calculation; for other keys the index is read once.
    """
    key = table.chunk_key
    if key is None:
        return chunks_between(table.full_name, [])
    column, place = quoted(key.name), f"{quoted(table.database)}.{quoted(table.table)}"
    if key.kind in WHOLE and table.rows > split_size:
        low, high = one(cursor, f"SELECT MIN({column}), MAX({column}) FROM {place}")
        if low is not None and high - low < _DENSE * table.rows:
            step = max(1, round(split_size * (high - low + 1) / table.rows))
            return chunks_between(table.full_name, map(str, range(low + step, high + 1, step)))
    bounds: list[str] = []
    condition = ""
    while True:
        shown = f"CAST({column} AS CHAR)"
        cursor.execute(f"SELECT {shown} FROM {place} {condition} ORDER BY {column} LIMIT 1 OFFSET {split_size}")
        row = cursor.fetchone()
        if row is not None and bounds and row[0] == bounds[-1]:  # more rows of one key than a chunk is to have
            cursor.execute(f"SELECT CAST(MIN({column}) AS CHAR) FROM {place} {condition.replace('>=', '>')}")
            row = cursor.fetchone()
        if row is None or row[0] is None:
            return chunks_between(table.full_name, bounds)
        bounds.append(str(row[0]))
        condition = f"WHERE {column} >= {literal_of(cursor, key, bounds[-1])}"


__all__ = ["MySqlDatabase", "MySqlSettings", "check_server", "divide", "identity_of", "literal_of", "log_files"]
