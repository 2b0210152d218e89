"""A query with the table that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .explain_detail import ExplainDetail
from .plan.logical import Sink
from .table_result import TableResult

if TYPE_CHECKING:
    from .table_environment import TableEnvironment


class TablePipeline:
    """A query with the table that it writes, not yet run; made by `Table.insert_into`."""

    def __init__(self, env: TableEnvironment, sink: Sink) -> None:
        self._env, self._sink = env, sink

    def execute(self) -> TableResult:
        """Run it."""
        return self._env._runner.insert([self._sink])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Explain how it would be run."""
        return self._env._runner.explained([self._sink], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write that to the terminal."""
        print(self.explain(*extra_details))


__all__ = ["TablePipeline"]
