"""Objects in the state of SQL: a query that is stopped midway and restored gives the rows of an undisturbed one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.table import DataTypes
from rayflink.table.udf import udf
from rayflink.testing import SimulatedDisk, StopWithSavepoint, simulate
from tests.table.planned_streams import planned_stream
from tests.table.queries.paced_orders import PacedConnector
from tests.table.queries.test_first_of_streams import environment
from tests.table.queries.test_stopped_queries import OPTIONS

JOIN = """
SELECT size(a.x), b.id FROM (SELECT product, as_set(id) AS x FROM orders) AS a
JOIN (SELECT DISTINCT product, id FROM orders) AS b ON a.product = b.product
"""


def joined(width: int, path: str = "") -> JobGraph:
    """The job of a join whose state has objects."""
    restored = {"execution.state-recovery.path": path} if path else {}
    t_env = environment(**{**OPTIONS, "parallelism.default": str(width), **restored})
    t_env.create_temporary_function("as_set", udf(lambda number: {number, -1}, result_type=DataTypes.RAW()))
    t_env.create_temporary_function("size", udf(lambda numbers: max(numbers), result_type=DataTypes.BIGINT()))
    catalogs = t_env._context.catalogs
    found_path, table = catalogs.find(("orders",))
    catalogs.replace(found_path, replace(table, connected=PacedConnector(2)))
    query = t_env.sql_query(JOIN)
    with t_env._queries.env.apart():
        planned_stream(t_env, query).sink_to(CollectSink()).uid("out")
        return t_env._queries.env.get_job_graph()


@pytest.mark.slow
def test_objects_in_state_are_restored_at_another_parallelism():
    plain = simulate(joined(2), 1)
    assert plain.status is JobStatus.FINISHED, plain.describe(plain.failure)
    rows = Counter(map(tuple, plain.collected()))
    disk, moves = SimulatedDisk(), plain.happenings[-1].move
    stopped = simulate(joined(2), 1, [StopWithSavepoint(move=int(moves * 0.6))], disk)
    assert stopped.stopped_with
    rest = simulate(joined(3, stopped.stopped_with), 1, (), disk)
    assert rest.status is JobStatus.FINISHED, rest.describe(rest.failure)
    assert Counter(map(tuple, rest.collected())) == rows
    assert 0 < len(stopped.collected()) < len(rest.collected()), "the sink has the rows from before the savepoint, too"
