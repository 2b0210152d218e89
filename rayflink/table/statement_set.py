"""Several queries that are run as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compiled_plan import CompiledPlan, compiled
from .errors import SqlError
from .explain_detail import ExplainDetail
from .explaining.plan_drawing import PlanDrawing
from .parsing.statement_parser import parse_statement
from .plan.logical import Sink
from .statements.statement_runner import StatementRunner
from .table_pipeline import TablePipeline, sink_of
from .table_result import TableResult

if TYPE_CHECKING:
    from .plan.conflicts import InsertConflictStrategy
    from .schema import TableDescriptor
    from .statements.query_runner import QueryRunner
    from .table import Table


class StatementSet:
    """Queries with the tables that they write; made by `TableEnvironment.create_statement_set`.

    What two queries have in common is computed once.
    """

    def __init__(self, queries: QueryRunner) -> None:
        self._queries = queries
        self._sinks: list[Sink] = []

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Add a query with the table that it writes, and return the set."""
        self._sinks.append(sink_of(table_pipeline))
        return self

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Add an INSERT, and return the set.

        Raises:
            SqlError: it is none, or it cannot be run.
        """
        try:
            self._sinks.append(StatementRunner(self._queries, stmt).sink(parse_statement(stmt)))
        except SqlError as error:
            raise (error if error.text else error.at(stmt)) from error
        return self

    def add_insert(
        self, target_path_or_descriptor: str | TableDescriptor, table: Table, overwrite: bool = False,
        conflict_strategy: InsertConflictStrategy | None = None,
    ) -> StatementSet:  # fmt: skip
        """Add a table's rows, for a table of the catalog or one that a descriptor says."""
        return self.add(table.insert_into(target_path_or_descriptor, overwrite, conflict_strategy))

    def attach_as_datastream(self) -> None:
        """Make the queries part of the stream program, whose `execute` runs them; the set is empty then.

        Raises:
            SqlError: it is empty.
        """
        self._queries.add_inserts(self._taken())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Explain how the statements would be run."""
        return self._queries.explain(self._sinks, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write that to the terminal."""
        print(self.explain(*extra_details))

    def draw_plan(self) -> PlanDrawing:
        """Draw how the statements would be run; notebooks show the picture."""
        return self._queries.draw(self._sinks)

    def compile_plan(self) -> CompiledPlan:
        """Return the plan of the statements, which can be written to a file and run later; they stay in the set.

        Raises:
            SqlError: the set is empty, or part of the plan is bound to this program.
        """
        if not self._sinks:
            raise _empty()
        return compiled(self._queries, self._sinks)

    def execute(self) -> TableResult:
        """Run them as one job; the set is empty then.

        Raises:
            SqlError: it is empty.
        """
        return self._queries.run_inserts(self._taken())

    def _taken(self) -> list[Sink]:
        if not self._sinks:
            raise _empty()
        sinks, self._sinks = self._sinks, []
        return sinks


def _empty() -> SqlError:
    return SqlError("the statement set is empty", "add queries with add_insert or add_insert_sql")


__all__ = ["StatementSet"]
