"""The environment of a shell, and the jobs that it started."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rayflink.common.configuration import Configuration
from rayflink.common.errors import RayflinkError
from rayflink.common.job_client import JobClient
from rayflink.common.options import registry as options
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.parsing import statements
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.statements.sql_script import ScriptError
from rayflink.table.table_result import TableResult

from .commands import Command
from .completion import EnvironmentVocabulary, Vocabulary
from .shell_session import Outcome

__all__ = ["ShellJob", "SqlOutcome", "SqlSession"]


@dataclass
class ShellJob:
    """A job that the shell started.

    Args:
        name: the statement's first line.
        client: of the job.
        begin_s: time of its start, in seconds since 1970.
    """

    name: str
    client: JobClient
    begin_s: float = field(default_factory=time.time)

    @property
    def job_id(self) -> str:
        """Return its id."""
        return str(self.client.get_job_id())

    @property
    def state(self) -> str:
        """Return its state; LOST where its process is gone."""
        try:
            return str(self.client.get_job_status().result().value)
        except RayflinkError:
            return "LOST"

    @property
    def is_ended(self) -> bool:
        """Return whether it runs no more."""
        return self.state in ("FINISHED", "FAILED", "CANCELED", "LOST")


@dataclass(frozen=True)
class SqlOutcome(Outcome):
    """The outcome of a statement in this process, whose job is at hand."""

    job: ShellJob | None


class SqlSession:
    """Runs statements in one environment.

    >>> session = SqlSession({"execution.target": "local"})
    >>> outcome = session.run("SELECT 1 AS n")
    >>> outcome.is_query, [row[0] for row in outcome.result.collect()]
    (True, [1])

    Args:
        own_options: of the command line, over those of file and environment variables.

    Raises:
        ConfigError: an option is wrong.
    """

    def __init__(self, own_options: Mapping[str, str]) -> None:
        configuration = Configuration.from_dict(dict(own_options))
        settings = EnvironmentSettings.new_instance().with_configuration(configuration).build()
        self.t_env = TableEnvironment.create(settings)
        self.jobs: list[ShellJob] = []
        """The jobs that INSERTs started, the first one first."""

    @property
    def configuration(self) -> Configuration:
        """Return the options as they are now."""
        return self.t_env.get_config().get_configuration()

    @property
    def is_batch(self) -> bool:
        """Return whether queries run in batch mode."""
        return self.configuration.get(options.RUNTIME_MODE) is options.RuntimeMode.BATCH

    def run(self, text: str, on_job: Callable[[ShellJob], None] | None = None) -> SqlOutcome:
        """Run one statement of SQL; wait for the job of an INSERT only where `table.dml-sync` is set.

        Args:
            text: the statement.
            on_job: is called with the job of an INSERT, before it is waited for.

        Raises:
            SqlError: it means nothing, or cannot be run.
            JobFailed: its job was waited for, and failed.
        """
        begin = time.monotonic()
        statement = parse_statement(text)
        is_option = isinstance(statement, (statements.SetOption, statements.ResetOption))
        result = self._result_of_option(text) if is_option else self.t_env.execute_sql(text)
        client = result.get_job_client()
        job = None
        if client is not None:
            job = ShellJob(_first_line(text), client)
            self.jobs.append(job)
            if on_job is not None:
                on_job(job)
            if self.configuration.get(options.DML_SYNC):
                result.wait()
        return SqlOutcome(result, isinstance(statement, statements.Query), job, time.monotonic() - begin)

    def _result_of_option(self, text: str) -> TableResult:
        """Run SET or RESET as scripts do, where a new runtime mode holds for the statements behind it."""
        results: list[TableResult] = []
        try:
            self.t_env.execute_script(text, results.append)
        except ScriptError as error:
            raise error.__cause__ or error from None
        return results[0]

    def stop_job(self, command: Command) -> str:
        """End a job, with a savepoint if that is asked for, and return a message.

        Raises:
            SqlError: the shell started no such job, or it has ended.
            RayflinkError: there is no savepoint.
        """
        job = self._job(command.argument)
        if command.with_savepoint or command.drains:
            path = job.client.stop_with_savepoint(command.drains, command.folder).result()
            return f"Job {job.job_id} stopped with savepoint {path}"
        job.client.cancel().result()
        return f"Job {job.job_id} canceled"

    def take_savepoint(self, command: Command) -> str:
        """Take a savepoint of a job, which goes on, and return a message.

        Raises:
            SqlError: the shell started no such job, or it has ended.
            RayflinkError: there is no savepoint.
        """
        job = self._job(command.argument)
        return f"Savepoint {job.client.trigger_savepoint(command.folder).result()} of job {job.job_id}"

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the names that may be completed."""
        return EnvironmentVocabulary(self.t_env)

    @property
    def status(self) -> str:
        """Return where names are looked up, the mode, and what the jobs do."""
        mode = "batch" if self.is_batch else "streaming"
        place = f"{self.t_env.get_current_catalog()}.{self.t_env.get_current_database()}"
        jobs = f"{len(self.running_jobs())} of {len(self.jobs)} jobs running" if self.jobs else "no jobs"
        return f"{place} | {mode} | {jobs}"

    def job_rows(self) -> list[tuple[str, ...]]:
        """Return the columns of SHOW JOBS, and below them the jobs."""
        now_s = time.time()
        rows = [(job.job_id, job.state, f"{now_s - job.begin_s:.0f}", job.name[:60]) for job in self.jobs]
        return [("job id", "state", "seconds", "statement"), *rows]

    def running_jobs(self) -> list[ShellJob]:
        """Return the jobs that have not ended."""
        return [job for job in self.jobs if not job.is_ended]

    def close(self) -> None:
        """End the jobs that run in this process; those on Ray go on."""
        if self.configuration.get(options.TARGET) is not options.Target.LOCAL:
            return
        for job in self.running_jobs():
            job.client.cancel()

    def _job(self, wanted: str) -> ShellJob:
        matches = [job for job in self.jobs if job.job_id.startswith(wanted)] if wanted else []
        if len(matches) != 1:
            known = ", ".join(job.job_id for job in self.jobs) or "none"
            problem = f"{wanted!r} is the beginning of {len(matches)} ids of jobs of this shell"
            raise SqlError(problem, f"give one of {known}; `rayflink list` has those of others")
        if matches[0].is_ended:
            raise SqlError(f"job {matches[0].job_id} is {matches[0].state} already", "see SHOW JOBS")
        return matches[0]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if not line.strip().startswith("--")]
    return lines[0] if lines else ""
