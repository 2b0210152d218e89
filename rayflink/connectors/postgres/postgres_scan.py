"""A bounded scan of a table: its chunks, the snapshot that they share, and how one is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.connectors.cdc.change_reader import LoadedChunk, Tables
from rayflink.connectors.cdc.chunks import Chunk, FinishedChunk, SnapshotMark, chunks_between
from rayflink.connectors.cdc.log_thread import LogCursor
from rayflink.connectors.cdc.snapshot_enumeration import ChunkSplit, Database, LogSplit, Prepared

from .postgres_cdc_preparation import divide
from .postgres_cdc_tables import CapturedTable, columns_in_types, read_columns
from .postgres_conditions import Comparison, rendered
from .postgres_copying import copy_statement, key_conditions, read_copy, rows_of_csv
from .postgres_session import PostgresError, Session, driver, open_connection, place_of
from .postgres_tables import missing_table, parts_of
from .postgres_values import SETTINGS

if TYPE_CHECKING:
    import psycopg
    import pyarrow

log = get_logger(__name__)

CHUNK_BYTES = 16 << 20
"""Bytes of a chunk, about, where its rows are not set."""
MOST_CHUNK_ROWS = 100_000
"""Rows of such a chunk, at most."""
_LEAST_CHUNK_ROWS = 1_000
_BLOCK_BYTES = 8_192
_OLDEST_WITH_BLOCKS = 140_000
"""The version of the server that reads ranges of blocks without reading the whole table: 14."""
_TABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind = 'r', c.reltuples::bigint, pg_table_size(c.oid), current_database(),
       current_setting('server_version_num')::int
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""
_SECRET_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::oid AND attname = ANY(%s) AND NOT has_column_privilege(attrelid, attnum, 'SELECT')
"""
_WHOLE = ("int2", "int4", "int8")
_DIVISIBLE = (*_WHOLE, "numeric", "float4", "float8", "date", "timestamp", "timestamptz")


@dataclass(frozen=True)
class Partitions:
    """The division of a table by the values of a column.

    Args:
        column: its name.
        number: how many parts, at least; a part with many rows is divided further.
        lower, upper: the smallest and the largest value that is read, as SQL writes them; None: of those that are
            there, and NULL is read, too.
    """

    column: str
    number: int = 1
    lower: str | None = None
    upper: str | None = None


@dataclass(frozen=True)
class ScanSettings:
    """The settings of a bounded scan.

    Args:
        dsn: connection string.
        table: with or without its schema.
        columns: those to read -> type of their values, None: their own; None: all.
        where: a condition in SQL; "": none.
        comparisons: further conditions; those that the server would decide in another way are left out.
        partitions: None: by the primary key.
        fetch_size: rows of a chunk, about; 0: by their size.
        limit: rows of the scan that suffice; None: all.
        is_consistent: whether all chunks are read in one snapshot.
    """

    dsn: str
    table: str
    columns: Mapping[str, pyarrow.DataType | None] | None = None
    where: str = ""
    comparisons: tuple[Comparison, ...] = ()
    partitions: Partitions | None = None
    fetch_size: int = 0
    limit: int | None = None
    is_consistent: bool = True

    def __repr__(self) -> str:
        return f"ScanSettings({place_of(self.dsn)}, table={self.table!r})"

    @property
    def reading_dsn(self) -> str:
        """Return the connection string with the settings on which the notation of values depends."""
        psycopg = driver()
        address = psycopg.conninfo.conninfo_to_dict(self.dsn)
        settings = " ".join(f"-c {key}={value}" for key, value in SETTINGS.items())
        options = f"{address.get('options', '')} {settings}".strip()
        name = address.get("application_name", "rayflink")
        return str(psycopg.conninfo.make_conninfo(self.dsn, options=options, application_name=name))


