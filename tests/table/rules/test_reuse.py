"""What two parts of a program have in common is computed once."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, TableEnvironment


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
