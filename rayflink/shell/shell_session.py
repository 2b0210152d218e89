"""The contract between the shell and what runs its statements, in this process or at a SQL gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rayflink.common.configuration import Configuration
from rayflink.table.table_result import TableResult

from .commands import Command
from .completion import Vocabulary

__all__ = ["Outcome", "RunningJob", "ShellSession"]


class RunningJob(Protocol):
    """A job that a statement started."""

    @property
    def job_id(self) -> str:
        """Return its id."""
        ...

    @property
    def is_ended(self) -> bool:
        """Return whether it runs no more, as far as is known."""
        ...


@dataclass(frozen=True)
class Outcome:
    """The outcome of a statement.

    Args:
        result: rows or a message.
        is_query: its rows come from a job that runs until they end, or it is ended.
        job: that was started and goes on; None: there is none.
        seconds: that the statement took until there was a result.
    """

    result: TableResult
    is_query: bool
    job: RunningJob | None
    seconds: float


class ShellSession(Protocol):
    """Runs the statements of a shell."""

    @property
    def configuration(self) -> Configuration:
        """Return the options as they are now."""
        ...

    @property
    def is_batch(self) -> bool:
        """Return whether queries run in batch mode."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the names that may be completed."""
        ...

    @property
    def status(self) -> str:
        """Return the line below the prompt: where names are looked up, and what the jobs do."""
        ...

    def run(self, text: str) -> Outcome:
        """Run one statement of SQL.

        Raises:
            RayflinkError: it means nothing, or cannot be run.
        """
        ...

    def job_rows(self) -> list[tuple[str, ...]]:
        """Return the columns of SHOW JOBS, and below them the jobs."""
        ...

    def stop_job(self, command: Command) -> str:
        """End a job, with a savepoint if that is asked for, and return a message."""
        ...

    def take_savepoint(self, command: Command) -> str:
        """Take a savepoint of a job, which goes on, and return a message."""
        ...

    def close(self) -> None:
        """End what belongs to the session."""
        ...