@dataclass(frozen=True)
class ScannedTable:
    """A table as the readers of a scan need it.

    Args:
        table: with the columns that are read; its chunk key divides the chunks.
        conditions: in SQL, all of them hold.
        by_blocks: the bounds of chunks are numbers of blocks.
        has_nulls: rows whose chunk key is NULL belong to the first chunk.
        limit: rows of a chunk that suffice; None: all.
        snapshot: name of the snapshot to read; "": each chunk has one of its own.
    """

    table: CapturedTable
    conditions: tuple[str, ...]
    by_blocks: bool = False
    has_nulls: bool = False
    limit: int | None = None
    snapshot: str = ""

    def statement(self, chunk: Chunk) -> psycopg.sql.Composed:
        """Return the statement that copies a chunk out."""
        sql = driver().sql
        own: list[psycopg.sql.Composable] = [sql.SQL(f"({condition})") for condition in self.conditions]
        if self.by_blocks:
            for bound, sign in ((chunk.lower, ">="), (chunk.upper, "<")):
                if bound is not None:
                    own.append(sql.SQL(f"ctid {sign} '({int(bound)},0)'::tid"))
        else:
            keys = key_conditions(self.table, chunk)
            if keys and chunk.lower is None and self.has_nulls and self.table.chunk_key is not None:
                null = sql.SQL("{} IS NULL").format(sql.Identifier(self.table.chunk_key.name))
                keys = [sql.SQL("({} OR {})").format(sql.SQL(" AND ").join(keys), null)]
            own += keys
        return copy_statement(self.table, own, self.limit)


@dataclass(frozen=True)
class _NoMark(SnapshotMark):
    """The mark of a chunk whose changes are not read."""

    @property
    def high(self) -> int:
        return 0

    def contains(self, transaction: int) -> bool:
        return True


