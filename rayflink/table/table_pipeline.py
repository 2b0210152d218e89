"""A query with the table that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .catalog.object_names import ObjectIdentifier
from .compiled_plan import CompiledPlan, compiled
from .explain_detail import ExplainDetail
from .explaining.plan_drawing import PlanDrawing
from .plan.logical import ANONYMOUS, Sink
from .table_result import TableResult

if TYPE_CHECKING:
    from .statements.query_runner import QueryRunner


class TablePipeline:
    """A query with the table that it writes, not yet run; made by `Table.insert_into`."""

    def __init__(self, queries: QueryRunner, sink: Sink) -> None:
        self._queries, self._sink = queries, sink

    def execute(self) -> TableResult:
        """Run it."""
        return self._queries.run_inserts([self._sink])

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """Return the full name of the table that is written; None: it has none, as one of a descriptor.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.execute_sql("CREATE TABLE shown (n INT) WITH ('connector' = 'print')")
        >>> print(t_env.sql_query("SELECT 1").insert_into("shown").get_sink_identifier())
        `default_catalog`.`default_database`.`shown`
        """
        catalog, database, name = self._sink.path
        return None if name.startswith(ANONYMOUS) else ObjectIdentifier(catalog, database, name)
    def draw_plan(self) -> PlanDrawing:
        """Draw how it would be run; notebooks show the picture."""
        return self._queries.draw([self._sink])

    def compile_plan(self) -> CompiledPlan:
        """Return its plan, which can be written to a file and run later.

        Raises:
            SqlError: part of the plan is bound to this program.
        """
        return compiled(self._queries, [self._sink])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Explain how it would be run."""
        return self._queries.explain([self._sink], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write that to the terminal."""
        print(self.explain(*extra_details))


def sink_of(pipeline: TablePipeline) -> Sink:
    """Return the plan of a pipeline."""
    return pipeline._sink


__all__ = ["TablePipeline", "sink_of"]
