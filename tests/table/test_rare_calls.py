"""Calls of PyFlink's programs that are rare: modules, dialects, settings and names of old, lag and lead."""

from __future__ import annotations

import pytest

from rayflink.common import Configuration
from rayflink.common.errors import ConfigError, InvalidTypesError
from rayflink.table import (
    CsvTableSource,
    DataTypes,
    EnvironmentSettings,
    ModuleEntry,
    Schema,
    SqlDialect,
    SqlError,
    TableDescriptor,
    TableEnvironment,
    TableSource,
)
from rayflink.table.catalog import CatalogBaseTable
from rayflink.table.expressions import call, col, lag, lead
from rayflink.table.udf import udf
from rayflink.table.window import Over


@pytest.fixture
def t_env() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    created.get_config().set("execution.target", "local")
    return created


def test_there_is_one_module_of_functions(t_env):
    t_env.use_modules("core")
    assert (t_env.list_modules(), t_env.list_full_modules()) == (["core"], [ModuleEntry("core", True)])
    with pytest.raises(SqlError, match="modules hive, core, and there is only 'core'"):
        t_env.use_modules("hive", "core")


def test_there_is_one_dialect(t_env):
    t_env.get_config().set_sql_dialect(SqlDialect.DEFAULT)
    with pytest.raises(ConfigError, match="SqlDialect.DEFAULT"):
        t_env.get_config().set_sql_dialect(SqlDialect.HIVE)
    assert t_env.get_config().get_sql_dialect() == SqlDialect.DEFAULT


def test_settings_are_made_of_a_configuration_and_give_it_back():
    configuration = Configuration().set_string("execution.runtime-mode", "BATCH")
    settings = EnvironmentSettings.from_configuration(configuration)
    assert not settings.is_streaming_mode() and settings.to_configuration() is settings.get_configuration()


def test_results_of_statements_are_closed_by_with(t_env):
    with t_env.execute_sql("SHOW CATALOGS").collect() as rows:
        assert [tuple(row) for row in rows] == [("default_catalog",)]


def test_a_function_is_registered_by_the_call_of_old(t_env):
    t_env.register_function("twice", udf(lambda n: 2 * n, result_type=DataTypes.BIGINT()))
    assert [tuple(row) for row in t_env.sql_query("SELECT twice(4)").execute().collect()] == [(8,)]


def test_a_pipeline_into_a_table_without_a_name_has_no_identifier(t_env):
    schema = Schema.new_builder().column("n", DataTypes.INT()).build()
    sink = TableDescriptor.for_connector("print").schema(schema).build()
    assert t_env.sql_query("SELECT 1").insert_into(sink).get_sink_identifier() is None


def test_the_schema_of_old_has_the_columns_whose_types_are_known():
    schema = Schema.new_builder().column("n", DataTypes.INT()).build()
    assert CatalogBaseTable.create_table(schema).get_schema().get_field_names() == ["n"]
    computed = Schema.new_builder().column("n", DataTypes.INT()).column_by_expression("m", "n + 1").build()
    with pytest.raises(InvalidTypesError, match="'m' is computed"):
        CatalogBaseTable.create_table(computed).get_schema()
    assert issubclass(CsvTableSource, TableSource)


def test_lag_and_lead_take_the_rows_of_a_window(t_env):
    rows = t_env.from_elements([("a", 1), ("a", 3), ("b", 5)], ["k", "v"])
    window = Over.partition_by(col("k")).order_by(col("v")).alias("w")
    query = rows.over_window(window).select(
        col("v"), lag(col("v")).over(col("w")), lead(col("v"), 1, -1).over(col("w")), col("v").sum.over(col("w"))
    )
    assert sorted(tuple(row) for row in query.execute().collect()) == [(1, None, 3, 1), (3, 1, -1, 4), (5, None, -1, 5)]
    framed = Over.order_by(col("v")).preceding(call("ABS", 1)).alias("w")
    with pytest.raises(SqlError):
        rows.over_window(framed).select(lag(col("v")).over(col("w")))
