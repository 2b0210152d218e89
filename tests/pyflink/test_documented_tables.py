"""What the pages of Flink 2.3 on the Python Table API, its functions and catalogs say that programs may write."""

from __future__ import annotations

import functools

import pytest

from rayflink.common import Row
from rayflink.table import (
    AggregateFunction,
    DataTypes,
    ListView,
    SqlError,
    TableAggregateFunction,
    TableSchema,
)
from rayflink.table.catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogPartition,
    CatalogPartitionSpec,
    GenericInMemoryCatalog,
    ObjectPath,
)
from rayflink.table.expressions import call, col, lit
from rayflink.table.udf import ScalarFunction, TableFunction, udaf, udf, udtaf, udtf
from tests.pyflink.documented_programs import environment, shown

SALES = [("Ann", "PERU", 10), ("Bea", "CHAD", 30), ("Ann", "PERU", 25)]


# Intro to the Python Table API


def test_elements_have_numbered_columns_and_the_types_that_are_given():
    t_env = environment(batch=True)
    assert shown(t_env.from_elements([(1, "a"), (2, "b")])) == (["_1", "_2"], [(1, "a"), (2, "b")])
    small = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.TINYINT()), DataTypes.FIELD("data", DataTypes.STRING())])
    assert str(t_env.from_elements([(1, "a")], small).to_pandas()["id"].dtype) == "int8"
    assert str(t_env.from_elements([(1, "a")], ["id", "data"]).to_pandas()["id"].dtype) == "int64"


def test_columns_are_attributes_of_a_table():
    sales = environment(batch=True).from_elements(SALES, ["name", "country", "revenue"])
    query = sales.select(sales.name, sales.country, sales.revenue).where(sales.country == "PERU")
    query = query.group_by(sales.name).select(sales.name, sales.revenue.sum.alias("total"))
    assert shown(query) == (["name", "total"], [("Ann", 35)])


def test_a_sequence_of_datagen_ends_and_is_read_by_its_name():
    t_env = environment()
    ranges = ", ".join(f"'fields.{n}.kind' = 'sequence', 'fields.{n}.start' = '{a}', 'fields.{n}.end' = '{b}'"
                       for n, a, b in (("id", 1, 3), ("data", 4, 6)))  # fmt: skip
    t_env.execute_sql(f"CREATE TABLE numbers (id BIGINT, data TINYINT) WITH ('connector' = 'datagen', {ranges})")
    assert shown(t_env.from_path("numbers"))[1] == [(1, 4), (2, 5), (3, 6)]
    halves = t_env.sql_query("SELECT id / 2 AS half, SUM(data) AS total FROM numbers GROUP BY id / 2")
    assert shown(halves)[1] == [(0, 4), (1, 11)]


def test_a_table_stands_in_sql_by_its_string_and_results_are_closed_by_with():
    t_env = environment()
    source = t_env.from_elements([(1, "a", "x"), (2, "b", "x")], ["a", "b", "c"])
    with t_env.execute_sql(f"SELECT a + 1, b, c FROM {source}").collect() as rows:
        assert sorted(map(str, rows)) == ["<Row(2, 'a', 'x')>", "<Row(3, 'b', 'x')>"]


# Row-based operations

PAIR = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("data", DataTypes.STRING())])


@pytest.mark.parametrize("batch", [False, True])
def test_map_takes_columns_a_row_or_a_frame(batch):
    pandas = pytest.importorskip("pandas")
    table = environment(batch).from_elements([(1, "a"), (2, "bc")], ["id", "data"])
    expected = [(1, "aa"), (2, "bcbc")]
    by_columns = udf(lambda number, text: Row(number, text * 2), result_type=PAIR)
    assert shown(table.map(by_columns(col("id"), col("data"))))[1] == expected
    by_row = udf(lambda row: Row(row[0], row[1] * 2), result_type=PAIR)
    assert shown(table.map(by_row).alias("id", "data")) == (["id", "data"], expected)
    by_frame = udf(lambda f: pandas.concat([f.id, f.data * 2], axis=1), result_type=PAIR, func_type="pandas")
    assert shown(table.map(by_frame).alias("id", "data")) == (["id", "data"], expected)


