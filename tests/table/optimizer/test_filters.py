"""Filters are asked as early as they mean the same."""

from __future__ import annotations

import pytest

from rayflink.table import TableEnvironment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

TUMBLE = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))"


@pytest.fixture
def t_env() -> TableEnvironment:
    return GoldenQuery(FOLDER / "project").environment()


def steps(t_env: TableEnvironment, query: str) -> list[str]:
    """The plan from the result down, each line without what it is hung on."""
    shown = t_env.explain_sql(query).partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]
    return [line.lstrip(" +-:") for line in shown.splitlines()]


def place(lines: list[str], condition: str) -> int:
    [found] = [at for at, line in enumerate(lines) if f"where=[{condition}]" in line]
    return found


def test_a_condition_on_a_key_goes_below_the_aggregate_and_one_on_a_result_stays(t_env):
    inner = f"SELECT product, COUNT(*) AS n FROM {TUMBLE} GROUP BY product, window_start, window_end"
    lines = steps(t_env, f"SELECT product FROM ({inner}) WHERE product = 'tea' AND n > 1")
    names = [line.partition("(")[0] for line in lines]
    assert place(lines, "product = 'tea'") == names.index("LocalWindowAggregate") + 1
    assert place(lines, "EXPR$0 > 1") < names.index("GlobalWindowAggregate")


def test_a_condition_on_the_bounds_of_windows_stays_above_them(t_env):
    lines = steps(t_env, f"SELECT id FROM {TUMBLE} WHERE window_start > TIMESTAMP '2020-01-01 00:00:00' AND id > 3")
    [windows] = [at for at, line in enumerate(lines) if line.startswith("WindowTableFunction")]
    assert place(lines, "id > 3") > windows
    assert any("window_start > " in line for line in lines[:windows])


def test_no_condition_goes_below_what_makes_watermarks(t_env):
    lines = steps(t_env, "SELECT id FROM orders WHERE id > 3 AND ts > CURRENT_WATERMARK(ts)")
    where = place(lines, "(id > 3) AND (ts > CURRENT_WATERMARK(ts))")
    assert where < next(at for at, line in enumerate(lines) if line.startswith("WatermarkAssigner"))


def test_a_random_condition_stays_where_it_is(t_env):
    lines = steps(t_env, f"SELECT id FROM (SELECT * FROM {TUMBLE}) WHERE RAND() < 0.5 AND id > 3")
    [windows] = [at for at, line in enumerate(lines) if line.startswith("WindowTableFunction")]
    assert place(lines, "RAND() < 0.5") < windows < place(lines, "id > 3")


def test_conditions_go_into_each_side_of_a_union(t_env):
    lines = steps(t_env, "SELECT n FROM (SELECT id AS n FROM orders UNION ALL SELECT amount FROM orders) WHERE n > 3")
    assert lines[0].startswith("Union(")
    assert place(lines, "id > 3") and place(lines, "CAST(amount) > 3")


def test_unused_columns_are_not_computed(t_env):
    t_env.execute_sql(
        "CREATE TABLE computed (big AS id * 2, odd AS MOD(id, 2), late AS ts + INTERVAL '1' SECOND, id BIGINT, "
        f"w STRING, x STRING, p STRING, a INT, ts TIMESTAMP(3), WATERMARK FOR late AS late) "
        f"WITH ('connector' = 'filesystem', 'path' = '{FOLDER}/orders.csv', 'format' = 'csv')"
    )
    lines = steps(t_env, "SELECT odd FROM computed WHERE late > CURRENT_WATERMARK(late)")
    assert "big" not in "".join(lines) and "project=[id, ts]" in lines[-1]
    assert "project=[id]" in steps(t_env, "SELECT odd FROM computed")[-1], "nobody reads the watermark"
