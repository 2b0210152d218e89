"""The environment in which the statements of a notebook's cells run."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping

from rayflink.common.errors import InvalidTypesError, RayflinkError
from rayflink.table import EnvironmentSettings, Table, TableEnvironment, TableResult
from rayflink.table.errors import SqlError
from rayflink.table.parsing import statements
from rayflink.table.parsing.statement_parser import parse_statement, script_parts

__all__ = ["NotebookSession"]

_WORD = re.compile(r"[A-Za-z_]\w*")


class NotebookSession:
    """Runs the statements of cells.

    Args:
        variables: of the notebook, as they are now. Its environment is that of the statements: the one named, else
            `t_env`, else one that is made at the first statement.
    """

    def __init__(self, variables: Mapping[str, object]) -> None:
        self._variables = variables
        self._own: TableEnvironment | None = None
        self._registered: dict[tuple[int, str], object] = {}
        """The value of a variable that became a view, by its environment's id and its name."""

    def environment(self, name: str | None = None) -> TableEnvironment:
        """Return the environment of statements.

        Args:
            name: of a variable that holds it; None: `t_env`, or else one of the session's own.

        Raises:
            SqlError: the variable holds none.
        """
        value = self._variables.get(name or "t_env")
        if isinstance(value, TableEnvironment):
            return value
        if name is not None:
            problem = f"the variable {name!r} holds {type(value).__name__}, expected a TableEnvironment"
            raise SqlError(problem, "make one by TableEnvironment.create(EnvironmentSettings.in_streaming_mode())")
        if self._own is None:
            self._own = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        return self._own

    def run(self, text: str, environment: TableEnvironment) -> list[Table | TableResult]:
        """Run the statements of a cell, and return what each gives: a Table of a query, which is not run yet.

        Variables of the notebook that hold a `Table` of the environment, or a DataFrame of pandas, are tables under
        their names, where the catalog has none of that name.

        Raises:
            SqlError: a statement means nothing, or cannot be run.
        """
        outcomes: list[Table | TableResult] = []
        for part in script_parts(text):
            statement = part.text.strip()
            problems = self._register_variables(statement, environment)
            try:
                outcomes.append(_run(statement, environment))
            except SqlError as error:
                if not problems:
                    raise
                raise SqlError("; ".join(problems), str(error)) from error
        return outcomes

    def _register_variables(self, statement: str, environment: TableEnvironment) -> list[str]:
        """Make variables views, and return what is wrong with those that cannot be; a column may have their name."""
        problems = []
        for name in dict.fromkeys(_WORD.findall(statement)):
            value = self._variables.get(name)
            if isinstance(value, Table) or _is_frame(value):
                try:
                    self._register(name, value, environment)
                except InvalidTypesError as error:
                    problems.append(f"the variable {name!r} is no table: {error}")
        return problems

    def _register(self, name: str, value: object, environment: TableEnvironment) -> None:
        """Make the value of a variable a view, in the place of the value that the variable had before."""
        place = id(environment), name
        if place in self._registered:
            if self._registered[place] is value:
                return
            del self._registered[place]
            environment.drop_temporary_view(name)
        elif _has_table(environment, name):
            return
        table = value if isinstance(value, Table) else environment.from_pandas(value)
        environment.create_temporary_view(name, table)
        self._registered[place] = value


def _run(statement: str, environment: TableEnvironment) -> Table | TableResult:
    if isinstance(parse_statement(statement), statements.Query):
        return environment.sql_query(statement)
    return environment.execute_sql(statement)


def _has_table(environment: TableEnvironment, name: str) -> bool:
    try:
        environment.from_path(name)
    except RayflinkError:
        return False
    return True


def _is_frame(value: object) -> bool:
    if importlib.util.find_spec("pandas") is None:
        return False
    import pandas  # type: ignore[import-untyped]

    return isinstance(value, pandas.DataFrame)
