"""The binary log: the changes of captured tables from it, in the order of the commits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.cdc.chunks import marks_by_table
from rayflink.connectors.cdc.log_thread import LogItem
from rayflink.connectors.cdc.snapshot_enumeration import LogSplit
from rayflink.connectors.cdc.table_changes import TableChanges

from .binlog_events import LogEvent
from .binlog_positions import GtidSet, LogToken, file_and_offset, position_in
from .binlog_rows import DELETE, INSERT, UPDATE, RowsFrame
from .binlog_statements import Effect, effects_of
from .binlog_stream import BinlogStream, LogConnectionLost
from .logged_table import ANEW, LoggedTable, columns_changed, signature_of
from .mysql_cdc_preparation import MySqlSettings, identity_of
from .mysql_cdc_tables import CapturedTable, read_columns
from .mysql_session import MySqlError, Session, named
from .mysql_values import MySqlColumn

if TYPE_CHECKING:
    import pymysql

log = get_logger(__name__)

_MOST_CHANGES = 4000
_LEAST_BYTES, _MOST_BYTES = 16 << 10, 512 << 10
"""Changes of one item, about, and bytes of their rows, of which the last may be longer."""
_POSITIONS_MS = 200
"""The least time between two items without changes."""
_WRITES, _UPDATES, _DELETES = (23, 30), (24, 31, 39), (25, 32)
_UNREADABLE = {
    40: ("a compressed transaction", "set binlog_transaction_compression = OFF"),
    42: ("a GTID with a tag", "use GTIDs without tags"),
    39: ("an update with parts of JSON documents", "set binlog_row_value_options = ''"),
    **dict.fromkeys((165, 166, 167, 168, 169, 170, 171), ("a compressed event", "set log_bin_compress = OFF")),
}
"""Numbers of events that may have changes and are not read: what they are, and the remedy."""
_STANDALONE, _PREPARED_XA = 1, 64
"""Flags of MariaDB's GTID events."""
_BOUNDS_A_QUERY = 500


