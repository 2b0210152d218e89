"""CURRENT_DATABASE is that of the environment."""

from __future__ import annotations

from rayflink.table import EnvironmentSettings, TableEnvironment


def test_the_current_database_is_known_to_queries():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("execution.target", "local")
    name = "CURRENT_DATABASE"
    t_env.execute_sql("CREATE DATABASE other")
    t_env.execute_sql("USE other")
    assert [tuple(row) for row in t_env.execute_sql(f"SELECT {name}()").collect()] == [("other",)]
