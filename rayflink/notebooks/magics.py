"""The magics `%rayflink_sql` and `%%rayflink_sql`."""

from __future__ import annotations

import argparse
import keyword
import shlex
from typing import TYPE_CHECKING, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from rayflink.common.errors import RayflinkError
from rayflink.table import Table, TableResult

from .job_view import follow
from .live_view import live
from .notebook_session import NotebookSession

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["SqlMagics", "load_ipython_extension"]


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magics; `%load_ext rayflink.notebooks` calls it."""
    ipython.register_magics(SqlMagics(ipython))


class _Options(argparse.ArgumentParser):
    """The options of a cell; a wrong one ends the cell, and not the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%rayflink_sql: {message}; %%rayflink_sql --help names the options")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError((message or "").strip())


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:  # a quote is open
        raise UsageError(f"%%rayflink_sql: {error}: {line.strip()}; write a variable and options there") from error


def _options() -> _Options:
    options = _Options("%%rayflink_sql", description="Run statements of SQL, divided by semicolons.")
    add = options.add_argument
    add("name", nargs="?", help="variable that gets the last result: a Table, or what --pandas makes of it")
    add("--pandas", action="store_true", help="run the last query to its end; the result is a DataFrame")
    add("--live", action="store_true", help="show the rows of the last query while it runs")
    add("--wait", action="store_true", help="wait until the job of an INSERT has ended; without it, the cell ends")
    add("--env", help="variable with the TableEnvironment; without it t_env, or one of the session's own")
    return options


@magics_class
class SqlMagics(Magics):
    """Statements of SQL in cells.

    Args:
        shell: of the notebook.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._variables = shell.user_ns
        self._session = NotebookSession(self._variables)

    @line_cell_magic
    def rayflink_sql(self, line: str, cell: str | None = None) -> object:
        """Run statements of SQL, divided by semicolons, and show the result of the last one.

        In a cell, the words behind the magic are its options; in a line, they are the statement.
        """
        options = _options().parse_args(_words(line) if cell is not None else [])
        if options.name is not None and (not options.name.isidentifier() or keyword.iskeyword(options.name)):
            raise UsageError(f"%%rayflink_sql: {options.name!r} is no name of a variable; give one as in Python")
        try:
            environment = self._session.environment(options.env)
            outcomes = self._session.run(line if cell is None else cell, environment)
            result = self._outcome(outcomes[-1], options.pandas, options.live, options.wait) if outcomes else None
        except RayflinkError as error:
            raise UsageError(str(error)) from error
        if options.name is not None:
            self._variables[options.name] = result
            return None
        return result

    def _outcome(self, outcome: Table | TableResult, as_pandas: bool, is_live: bool, waits: bool) -> object:
        """Return what a notebook shows of the result of a statement."""
        if isinstance(outcome, Table):
            if is_live:
                return live(outcome)
            return outcome.to_pandas() if as_pandas else outcome
        job = outcome.get_job_client()
        return outcome if job is None else follow(job, block=waits)
