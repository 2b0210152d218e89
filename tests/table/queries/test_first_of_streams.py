"""Streams of which each key comes once: what is refused, what EXPLAIN shows, and how long a key is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common.errors import ConfigError
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.table import EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment
from rayflink.table.expressions import col
from rayflink.table.plan.changelog_fold import materialized
from rayflink.testing import SimulatedDisk, StopWithSavepoint, simulate
from tests.table.planned_streams import planned_stream
from tests.table.queries.golden_queries import FOLDER, GoldenQuery
from tests.table.queries.paced_orders import PacedConnector
from tests.table.queries.test_stopped_queries import OPTIONS

DISTINCT = "SELECT DISTINCT product FROM orders"
FIRST = (
    "SELECT product FROM (SELECT *, PROCTIME() AS now FROM orders) "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY product ORDER BY now) = 1"
)
EARLIEST = "SELECT product FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts) = 1"


def environment(**options: str) -> TableEnvironment:
    return GoldenQuery(FOLDER / "distinct_rows").environment(**options)


@pytest.mark.parametrize("query", [DISTINCT, FIRST, EARLIEST, f"{DISTINCT} UNION {DISTINCT}"])
def test_rows_only_come(query):
    plan = environment().explain_sql(query, ExplainDetail.CHANGELOG_MODE)
    physical = plan.partition("== Optimized Physical Plan ==")[2].partition("== Optimized Execution Plan ==")[0]
    steps = [line for line in physical.splitlines() if "(" in line]
    assert len(steps) >= 3 and all("changelogMode=[I]" in line for line in steps)


@pytest.mark.spec("R17")
@pytest.mark.parametrize("query", [DISTINCT, FIRST, EARLIEST])
def test_the_operators_tell_how_long_a_key_is_known(query):
    def operators(**options):
        return environment(**options).explain_sql(query, ExplainDetail.JSON_EXECUTION_PLAN).partition("nodes")[2]

    assert "stateTtl=[36 h])" in operators(**{"table.exec.state.ttl": "36 h"})
    assert "stateTtl" not in operators()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SELECT DISTINCT n", "SELECT n"])
def test_a_row_of_a_stream_that_changes_goes_with_the_last_that_has_its_values(name):
    counted = "SELECT product, COUNT(*) AS n FROM orders GROUP BY product"
    group = "" if "DISTINCT" in name else " GROUP BY n"
    changes = environment(**{"parallelism.default": "1"}).execute_sql(f"{name} FROM ({counted}){group}").collect()
    assert sorted(materialized(changes)) == [(1,), (2,), (4,), (5,)]


def test_the_table_api_has_them_too():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local")
    table = t_env.from_elements([(1, "a"), (1, "a"), (2, "a"), (1, "b")], ["n", "word"])
    for distinct, expected in (
        (table.select(col("word")).distinct(), [("a",), ("b",)]),
        (table.union(table), [(1, "a"), (1, "b"), (2, "a")]),
        (table.group_by(col("n")).select(col("n")), [(1,), (2,)]),
    ):
        assert sorted(map(tuple, distinct.execute().collect())) == expected


def test_the_time_to_live_is_a_duration():
    t_env = environment()
    with pytest.raises(ConfigError, match=r"table\.exec\.state\.ttl.*soon"):
        t_env.execute_sql("SET 'table.exec.state.ttl' = 'soon'")
        t_env.explain_sql(DISTINCT)
    with pytest.raises(ConfigError, match=r"table\.exec\.state\.ttl"):
        t_env.execute_sql("SET 'table.exec.state.ttl' = '-1 s'")
        t_env.explain_sql(DISTINCT)


@pytest.mark.spec("R17")
def test_a_hint_says_how_long_the_groups_of_a_table_are_known():
    hint = "/*+ STATE_TTL('o' = '36 h') */"
    grouped = environment().explain_sql(f"SELECT {hint} product FROM orders AS o GROUP BY product")
    assert "select=[product], stateTtlHints=[[[STATE_TTL options:{o=36 h}]]])" in grouped
    assert "stateTtlHints" in environment().explain_sql(f"SELECT {hint} DISTINCT product FROM orders o WHERE id > 1")
    assert "stateTtlHints" not in environment().explain_sql(f"SELECT {hint} product FROM orders o")


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        ("'order' = '1 d'", r"STATE_TTL of 'order', which is not a table of FROM \(did you mean orders\?\); the"),
        ("'orders' = 'soon'", "'soon' is not a duration; write for example '36 h'"),
        ("'orders' = '-1 s'", "'-1 s' is not a duration"),
        ("orders = 1", r"STATE_TTL cannot be read; write STATE_TTL\('key' = 'value', ...\)"),
    ],
)
def test_a_wrong_hint_is_reported(hint, problem):
    with pytest.raises(SqlError, match=problem):
        environment().sql_query(f"SELECT /*+ STATE_TTL({hint}) */ DISTINCT product FROM orders")


def hinted_job(query: str, ttl: str, path: str = "") -> JobGraph:
    """The job of a query over orders that come one each two milliseconds, five times the same."""
    restored = {"execution.state-recovery.path": path} if path else {}
    t_env = environment(**{**OPTIONS, "table.exec.state.ttl": ttl, **restored})
    catalogs = t_env._context.catalogs
    found_path, table = catalogs.find(("orders",))
    catalogs.replace(found_path, replace(table, connected=PacedConnector(5)))
    table = t_env.sql_query(query)
    with t_env._queries.env.apart():
        planned_stream(t_env, table).sink_to(CollectSink()).uid("out")
        return t_env._queries.env.get_job_graph()


def counts(story):
    assert story.status is JobStatus.FINISHED, story.describe(story.failure)
    return Counter(row[0] for row in story.collected())


@pytest.mark.slow
@pytest.mark.spec("G14", "keys", "R17")
@pytest.mark.parametrize("query", [DISTINCT, FIRST, EARLIEST])
def test_a_key_comes_again_when_its_time_is_over(query):
    once = {"tea": 1, "cake": 1, "milk": 1, None: 1}
    assert counts(simulate(hinted_job(query, "0 s"), 1)) == once
    assert counts(simulate(hinted_job(query, "1 h"), 1)) == once
    found = counts(simulate(hinted_job(query, "12 ms"), 1))
    assert sum(found.values()) > 4
    assert query == EARLIEST or found[None] == 5, "it comes every 24 ms"
    if query == DISTINCT:
        hinted = query.replace("SELECT", "SELECT /*+ STATE_TTL('orders' = '12 ms') */")
        assert counts(simulate(hinted_job(hinted, "1 h"), 1)) == found


@pytest.mark.slow
@pytest.mark.spec("R17")
def test_time_goes_on_from_a_savepoint():
    disk = SimulatedDisk()
    moves = simulate(hinted_job(DISTINCT, "1 h"), 1).happenings[-1].move
    story = simulate(hinted_job(DISTINCT, "1 h"), 1, [StopWithSavepoint(move=int(moves * 0.6))], disk)
    assert story.stopped_with
    assert counts(simulate(hinted_job(DISTINCT, "1 h", story.stopped_with), 1, (), disk))["tea"] == 1
    assert counts(simulate(hinted_job(DISTINCT, "1 ms", story.stopped_with), 1, (), disk))["tea"] > 1