class ScanDatabase(Database[ScannedTable]):
    """Divides a table into chunks, and keeps the snapshot in which all of them are read.

    Args:
        settings: of the scan.
    """

    def __init__(self, settings: ScanSettings) -> None:
        self._settings = settings
        self._snapshot: psycopg.Connection[tuple[object, ...]] | None = None
        self._is_closed = False

    def check(self) -> None:
        """Check that the table can be read.

        Raises:
            PostgresError: it cannot; the remedy says why.
        """
        session = Session(self._settings.reading_dsn)
        try:
            session.run(self._find)
        finally:
            session.close()

    def prepare(self) -> Prepared[ScannedTable]:
        session = Session(self._settings.reading_dsn)
        try:
            facts = session.run(self._find)
            chunks = session.run(partial(self._divide, facts=facts))
        finally:
            session.close()
        known = replace(facts.scanned, by_blocks=facts.by_blocks)
        if len(chunks) > 1 and self._settings.is_consistent:
            known = replace(known, snapshot=self._export())
        return Prepared({known.table.full_name: known}, tuple(chunks), 0)

    def resume(self, prepared: Prepared[ScannedTable]) -> Prepared[ScannedTable]:
        """Return the same with a new snapshot: the earlier one ended with the process that had it."""
        if not any(known.snapshot for known in prepared.tables.values()):
            return prepared
        snapshot = self._export()
        tables = {name: replace(known, snapshot=snapshot) for name, known in prepared.tables.items()}
        return replace(prepared, tables=tables)

    def close(self) -> None:
        """End the snapshot."""
        self._is_closed = True
        connection, self._snapshot = self._snapshot, None
        if connection is not None:
            connection.close()

    def _export(self) -> str:
        """Return the name of a snapshot that lasts until `close`; "": the server exports none."""
        psycopg = driver()
        try:
            connection = open_connection(self._settings.reading_dsn)
            connection.execute("SET idle_in_transaction_session_timeout = 0")
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            (name,) = connection.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        except psycopg.Error as error:
            log.warning("no snapshot can be exported, so each chunk has its own: %s", described(error))
            return ""
        self._snapshot = connection
        if self._is_closed:
            self.close()
        return str(name)

    def _find(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> _Found:
        settings, sql = self._settings, driver().sql
        name = sql.Identifier(*parts_of(settings.table)).as_string(cursor)
        row = cursor.execute(_TABLE, (name,)).fetchone()
        if row is None:
            raise missing_table(cursor, settings.table)
        oid, rows, size, version = (int(str(row[place])) for place in (0, 4, 5, 7))
        database, schema, table = (str(row[place]) for place in (6, 1, 2))
        columns, keys = read_columns(cursor, oid, has_generated=True)
        full_name = f"{schema}.{table}"
        wanted = settings.columns if settings.columns is not None else dict.fromkeys(column.name for column in columns)
        chosen = columns_in_types(full_name, columns, wanted)
        partitions = settings.partitions
        key = keys[0] if keys else None
        if partitions is not None:
            (key,) = columns_in_types(full_name, columns, {partitions.column: None})
            if partitions.lower is not None and key.kind not in _DIVISIBLE:
                problem = f"partition column {key.name!r} of {full_name} is of type {key.shown_type}"
                raise PostgresError(problem, "take one of numbers, dates or timestamps, or leave the bounds out")
        needed = [column.name for column in chosen]
        denied = cursor.execute(_SECRET_COLUMNS, (oid, needed)).fetchall()
        if denied:
            user = place_of(settings.dsn)
            problem = f"{user} may not read column {denied[0][0]!r} of {full_name}"
            raise PostgresError(problem, f"GRANT SELECT ON {full_name} TO the user")
        captured = CapturedTable(
            oid, database, schema, table, chosen, tuple(column.name for column in keys), key, "n", rows
        )
        conditions = [settings.where, *(rendered(comparison, columns, cursor) for comparison in settings.comparisons)]
        if partitions is not None and partitions.lower is not None and key is not None:
            between = sql.SQL("{0} >= {1}::" + key.shown_type + " AND {0} <= {2}::" + key.shown_type)
            bounds = sql.Literal(partitions.lower), sql.Literal(partitions.upper)
            conditions.append(between.format(sql.Identifier(key.name), *bounds).as_string(cursor))
        self._try(cursor, captured, settings.where)
        has_nulls = partitions is not None and partitions.lower is None
        scanned = ScannedTable(captured, tuple(filter(None, conditions)), has_nulls=has_nulls, limit=settings.limit)
        by_blocks = key is None and row[3] is True and version >= _OLDEST_WITH_BLOCKS
        return _Found(scanned, size, by_blocks)

    def _try(self, cursor: psycopg.Cursor[tuple[object, ...]], table: CapturedTable, where: str) -> None:
        """Check the condition that the program gives, by a query without rows."""
        if not where:
            return
        psycopg, sql = driver(), driver().sql
        query = sql.SQL("SELECT FROM {} WHERE false AND ({})")
        try:
            cursor.execute(query.format(sql.Identifier(table.schema, table.table), sql.SQL(where)))
        except psycopg.ProgrammingError as error:
            problem = f"the condition {where!r} on {table.full_name}: {' '.join(str(error).split())}"
            raise PostgresError(problem, "correct it; it is what stands behind WHERE") from error

    def _divide(self, cursor: psycopg.Cursor[tuple[object, ...]], facts: _Found) -> list[Chunk]:
        scanned, settings = facts.scanned, self._settings
        table, name = scanned.table, scanned.table.full_name
        rows = settings.fetch_size or chunk_rows(table.rows, facts.size)
        partitions = settings.partitions
        is_short = scanned.limit is not None and scanned.limit <= rows
        if partitions is not None and partitions.lower is not None:
            number = max(partitions.number, 0 if table.rows < 0 else -(-table.rows // rows))
            return _between(cursor, table, partitions, 1 if is_short else number)
        if is_short:
            return chunks_between(name, [])
        if facts.by_blocks:
            blocks = max(1, facts.size // _BLOCK_BYTES)
            number = max(1, -(-table.rows // rows) if table.rows > 0 else -(-facts.size // CHUNK_BYTES))
            step = max(1, -(-blocks // number))
            return chunks_between(name, map(str, range(step, blocks, step)))
        if partitions is not None:
            count = table.rows if table.rows > 0 else _count(cursor, table)
            rows = max(1, min(rows, -(-count // partitions.number)))
        return divide(cursor, table, rows)


@dataclass(frozen=True)
class _Found:
    """A table as the catalog has it.

    Args:
        size: bytes of its rows.
        by_blocks: whether it is divided by blocks, as it has no key.
    """

    scanned: ScannedTable
    size: int
    by_blocks: bool


def chunk_rows(rows: int, size: int) -> int:
    """Return the number of rows of a chunk, so that it has about 16 MiB.

    >>> chunk_rows(1_000_000, 200 << 20), chunk_rows(1_000_000, 40 << 30), chunk_rows(-1, 0)
    (80000, 1000, 100000)

    Args:
        rows: of the table, estimated; -1: unknown.
        size: bytes of the table.
    """
    if rows <= 0 or size <= 0:
        return MOST_CHUNK_ROWS
    return min(MOST_CHUNK_ROWS, max(_LEAST_CHUNK_ROWS, CHUNK_BYTES * rows // size))


def _count(cursor: psycopg.Cursor[tuple[object, ...]], table: CapturedTable) -> int:
    sql = driver().sql
    cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.schema, table.table)))
    return int(str((cursor.fetchone() or (0,))[0]))


def _between(
    cursor: psycopg.Cursor[tuple[object, ...]], table: CapturedTable, partitions: Partitions, number: int
) -> list[Chunk]:
    """Return chunks of equal ranges between the bounds of partitions; the server calculates with its own types."""
    sql, key = driver().sql, table.chunk_key
    assert key is not None and partitions.lower is not None and partitions.upper is not None
    kind = "numeric" if key.kind in _WHOLE else key.shown_type
    low, high = (sql.SQL("{}::" + kind).format(sql.Literal(bound)) for bound in (partitions.lower, partitions.upper))
    stride = "ceil({0} + ({1} - {0} + 1) * i / {2})" if key.kind in _WHOLE else "{0} + ({1} - {0}) * i / {2}"
    query = sql.SQL(f"SELECT DISTINCT ({stride})::{kind} AS bound FROM generate_series(1, {{2}} - 1) i ORDER BY bound")
    try:
        bounds = cursor.execute(query.format(low, high, sql.Literal(number))).fetchall()
        (is_empty,) = cursor.execute(sql.SQL("SELECT {} > {}").format(low, high)).fetchone() or (False,)
    except (driver().errors.DataError, driver().errors.ProgrammingError) as error:
        problem = f"the bounds {partitions.lower} and {partitions.upper} of partition column {key.name!r}"
        problem += f" of {table.full_name}: {' '.join(str(error).split())}"
        raise PostgresError(problem, f"give bounds of type {key.shown_type}") from error
    if is_empty:
        problem = f"the lower bound {partitions.lower} of {key.name!r} is above the upper one, {partitions.upper}"
        raise PostgresError(problem, "exchange them")
    return chunks_between(table.full_name, [str(bound) for (bound,) in bounds])


class ScanTables(Tables[ScannedTable]):
    """Reads chunks of a scan.

    Args:
        settings: of the scan.
        metrics: where lost snapshots and connections are counted.
    """

    def __init__(self, settings: ScanSettings, metrics: MetricGroup) -> None:
        self._session = Session(settings.reading_dsn, metrics.counter("numReconnects"))
        self._lost = metrics.counter("numSnapshotsLost")
        self._gone: set[str] = set()
        self._running: psycopg.Connection[tuple[object, ...]] | None = None

    def load(self, split: ChunkSplit[ScannedTable]) -> LoadedChunk[ScannedTable]:
        """Read a chunk, in the snapshot of the scan if that is still there.

        Raises:
            PostgresError: there is no connection, or the table is gone or was altered.
        """
        known, errors = split.table, driver().errors
        try:
            try:
                data = self._session.run(partial(self._copy, split=split))
            except _SnapshotGone as error:
                self._gone.add(known.snapshot)
                self._lost.inc()
                log.warning("the snapshot of the scan of %s is gone: %s", known.table.full_name, error)
                data = self._session.run(partial(self._copy, split=split))
        except errors.UndefinedTable as error:
            problem = f"table {known.table.full_name} is gone"
            raise PostgresError(problem, "create it, or start the job anew") from error
        except errors.UndefinedColumn as error:
            problem = f"table {known.table.full_name} was altered: {' '.join(str(error).split())}"
            raise PostgresError(problem, "start the job anew, without its checkpoint") from error
        rows = rows_of_csv(data, known.table)
        return LoadedChunk(split, FinishedChunk(split.chunk, _NoMark()), (rows,) if len(rows) else ())

    def open_log(self, split: LogSplit[ScannedTable], metrics: MetricGroup) -> LogCursor:
        raise AssertionError("a bounded scan reads no log")

    def interrupt(self) -> None:
        connection = self._running
        if connection is not None:
            connection.cancel_safe(timeout=5)

    def close(self) -> None:
        self._session.close()

    def _copy(self, cursor: psycopg.Cursor[tuple[object, ...]], split: ChunkSplit[ScannedTable]) -> bytes:
        known, psycopg = split.table, driver()
        self._running = cursor.connection
        try:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if known.snapshot and known.snapshot not in self._gone:
                statement = psycopg.sql.SQL("SET TRANSACTION SNAPSHOT {}")
                try:
                    cursor.execute(statement.format(psycopg.sql.Literal(known.snapshot)))
                except psycopg.OperationalError:
                    raise  # the connection is lost
                except psycopg.Error as error:
                    raise _SnapshotGone(" ".join(str(error).split())) from error
            return read_copy(cursor, known.statement(split.chunk), known.table)
        finally:
            self._running = None


class _SnapshotGone(Exception):
    """The process that exported a snapshot has ended."""



__all__ = ["Partitions", "ScanDatabase", "ScanSettings", "ScanTables", "ScannedTable", "chunk_rows"]
