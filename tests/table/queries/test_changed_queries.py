"""Whose state a query is given: its own wherever it stands in a program, and never that of another query."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.table import TableEnvironment
from rayflink.testing import SimulatedDisk, StopWithSavepoint, simulate
from tests.table.planned_streams import planned_stream
from tests.table.queries.golden_queries import FOLDER, GoldenQuery
from tests.table.queries.paced_orders import PacedConnector
from tests.table.queries.test_stopped_queries import OPTIONS

WINDOWS = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND))"
BY_PRODUCT = f"SELECT product, SUM(amount) FROM {WINDOWS} GROUP BY product, window_start, window_end"
OF_ID = f"SELECT product, SUM(twice) FROM (SELECT *, amount * 2 AS twice FROM {WINDOWS}) "
OF_ID += "GROUP BY product, window_start, window_end"
BY_CUSTOMER = BY_PRODUCT.replace("product", "customer")
MANY = BY_PRODUCT.replace("GROUP", "WHERE amount > 1 GROUP")
MORE = BY_PRODUCT.replace("GROUP", "WHERE amount > 2 GROUP")
SECOND = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end, product ORDER BY {})"
RANKED = f"SELECT product, amount, id FROM (SELECT *, {SECOND.format('id DESC')} AS n FROM {WINDOWS}) WHERE n < 3"
JOINED = """SELECT a.id, b.id FROM orders a JOIN orders b
ON a.product = b.product AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '20' SECOND WHERE a.customer <> b.customer"""


def environment(**options: str) -> TableEnvironment:
    found = GoldenQuery(FOLDER / "project").environment(**options)
    for name in ("sums", "others"):
        found.execute_sql(f"CREATE TABLE {name} (name STRING, amount INT) WITH ('connector' = 'blackhole')")
    found.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    return found


def insert_all(t_env: TableEnvironment, inserts: Sequence[str]) -> None:
    statement_set = t_env.create_statement_set()
    for insert in inserts:
        statement_set.add_insert_sql(insert)
    statement_set.attach_as_datastream()


def ids(*inserts: str) -> dict[str, str]:
    """Names of operators with the tables behind them -> their ids, in a program of these statements."""
    t_env = environment()
    with t_env._queries.env.apart():
        insert_all(t_env, inserts)
        operators = [one for vertex in t_env._queries.env.get_job_graph().vertices for one in vertex.operators]
    named = [one for one in operators if one.name.startswith(("Source: ", "Sink: ", "Global"))]
    return {f"{one.name} {one.description or ''}": str(one.operator_id) for one in named}


SUMS = f"INSERT INTO sums {BY_PRODUCT}"


@pytest.mark.parametrize(
    "before",
    [
        f"INSERT INTO others {BY_CUSTOMER}",
        "INSERT INTO others SELECT 'x', n FROM numbers",
        f"INSERT INTO others {OF_ID}",
    ],
)
def test_statements_in_front_leave_the_ids_of_a_query_alone(before):
    alone, beside = ids(SUMS), ids(before, SUMS)
    assert len(alone) == 3, alone
    assert set(alone.values()) < set(beside.values())


@pytest.mark.slow
def test_ids_are_the_same_in_another_process():
    program = "from tests.table.queries.test_changed_queries import ids, SUMS; print(ids(SUMS))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == str(ids(SUMS))


def test_a_job_that_was_run_before_leaves_ids_alone():
    t_env = environment()
    list(t_env.execute_sql("SELECT n FROM numbers").collect())
    with t_env._queries.env.apart():
        insert_all(t_env, [SUMS])
        graph = t_env._queries.env.get_job_graph()
    found = {str(operator.operator_id) for vertex in graph.vertices for operator in vertex.operators}
    assert set(ids(SUMS).values()) <= found


# state


def job(query: str, path: str = "") -> JobGraph:
    """A query over paced orders."""
    restored = {"execution.state-recovery.path": path} if path else {}
    t_env = environment(**OPTIONS, **restored)
    catalogs = t_env._context.catalogs
    found_path, table = catalogs.find(("orders",))
    catalogs.replace(found_path, replace(table, connected=PacedConnector(4)))
    table = t_env.sql_query(query)
    with t_env._queries.env.apart():
        planned_stream(t_env, table).sink_to(CollectSink()).uid("out")
        return t_env._queries.env.get_job_graph()


def continued(first: str, then: str) -> Any:
    """The story of a query that goes on with a savepoint of another one."""
    moves = simulate(job(first), 1).happenings[-1].move
    disk = SimulatedDisk()
    story = simulate(job(first), 1, [StopWithSavepoint(move=moves // 2)], disk)
    assert story.stopped_with
    return simulate(job(then, story.stopped_with), 1, (), disk)


CHANGES = [
    (BY_PRODUCT, OF_ID),
    (BY_PRODUCT, BY_CUSTOMER),
    (BY_PRODUCT, BY_PRODUCT.replace("'20' SECOND", "'10' SECOND")),
    (RANKED, RANKED.replace("id DESC", "amount DESC, id DESC")),
    (RANKED, RANKED.replace("window_end, product", "window_end, customer")),
    (JOINED, JOINED.replace("a.product = b.product", "a.customer = b.customer").replace("a.customer <>", "a.product <>")
     .replace("<> b.customer", "<> b.product")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), CHANGES)
def test_state_of_another_query_is_refused(first, then):
    story = continued(first, then)
    assert story.status is JobStatus.FAILED
    assert "start without" in str(story.failure) or "allow" in str(story.failure), str(story.failure)


@pytest.mark.slow
def test_names_of_columns_are_no_part_of_state():
    story = continued(BY_PRODUCT, BY_PRODUCT.replace("SUM(amount)", "SUM(amount) AS total"))
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)


@pytest.mark.slow
def test_a_query_whose_filter_has_changed_goes_on_with_its_rows():
    story = continued(MANY, MORE)
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    assert Counter(map(repr, map(list, story.collected())))
