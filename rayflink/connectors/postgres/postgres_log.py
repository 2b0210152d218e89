"""The log of PostgreSQL: a replication connection, and the changes of captured tables from it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.cdc.chunks import marks_by_table
from rayflink.connectors.cdc.log_thread import LogItem
from rayflink.connectors.cdc.snapshot_enumeration import LogSplit

from . import pgoutput
from .captured_changes import CapturedRelation
from .pgoutput import Begin, Commit, Message, ProtocolError, Relation, Truncate
from .postgres_cdc_preparation import CdcSettings
from .postgres_cdc_tables import CapturedTable
from .postgres_session import PostgresError, Session, driver
from .replication_connection import ConnectionLost, ReplicationConnection

if TYPE_CHECKING:
    import psycopg

log = get_logger(__name__)

_MOST_CHANGES = 4000
_MOST_BYTES = 4 << 20
"""Changes of one item, and bytes of their messages, of which the last may be longer."""
_POSITIONS_MS = 200
"""The least time between two items without changes."""


class PostgresLog:
    """Reads changes of tables from a replication slot, from the position of a split on.

    A connection that is lost is opened again where the last item ended. See `LogCursor`.

    Args:
        settings: of the source.
        split: the tables, the position, and the chunks of the snapshot.
        metrics: counts `numReconnects` and `numTruncatesSkipped`.

    Raises:
        PostgresError: there is no slot, or it does not have the log from the position on.
    """

    def __init__(self, settings: CdcSettings, split: LogSplit[CapturedTable], metrics: MetricGroup) -> None:
        self._settings = settings
        self._tables = {(table.schema, table.table): table for table in split.tables.values()}
        self._marks = marks_by_table(split.finished)
        self._session = Session(settings.dsn)
        self._position, self._transaction, self._skip = split.position, split.transaction, split.skip
        self._reconnects = metrics.counter("numReconnects")
        self._truncates = metrics.counter("numTruncatesSkipped")
        self._relations: dict[int, CapturedRelation | None] = {}
        self._names: dict[int, str] = {}
        self._begin: Begin | None = None
        self._to_skip = self._count = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._begins: list[Begin] = []
        self._relation: CapturedRelation | None = None
        self._after = 0
        self._emitted, self._emitted_ms = split.position, 0
        self._waiting: list[LogItem] = []
        self._connection: ReplicationConnection
        try:
            self._connection = self._connect()
        except ConnectionLost as lost:
            self._connect_again(lost)

    def read(self, wait_s: float) -> LogItem | None:
        if self._waiting:
            return self._waiting.pop(0)
        try:
            self._connection.send_status_if_due()
            self._read_frames(wait_s)
        except ConnectionLost as lost:
            self._reconnect(lost)
        return self._waiting.pop(0) if self._waiting else None

    def _read_frames(self, wait_s: float) -> None:
        connection = self._connection
        while not self._waiting:
            frame = connection.next_frame()
            if frame is None:
                self._flush()
                self._emit_position()
                if self._waiting or not connection.wait(wait_s):
                    return
                continue
            if frame[0] == 119:  # w
                relation = pgoutput.changed_relation(frame)
                if relation is None:
                    self._take(pgoutput.parse_message(frame))
                else:
                    self._change(relation, frame)
            elif frame[0] == 107:  # k
                keepalive = pgoutput.parse_keepalive(frame)
                if self._begin is None:
                    self._flush()
                    self._advance(keepalive.position)
                    self._emit_position()
                connection.answer(keepalive)

    def keep_alive(self) -> None:
        try:
            self._connection.send_status_if_due()
        except ConnectionLost as lost:
            log.warning("%s", lost)  # the next read connects again

    def confirm(self, position: int) -> None:
        self._connection.confirm(position)

    def close(self) -> None:
        self._connection.close()
        self._session.close()

    def _take(self, message: Message) -> None:
        match message:
            case Begin():
                self._begin, self._count = message, 0
                self._to_skip = self._skip if message.commit == self._transaction else 0
            case Commit():
                self._end_transaction(message)
            case Relation():
                self._describe(message)
            case Truncate():
                self._truncate(message)

    def _change(self, oid: int, frame: bytes) -> None:
        begin = self._begin
        if begin is None or oid not in self._relations:
            raise ProtocolError(f"a change of a row outside of a transaction or of a relation: {frame[:80].hex()}")
        relation = self._relations[oid]
        if relation is not self._relation and self._pending:
            self._flush()
        self._count += 1
        if relation is None or self._count <= self._to_skip or begin.commit < self._position:
            return
        self._relation = relation
        self._pending.append(frame)
        self._begins.append(begin)
        self._pending_bytes += len(frame)
        if len(self._pending) >= _MOST_CHANGES or self._pending_bytes >= _MOST_BYTES:
            self._flush()

    def _end_transaction(self, commit: Commit) -> None:
        self._begin = None
        if self._pending:
            self._after = commit.end
            return
        self._advance(commit.end)

    def _flush(self) -> None:
        """Turn the pending changes into an item."""
        if not self._pending or self._relation is None:
            return
        begins = self._begins
        changes = self._relation.changes(self._pending, begins, self._locate, self._settings.upserts)
        self._forget_pending()
        if self._after > self._position:
            self._position, self._transaction, self._skip = self._after, 0, 0
        if self._begin is not None and begins[-1].commit == self._begin.commit:
            self._transaction, self._skip = self._begin.commit, self._count
        self._put(LogItem(changes, self._position, self._transaction, self._skip))

    def _forget_pending(self) -> None:
        self._pending, self._begins, self._pending_bytes = [], [], 0

    def _advance(self, position: int) -> None:
        """Note that there is nothing of these tables before a position.

        A position before the commit of a transaction that was emitted in part says nothing: the server reports it while
        it reads that transaction again.
        """
        if position <= max(self._position, self._transaction):
            return
        self._position, self._transaction, self._skip = position, 0, 0

    def _emit_position(self) -> None:
        """Emit the position alone, where it has advanced without changes; not too often."""
        now_ms = int(time.monotonic() * 1000)
        if self._begin is None and self._position > self._emitted and now_ms - self._emitted_ms >= _POSITIONS_MS:
            self._put(LogItem(None, self._position))

    def _put(self, item: LogItem) -> None:
        self._emitted, self._emitted_ms = item.position, int(time.monotonic() * 1000)
        self._waiting.append(item)

    def _describe(self, relation: Relation) -> None:
        if self._pending:
            self._flush()
        self._names[relation.oid] = f"{relation.schema}.{relation.table}"
        table = self._tables.get((relation.schema, relation.table))
        marks = None if table is None else self._marks.get(table.full_name)
        if marks is not None and self._position >= marks.high:
            marks = None
        self._relations[relation.oid] = None if table is None else CapturedRelation(table, relation, marks)

    def _truncate(self, message: Truncate) -> None:
        names = [self._names.get(oid, str(oid)) for oid in message.relations if self._relations.get(oid) is not None]
        begin = self._begin
        assert begin is not None
        if not names or begin.commit < self._position:
            return
        if not self._settings.skips_truncates:
            problem = f"TRUNCATE was run on {', '.join(names)}, and the log does not say which rows were there"
            remedy = "start the job anew, without its checkpoint; or set 'scan.truncate.skip', skip_truncates()"
            raise PostgresError(problem, remedy)
        self._truncates.inc()
        log.warning("TRUNCATE of %s is skipped; the rows stay in the results", ", ".join(names))

    def _locate(self, table: CapturedTable, keys: Sequence[bytes], bounds: Sequence[str]) -> list[int]:
        """Let the server find the chunks of keys, as it alone knows the order of strings in a collation."""
        sql, column = driver().sql, table.chunk_key
        assert column is not None
        shown = sql.SQL(column.shown_type)
        collate = sql.SQL(f" COLLATE {column.collation}") if column.collation else sql.SQL("")
        query = sql.SQL(
            "SELECT width_bucket(key::{0}{1}, %s::text[]::{0}[]) "
            "FROM unnest(%s::text[]) WITH ORDINALITY AS t (key, place) ORDER BY place"
        ).format(shown, collate)

        def ask(cursor: psycopg.Cursor[Any]) -> list[int]:
            cursor.execute(query, (list(bounds), [key.decode() for key in keys]))
            return [number for (number,) in cursor.fetchall()]

        return self._session.run(ask)

    def _connect(self) -> ReplicationConnection:
        return ReplicationConnection(self._settings, self._session, self._position)

    def _reconnect(self, lost: ConnectionLost) -> None:
        """Open the connection again where the last item ended.

        Raises:
            PostgresError: it cannot be opened in some tries.
        """
        log.warning("replication slot %s: %s", self._settings.slot, lost)
        confirmed = self._connection.confirmed
        self._connection.close()
        self._forget_pending()
        self._begin, self._relation, self._after = None, None, 0
        self._relations.clear()
        self._connect_again(lost)
        if confirmed:
            self._connection.confirm(confirmed)

    def _connect_again(self, lost: ConnectionLost) -> None:
        problem: Exception = lost
        for attempt in range(self._settings.retries):
            time.sleep(min(0.2 * 4**attempt, 5))
            try:
                self._connection = self._connect()
            except ConnectionLost as error:
                problem = error
                continue
            self._reconnects.inc()
            return
        raise PostgresError(str(problem), "check the server; the job continues from its checkpoint") from problem


__all__ = ["PostgresLog"]
