"""What messages tell to write in the place of OVER and FOR SYSTEM_TIME runs, and gives what was wanted."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

ORDERS = "(VALUES (1, 'a', 10, 5), (2, 'a', 20, 7), (3, 'b', 30, 1), (4, 'a', 40, 6)) AS {}(id, k, ts, v)"
RATES = "(VALUES ('a', 5, 100), ('a', 15, 200), ('b', 40, 300)) AS v(k, ts, rate)"


@pytest.fixture
def t_env():
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set("execution.target", "local")
    return found


def rows(t_env, query):
    return sorted(tuple(row) for row in t_env.execute_sql(query).collect())


def refusal(t_env, query):
    with pytest.raises(SqlError) as caught:
        t_env.execute_sql(query)
    return str(caught.value)


def test_an_aggregate_over_a_partition_is_a_join_with_its_groups(t_env):
    message = refusal(t_env, f"SELECT id, AVG(v) OVER (PARTITION BY k) FROM {ORDERS.format('t')}")
    assert "(SELECT k, AVG(v) AS total FROM t GROUP BY k), and JOIN that" in message
    query = f"""SELECT t.id, g.total FROM {ORDERS.format("t")}
        JOIN (SELECT k, AVG(v) AS total FROM {ORDERS.format("t")} GROUP BY k) g ON t.k = g.k"""
    assert rows(t_env, query) == [(1, 6), (2, 6), (3, 1), (4, 6)]


def test_an_aggregate_of_the_rows_so_far_is_a_join_of_a_table_with_itself(t_env):
    message = refusal(t_env, f"SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM {ORDERS.format('t')}")
    assert "ON b.k = a.k AND b.ts <= a.ts, and take SUM(b.v) GROUP BY the columns of a" in message
    query = f"""SELECT a.id, SUM(b.v) FROM {ORDERS.format("a")} JOIN {ORDERS.format("b")}
        ON b.k = a.k AND b.ts <= a.ts GROUP BY a.id"""
    assert rows(t_env, query) == [(1, 5), (2, 12), (3, 1), (4, 18)]


def test_the_row_before_is_a_join_by_numbers(t_env):
    message = refusal(t_env, f"SELECT id, LAG(v) OVER (PARTITION BY k ORDER BY ts) FROM {ORDERS.format('t')}")
    assert "LEFT JOIN each with the one of b.rn = a.rn - 1" in message
    numbered = f"(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM {ORDERS.format('t')})"
    query = f"SELECT a.id, b.v FROM {numbered} a LEFT JOIN {numbered} b ON b.k = a.k AND b.rn = a.rn - 1"
    assert rows(t_env, f"SELECT id, v FROM ({query}) WHERE v IS NOT NULL") == [(2, 5), (4, 7)]


def test_the_version_of_a_time_is_the_newest_of_a_join(t_env):
    t_env.create_temporary_view("v", t_env.sql_query(f"SELECT * FROM {RATES}"))
    message = refusal(t_env, f"SELECT 1 FROM {ORDERS.format('o')} JOIN v FOR SYSTEM_TIME AS OF o.ts ON v.k = o.k")
    assert "ON v.k = o.k AND v.ts <= o.ts" in message and "interval" not in message
    query = f"""SELECT id, rate FROM (
        SELECT o.id, v.rate, ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY v.ts DESC) AS rn
        FROM {ORDERS.format("o")} LEFT JOIN v ON v.k = o.k AND v.ts <= o.ts) WHERE rn = 1 AND rate IS NOT NULL"""
    assert rows(t_env, query) == [(1, 100), (2, 200), (4, 200)]


def test_a_stream_is_warned_of_state():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    message = refusal(t_env, f"SELECT AVG(v) OVER (PARTITION BY k ORDER BY ts) FROM {ORDERS.format('t')}")
    assert "ROW_NUMBER" not in message and "keep the value so far as state of a process function" in message
