"""A query with the table that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .explain_detail import ExplainDetail
from .plan.logical import Sink
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