def test_flat_map_and_lateral_joins_take_rows():
    table = environment().from_elements([(1, "a,b"), (2, "c")], ["id", "data"])

    @udtf(result_types=[DataTypes.INT(), DataTypes.STRING()])
    def pieces(row):
        for piece in row[1].split(","):
            yield row[0], piece

    assert shown(table.flat_map(pieces)) == (["f0", "f1"], [(1, "a"), (1, "b"), (2, "c")])
    joined = [(1, "a,b", 1, "a"), (1, "a,b", 1, "b"), (2, "c", 2, "c")]
    assert shown(table.join_lateral(pieces.alias("a", "b")))[1] == joined


class CountAndSum(AggregateFunction):
    def create_accumulator(self):
        return Row(0, 0)

    def get_value(self, accumulator):
        return Row(accumulator[0], accumulator[1])

    def accumulate(self, accumulator, *args):
        accumulator[0] += 1
        accumulator[1] += args[0][1]

    def get_accumulator_type(self):
        fields = [DataTypes.FIELD("a", DataTypes.BIGINT()), DataTypes.FIELD("b", DataTypes.BIGINT())]
        return DataTypes.ROW(fields)

    get_result_type = get_accumulator_type


def test_aggregate_takes_rows_and_frames():
    table = environment().from_elements([(1, 2), (2, 1), (1, 3)], ["a", "b"])
    function = CountAndSum()
    declared = udaf(function, result_type=function.get_result_type(),
                    accumulator_type=function.get_accumulator_type(), name="CountAndSum")  # fmt: skip
    query = table.group_by(col("a")).aggregate(declared.alias("c", "d")).select(col("a"), col("c"), col("d"))
    assert shown(query) == (["a", "c", "d"], [(1, 2, 5), (2, 1, 1)])
    whole = environment(batch=True).from_elements([(1, 2), (2, 1), (1, 3)], ["a", "b"])
    result = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.FLOAT()), DataTypes.FIELD("b", DataTypes.INT())])
    by_frame = udaf(lambda f: (f.b.mean(), f.b.max()), result_type=result, func_type="pandas")
    assert shown(whole.aggregate(by_frame.alias("a", "b")).select(col("a"), col("b")))[1] == [(2.0, 3)]


class LastTwo(TableAggregateFunction):
    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, row):
        accumulator[:] = [row[0], accumulator[0]]

    def emit_value(self, accumulator):
        yield Row(accumulator[0])
        yield Row(accumulator[1])

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())

    def get_result_type(self):
        return DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT())])


def test_flat_aggregate_gives_several_rows_of_a_group():
    table = environment(batch=True).from_elements([(1, "x"), (3, "x"), (5, "y")], ["a", "b"])
    query = table.group_by(table.b).flat_aggregate(udtaf(LastTwo())).select(col("b"), col("a"))
    assert {tuple(row) for row in query.execute().collect()} == {("x", 3), ("x", 1), ("y", 5), ("y", None)}


# General user-defined functions


class Add(ScalarFunction):
    def eval(self, i, j):
        return i + j


class CallableAdd:
    def __call__(self, i, j):
        return i + j


def test_a_scalar_function_is_written_in_five_ways():
    t_env = environment(batch=True)
    table = t_env.from_elements([(1, 2)], ["a", "b"])
    written = (Add(), lambda i, j: i + j, CallableAdd(), functools.partial(lambda i, j, k: i + j + k, k=0))
    for function in (udf(each, result_type=DataTypes.BIGINT()) for each in written):
        t_env.create_temporary_function("add", function)
        calls = function(table.a, table.b), call("add", table.a, table.b), call(function, col("a"), lit(2))
        assert shown(table.select(*calls))[1] == [(3, 3, 3)]


class Split(TableFunction):
    def eval(self, string):
        for word in string.split(" "):
            yield word, len(word)


@pytest.mark.parametrize("join", [", ", " LEFT JOIN "])
def test_a_table_function_is_joined_in_sql(join):
    t_env = environment()
    t_env.create_temporary_view("lines", t_env.from_elements([("a bc",)], ["a"]))
    t_env.create_temporary_function("words", udtf(Split(), result_types=[DataTypes.STRING(), DataTypes.INT()]))
    condition = " ON TRUE" if "LEFT" in join else ""
    query = f"SELECT word, length FROM lines{join}LATERAL TABLE(words(a)) AS t(word, length){condition}"
    assert shown(t_env.sql_query(query))[1] == [("a", 1), ("bc", 2)]


