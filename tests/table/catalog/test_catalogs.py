"""The laws of catalogs: in memory, and in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rayflink.table import DataTypes, Schema, TableSchema
from rayflink.table.catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogColumnStatistics,
    CatalogDatabase,
    CatalogFunction,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    GenericInMemoryCatalog,
    ObjectPath,
    SqlCatalog,
)
from rayflink.table.catalog import exceptions as errors

T1, T2, ABSENT = ObjectPath("default", "t1"), ObjectPath("default", "t2"), ObjectPath("nowhere", "t")
SPEC = CatalogPartitionSpec({"day": "2026-11-01", "hour": "7"})
OTHER_SPEC = CatalogPartitionSpec({"day": "2026-11-02", "hour": "7"})


@pytest.fixture(params=["memory", "sqlite"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    if request.param == "memory":
        yield GenericInMemoryCatalog("shop")
        return
    stored = SqlCatalog("shop", f"sqlite:///{tmp_path}/catalog.db")
    yield stored
    stored.close()


def table(**options: str) -> CatalogBaseTable:
    columns = ("id", DataTypes.BIGINT().not_null()), ("day", DataTypes.STRING()), ("hour", DataTypes.STRING())
    builder = Schema.new_builder()
    for name, data_type in columns:
        builder.column(name, data_type)
    return CatalogBaseTable.create_table(builder.primary_key("id").build(), ["day", "hour"], options, "orders")


def view() -> CatalogBaseTable:
    schema = TableSchema.builder().field("id", DataTypes.BIGINT()).build()
    query = "SELECT id FROM shop.`default`.t1"
    return CatalogBaseTable.create_view("SELECT id FROM t1", query, schema, {"a": "b"}, "v")


def test_databases_are_created_changed_listed_and_dropped(catalog: Catalog):
    database = CatalogDatabase.create_instance({"owner": "sales"}, "what is sold")
    catalog.create_database("sales", database, False)
    assert catalog.list_databases() == ["default", "sales"]
    assert catalog.get_database("sales") == database
    assert catalog.get_database("sales").get_comment() == "what is sold"
    with pytest.raises(errors.DatabaseAlreadyExistException, match="'sales'"):
        catalog.create_database("sales", database, False)
    catalog.create_database("sales", CatalogDatabase.create_instance({}), True)
    assert catalog.get_database("sales") == database
    catalog.alter_database("sales", CatalogDatabase.create_instance({"owner": "me"}), False)
    assert catalog.get_database("sales").get_properties() == {"owner": "me"}
    with pytest.raises(errors.DatabaseNotExistException):
        catalog.alter_database("nowhere", database, False)
    catalog.alter_database("nowhere", database, True)
    catalog.create_table(ObjectPath("sales", "t"), table(), False)
    with pytest.raises(errors.DatabaseNotEmptyException):
        catalog.drop_database("sales", False)
    catalog.drop_database("sales", False, cascade=True)
    assert not catalog.database_exists("sales")
    with pytest.raises(errors.DatabaseNotExistException):
        catalog.drop_database("sales", False)
    catalog.drop_database("sales", True)


def test_a_database_that_is_created_again_is_empty(catalog: Catalog):
    catalog.create_database("sales", CatalogDatabase(), False)
    path = ObjectPath("sales", "t")
    catalog.create_table(path, table(), False)
    catalog.create_partition(path, SPEC, CatalogPartition({}), False)
    catalog.create_function(ObjectPath("sales", "f"), CatalogFunction("a.b"), False)
    catalog.alter_table_statistics(path, CatalogTableStatistics(5), False)
    catalog.drop_database("sales", False, cascade=True)
    catalog.create_database("sales", CatalogDatabase(), False)
    assert catalog.list_tables("sales") == [] and catalog.list_functions("sales") == []
    catalog.create_table(path, table(), False)
    assert catalog.list_partitions(path) == []
    assert catalog.get_table_statistics(path) == CatalogTableStatistics()


def test_tables_and_views_are_created_changed_renamed_and_dropped(catalog: Catalog):
    catalog.create_table(T1, table(connector="print"), False)
    catalog.create_table(T2, view(), False)
    assert (catalog.list_tables("default"), catalog.list_views("default")) == (["t1", "t2"], ["t2"])
    assert catalog.get_table(T1) == table(connector="print") and catalog.get_table(T2) == view()
    assert catalog.get_table(T1).get_unresolved_schema() == table().get_unresolved_schema()
    with pytest.raises(errors.TableAlreadyExistException, match=r"default\.t1"):
        catalog.create_table(T1, table(), False)
    catalog.create_table(T1, table(), True)
    assert catalog.get_table(T1).get_options() == {"connector": "print"}
    catalog.alter_table(T1, table(connector="blackhole"), False)
    assert catalog.get_table(T1).get_options() == {"connector": "blackhole"}
    with pytest.raises(errors.CatalogException, match="is a table, and would become a view"):
        catalog.alter_table(T1, view(), False)
    with pytest.raises(errors.TableAlreadyExistException):
        catalog.rename_table(T1, "t2", False)
    catalog.rename_table(T1, "t3", False)
    assert catalog.list_tables("default") == ["t2", "t3"] and not catalog.table_exists(T1)
    for call in (catalog.get_table, lambda path: catalog.drop_table(path, False)):
        with pytest.raises(errors.TableNotExistException):
            call(T1)
    catalog.drop_table(T1, True)
    catalog.rename_table(T1, "t4", True)
    catalog.alter_table(T1, table(), True)
    catalog.drop_table(T2, False)
    assert catalog.list_views("default") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda catalog: catalog.create_table(ABSENT, table(), True),
        lambda catalog: catalog.list_tables("nowhere"),
        lambda catalog: catalog.list_views("nowhere"),
        lambda catalog: catalog.list_functions("nowhere"),
        lambda catalog: catalog.list_models("nowhere"),
        lambda catalog: catalog.list_procedures("nowhere"),
        lambda catalog: catalog.create_function(ABSENT, CatalogFunction("a.b"), True),
        lambda catalog: catalog.get_database("nowhere"),
    ],
)
def test_a_database_that_is_absent_is_named(catalog: Catalog, call: Callable[[Catalog], object]):
    with pytest.raises(errors.DatabaseNotExistException, match="no database 'nowhere' in catalog 'shop'"):
        call(catalog)


def test_partitions_follow_the_columns_of_their_table(catalog: Catalog):
    catalog.create_table(T1, table(), False)
    partition = CatalogPartition.create_instance({"rows": "7"}, "morning")
    catalog.create_partition(T1, SPEC, partition, False)
    catalog.create_partition(T1, OTHER_SPEC, partition, False)
    assert catalog.list_partitions(T1) == [SPEC, OTHER_SPEC]
    assert catalog.list_partitions(T1, CatalogPartitionSpec({"day": "2026-11-02"})) == [OTHER_SPEC]
    assert catalog.get_partition(T1, CatalogPartitionSpec({"hour": "7", "day": "2026-11-01"})) == partition
    with pytest.raises(errors.PartitionAlreadyExistsException):
        catalog.create_partition(T1, SPEC, partition, False)
    with pytest.raises(errors.PartitionSpecInvalidException):
        catalog.create_partition(T1, CatalogPartitionSpec({"day": "1"}), partition, False)
    with pytest.raises(errors.PartitionSpecInvalidException):
        catalog.list_partitions(T1, CatalogPartitionSpec({"month": "1"}))
    catalog.alter_partition(T1, SPEC, CatalogPartition({"rows": "8"}), False)
    assert catalog.get_partition(T1, SPEC).get_properties() == {"rows": "8"}
    catalog.alter_partition_statistics(T1, SPEC, CatalogTableStatistics(8, 1, 100, 200), False)
    columns = CatalogColumnStatistics({"id": {"ndv": 8}})
    catalog.alter_partition_column_statistics(T1, SPEC, columns, False)
    assert catalog.bulk_get_partition_statistics(T1, [SPEC])[0].get_row_count() == 8
    assert catalog.bulk_get_partition_column_statistics(T1, [SPEC]) == [CatalogColumnStatistics({"id": {"ndv": 8}}, {})]
    catalog.rename_table(T1, "t2", False)
    assert catalog.list_partitions(T2) == [SPEC, OTHER_SPEC]
    assert catalog.get_partition_statistics(T2, SPEC).get_row_count() == 8
    catalog.drop_partition(T2, SPEC, False)
    with pytest.raises(errors.PartitionNotExistException):
        catalog.drop_partition(T2, SPEC, False)
    catalog.drop_partition(T2, SPEC, True)
    assert not catalog.partition_exists(T2, SPEC) and catalog.partition_exists(T2, OTHER_SPEC)


def test_a_table_without_partitions_says_so(catalog: Catalog):
    schema = TableSchema.builder().field("id", DataTypes.BIGINT()).build()
    catalog.create_table(T1, CatalogBaseTable.create_table(schema), False)
    with pytest.raises(errors.TableNotPartitionedException):
        catalog.list_partitions(T1)
    with pytest.raises(errors.PartitionNotExistException):
        catalog.get_partition(T1, SPEC)


def test_functions_are_found_in_any_case(catalog: Catalog):
    path = ObjectPath("default", "Twice")
    catalog.create_function(path, CatalogFunction.create_instance("shop.functions.twice"), False)
    assert catalog.get_function(ObjectPath("default", "TWICE")).get_class_name() == "shop.functions.twice"
    assert catalog.list_functions("default") == ["twice"]
    with pytest.raises(errors.FunctionAlreadyExistException):
        catalog.create_function(path, CatalogFunction("a.b"), False)
    catalog.alter_function(path, CatalogFunction("a.b", options={"k": "v"}), False)
    assert catalog.get_function(path) == CatalogFunction("a.b", options={"k": "v"})
    catalog.drop_function(path, False)
    for call in (catalog.get_function, lambda path: catalog.drop_function(path, False)):
        with pytest.raises(errors.FunctionNotExistException):
            call(path)
    catalog.drop_function(path, True)


def test_models_are_created_changed_renamed_and_dropped(catalog: Catalog):
    columns = Schema.new_builder().column("text", "STRING").build()
    score = Schema.new_builder().column("score", "DOUBLE").build()
    model = CatalogModel.create_model(columns, score, {"task": "x"}, "m")
    catalog.create_model(T1, model, False)
    assert catalog.get_model(T1) == model and catalog.list_models("default") == ["t1"]
    with pytest.raises(errors.ModelAlreadyExistException):
        catalog.create_model(T1, model, False)
    catalog.rename_model(T1, "t2", False)
    catalog.alter_model(T2, CatalogModel.create_model(columns, columns), False)
    assert catalog.get_model(T2).get_options() == {} and not catalog.model_exists(T1)
    catalog.drop_model(T2, False)
    with pytest.raises(errors.ModelNotExistException):
        catalog.get_model(T2)


def test_statistics_of_a_table_end_with_it(catalog: Catalog):
    catalog.create_table(T1, table(), False)
    assert catalog.get_table_statistics(T1).get_row_count() == -1
    catalog.alter_table_statistics(T1, CatalogTableStatistics(0, 2, 3, 4, {"by": "hand"}), False)
    catalog.alter_table_column_statistics(T1, CatalogColumnStatistics({"id": {"max": 9}}), False)
    assert catalog.get_table_statistics(T1) == CatalogTableStatistics(0, 2, 3, 4, {"by": "hand"})
    assert catalog.get_table_column_statistics(T1).get_column_statistics_data() == {"id": {"max": 9}}
    with pytest.raises(errors.TableNotExistException):
        catalog.alter_table_statistics(T2, CatalogTableStatistics(), False)
    catalog.drop_table(T1, False)
    catalog.create_table(T1, table(), False)
    assert catalog.get_table_statistics(T1).get_row_count() == -1
    assert catalog.get_table_column_statistics(T1).get_column_statistics_data() == {}


def test_what_a_catalog_returns_is_a_copy(catalog: Catalog):
    options = {"connector": "print"}
    catalog.create_table(T1, table(**options), False)
    catalog.get_table(T1).get_options()["connector"] = "x"
    assert catalog.get_table(T1).get_options() == options


def test_a_change_that_fails_changes_nothing(catalog: Catalog):
    catalog.create_table(T1, table(), False)
    catalog.create_table(T2, table(), False)
    catalog.create_partition(T1, SPEC, CatalogPartition({}), False)
    with pytest.raises(errors.TableAlreadyExistException):
        catalog.rename_table(T1, "t2", False)
    assert catalog.list_partitions(T1) == [SPEC] and catalog.list_partitions(T2) == []


def test_a_database_file_is_read_by_another_program_and_holds_several_catalogs(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/catalog.db"
    first, other = SqlCatalog("shop", url), SqlCatalog("lab", url)
    first.create_table(T1, table(connector="print"), False)
    second = SqlCatalog("shop", url)
    assert second.get_table(T1) == table(connector="print") and other.list_tables("default") == []
    second.drop_table(T1, False)
    assert not first.table_exists(T1)
    for opened in (first, second, other):
        opened.close()


@pytest.mark.parametrize(
    ("url", "problem"),
    [("nonsense", "is none of a database"), ("sqlite:////nowhere/at/all.db", "cannot use its database")],
)
def test_a_url_that_leads_nowhere_is_refused(url: str, problem: str):
    with pytest.raises(errors.CatalogException, match=problem):
        SqlCatalog("shop", url)


def test_what_lives_in_the_program_is_not_stored(tmp_path: Path):
    from rayflink.table.definitions import TableDefinition, ViewDefinition

    stored = SqlCatalog("shop", f"sqlite:///{tmp_path}/catalog.db")
    for definition in (TableDefinition((), connected=object()), ViewDefinition("", relation=object())):
        with pytest.raises(errors.CatalogException, match="cannot be stored"):
            stored.create_table(T1, CatalogBaseTable(definition), False)
    stored.close()
