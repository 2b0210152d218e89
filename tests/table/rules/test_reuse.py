"""What two parts of a program have in common is computed once."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, ExplainDetail, TableEnvironment


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    found.create_temporary_view("t", found.from_elements([(n, n % 2) for n in range(6)], ["n", "w"]))
    return found


@pytest.mark.parametrize("drawn", ["RAND()", "RAND_INTEGER(1000000)", "UUID()"])
def test_two_uses_of_a_random_query_draw_for_themselves(t_env, drawn):
    query = f"WITH r AS (SELECT {drawn} AS x FROM t) SELECT x FROM r UNION ALL SELECT x FROM r"
    found = [row[0] for row in t_env.execute_sql(query).collect()]
    assert len(found) == 12 and len(set(found)) > 8


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ({}, 1),
        ({"table.optimizer.reuse-source-enabled": "false"}, 2),
        ({"table.optimizer.reuse-sub-plan-enabled": "false"}, 2),
    ],
)
def test_a_table_is_read_once_unless_that_is_switched_off(t_env, options, sources):
    for key, value in options.items():
        t_env.get_config().set_string(key, value)
    query = t_env.sql_query("SELECT n FROM t WHERE w = 1 UNION ALL SELECT w FROM t WHERE n = 1")
    assert query.explain(ExplainDetail.JSON_EXECUTION_PLAN).count('"Data Source"') == sources
    assert sorted(query.to_arrow().column(0).to_pylist()) == [1, 1, 3, 5]
