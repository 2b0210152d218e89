"""The session of a shell at a SQL gateway, of rayflink or of Flink."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.errors import RayflinkError
from rayflink.common.options import registry as options
from rayflink.common.types import Row
from rayflink.dbapi.exceptions import Error
from rayflink.dbapi.gateway_client import Gateway, GatewayClient, GatewayStatement
from rayflink.table import SqlError
from rayflink.table.parsing import statements
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.plan.logical import Attribute
from rayflink.table.table_result import Printing, TableResult, done

from .commands import Command
from .completion import Vocabulary
from .shell_session import Outcome

__all__ = ["GatewayRefusal", "GatewaySession"]

_TEXT = re.compile(r"\s*(EXPLAIN|SHOW\s+CREATE)\b", re.IGNORECASE)


class GatewayRefusal(RayflinkError):
    """A gateway cannot be reached, or a statement failed there.

    Args:
        message: of the gateway.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class _GatewayJob:
    """A job that a statement started at the gateway.

    Args:
        job_id: its id.
        is_ended: whether the statement waited for its end.
    """

    job_id: str
    is_ended: bool


class GatewaySession:
    """Runs statements at a gateway; how rows are shown is decided here.

    Args:
        gateway: where the session is opened.
        own_options: of the command line; the gateway has others.

    Raises:
        GatewayRefusal: the gateway cannot be reached, or refuses.
        ConfigError: an option is wrong.
    """

    def __init__(self, gateway: Gateway, own_options: dict[str, str]) -> None:
        self.configuration = Configuration.from_dict(dict(own_options))
        """The options as they are now, as far as this shell has set them."""
        self._url = gateway.url
        try:
            self._client = GatewayClient(gateway, own_options)
        except Error as error:
            raise GatewayRefusal(str(error)) from error

    @property
    def is_batch(self) -> bool:
        """Return whether queries run in batch mode."""
        return self.configuration.get(options.RUNTIME_MODE) is options.RuntimeMode.BATCH

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the names that may be completed."""
        return _GatewayVocabulary(self)

    @property
    def status(self) -> str:
        """Return the address of the gateway, and the mode."""
        return f"{self._url} | {'batch' if self.is_batch else 'streaming'}"

    def run(self, text: str) -> Outcome:
        """Run one statement of SQL.

        Raises:
            GatewayRefusal: it failed, or the gateway cannot be reached.
        """
        begin = time.monotonic()
        statement = self._begin(text)
        self._follow_options(text)
        seconds = time.monotonic() - begin
        if statement.is_query:
            return Outcome(self._result(statement, text, _rows(statement)), True, None, seconds)
        if statement.job_id is not None:
            job = _GatewayJob(statement.job_id, bool(self.configuration.get(options.DML_SYNC)))
            list(_rows(statement))
            return Outcome(done(), False, job, seconds)
        rows = list(_rows(statement))
        return Outcome(self._result(statement, text, rows) if statement.columns else done(), False, None, seconds)

    def rows(self, text: str) -> list[Row]:
        """Return all rows of a statement.

        Raises:
            GatewayRefusal: it failed, or the gateway cannot be reached.
        """
        return list(_rows(self._begin(text)))

    def job_rows(self) -> list[tuple[str, ...]]:
        """Return the columns of SHOW JOBS, and below them the jobs of the gateway."""
        statement = self._begin("SHOW JOBS")
        rows = [tuple(map(str, row)) for row in _rows(statement)]
        return [tuple(column.name for column in statement.columns), *rows]

    def stop_job(self, command: Command) -> str:
        """End a job, with a savepoint if that is asked for, and return a message.

        Raises:
            SqlError: the gateway puts savepoints into its own folder.
            GatewayRefusal: there is no such job, or no savepoint.
        """
        if command.folder is not None:
            remedy = "leave the folder out, or SET 'execution.checkpointing.savepoint-dir'"
            raise SqlError("a gateway takes no folder in STOP JOB", remedy)
        text = f"STOP JOB '{command.argument}'"
        text += " WITH SAVEPOINT" if command.with_savepoint else ""
        rows = self.rows(text + (" WITH DRAIN" if command.drains else ""))
        path = f" with savepoint {rows[0][0]}" if command.with_savepoint and rows else ""
        return f"Job {command.argument} stopped{path}"

    def take_savepoint(self, command: Command) -> str:
        """Raise SqlError: the protocol of gateways has no statement for it."""
        remedy = "use STOP JOB ... WITH SAVEPOINT, or `rayflink savepoint` on the cluster"
        raise SqlError("a gateway takes no savepoint of a job that goes on", remedy)

    def close(self) -> None:
        """Close the session; the gateway ends its queries, and jobs of INSERT go on."""
        self._client.close()

    def _begin(self, text: str) -> GatewayStatement:
        try:
            return self._client.run(text)
        except Error as error:
            raise GatewayRefusal(str(error)) from error

    def _result(self, statement: GatewayStatement, text: str, rows: Iterable[Row]) -> TableResult:
        schema = [Attribute(column.name, column.type) for column in statement.columns]
        zone = self.configuration.get_string("table.local-time-zone", None) or "UTC"
        printing = Printing(zone, self.configuration.get(options.PRINTED_WIDTH), bool(_TEXT.match(text)))
        return TableResult(schema, rows, None, statement.is_query and not self.is_batch, None, printing)

    def _follow_options(self, text: str) -> None:
        """Set and reset here what a statement sets there: results are shown by these options."""
        try:
            statement = parse_statement(text)
        except SqlError:  # a statement that only the gateway knows
            return
        if isinstance(statement, statements.SetOption) and statement.key is not None:
            self.configuration.set_string(statement.key, statement.value or "")
        elif isinstance(statement, statements.ResetOption):
            for key in list(self.configuration.to_dict()) if statement.key is None else [statement.key]:
                self.configuration.remove_config(key)


def _rows(statement: GatewayStatement) -> Iterator[Row]:
    """Yield the rows of a statement; when they are no longer wanted, the gateway ends its query."""
    try:
        for kind, values in statement.rows():
            yield Row.of_kind(kind, *values)
    except Error as error:
        raise GatewayRefusal(str(error)) from error
    finally:
        statement.cancel()


class _GatewayVocabulary:
    """The names that a gateway knows.

    Args:
        session: at the gateway.
    """

    def __init__(self, session: GatewaySession) -> None:
        self._session = session

    def tables(self) -> list[str]:
        return self._firsts("SHOW TABLES")

    def places(self) -> list[str]:
        return [*self._firsts("SHOW DATABASES"), *self._firsts("SHOW CATALOGS")]

    def columns(self, table: str) -> list[str]:
        return self._firsts(f"DESCRIBE {table}")

    def functions(self) -> list[str]:
        return self._firsts("SHOW FUNCTIONS")

    def _firsts(self, text: str) -> list[str]:
        try:
            return [str(row[0]) for row in self._session.rows(text)]
        except RayflinkError:  # there is no such table, or the gateway is gone; the statement will say so
            return []
