"""`JdbcSink`: a statement of the user's for each record, in batches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rayflink.common.connector_base.sink import Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.data_types.composite_types import RowTypeInfo
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.types import Row
from rayflink.connectors.postgres.postgres_session import PostgresError, Session, driver, place_of
from rayflink.connectors.postgres.postgres_writing import fields_of
from rayflink.user_types import UserRecord, UserValue

from .jdbc_options import JdbcConnectionOptions, JdbcExecutionOptions
from .jdbc_url import dsn_of

if TYPE_CHECKING:
    import psycopg

_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(?P<tag>\$\w*\$).*?(?P=tag)|\?\?|\?|%", re.DOTALL
)
"""Parts of a statement in which a question mark is none of JDBC's, JDBC's escape of it, and JDBC's."""


def statement_of(sql: str) -> tuple[str, int]:
    """Return a statement of JDBC as psycopg has it, and the number of its parameters.

    >>> statement_of("INSERT INTO t VALUES (?, '50%?', doc ?? 'a')")
    ("INSERT INTO t VALUES (%s, '50%%?', doc ? 'a')", 1)
    """
    count = 0

    def converted(token: re.Match[str]) -> str:
        nonlocal count
        if token[0] == "?":
            count += 1
            return "%s"
        return "?" if token[0] == "??" else token[0].replace("%", "%%")

    return _TOKENS.sub(converted, sql), count


class JdbcSink(Sink[Row]):
    """Executes a statement for each record, such as an INSERT or an upsert; made by `JdbcSink.sink(...)`.

    At least once: the records after the last checkpoint come again after a failure. A statement that is repeated should
    therefore change nothing, as `INSERT ... ON CONFLICT (id) DO UPDATE` does.

    Args:
        sql: with a question mark for each field.
        names: of the fields.
        dsn: connection string.
        execution: batches and retries.
    """

    name = "Sink: JDBC"

    def __init__(self, sql: str, names: tuple[str, ...], dsn: str, execution: JdbcExecutionOptions) -> None:
        self._sql, self._names, self._dsn, self._execution = sql, names, dsn, execution

    @staticmethod
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Return a sink, for `add_sink` or `sink_to`.

        Args:
            sql: statement with a question mark for each field.
            type_info: row type of the records, `Types.ROW(...)` or `Types.ROW_NAMED(...)`.
            jdbc_connection_options: the database; only PostgreSQL is supported.
            jdbc_execution_options: None: batches of 5,000 records, tried again three times.

        Raises:
            PostgresError: psycopg is missing, the URL is another database's, or the question marks do not match.
        """
        mark_count, names = statement_of(sql)[1], tuple(type_info.get_field_names())
        if mark_count != len(names):
            problem = f"the statement has {mark_count} question marks, and the records have {len(names)} fields"
            raise PostgresError(problem, "write a question mark for each field; ?? is an operator of PostgreSQL")
        place = jdbc_connection_options
        dsn = dsn_of(place.get_db_url(), place.get_user_name(), place.get_password())
        return JdbcSink(sql, names, dsn, jdbc_execution_options or JdbcExecutionOptions.defaults())

    def __repr__(self) -> str:
        return f"JdbcSink({place_of(self._dsn)}, {self._sql!r})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _StatementWriter(ctx, self._dsn, self._sql, self._names, self._execution)


class _StatementWriter(SinkWriter):
    """Executes a statement for the records of a batch, in one transaction."""

    def __init__(
        self, ctx: WriterContext, dsn: str, sql: str, names: tuple[str, ...], execution: JdbcExecutionOptions
    ) -> None:
        metrics = ctx.metrics or MetricGroup()
        self._ctx, self._session, self._names = ctx, Session(dsn, metrics.counter("numReconnects")), names
        self._statement, self._most_rows = statement_of(sql)[0].encode(), execution.get_batch_size()
        self._interval_ms = execution.get_batch_interval_ms()
        self._pauses_s = tuple(min(0.1 * 4**number, 2.0) for number in range(execution.get_max_retries()))
        self._held: list[tuple[UserValue, ...]] = []
        self._due_ms: int | None = None
        self._sent = metrics.counter("numRecordsSend")

    def write(self, batch: Batch) -> None:
        for record in rows_of(batch):
            self._held.append(self._values(record))
            if len(self._held) >= self._most_rows:
                self.flush(end_of_input=False)
        if self._held and self._due_ms is None and self._interval_ms:
            self._due_ms = self._ctx.now_ms() + self._interval_ms

    def next_time_ms(self) -> int | None:
        return self._due_ms

    def on_time(self, now_ms: int) -> None:
        self.flush(end_of_input=False)

    def flush(self, end_of_input: bool) -> None:
        rows = self._held
        if not rows:
            return
        errors = driver().errors
        try:
            self._session.run(lambda cursor: cursor.executemany(self._statement, rows), self._pauses_s)
        except (errors.DataError, errors.IntegrityError, errors.ProgrammingError, errors.RaiseException) as error:
            self._session.run(self._find_refused, self._pauses_s)
            raise PostgresError(f"a batch was refused: {' '.join(str(error).split())}", "start again") from error
        self._held, self._due_ms = [], None
        self._sent.inc(len(rows))

    def close(self) -> None:
        self._session.close()

    def _values(self, record: UserRecord) -> tuple[UserValue, ...]:
        try:
            values = fields_of(record, self._names)
        except Exception as error:
            raise UnwritableRecord(shorten(record)) from error
        if len(values) != len(self._names):
            problem = f"found {len(values)} values, wanted {len(self._names)} for {', '.join(self._names)}"
            raise UnwritableRecord(shorten(record)) from PostgresError(problem, "give records of the type of the sink")
        return values

    def _find_refused(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
        """Execute the statement for one record after the other until one is refused, which undoes them all.

        Raises:
            UnwritableRecord: a record is refused.
        """
        errors = driver()
        for values in self._held:
            try:
                cursor.execute(self._statement, values)
            except errors.OperationalError:
                raise
            except errors.Error as error:
                problem = f"the statement is refused: {' '.join(str(error).split())}"
                refusal = PostgresError(problem, "correct it, or the record in a map() before the sink")
                raise UnwritableRecord(shorten(values)) from refusal
        raise PostgresError("a batch was refused, and its records one by one are not", "start again")


__all__ = ["JdbcSink", "statement_of"]
