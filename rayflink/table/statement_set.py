"""Several queries that are run as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import SqlError
from .explain_detail import ExplainDetail
from .plan.logical import Sink
from .table_pipeline import TablePipeline
from .table_result import TableResult

if TYPE_CHECKING:
    from .schema import TableDescriptor
    from .table import Table
    from .table_environment import TableEnvironment


class StatementSet:
    """Queries with the tables that they write; made by `TableEnvironment.create_statement_set`.

    What two queries have in common is computed once.
    """

    def __init__(self, env: TableEnvironment) -> None:
        self._env = env
        self._sinks: list[Sink] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Return a query with the table that it writes."""
        self._sinks.append(table_pipeline._sink)
        return self

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Return an INSERT.

        Raises:
            SqlError: it is none, or it cannot be run.
        """
        self._sinks.append(self._env._sink_of(stmt))
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False
    ) -> StatementSet:
        """Return a table's rows, for a table of the catalog or one that a descriptor says."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite))

    def attach_as_datastream(self) -> None:
        """Make the queries part of the stream program, whose `execute` runs them; the set is empty then.

        Raises:
            SqlError: it is empty.
        """
        self._env._runner.attach(self._taken())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Explain how the statements would be run."""
        return self._env._runner.explained(self._sinks, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write that to the terminal."""
        print(self.explain(*extra_details))

    def execute(self) -> TableResult:
        """Run them as one job; the set is empty then.

        Raises:
            SqlError: it is empty.
        """
        return self._env._runner.insert(self._taken())

    def _taken(self) -> list[Sink]:
        if not self._sinks:
            raise SqlError("the statement set is empty", "add queries with add_insert or add_insert_sql")
        found, self._sinks = self._sinks, []
        return found


__all__ = ["StatementSet"]
