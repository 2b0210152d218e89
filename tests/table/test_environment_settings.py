"""How a TableEnvironment learns whether it runs in batch mode, and the names of its first catalog and database."""

from __future__ import annotations

import pytest

from rayflink.common import Configuration
from rayflink.common.errors import ConfigError
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, SqlError, StreamTableEnvironment, TableEnvironment

SORTED = "SELECT * FROM (VALUES (2), (3), (1)) AS t(n) ORDER BY n"
"""Runs in batch mode alone."""


def configuration(mode: str) -> Configuration:
    return Configuration.from_dict({"execution.runtime-mode": mode, "execution.target": "local"})


def by_stream_environment(mode: str) -> TableEnvironment:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    return StreamTableEnvironment.create(env)


def by_settings_beside_streams(mode: str) -> TableEnvironment:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    builder = EnvironmentSettings.new_instance()
    return StreamTableEnvironment.create(env, getattr(builder, f"in_{mode.lower()}_mode")().build())


WAYS = {
    "the stream environment": by_stream_environment,
    "settings beside a stream environment": by_settings_beside_streams,
    "a Configuration": lambda mode: TableEnvironment.create(configuration(mode)),
    "with_configuration": lambda mode: TableEnvironment.create(
        EnvironmentSettings.new_instance().with_configuration(configuration(mode)).build()
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_batch_mode_is_taken_however_it_is_said(way):
    t_env = WAYS[way]("BATCH")
    assert [row[0] for row in t_env.execute_sql(SORTED).collect()] == [1, 2, 3]
    assert t_env.get_config().get("execution.runtime-mode") == "BATCH"


@pytest.mark.parametrize("way", WAYS)
def test_streaming_mode_is_taken_however_it_is_said(way):
    with pytest.raises(SqlError, match="batch mode"):
        WAYS[way]("STREAMING").execute_sql(SORTED)


def test_an_option_from_outside_is_the_mode_where_the_program_says_none(monkeypatch):
    monkeypatch.setenv("RAYFLINK_OPTIONS", "execution.runtime-mode=BATCH execution.target=local")
    t_env = TableEnvironment.create(EnvironmentSettings.new_instance().build())
    assert [row[0] for row in t_env.execute_sql(SORTED).collect()] == [1, 2, 3]


def test_the_job_of_a_table_in_batch_mode_is_one_of_batches():
    env = StreamExecutionEnvironment({"execution.target": "local"})
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    t_env.to_data_stream(t_env.from_elements([(1,)], ["n"])).print()
    assert env.get_stream_graph().batch


def test_the_last_of_several_calls_counts():
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration("BATCH"))
    assert not builder.build().is_streaming_mode()
    assert builder.in_streaming_mode().build().is_streaming_mode()


@pytest.mark.parametrize("way", ["the stream environment", "a Configuration", "with_configuration"])
def test_automatic_mode_is_refused(way):
    expected = r"'execution.runtime-mode'.*: found AUTOMATIC, wanted STREAMING or BATCH"
    with pytest.raises(ConfigError, match=expected):
        WAYS[way]("AUTOMATIC")


def by_set(t_env: TableEnvironment) -> None:
    t_env.execute_sql("SET 'execution.runtime-mode' = 'batch'")


def by_config(t_env: TableEnvironment) -> None:
    t_env.get_config().set("execution.runtime-mode", "batch")


@pytest.mark.parametrize("change", [by_set, by_config])
def test_the_mode_cannot_change_afterwards(change):
    t_env = by_stream_environment("STREAMING")
    change(t_env)
    with pytest.raises(ConfigError, match="found BATCH, wanted STREAMING; the mode of a TableEnvironment cannot"):
        t_env.execute_sql("SELECT 1")
    t_env.execute_sql("RESET 'execution.runtime-mode'")
    assert [row[0] for row in t_env.execute_sql("SELECT 1").collect()] == [1]


def test_a_table_without_an_end_is_refused_in_batch_mode():
    t_env = WAYS["a Configuration"]("BATCH")
    t_env.execute_sql("CREATE TABLE g (n INT) WITH ('connector' = 'datagen')")
    with pytest.raises(SqlError, match=r"g\]\], fields=\[n\]\) has no end, and in batch mode a query sees all rows"):
        t_env.execute_sql("SELECT COUNT(*) FROM g")


def test_names_of_the_first_catalog_and_database_are_taken():
    settings = (
        EnvironmentSettings.new_instance()
        .with_built_in_catalog_name("shop")
        .with_built_in_database_name("sales")
        .build()
    )
    assert (settings.get_built_in_catalog_name(), settings.get_built_in_database_name()) == ("shop", "sales")
    t_env = TableEnvironment.create(settings)
    assert (t_env.get_current_catalog(), t_env.get_current_database()) == ("shop", "sales")
    assert (t_env.list_catalogs(), t_env.list_databases()) == (["shop"], ["sales"])
    t_env.execute_sql("CREATE TABLE t (n INT) WITH ('connector' = 'datagen')")
    assert "CREATE TABLE `shop`.`sales`.`t`" in next(iter(t_env.execute_sql("SHOW CREATE TABLE t").collect()))[0]
    with pytest.raises(SqlError, match="default_catalog"):
        t_env.from_path("default_catalog.default_database.t")


def test_an_empty_name_of_a_catalog_is_refused():
    with pytest.raises(ConfigError, match=r"'table.builtin-catalog-name'.*wanted a name"):
        EnvironmentSettings.new_instance().with_built_in_catalog_name("")
