"""Statements that run in this process, or where its options send their jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

from rayflink.common.configuration import Configuration
from rayflink.common.errors import JobCancelled, JobExecutionError, RayflinkError
from rayflink.common.options import registry
from rayflink.common.types import RowKind
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.table_result import TableResult

from .exceptions import DatabaseError, OperationalError, ProgrammingError
from .statements import Column, Follow, RunningStatement

__all__ = ["InProcess"]


class InProcess:
    """Runs statements in one environment.

    Args:
        options: of the session.

    Raises:
        ProgrammingError: an option is wrong.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        try:
            configuration = Configuration.from_dict(dict(options))
            settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
            self._t_env = TableEnvironment.create(settings)
        except RayflinkError as error:
            raise _translate(error) from error
        self._statements: list[_Statement] = []

    def run(self, statement: str, follow: Follow | None = None) -> RunningStatement:
        """Run a statement; wait for the job of an INSERT where `table.dml-sync` is set."""
        try:
            result = self._t_env.execute_sql(statement)
            running = _Statement(result, self._is_waiting())
            self._statements = [earlier for earlier in self._statements if not earlier.is_over]
            self._statements.append(running)
            if follow is not None:
                follow(running)
            running.wait()
        except RayflinkError as error:
            raise _translate(error) from error
        return running

    def close(self) -> None:
        """End queries that are not read to their ends; jobs of INSERT go on."""
        for statement in self._statements:
            statement.cancel()

    def _is_waiting(self) -> bool:
        return bool(self._t_env.get_config().get_configuration().get(registry.DML_SYNC))


class _Statement:
    """The result of a statement.

    Args:
        result: of the environment.
        is_waiting: whether the job of an INSERT is waited for.
    """

    def __init__(self, result: TableResult, is_waiting: bool) -> None:
        client, schema = result.get_job_client(), result.get_resolved_schema()
        self.job_id = None if client is None else str(client.get_job_id())
        self.columns: Sequence[Column] = ()
        if not result.is_message and client is None:  # that of a query is not known, as its rows are drawn
            self.columns = [Column(column.get_name(), column.get_data_type()) for column in schema.get_columns()]
        self._result, self._awaited = result, client if is_waiting else None
        self._rows = result.collect()
        self._is_cancelled = threading.Event()
        self.is_over = False

    def wait(self) -> None:
        """Wait for the job of an INSERT, where that is wanted.

        Raises:
            JobExecutionError: it failed, or was cancelled.
        """
        if self._awaited is not None:
            self._result.wait()
            self._awaited = None

    def rows(self) -> Iterator[tuple[RowKind, tuple[object, ...]]]:
        try:
            for row in self._rows if self.columns else ():
                yield row.get_row_kind(), tuple(row)
        except JobCancelled as error:
            if not self._is_cancelled.is_set():
                raise _translate(error) from error
        except RayflinkError as error:
            raise _translate(error) from error
        finally:
            self.is_over = True

    def cancel(self) -> None:
        if not self.is_over and not self._is_cancelled.is_set():
            self._is_cancelled.set()
            if self._awaited is not None:
                self._awaited.cancel()
            close = getattr(self._rows, "close", None)
            if close is not None:
                close()


def _translate(error: RayflinkError) -> DatabaseError:
    """Return the error of PEP 249 that says the same."""
    if isinstance(error, JobExecutionError):
        return OperationalError(str(error))
    return ProgrammingError(str(error)) if isinstance(error, SqlError) else DatabaseError(str(error))