class MySqlLog:
    """Reads changes of tables from the binary log, from the position of a split on.

    A connection that is lost is opened again where the last item ended. See `LogCursor`.

    Args:
        settings: of the source.
        server_id: as which the server knows the reader.
        split: the tables, the position, and the chunks of the snapshot.
        metrics: counts `numReconnects`, `numTruncatesSkipped` and `numZeroDates`.

    Raises:
        MySqlError: the server does not have the log from the position on.
    """

    def __init__(
        self, settings: MySqlSettings, server_id: int, split: LogSplit[CapturedTable], metrics: MetricGroup
    ) -> None:
        self._settings, self._server_id = settings, server_id
        self._tables = {(table.database, table.table): table for table in split.tables.values()}
        self._databases = {table.database for table in split.tables.values()}
        self._marks = marks_by_table(split.finished)
        self._session = Session(settings.address)
        self._token = LogToken.decode(split.token)
        self._gtids = GtidSet(self._token.gtids)
        self._position, self._transaction, self._skip = split.position, split.transaction, split.skip
        self._partial = self._token.partial
        self._reconnects = metrics.counter("numReconnects")
        self._truncates = metrics.counter("numTruncatesSkipped")
        self._zeros = metrics.counter("numZeroDates")
        self._stream: BinlogStream
        self._most_bytes = 4 * _LEAST_BYTES
        self._has_names = False
        self._waiting: list[LogItem] = []
        self._emitted, self._emitted_ms = split.position, 0
        self._forget()
        try:
            self._connect()
        except LogConnectionLost as lost:
            self._connect_again(lost)

    def _forget(self) -> None:
        """Begin anew behind the last item."""
        self._relations: dict[int, LoggedTable | None] = {}
        self._signatures: dict[int, tuple[object, ...]] = {}
        self._file, self._end = "", 0
        self._begin, self._gtid, self._is_grouped, self._is_xa = -1, "", False, False
        self._ended: list[str] = []
        self._counted, self._count, self._to_skip = -1, 0, 0
        self._pending: list[RowsFrame] = []
        self._pending_bytes = self._after = 0
        self._relation: LoggedTable | None = None
        self._awaits_partial = bool(self._skip)

    def read(self, wait_s: float) -> LogItem | None:
        if not self._waiting:
            try:
                self._read_events(wait_s)
            except LogConnectionLost as lost:
                log.warning("log of %s: %s", self._settings.address, lost)
                self._connect_again(lost)
        return self._waiting.pop(0) if self._waiting else None

    def keep_alive(self) -> None:
        """Do nothing: the server waits until it can send on (`net_write_timeout`)."""

    def confirm(self, position: int) -> None:
        """Do nothing: the server keeps its log by its own rules."""

    def close(self) -> None:
        if hasattr(self, "_stream"):
            self._stream.close()
        self._session.close()

    def _read_events(self, wait_s: float) -> None:
        while not self._waiting:
            if not self._stream.has_event(0):
                self._flush()
                self._emit_position()
                if self._waiting or not self._stream.has_event(wait_s):
                    return
            self._take(self._stream.next_event())

    def _take(self, event: LogEvent) -> None:
        number, packet = event.event_type, event.packet
        if number == 4:  # rotation to another file, or the name of the file at the beginning
            self._flush()
            self._file, self._end = event.next_binlog, position_in(event.next_binlog, event.position)
            return
        start = self._end
        if packet.log_pos and number != 27:  # not a heartbeat
            low = packet.log_pos - packet.event_size  # of 32 bits, while a file may be longer
            before = file_and_offset(self._end, "")[1]
            start = position_in(self._file, low + 2**32 * round(max(before - low, 0) / 2**32))
            self._end = start + packet.event_size
        if number == 19:
            self._describe(event)
        elif number in (*_WRITES, *_UPDATES, *_DELETES) and number not in _UNREADABLE:
            self._rows(event, start)
        elif number in (33, 34, 162):  # a GTID begins a transaction
            self._begin_transaction(event, start)
        elif number == 16:
            self._end_transaction()
        elif number == 2:
            self._statement(event, start)
        elif number == 38:
            self._end_transaction()
        elif number in _UNREADABLE:
            what, remedy = _UNREADABLE[number]
            raise MySqlError(f"the log has {what} at {self._file}:{packet.log_pos}, which is not read", remedy)
        elif number == 27 and self._begin < 0 and not self._pending:  # what is pending is not emitted yet
            self._advance(self._end)

    def _begin_transaction(self, event: LogEvent, start: int) -> None:
        self._begin = start
        self._gtid = getattr(event, "gtid", "")
        is_mariadb = event.event_type == 162
        self._is_grouped = is_mariadb and not event.flags & _STANDALONE
        self._is_xa = is_mariadb and bool(event.flags & _PREPARED_XA)
        is_partial = self._gtid == self._partial if self._partial else start == self._transaction
        self._skip_partial(is_partial)

    def _skip_partial(self, is_partial: bool) -> None:
        """Note how much of a transaction that begins has been emitted; that of earlier ones may still be pending."""
        if is_partial and self._awaits_partial:
            self._to_skip, self._awaits_partial = self._skip, False

    def _end_transaction(self) -> None:
        if self._gtid:
            self._ended.append(self._gtid)
        self._begin, self._gtid, self._is_grouped, self._is_xa = -1, "", False, False
        if self._pending:
            self._after = self._end
            return
        self._advance(self._end)

    def _statement(self, event: LogEvent, start: int) -> None:
        text = event.query.strip()
        word = text[:12].upper()
        if word.startswith("BEGIN") or word.startswith("XA START"):
            if self._begin < 0:
                self._begin, self._gtid = start, ""
                self._skip_partial(start == self._transaction)
            self._is_grouped, self._is_xa = True, word.startswith("XA START")
        elif word.startswith("COMMIT"):
            self._end_transaction()
        elif word.startswith("ROLLBACK") and not word.startswith("ROLLBACK TO"):
            if self._begin in (self._counted, *(frame.transaction for frame in self._pending[-1:])):
                problem = f"a transaction at {self._file}:{start} with changes of captured tables was rolled back"
                raise MySqlError(problem, "do not mix tables with and without transactions in one transaction")
            self._end_transaction()
        else:
            self._apply(text, _text(event.schema), start)
            if not self._is_grouped:
                self._end_transaction()

    def _apply(self, text: str, schema: str, start: int) -> None:
        """See what a statement does to captured tables.

        Raises:
            MySqlError: its effect is not in the log as changes of rows.
        """
        if not self._is_wanted(start, 0):
            return
        for change in effects_of(text, schema):
            for (database, name), table in self._tables.items():
                if change.schema != database or change.table not in ("", name):
                    continue
                marks = self._marks.get(table.full_name)
                if marks is not None and marks.all_contain(max(self._begin, 0) or start):
                    continue  # the snapshot is newer
                self._flush()
                self._effect(change.effect, table, text)

    def _effect(self, effect: Effect, table: CapturedTable, text: str) -> None:
        shown = " ".join(text[:200].split())
        if effect is Effect.ALTER:
            relation = next(
                (known for known in self._relations.values() if known is not None and known.table is table), None
            )
            if not (self._has_names if relation is None else relation.has_names):
                self._session.run(lambda cursor: check_columns(cursor, table))
            log.warning("%s was altered: %s", table.full_name, shown)
        elif effect is Effect.TRUNCATE and self._settings.skips_truncates:
            self._truncates.inc()
            log.warning("TRUNCATE of %s is skipped; the rows stay in the results", table.full_name)
        elif effect is Effect.TRUNCATE:
            problem = f"TRUNCATE was run on {table.full_name}, and the log does not say which rows were there ({shown})"
            remedy = "start the job anew, without its checkpoint; or set 'scan.truncate.skip', skip_truncates()"
            raise MySqlError(problem, remedy)
        elif effect is Effect.ROWS:
            problem = f"{table.full_name} was {effect.value} ({shown})"
            raise MySqlError(problem, f"set binlog_format = ROW in all sessions, and {ANEW}")
        else:
            raise MySqlError(f"table {table.full_name} was {effect.value} ({shown})", ANEW)

    def _describe(self, event: LogEvent) -> None:
        table = self._tables.get((_text(event.schema), event.table))
        if table is None:
            self._relations[event.table_id] = None
            return
        signature = signature_of(event)
        if self._relations.get(event.table_id) is None or self._signatures.get(event.table_id) != signature:
            self._flush()
            same = next((number for number, known in self._signatures.items() if known == signature), None)
            relation = None if same is None else self._relations.get(same)
            if relation is None or relation.table is not table:
                relation = LoggedTable(table, event)
            self._relations[event.table_id], self._signatures[event.table_id] = relation, signature

    def _rows(self, event: LogEvent, start: int) -> None:
        relation = self._relations.get(event.table_id)
        if relation is None or not self._is_wanted(self._begin, event.timestamp):
            return
        if self._is_xa:
            problem = f"{relation.table.full_name} was changed in an XA transaction, which may be rolled back later"
            raise MySqlError(problem, "use ordinary transactions for captured tables")
        if self._begin < 0:
            raise MySqlError(f"the log has rows outside of a transaction at {self._file}:{start}", "begin elsewhere")
        if relation is not self._relation:
            self._flush()
        self._relation = relation
        kind = INSERT if event.event_type in _WRITES else UPDATE if event.event_type in _UPDATES else DELETE
        bitmaps = [event.columns_present_bitmap, getattr(event, "columns_present_bitmap2", b"")]
        full = (1 << event.number_of_columns) - 1
        if any(bitmap and int.from_bytes(bitmap, "little") & full != full for bitmap in bitmaps):
            problem = f"the log lacks columns of {relation.table.full_name} at {self._file}:{start}"
            raise MySqlError(problem, f"set binlog_row_image = FULL in all sessions, and {ANEW}")
        data = event.packet.read(event.event_size - event.packet.read_bytes)
        self._pending.append(RowsFrame(kind, data, self._begin, event.timestamp * 1000))
        self._pending_bytes += len(data)
        if len(self._pending) >= _MOST_CHANGES or self._pending_bytes >= self._most_bytes:
            self._flush()

    def _is_wanted(self, begin: int, timestamp: int) -> bool:
        """Return whether a transaction is behind the position, and not before the time to begin at."""
        if begin < self._position and self._position:
            return False
        return not (self._settings.startup == "timestamp" and timestamp and timestamp * 1000 < self._settings.start_ms)

    def _flush(self) -> None:
        """Turn the pending changes into an item."""
        import numpy

        if not self._pending or self._relation is None:
            return
        relation, frames, size = self._relation, self._pending, self._pending_bytes
        self._pending, self._pending_bytes = [], 0
        logged = relation.parsed(frames)
        wanted = _MOST_CHANGES * size // max(logged.kinds.size, 1)
        self._most_bytes = min(max(wanted, _LEAST_BYTES), _MOST_BYTES)
        last = frames[-1].transaction
        self._count = int((logged.commits == last).sum()) + (self._count if self._counted == last else 0)
        self._counted = last
        if self._to_skip:
            first = int((logged.commits == frames[0].transaction).sum())
            skipped = min(self._to_skip, first)
            self._to_skip -= skipped
            logged = logged.select(numpy.arange(logged.kinds.size) >= skipped, logged.kinds)
        marks = self._marks.get(relation.table.full_name)
        zeros = relation.zeros
        changes = relation.changes(logged, marks, self._locate, self._settings.upserts, self._file)
        self._zeros.inc(relation.zeros - zeros)
        if self._after > self._position:
            self._reach(self._after)
        if self._begin >= 0 and last == self._begin:
            self._transaction, self._skip, self._partial = self._begin, self._count, self._gtid
        self._put(changes)

    def _advance(self, position: int) -> None:
        """Note that there is nothing of these tables before a position."""
        if self._awaits_partial or position <= max(self._position, self._transaction):
            return
        self._reach(position)

    def _reach(self, position: int) -> None:
        """Note that everything before a position is emitted, and so are the transactions that have ended."""
        self._position, self._transaction, self._skip, self._partial = position, 0, 0, ""
        for gtid in self._ended:
            self._gtids.add(gtid)
        self._ended.clear()

    def _emit_position(self) -> None:
        """Emit the position alone, where it has advanced without changes; not too often."""
        now_ms = int(time.monotonic() * 1000)
        pause = min(_POSITIONS_MS, self._settings.heartbeat_ms)
        if self._begin < 0 and self._position > self._emitted and now_ms - self._emitted_ms >= pause:
            self._put(None)

    def _put(self, changes: TableChanges | None) -> None:
        self._emitted, self._emitted_ms = self._position, int(time.monotonic() * 1000)
        base = self._file.rpartition(".")[0]
        token = LogToken(self._token.server, base, str(self._gtids), self._partial).encode()
        self._waiting.append(LogItem(changes, self._position, self._transaction, self._skip, token))

    def _locate(self, column: MySqlColumn, keys: Sequence[str], bounds: Sequence[str]) -> list[int]:
        """Let the server find the chunks of strings, as it alone knows their order in a collation."""
        return self._session.run(lambda cursor: located(cursor, column, keys, bounds))

    def _connect(self) -> None:
        self._stream = self._session.run(self._opened)

    def _opened(self, cursor: pymysql.cursors.Cursor) -> BinlogStream:
        """Open the log at the position; on another server than before at its GTIDs."""
        server, is_mariadb = identity_of(cursor)
        self._has_names = "FULL" in named(cursor, "SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'").values()
        address, known = self._settings.address, self._token.server
        if known and server != known:
            self._check_other(server)
        if self._position and server == (known or server):
            file, offset = file_and_offset(self._position, self._token.base)
            return BinlogStream(address, self._server_id, file, offset)
        self._token = LogToken(server, self._token.base, str(self._gtids), self._partial)
        self._position = self._emitted = self._transaction = 0
        return BinlogStream(address, self._server_id, gtids=str(self._gtids), is_mariadb=is_mariadb)

    def _check_other(self, server: str) -> None:
        problem = f"another server answers at {self._settings.address} than before ({server}, was {self._token.server})"
        if not str(self._gtids):
            raise MySqlError(f"{problem}, and the log had no GTIDs", "switch GTIDs on, and start the job anew")
        if self._marks and any(self._position < marks.high for marks in self._marks.values()):
            wanted = "the log has not yet passed the end of the snapshot"
            raise MySqlError(f"{problem}, and {wanted}", "go back to the former server, or start the job anew")
        log.warning("%s; it is read from its GTIDs on", problem)
        self._marks = {}

    def _connect_again(self, lost: LogConnectionLost) -> None:
        """Open the connection again where the last item ended.

        Raises:
            MySqlError: it cannot be opened in some tries.
        """
        if hasattr(self, "_stream"):
            self._stream.close()
        self._session.close()
        self._forget()
        problem: Exception = lost
        for attempt in range(self._settings.retries):
            time.sleep(min(0.2 * 4**attempt, 5))
            try:
                self._connect()
            except LogConnectionLost as error:
                problem = error
                continue
            except MySqlError as error:
                if "no connection to MySQL" not in str(error):
                    raise
                problem = error
                continue
            self._reconnects.inc()
            return
        raise MySqlError(str(problem), "check the server; the job continues from its checkpoint") from problem


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def check_columns(cursor: pymysql.cursors.Cursor, table: CapturedTable) -> None:
    """Check that a table still has the columns that it had, where the log lacks their names.

    Raises:
        MySqlError: it has others.
    """
    columns, _ = read_columns(cursor, table.database, table.table, "UTC")
    now = [(column.name, column.shown_type) for column in columns]
    before = [(column.name, column.shown_type) for column in table.all_columns]
    if now != before:
        shown = ", ".join(f"{name} {kind}" for name, kind in now) or "none, it is gone"
        raise columns_changed(table, f"has the columns {shown}")


