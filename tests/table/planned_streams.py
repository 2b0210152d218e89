"""The stream of a table's rows within the program of its environment, for tests that look at the job."""

from __future__ import annotations

from rayflink.datastream import DataStream
from rayflink.table import Table, TableEnvironment
from rayflink.table.table import plan_of


def planned_stream(t_env: TableEnvironment, table: Table) -> DataStream:
    """Return the rows of a table as Arrow batches, planned as a query is."""
    queries = t_env._queries
    [optimized] = queries.optimize([plan_of(table)])
    return queries.planner([optimized]).stream(optimized).stream
