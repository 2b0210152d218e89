"""Lookups by key in a table of PostgreSQL: keys that wait are asked for together, and rows are cached."""

from __future__ import annotations

import asyncio
import queue
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.functions.function_classes import AsyncFunction, RuntimeContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.common.types import Row
from rayflink.connectors.lookup_cache import CachedRows, LookupCache
from rayflink.user_types import UserRecord, UserValue

from .postgres_cdc_tables import CapturedColumn, columns_in_types, read_columns
from .postgres_session import PostgresError, Session, driver, place_of
from .postgres_tables import ensure_name, missing_table, parts_of
from .postgres_writing import fields_of

if TYPE_CHECKING:
    import psycopg

log = get_logger(__name__)

Key: TypeAlias = "tuple[UserValue, ...]"
MOST_KEYS = 1_000
"""Keys of one query, at most."""
_OID = "SELECT oid::bigint, relnamespace::regnamespace::text, relname FROM pg_class WHERE oid = to_regclass(%s)"


class PostgresLookup(AsyncFunction[UserRecord, UserRecord]):
    """Finds the rows of a table by key columns; needs `pip install 'rayflink[postgres]'`.

    It is an async function for `AsyncDataStream`; `look_up` serves other functions. While a query is under way, the
    keys of further records collect, and the next query asks for all of them.

    Args:
        dsn: connection string, `postgresql://user:password@host:5432/database`.
        table: with or without its schema; a part with points stands in double quotes.
        keys: columns by which rows are found; an index on them makes that quick.
        columns: of the rows that are returned, in this order; None: all.
        cache: its limits; None: each record is looked up on the server.

    Raises:
        PostgresError: psycopg is missing, or the connection string or a name is none.
        TypeError: keys or columns are one string.
        ValueError: there is no key.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        keys: Sequence[str],
        columns: Sequence[str] | None = None,
        cache: LookupCache | None = None,
    ) -> None:
        place_of(dsn)
        parts_of(table)
        for argument, names in (("keys", keys), ("columns", columns)):
            if isinstance(names, str):
                raise TypeError(f"{argument} is a list of names, found {names!r}; write [{names!r}]")
            for name in names or ():
                ensure_name(name, "column")
        if not keys:
            raise ValueError("keys is empty; name the columns by which rows are found")
        self._dsn, self._table, self._keys = dsn, table, tuple(keys)
        self._columns, self._limits = None if columns is None else tuple(columns), cache
        self._key_of: Callable[[UserRecord], UserValue] | None = None
        self._results: Callable[[UserRecord, list[Row]], list[UserRecord]] = _pairs
        self._max_retries, self._connections = 3, 2
        self._running: _Lookups | None = None

    def with_key(self, key: Callable[[UserRecord], UserValue]) -> PostgresLookup:
        """Set the function from a record to its key: a value, or a tuple of as many as there are key columns.

        By default, the fields of rows, dicts and named tuples with the names of the key columns are the key, and other
        records are keys themselves.
        """
        self._key_of = key
        return self

    def with_results(self, results: Callable[[UserRecord, list[Row]], list[UserRecord]]) -> PostgresLookup:
        """Set the function from a record and its rows to a list of results; by default pairs of the record and a row.

        With `lambda record, rows: [(record, row) for row in rows or [None]]`, records without rows are not dropped.
        """
        self._results = results
        return self

    def with_max_retries(self, max_retries: int) -> PostgresLookup:
        """Set how often a query is repeated that failed because of the connection; the default is 3.

        Raises:
            ValueError: the number is negative.
        """
        if max_retries < 0:
            raise ValueError(f"max_retries is at least 0, found {max_retries}")
        self._max_retries = max_retries
        return self

    def with_connections(self, connections: int) -> PostgresLookup:
        """Set how many connections a subtask has at most; the default is 2.

        Raises:
            ValueError: the number is less than 1.
        """
        if connections < 1:
            raise ValueError(f"connections is at least 1, found {connections}")
        self._connections = connections
        return self

    def __repr__(self) -> str:
        return f"PostgresLookup({place_of(self._dsn)}, table={self._table!r}, keys={list(self._keys)})"

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_running": None}

    def open(self, runtime_context: RuntimeContext) -> None:
        """Check that the table and its columns are there.

        Raises:
            PostgresError: they are not, or there is no connection.
        """
        self._start(runtime_context.get_metrics_group())

    def close(self) -> None:
        """Close the connections."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    async def async_invoke(self, value: UserRecord) -> list[UserRecord]:
        """Return the results of a record."""
        running = self._running or self._start(MetricGroup())
        return self._results(value, list(await running.find(self._key(value))))

    def look_up(self, *key: UserValue) -> list[Row]:
        """Return the rows of a key, and wait for them; for functions that are not async, and for programs.

        Args:
            key: a value for each key column.

        Raises:
            PostgresError: there is no connection, or the key does not fit.
        """
        running = self._running or self._start(MetricGroup())
        return list(running.find_now(self._checked(key)))

    def _start(self, metrics: MetricGroup) -> _Lookups:
        loader = _Loader(self._dsn, self._table, self._keys, self._columns, self._max_retries)
        loader.prepare()
        self._running = _Lookups(loader, self._connections, self._limits, metrics)
        return self._running

    def _key(self, record: UserRecord) -> Key:
        if self._key_of is None:
            return self._checked(fields_of(record, self._keys))
        key = self._key_of(record)
        return self._checked(key if isinstance(key, tuple) else (key,))

    def _checked(self, key: Key) -> Key:
        if len(key) != len(self._keys):
            problem = f"found a key of {len(key)} values, wanted {len(self._keys)} for {', '.join(self._keys)}"
            raise PostgresError(problem, "return a tuple with a value for each key column from with_key()")
        return key


