"""Queries that use catalogs: functions by full names, and statistics by which a plan is chosen."""

from __future__ import annotations

import pytest

from rayflink.table import DataTypes, EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment
from rayflink.table.catalog import CatalogColumnStatistics, CatalogTableStatistics, GenericInMemoryCatalog, ObjectPath
from rayflink.table.expressions import call, col
from rayflink.table.udf import udaf, udf, udtf


@pytest.fixture
def t_env() -> TableEnvironment:
    created = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    created.get_config().set("execution.target", "local")
    created.register_catalog("shop", GenericInMemoryCatalog("shop"))
    return created


def rows(t_env, query):
    return sorted(tuple(row) for row in t_env.sql_query(query).execute().collect())


def test_functions_of_any_database_are_called_by_their_full_names(t_env):
    t_env.create_temporary_function("shop.`default`.upper", udf(lambda n: 2 * n, result_type=DataTypes.BIGINT()))
    t_env.create_temporary_function("shop.`default`.parts", udtf(lambda n: range(n), result_types=[DataTypes.BIGINT()]))
    t_env.create_temporary_function(
        "shop.`default`.most", udaf(max, result_type=DataTypes.BIGINT(), func_type="pandas", name="most")
    )
    numbers = "(VALUES (2), (3)) AS t(n)"
    twice = "shop.`default`.Upper(shop.`default`.Upper(n) - n)"
    assert rows(t_env, f"SELECT {twice} + 1, UPPER('a') FROM {numbers}") == [(5, "A"), (7, "A")]
    assert rows(t_env, f"SELECT x FROM {numbers}, LATERAL TABLE(shop.`default`.parts(n)) AS p(x)") == [
        (0,), (0,), (1,), (1,), (2,),
    ]  # fmt: skip
    assert rows(t_env, f"SELECT shop.`default`.most(n) FROM {numbers}") == [(3,)]
    assert rows(t_env, f"SELECT shop.`default`.most(n) FILTER (WHERE n < 3) FROM {numbers}") == [(2,)]
    assert rows(t_env, f"SELECT n, shop.`default`.most(n) OVER (ORDER BY n) FROM {numbers}") == [(2, 2), (3, 3)]
    table = t_env.from_elements([(4,)], ["n"]).select(call("shop.default.upper", col("n")))
    assert [tuple(row) for row in table.execute().collect()] == [(8,)]


@pytest.mark.parametrize("name", ["shop.`default`.lower", "nowhere.lower", "a.b.c.lower"])
def test_a_full_name_without_a_function_is_an_error_at_its_place(t_env, name):
    with pytest.raises(SqlError) as raised:
        t_env.sql_query(f"SELECT 1, {name}('a')")
    assert raised.value.place is not None


def test_a_plan_is_chosen_by_the_statistics_of_the_catalog(t_env, tmp_path):
    t_env.get_config().set("parallelism.default", "3")
    catalog = t_env.get_catalog("default_catalog")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        options = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / name}'"
        t_env.execute_sql(f"CREATE TABLE {name} (id INT, x{name} STRING) WITH ({options})")
    query = "SELECT a.id, xa, xb FROM a JOIN b ON a.id = b.id"
    for build, sizes in (("right", (10**6, 10)), ("left", (10, 10**6))):
        for name, count in zip("ab", sizes, strict=True):
            path = ObjectPath("default_database", name)
            catalog.alter_table_statistics(path, CatalogTableStatistics(row_count=count), False)
        plan = t_env.explain_sql(query, ExplainDetail.ESTIMATED_COST)
        assert f"build=[{build}]" in plan
        assert f"default_catalog.default_database.a: {sizes[0]} rows (of the catalog)" in plan
    columns = CatalogColumnStatistics({"id": {"ndv": 5, "null_count": 5, "min": 1, "max": 9}})
    catalog.alter_table_column_statistics(ObjectPath("default_database", "a"), columns, False)
    assert "a.id: min 1, max 9, nulls 0.5, distinct 5" in t_env.explain_sql(query, ExplainDetail.ESTIMATED_COST)
    few = "'connector' = 'datagen', 'number-of-rows' = '7'"
    t_env.execute_sql(f"CREATE TEMPORARY TABLE a (id INT, xa STRING) WITH ({few})")
    assert "(of the catalog)" not in t_env.explain_sql("SELECT * FROM a", ExplainDetail.ESTIMATED_COST)
