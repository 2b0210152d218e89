"""Runs the statements of a session, those of SQL and those that Flink's gateway knows beside them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable

from rayflink.common.job_client import JobClient
from rayflink.common.options import registry as options
from rayflink.common.types import Row
from rayflink.shell.commands import Command, command_of, is_complete
from rayflink.shell.shell_session import Outcome
from rayflink.shell.sql_session import ShellJob, SqlSession
from rayflink.table.definitions import quote_string
from rayflink.table.errors import SqlError
from rayflink.table.parsing import statements
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.types import DataType, DataTypes

from .gateway_errors import GatewayError
from .local_jobs import LocalJobs
from .operation import StatementResult

__all__ = ["GatewayStatements"]

OnJob = Callable[[JobClient], None]
_BEGIN_SET = re.compile(r"begin\s+statement\s+set", re.IGNORECASE)
_END = re.compile(r"end", re.IGNORECASE)
_SHOWN_JOBS = (
    ("job id", DataTypes.STRING()),
    ("job name", DataTypes.STRING()),
    ("status", DataTypes.STRING()),
    ("start time", DataTypes.TIMESTAMP_LTZ(3)),
)
_CONFIGURING = (
    statements.SetOption, statements.ResetOption, statements.CreateTable, statements.CreateView,
    statements.CreateCatalog, statements.CreateDatabase, statements.FunctionOf, statements.Drop, statements.Use,
    statements.AlterCatalog, statements.AlterColumns, statements.AlterDatabase, statements.AlterPartitions,
    statements.AlterView, statements.Rename, statements.SetOptions,
)  # fmt: skip


class GatewayStatements:
    """Runs statements one after another.

    Args:
        session: the environment.
        local_jobs: let the jobs of INSERTs run that run in this process.
    """

    def __init__(self, session: SqlSession, local_jobs: LocalJobs) -> None:
        self._session, self._local_jobs = session, local_jobs
        self._set: list[str] | None = None

    def run(self, text: str, own_options: dict[str, str], on_job: OnJob) -> StatementResult:
        """Run a statement.

        Args:
            text: of it.
            own_options: hold for it alone.
            on_job: is called with the job of an INSERT, before it is waited for.

        Raises:
            RayflinkError: it cannot be run, or its job was waited for and failed.
        """
        before = self._session.configuration.to_dict()
        try:
            for key, value in own_options.items():
                self._session.run(f"SET {quote_string(key)} = {quote_string(value)}")
            return self._run(text, on_job)
        finally:
            for key in own_options:
                known = before.get(key)
                name = quote_string(key)
                self._session.run(f"RESET {name}" if known is None else f"SET {name} = {quote_string(known)}")

    def configure(self, text: str) -> None:
        """Run a statement that sets an option or defines something.

        Raises:
            GatewayError: it is another statement.
            RayflinkError: it cannot be run.
        """
        statement = parse_statement(text)
        if not isinstance(statement, _CONFIGURING) or getattr(statement, "query", None) is not None:
            remedy = "configure a session by SET, RESET, USE, CREATE, DROP or ALTER, and run others as statements"
            raise GatewayError("Unsupported statement for configuring session", remedy)
        self._session.run(text)

    def _run(self, text: str, on_job: OnJob) -> StatementResult:
        placed = text.rstrip().rstrip(";").rstrip()  # blanks before it are its place in a file, for errors
        bare = placed.strip()
        if _BEGIN_SET.fullmatch(bare):
            return self._begin_set()
        if self._set is not None:
            return self._in_set(self._set, bare, on_job)
        command = command_of(text)
        if command is not None:
            return self._obey(command)
        self._ensure_complete(text)
        return self._result(placed, on_job)

    def _ensure_complete(self, text: str) -> None:
        """Refuse a text that goes on; Flink's client then reads another line, by the words of its parser.

        Raises:
            SqlError: a quote, a comment or a statement set is open.
        """
        if not is_complete(f"{text};"):
            raise SqlError('Encountered "<EOF>"', "the statement goes on: close its quote, comment or statement set")

    def _result(self, text: str, on_job: OnJob) -> StatementResult:
        def follow(job: ShellJob) -> None:
            on_job(job.client)
            is_local = self._session.configuration.get(options.TARGET) is options.Target.LOCAL
            if is_local and not self._session.configuration.get(options.DML_SYNC):
                self._local_jobs.let_run(job)

        outcome = self._session.run(text, follow)
        if outcome.job is not None:
            job_id = outcome.job.job_id
            columns = [("job id", DataTypes.STRING())]
            return _listing(columns, [Row(job_id)], outcome.job.client)
        return _of(outcome)

    # statement sets that arrive piece by piece

    def _begin_set(self) -> StatementResult:
        if self._set is not None:
            raise GatewayError("a statement set has begun already", "write INSERT INTO ..., and END behind the last")
        self._set = []
        return _done()

    def _in_set(self, inserts: list[str], text: str, on_job: OnJob) -> StatementResult:
        if _END.fullmatch(text):
            self._set = None
            if not inserts:
                raise GatewayError("No statement in the statement set, skip submit", "write INSERT INTO ... before END")
            return self._result(f"EXECUTE STATEMENT SET BEGIN {'; '.join(inserts)}; END", on_job)
        if not isinstance(parse_statement(text), statements.Insert):
            raise GatewayError("Only 'INSERT' statement is allowed in Statement Set", "write INSERT INTO ..., or END")
        inserts.append(text)
        return _done()

    # jobs

    def _obey(self, command: Command) -> StatementResult:
        match command.name:
            case "SHOW JOBS":
                return _listing(_SHOWN_JOBS, map(_job_row, self._session.jobs))
            case "STOP JOB":
                message = self._session.stop_job(command)
                if not command.with_savepoint:
                    return _done()
                path = message.partition(" with savepoint ")[2]
                return _listing([("savepoint path", DataTypes.STRING())], [Row(path)])
            case _:
                problem = f"{command.name} is a statement of the shell, which does not reach the gateway"
                raise GatewayError(problem, "leave it to the client")


def _job_row(job: ShellJob) -> Row:
    begin = datetime.datetime.fromtimestamp(int(job.begin_s * 1000) / 1000, datetime.timezone.utc)
    return Row(job.job_id, job.name, job.state, begin)


def _of(outcome: Outcome) -> StatementResult:
    """Return the result of a statement."""
    result = outcome.result
    schema = result.get_table_schema()
    drawn = result.collect()
    job = drawn.job
    names, types = tuple(schema.get_field_names()), tuple(schema.get_field_data_types())
    return StatementResult(names, types, drawn, job is not None, result.is_message, job, result.zone)


def _listing(
    columns: Iterable[tuple[str, DataType]], rows: Iterable[Row], job: JobClient | None = None
) -> StatementResult:
    names, types = zip(*columns, strict=True)
    return StatementResult(names, types, iter(rows), job=job)


def _done() -> StatementResult:
    return StatementResult(("result",), (DataTypes.STRING(),), iter([Row("OK")]), is_done=True)