def located(
    cursor: pymysql.cursors.Cursor, column: MySqlColumn, keys: Sequence[str], bounds: Sequence[str]
) -> list[int]:
    """Return the numbers of the chunks of strings, by halving: the server compares them in the column's collation."""
    escape = cursor.connection.escape
    distinct = list(dict.fromkeys(keys))
    low, high = [0] * len(distinct), [len(bounds)] * len(distinct)

    def literal(value: str) -> str:
        return f"CONVERT({escape(value)} USING {column.charset}) COLLATE {column.collation}"

    while open_keys := [index for index in range(len(distinct)) if low[index] < high[index]]:
        for first in range(0, len(open_keys), _BOUNDS_A_QUERY):
            part = open_keys[first : first + _BOUNDS_A_QUERY]
            middles = [(low[index] + high[index]) // 2 for index in part]
            comparisons = [f"{literal(distinct[index])} >= {literal(bounds[middle])}"
                           for index, middle in zip(part, middles, strict=True)]  # fmt: skip
            cursor.execute("SELECT " + ", ".join(comparisons))
            for index, middle, is_behind in zip(part, middles, cursor.fetchone() or (), strict=True):
                if is_behind:
                    low[index] = middle + 1
                else:
                    high[index] = middle
    numbers = dict(zip(distinct, low, strict=True))
    return [numbers[key] for key in keys]


__all__ = ["MySqlLog", "check_columns", "located"]