def test_a_built_in_function_comes_before_a_temporary_one():
    t_env = environment()
    t_env.create_temporary_view("lines", t_env.from_elements([("a bc",)], ["a"]))
    t_env.create_temporary_function("split", udtf(Split(), result_types=[DataTypes.STRING(), DataTypes.INT()]))
    with pytest.raises(SqlError, match="SPLIT is a function of SQL, which gives no rows; give yours another name"):
        t_env.sql_query("SELECT w FROM lines, LATERAL TABLE(split(a)) AS t(w, n)")
    query = "SELECT w FROM lines, LATERAL TABLE(default_database.split(a)) AS t(w, n)"
    assert shown(t_env.sql_query(query))[1] == [("a",), ("bc",)]


@pytest.mark.parametrize("given", [range, lambda n: list(range(n)), lambda n: iter(range(n))])
def test_a_table_function_returns_an_iterable_an_iterator_or_a_generator(given):
    table = environment(batch=True).from_elements([(2,)], ["n"])
    function = udtf(lambda n: given(n), result_types=DataTypes.BIGINT())
    assert shown(table.join_lateral(function(table.n).alias("m")))[1] == [(2, 0), (2, 1)]


class Joined(AggregateFunction):
    def create_accumulator(self):
        return Row(ListView(), "")

    def get_value(self, accumulator):
        return accumulator[1].join(accumulator[0])

    def accumulate(self, accumulator, *args):
        accumulator[1] = args[1]
        accumulator[0].add(args[0])

    def get_accumulator_type(self):
        kinds = DataTypes.LIST_VIEW(DataTypes.STRING()), DataTypes.STRING()
        return DataTypes.ROW([DataTypes.FIELD(f"f{index}", kind) for index, kind in enumerate(kinds)])

    def get_result_type(self):
        return DataTypes.STRING()


def test_an_aggregate_function_has_views_and_is_called_in_three_ways():
    t_env = environment()
    table = t_env.from_elements([("x", "a"), ("x", "b"), ("y", "c")]).alias("name", "value")
    t_env.create_temporary_function("joined", Joined())
    t_env.create_temporary_view("source", table)
    grouped, expected = table.group_by(table.name), [("a-b",), ("c",)]
    assert shown(grouped.select(udaf(Joined())(table.value, "-").alias("all")))[1] == expected
    assert shown(grouped.select(call("joined", table.value, "-").alias("all")))[1] == expected
    assert shown(t_env.sql_query("SELECT joined(`value`, '-') AS `all` FROM source GROUP BY name"))[1] == expected


# Catalogs


def test_a_catalog_is_used_by_its_calls():
    t_env, catalog = environment(), GenericInMemoryCatalog("mine")
    t_env.register_catalog("mine", catalog)
    database = CatalogDatabase.create_instance({"k1": "v1"}, None)
    catalog.create_database("mydb", database, False)
    catalog.alter_database("mydb", database, False)
    assert catalog.database_exists("mydb") and catalog.get_database("mydb").get_properties() == {"k1": "v1"}
    schema = TableSchema.builder().field("name", DataTypes.STRING()).field("age", DataTypes.INT()).build()
    properties = {"connector": "filesystem", "path": "/nowhere", "format": "csv"}
    table = CatalogBaseTable.create_table(
        schema=schema, partition_keys=["age"], properties=properties, comment="my comment"
    )
    path = ObjectPath("mydb", "mytable")
    catalog.create_table(path, table, False)
    catalog.alter_table(path, table, False)
    spec, partition = CatalogPartitionSpec({"age": "30"}), CatalogPartition.create_instance({}, "my partition")
    catalog.create_partition(path, spec, partition, False)
    catalog.alter_partition(path, spec, partition, False)
    assert catalog.partition_exists(path, spec) and len(catalog.list_partitions(path)) == 1
    catalog.drop_partition(path, spec, False)
    catalog.rename_table(path, "other", False)
    assert (catalog.list_tables("mydb"), catalog.table_exists(path)) == (["other"], False)
    view = CatalogBaseTable.create_view("SELECT * FROM t1", "SELECT * FROM mine.mydb.t1", schema, {}, "a view")
    catalog.create_table(ObjectPath("mydb", "myview"), view, False)
    assert catalog.list_views("mydb") == ["myview"]
    t_env.use_catalog("mine")
    t_env.use_database("mydb")
    assert t_env.list_tables() == ["myview", "other"]
    catalog.drop_table(ObjectPath("mydb", "myview"), False)
    catalog.drop_database("mydb", False, True)
    assert catalog.list_databases() == ["default"]