def _pairs(record: UserRecord, rows: list[Row]) -> list[UserRecord]:
    return [(record, row) for row in rows]


class _Lookups:
    """The lookups of one subtask, driven by its event loop.

    Args:
        loader: asks the server.
        connections: queries that may be under way.
        limits: of the cache; None: there is none.
    """

    def __init__(self, loader: _Loader, connections: int, limits: LookupCache | None, metrics: MetricGroup) -> None:
        self._loader, self._connections = loader, connections
        self._cache = None if limits is None else CachedRows[Row](limits, _now_ms, metrics)
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="rayflink-lookup")
        self._waiting: dict[Key, asyncio.Future[list[Row]]] = {}
        self._asked: dict[Key, asyncio.Future[list[Row]]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._active = 0
        self._loads, self._failures = metrics.counter("loadCount"), metrics.counter("numLoadFailures")
        self._queries = metrics.counter("numQueries")
        self._latest_ms = -1
        metrics.gauge("latestLoadTime", lambda: self._latest_ms)

    async def find(self, key: Key) -> Sequence[Row]:
        """Return the rows of a key."""
        known = self._known(key)
        if known is not None:
            return known
        future = self._waiting.get(key) or self._asked.get(key)
        if future is None:
            future = asyncio.get_running_loop().create_future()
            future.add_done_callback(_note_exception)
            self._waiting[key] = future
            if self._active < self._connections:
                self._active += 1
                worker = asyncio.create_task(self._work())
                self._workers.add(worker)
                worker.add_done_callback(self._workers.discard)
        return await asyncio.shield(future)  # others may wait for it, when this record has waited too long

    def find_now(self, key: Key) -> Sequence[Row]:
        """Return the rows of a key, and wait for them."""
        known = self._known(key)
        return known if known is not None else self._noted([key], self._load)[0]

    def close(self) -> None:
        """Let queries end, and close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._loader.close()

    def _known(self, key: Key) -> Sequence[Row] | None:
        if any(value is None for value in key):
            return ()  # NULL equals nothing
        return None if self._cache is None else self._cache.get(key)

    async def _work(self) -> None:
        """Ask for what waits, until nothing does."""
        try:
            await asyncio.sleep(0)  # the keys of further records of a batch are there then
            while self._waiting:
                keys = list(self._waiting)[:MOST_KEYS]
                await self._ask(keys, [self._waiting.pop(key) for key in keys])
        finally:
            self._active -= 1  # at once, so that a key that comes now finds a place for its worker

    async def _ask(self, keys: list[Key], futures: list[asyncio.Future[list[Row]]]) -> None:
        """Load the rows of some keys, and answer those who wait for them."""
        self._asked.update(zip(keys, futures, strict=True))
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._pool, self._load, keys)
            self._note(keys, results)
            for future, rows in zip(futures, results, strict=True):
                future.set_result(rows)
        except Exception as error:
            self._failures.inc()
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        finally:
            for key in keys:
                self._asked.pop(key, None)

    def _load(self, keys: list[Key]) -> list[list[Row]]:
        start = time.monotonic()
        results = self._loader.load(keys)
        self._latest_ms = round((time.monotonic() - start) * 1000)
        return results

    def _noted(self, keys: list[Key], load: Callable[[list[Key]], list[list[Row]]]) -> list[list[Row]]:
        try:
            results = load(keys)
        except PostgresError:
            self._failures.inc()
            raise
        self._note(keys, results)
        return results

    def _note(self, keys: list[Key], results: list[list[Row]]) -> None:
        self._queries.inc()
        self._loads.inc(len(keys))
        if self._cache is not None:
            for key, rows in zip(keys, results, strict=True):
                self._cache.put(key, rows)


class _Loader:
    """Asks the server for the rows of keys; each thread takes a connection of its own.

    Args:
        max_retries: of a query.
    """

    def __init__(
        self, dsn: str, table: str, keys: Sequence[str], columns: Sequence[str] | None, max_retries: int
    ) -> None:
        self._dsn, self._table, self._keys, self._columns = dsn, table, keys, columns
        self._pauses_s = tuple(min(0.1 * 4**number, 2.0) for number in range(max_retries))
        self._idle: queue.SimpleQueue[Session] = queue.SimpleQueue()
        self._is_closed = False
        self._query: psycopg.sql.Composed | None = None
        self._shape: Row | None = None

    def prepare(self) -> None:
        """Look the table up.

        Raises:
            PostgresError: it, or a column, is missing.
        """
        self._run(self._find)

    def load(self, keys: list[Key]) -> list[list[Row]]:
        """Return the rows of each key.

        Raises:
            PostgresError: there is no connection, or a key does not fit.
        """
        errors, query, shape = driver().errors, self._query, self._shape
        assert query is not None and shape is not None
        columns = [[_notation(key[number]) for key in keys] for number in range(len(self._keys))]
        try:
            answer = self._run(lambda cursor: cursor.execute(query, columns).fetchall())
        except (errors.DataError, errors.ProgrammingError) as error:
            problem = f"lookup in {self._table!r} by {', '.join(self._keys)}: {' '.join(str(error).split())}"
            remedy = "give keys of the types of these columns, and start the job again if the table was altered"
            raise PostgresError(problem, remedy) from error
        results: list[list[Row]] = [[] for _ in keys]
        for place, *values in answer:
            results[int(str(place)) - 1].append(shape(*values))
        return results

    def close(self) -> None:
        """Close the connections that no thread uses; the others are closed when their query has ended."""
        self._is_closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _run(
        self, work: Callable[[psycopg.Cursor[tuple[object, ...]]], list[tuple[object, ...]]]
    ) -> list[tuple[object, ...]]:
        try:
            session = self._idle.get_nowait()
        except queue.Empty:
            session = Session(self._dsn)
        connection_errors = driver().OperationalError, driver().InterfaceError
        try:
            for pause in (*self._pauses_s, None):
                try:
                    return session.run(work, ())
                except PostgresError as error:
                    if pause is None or not isinstance(error.__cause__, connection_errors):
                        raise
                    log.warning("a lookup is repeated: %s", error.problem)
                    time.sleep(pause)
            raise AssertionError("the last try returns or raises")
        finally:
            self._idle.put(session)
            if self._is_closed:
                self.close()

    def _find(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> list[tuple[object, ...]]:
        sql = driver().sql
        shown = sql.Identifier(*parts_of(self._table)).as_string(cursor)
        row = cursor.execute(_OID, (shown,)).fetchone()
        if row is None:
            raise missing_table(cursor, self._table)
        columns, _ = read_columns(cursor, int(str(row[0])), has_generated=True)
        full_name = f"{row[1]}.{row[2]}"
        wanted = self._columns if self._columns is not None else [column.name for column in columns]
        chosen = columns_in_types(full_name, columns, dict.fromkeys(wanted))
        keys = columns_in_types(full_name, columns, dict.fromkeys(self._keys))
        arrays = [sql.SQL(f"%s::text[]::{_key_type(key)}[]") for key in keys]
        names = [sql.Identifier(f"key{number}") for number in range(len(keys))]
        pairs = zip(keys, names, strict=True)
        same = [sql.SQL("present.{} = asked.{}").format(_name(key.name), name) for key, name in pairs]
        self._query = sql.SQL(
            "SELECT asked.place, {} FROM unnest({}) WITH ORDINALITY AS asked ({}, place) JOIN {} AS present ON {}"
        ).format(
            sql.SQL(", ").join(sql.SQL("present.{}").format(_name(column.name)) for column in chosen),
            sql.SQL(", ").join(arrays),
            sql.SQL(", ").join(names),
            sql.Identifier(*(part.replace("%", "%%") for part in parts_of(self._table))),
            sql.SQL(" AND ").join(same),
        )
        self._shape = Row(*[column.name for column in chosen])
        return []


def _name(column: str) -> psycopg.sql.Identifier:
    """Return a column in a statement that is executed with parameters: psycopg reads `%` in it."""
    name: psycopg.sql.Identifier = driver().sql.Identifier(column.replace("%", "%%"))
    return name


def _key_type(column: CapturedColumn) -> str:
    """Return the type of keys without limits, which would cut a value that has no row to one that has."""
    return "bpchar" if column.kind == "bpchar" else re.sub(r"\([^)]*\)", "", column.shown_type).replace("%", "%%")


def _notation(value: UserValue) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)


def _note_exception(future: asyncio.Future[list[Row]]) -> None:
    """Read the exception of a future, so that it is not logged where no record waits for it any more."""
    if not future.cancelled():
        future.exception()


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


__all__ = ["PostgresLookup"]
