"""Several statements of SQL, run one after another."""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.errors import RayflinkError

from ..errors import SqlError
from ..parsing import statements
from ..parsing.statement_parser import ScriptPart, script_parts
from ..plan.typed import Place
from ..table_result import TableResult
from .query_runner import QueryRunner
from .statement_runner import StatementRunner


class ScriptError(RayflinkError):
    """A statement of a script cannot be run, or its job failed; the cause is that error.

    Args:
        origin: what the script is called, as the path of its file; "": it has no name.
        line: from 1, of what is wrong, else of the statement's first word.
        column: from 1.
        problem: what the error says.
    """

    def __init__(self, origin: str, line: int, column: int, problem: str) -> None:
        super().__init__(origin, line, column, problem)
        self.origin, self.line, self.column, self.problem = origin, line, column, problem

    def __str__(self) -> str:
        name = f"{self.origin}, " if self.origin else ""
        return f"{name}line {self.line}, column {self.column}: {self.problem}"


class ScriptRunner:
    """Runs the statements of a script.

    Args:
        queries: runs the queries and INSERTs.
        text: the script.
        origin: what it is called in errors.
    """

    def __init__(self, queries: QueryRunner, text: str, origin: str) -> None:
        self._queries, self._text, self._origin = queries, text, origin

    def run(self, on_result: Callable[[TableResult], None]) -> None:
        """Read all statements, then run each and wait for its job.

        Raises:
            ScriptError: one cannot be read, before any is run; or cannot be run, or its job fails.
        """
        for part, statement in self._read():
            try:
                result = StatementRunner(self._queries, part.text).run(statement)
                self._queries.context.follow_mode()
                result.wait()
                on_result(result)
            except RayflinkError as error:
                raise self._located(error, part) from error

    def _read(self) -> list[tuple[ScriptPart, statements.AnyStatement]]:
        try:
            parts = script_parts(self._text)
        except SqlError as error:
            raise self._located(error, ScriptPart(self._text, 0, 0, ())) from error
        if not parts:
            raise ScriptError(self._origin, 1, 1, "there is no statement; write one, as SELECT 1;")
        pairs = []
        for part in parts:
            try:
                pairs.append((part, part.statement()))
            except SqlError as error:
                raise self._located(error, part) from error
        return pairs

    def _located(self, error: RayflinkError, part: ScriptPart) -> ScriptError:
        place = Place(part.start, part.start + 1)
        if isinstance(error, SqlError) and error.place is not None and error.text == part.text:
            place = Place(error.place.start + part.offset, error.place.stop + part.offset)
        shown = SqlError("", "", self._text, place)
        problem = str(error)
        if isinstance(error, SqlError) and error.text == part.text:
            problem = f"{error.problem}; {error.remedy}\n{shown.underlined()}"
        return ScriptError(self._origin, shown.line, shown.column, problem)


def show(result: TableResult) -> None:
    """Print a result of a script: rows as a table, of an INSERT the job that has finished."""
    job = result.get_job_client()
    if job is None:
        result.print()
    else:
        print(f"Job {job.get_job_id()} finished")


__all__ = ["ScriptError", "ScriptRunner", "show"]
