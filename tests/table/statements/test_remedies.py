"""What messages tell to write in the place of FOR SYSTEM_TIME runs, and gives what was wanted."""

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


def test_the_version_of_a_time_is_the_newest_of_a_join(t_env):
    t_env.create_temporary_view("v", t_env.sql_query(f"SELECT * FROM {RATES}"))
    message = refusal(t_env, f"SELECT 1 FROM {ORDERS.format('o')} JOIN v FOR SYSTEM_TIME AS OF o.ts ON v.k = o.k")
    assert "ON v.k = o.k AND v.ts <= o.ts" in message and "interval" not in message
    query = f"""SELECT id, rate FROM (
        SELECT o.id, v.rate, ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY v.ts DESC) AS rn
        FROM {ORDERS.format("o")} LEFT JOIN v ON v.k = o.k AND v.ts <= o.ts) WHERE rn = 1 AND rate IS NOT NULL"""
    assert rows(t_env, query) == [(1, 100), (2, 200), (4, 200)]
