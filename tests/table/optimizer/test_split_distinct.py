"""DISTINCT aggregates in two steps give the rows of those in one; the rows of one key go to several subtasks."""

from __future__ import annotations

import tempfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.connectors.collection import CollectSink
from rayflink.state.clock import ManualClock
from tests.table.planned_streams import planned_stream
from tests.table.queries.generated_queries import HAVING, KEYS, PHASES, SESSIONS, WINDOWS, filters, named, pairs, some
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

OPTION, BUCKETS = "table.optimizer.distinct-agg.split.enabled", "table.optimizer.distinct-agg.split.bucket-num"
SPLIT = {OPTION: "true", BUCKETS: "3"}
DISTINCT = ["COUNT(DISTINCT {0})", "SUM(DISTINCT {0})", "AVG(DISTINCT {0})", "MIN(DISTINCT {0})",
            "COUNT(DISTINCT {0}) FILTER (WHERE f)", "SUM(DISTINCT {0}) FILTER (WHERE k = 'a')"]  # fmt: skip
BESIDE = ["COUNT(*)", "COUNT(k)", "SUM(n)", "SUM(p)", "SUM(m)", "SUM(d)", "AVG(n)", "AVG(d)", "AVG(m)", "MIN(k)",
          "MAX(d)", "MAX(ts)", "AVG(m) FILTER (WHERE f)", "MIN(n) FILTER (WHERE n > 0)", "COUNT(*) FILTER (WHERE f)",
          "AVG(CAST(d AS FLOAT))", "SUM(CAST(n AS TINYINT))"]  # fmt: skip
TUMBLE = "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) GROUP BY window_start, window_end"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Aggregates with DISTINCT of one column, of windows, of windows of windows, or of both bounds in HAVING."""
    column = draw(st.sampled_from(["n", "p", "m", "d"]))
    calls = [one.format(column) for one in draw(some(DISTINCT, 1, 3))] + draw(some(BESIDE, 0, 3))
    keys = draw(some([one for one in KEYS if one != column], 0, 2))
    group = ", ".join([*keys, "window_start", "window_end"])
    having = draw(st.none() | st.sampled_from(HAVING[:3]))
    source = draw(st.sampled_from(["{w}", "(SELECT * FROM {w} WHERE window_end > ts) AS x"]))
    query = f"SELECT {group}, {named(draw(st.permutations(calls)))} FROM {source}{draw(filters())} GROUP BY {group}"
    return query + (f" HAVING {having}" if having else "")


@pytest.mark.slow
@given(rows=pairs(), query=queries(), window=st.sampled_from([*WINDOWS, SESSIONS[0]]))
@settings(max_examples=60, phases=PHASES, deadline=None)
def test_split_or_whole_the_rows_are_the_same(rows, query, window):
    with tempfile.TemporaryDirectory() as folder:
        both, text = rows.both(folder), query.format(w=window.ours("t"))
        whole = Counter(both.ours(text))
        both.set(**SPLIT)
        assert Counter(both.ours(text)) == whole


def explained(query: str, **options: str) -> str:
    t_env = GoldenQuery(FOLDER / "split_distinct").environment(**{**SPLIT, **options})
    return t_env.explain_sql(query)


@pytest.mark.parametrize(
    "calls",
    [
        "COUNT(DISTINCT product)",
        "COUNT(DISTINCT product), SUM(amount), COUNT(DISTINCT product) FILTER (WHERE amount > 1)",
        "SUM(DISTINCT price), AVG(price), MIN(DISTINCT product)",
        "AVG(DISTINCT amount)",
    ],
)
def test_distinct_of_one_column_is_split(calls):
    found = explained(f"SELECT {calls} {TUMBLE}")
    assert "partialFinalType=[PARTIAL]" in found
    assert "partialFinalType=[FINAL]" in found


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(amount), MIN(DISTINCT product) {TUMBLE}",
        f"SELECT COUNT(DISTINCT amount), LISTAGG(product) {TUMBLE}",
        f"SELECT COUNT(DISTINCT amount), STDDEV_POP(amount) {TUMBLE}",
        f"SELECT SUM(DISTINCT CAST(price AS DECIMAL(30, 2))) {TUMBLE}",
        f"SELECT product, COUNT(DISTINCT product) {TUMBLE}, product",
        "SELECT COUNT(DISTINCT amount) FROM orders GROUP BY SESSION(ts, INTERVAL '20' SECOND)",
        "SELECT COUNT(DISTINCT amount) FROM TABLE(SESSION(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' SECOND)) "
        "WHERE window_end > ts GROUP BY window_start, window_end",
        "SELECT COUNT(DISTINCT amount) FROM (SELECT amount, PROCTIME() AS pt FROM orders) "
        "GROUP BY TUMBLE(pt, INTERVAL '20' SECOND)",
    ],
)
def test_others_are_not(query):
    assert "partialFinalType" not in explained(query)


def test_nor_are_windows_that_show_results_early():
    early = {"table.exec.emit.early-fire.enabled": "true", "table.exec.emit.early-fire.delay": "0"}
    query = "SELECT COUNT(DISTINCT amount) FROM orders GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)"
    assert "partialFinalType" in explained(query)
    assert "partialFinalType" not in explained(query, **early)


def rows_by_subtask(**options: str) -> list[int]:
    """How many of the rows of one key each subtask of the first exchange takes; checks the result."""
    t_env = GoldenQuery(FOLDER / "split_distinct").environment(**options)
    t_env.execute_sql(
        "CREATE TABLE visits (who INT, ts AS TO_TIMESTAMP_LTZ(CAST(who AS BIGINT), 3), page AS 'start', WATERMARK FOR "
        "ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '2000', 'fields.who.kind' = 'sequence', "
        "'fields.who.start' = '1', 'fields.who.end' = '2000')"
    )
    windows = "TABLE(TUMBLE(TABLE visits, DESCRIPTOR(ts), INTERVAL '1' DAY))"
    query = f"SELECT COUNT(DISTINCT who) FROM {windows} GROUP BY page, window_start, window_end"
    table = t_env.sql_query(query)
    with t_env._queries.env.apart():
        planned_stream(t_env, table).sink_to(CollectSink("out"))
        clock = ManualClock(1_000)
        cluster = InProcessCluster(t_env._queries.env.get_job_graph(), clock, lambda ms: clock.advance(max(1, int(ms))))
        result = cluster.run()
    assert [tuple(row) for row in result.accumulators["out"]] == [(2000,)]
    first = next(one for one in result.vertices if one["name"].startswith("GlobalWindowAggregate"))
    return [one["metrics"]["numRecordsIn"] for one in first["subtasks"]]


@pytest.mark.slow
def test_rows_of_one_key_go_to_several_subtasks():
    assert min(rows_by_subtask(**{OPTION: "false"})) == 0
    few, many = sorted(rows_by_subtask(**{OPTION: "true", BUCKETS: "64"}))
    assert few > 0.25 * (few + many)


def test_distinct_of_several_columns_is_split_in_groups_of_rows_that_stay():
    counts = "(SELECT product, amount, COUNT(*) AS price FROM orders GROUP BY product, amount)"
    query = "SELECT price, COUNT(DISTINCT product){0} FROM {1} GROUP BY price"
    more = ", COUNT(DISTINCT amount)"
    for calls, rows, is_split in [("", counts, True), (more, "orders", True), (more, counts, False)]:
        assert ("split=[true]" in explained(query.format(calls, rows))) == is_split, (calls, rows)
