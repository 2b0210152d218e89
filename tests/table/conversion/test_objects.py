"""Objects of a program in tables: RAW columns, which are pickled, and user-defined types."""

from __future__ import annotations

import pytest

from rayflink.common.typeinfo import Types
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import (
    AggregateFunction,
    EnvironmentSettings,
    Schema,
    StreamTableEnvironment,
    TableDescriptor,
    TableEnvironment,
    UserDefinedType,
)
from rayflink.table import DataTypes as D
from rayflink.table.conversion.row_format import SqlFormat
from rayflink.table.errors import SqlError
from rayflink.table.expressions import call, col
from rayflink.table.types import RawType
from rayflink.table.udf import udaf, udf, udtf


class PointType(UserDefinedType):
    """Points, stored as arrays."""

    @classmethod
    def sql_type(cls):
        return D.ARRAY(D.DOUBLE(False))

    def serialize(self, obj):
        return [obj.x, obj.y]

    def deserialize(self, datum):
        return Point(*datum)


class Point:
    """A point with equality."""

    __UDT__ = PointType()

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    def __repr__(self):
        return f"Point({self.x}, {self.y})"


class Sum(AggregateFunction):
    """Adds points to a RAW point."""

    def create_accumulator(self):
        return [0.0, 0.0]

    def accumulate(self, accumulator, point):
        assert isinstance(point, Point), point
        accumulator[0] += point.x
        accumulator[1] += point.y

    def get_value(self, accumulator):
        return Point(*accumulator)


@pytest.fixture
def t_env():
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    env.get_config().set("execution.target", "local")
    return env


@pytest.fixture
def points(t_env):
    schema = D.ROW([D.FIELD("id", D.BIGINT()), D.FIELD("x", D.RAW())])
    table = t_env.from_elements([(1, Point(1.0, 2.0)), (2, None), (1, Point(4.0, 8.0))], schema)
    t_env.create_temporary_view("points", table)
    return table


def rows(t_env, query):
    return sorted((tuple(row) for row in t_env.execute_sql(query).collect()), key=repr)


def test_objects_pass_through_queries_and_come_back_equal(t_env, points):
    found_type = points.get_schema().get_field_data_type("x")
    assert isinstance(found_type, RawType)
    assert rows(t_env, "SELECT x, ARRAY[x] FROM points WHERE x IS NOT NULL AND id < 2") == [
        (Point(1.0, 2.0), [Point(1.0, 2.0)]), (Point(4.0, 8.0), [Point(4.0, 8.0)]),
    ]  # fmt: skip
    assert rows(t_env, "SELECT id FROM points WHERE x IS NULL") == [(2,)]
    joined = "SELECT b.x FROM (SELECT DISTINCT id FROM points) AS a JOIN points AS b ON a.id = b.id WHERE a.id = 2"
    assert rows(t_env, joined) == [(None,)]
    frame = points.to_pandas()
    assert frame["x"].tolist() == [Point(1.0, 2.0), None, Point(4.0, 8.0)]


@pytest.mark.slow
def test_functions_take_and_give_objects(t_env, points):
    t_env.create_temporary_function("mirror", udf(lambda p: p and {p.y, p.x}, result_type=D.RAW()))
    t_env.create_temporary_function("size", udf(lambda s: None if s is None else len(s), result_type=D.INT()))
    parts = udtf(lambda p: [(p, [p])] if p else None, result_types=[D.RAW(), D.ARRAY(D.RAW())])
    t_env.create_temporary_function("parts", parts)
    t_env.create_temporary_function("total", udaf(Sum(), result_type=D.RAW()))
    assert rows(t_env, "SELECT mirror(x), size(mirror(x)) FROM points WHERE id = 1") == [
        ({1.0, 2.0}, 2), ({4.0, 8.0}, 2),
    ]  # fmt: skip
    assert rows(t_env, "SELECT p, ps FROM points, LATERAL TABLE(parts(x)) AS t(p, ps) WHERE x IS NOT NULL") == [
        (Point(1.0, 2.0), [Point(1.0, 2.0)]), (Point(4.0, 8.0), [Point(4.0, 8.0)]),
    ]  # fmt: skip
    assert rows(t_env, "SELECT id, total(x) FROM points WHERE id = 1 GROUP BY id") == [(1, Point(5.0, 10.0))]


@pytest.mark.slow
def test_functions_of_pandas_take_and_give_objects(t_env, points):
    swap = udf(lambda s: s.map(lambda p: p and Point(p.y, p.x)), result_type=D.RAW(), func_type="pandas")
    result = points.select(call(swap, col("x")))
    assert [row[0] for row in result.execute().collect()] == [Point(2.0, 1.0), None, Point(8.0, 4.0)]


@pytest.mark.slow
def test_functions_take_and_give_objects_of_user_defined_types(t_env):
    table = t_env.from_elements([(1, Point(1.0, 2.0)), (1, Point(3.0, 5.0))], ["id", "p"])
    mirror = udf(lambda p: Point(p.y, p.x), input_types=[PointType()], result_type=PointType())
    result = table.select(call(mirror, col("p")), call(mirror, call(mirror, col("p"))))
    assert [tuple(row) for row in result.execute().collect()] == [([2.0, 1.0], [1.0, 2.0]), ([5.0, 3.0], [3.0, 5.0])]
    assert str(result.get_schema().get_field_data_type(0)) == "ARRAY<DOUBLE NOT NULL>"
    both = udtf(lambda p: [(p, 1)], input_types=[PointType()], result_types=[PointType(), D.INT()])
    t_env.create_temporary_function("both", both)
    t_env.create_temporary_function("total", udaf(Sum(), input_types=[PointType()], result_type=PointType()))
    t_env.create_temporary_view("places", table)
    assert rows(t_env, "SELECT q, n FROM places, LATERAL TABLE(both(p)) AS t(q, n)") == [
        ([1.0, 2.0], 1), ([3.0, 5.0], 1),
    ]  # fmt: skip
    assert rows(t_env, "SELECT total(p) FROM places GROUP BY id") == [([4.0, 7.0],)]
    with pytest.raises(SqlError, match="ARRAY<DOUBLE NOT NULL>, as pointtype is stored"):
        table.select(call(mirror, col("id")))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT x FROM points GROUP BY x", "GROUP BY has a key of type RAW"),
        ("SELECT DISTINCT x FROM points", "RAW"),
        ("SELECT COUNT(DISTINCT x) FROM points", "cannot be compared"),
        ("SELECT * FROM points ORDER BY x", "RAW have no order"),
        ("SELECT a.id FROM points AS a JOIN points AS b ON a.x = b.x", "RAW"),
        ("SELECT x FROM points INTERSECT SELECT x FROM points", "RAW cannot be compared"),
        ("SELECT * FROM points UNION ALL SELECT id, X'80' FROM points", "RAW"),
        ("SELECT CAST(x AS BYTES) FROM points", "RAW cannot be cast to BYTES"),
        ("SELECT CAST(X'80' AS RAW)", "RAW"),
        ("SELECT MAX(x) FROM points", "RAW"),
        ("SELECT JSON_OBJECT('a' VALUE x) FROM points", "no objects of RAW"),
        ("SELECT ARRAY_CONTAINS(ARRAY[x], x) FROM points", "no objects of RAW"),
        ("SELECT ARRAY_DISTINCT(ARRAY[x]) FROM points", "no objects of RAW"),
        ("SELECT ARRAY_UNION(ARRAY[x], ARRAY[x]) FROM points", "no objects of RAW"),
        ("SELECT ARRAY_MAX(ARRAY[x]) FROM points", "no objects of RAW"),
        ("SELECT COALESCE(x, X'80') FROM points", "COALESCE does not take"),
        ("CREATE TABLE t WITH ('connector' = 'filesystem', 'path' = '/t', 'format' = 'csv') AS SELECT * FROM points",
         "column 'x' of table .*t is RAW"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_objects_is_refused(t_env, points, query, problem):
    with pytest.raises(SqlError, match=problem):
        t_env.execute_sql(query)


def test_no_table_of_a_connector_has_objects(t_env):
    schema = Schema.new_builder().column("x", D.RAW()).build()
    descriptor = TableDescriptor.for_connector("filesystem").schema(schema).option("path", "/t").format("json").build()
    with pytest.raises(SqlError, match="column 'x' of table .*t is RAW, and no connector has such columns"):
        t_env.create_temporary_table("t", descriptor)


def test_no_plan_is_compiled_with_objects(t_env):
    t_env.execute_sql("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
    t_env.create_temporary_function("as_set", udf(lambda n: {n}, result_type=D.RAW()))
    t_env.create_temporary_function("size", udf(lambda numbers: len(numbers), result_type=D.BIGINT()))
    with pytest.raises(SqlError, match="no plan can be compiled: .* found 'RAW'"):
        t_env.compile_plan_sql("INSERT INTO nowhere SELECT size(as_set(n)) FROM (VALUES (1)) AS t(n)")


def test_printed_objects_are_short():
    assert SqlFormat().of(D.RAW())(Point(1.0, 2.0)) == "Point(1.0, 2.0)"
    assert len(SqlFormat().of(D.RAW())("x" * 1000)) < 100


@pytest.mark.slow
def test_objects_of_streams_become_raw_columns_and_come_back():
    env = StreamExecutionEnvironment.get_execution_environment()
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("execution.target", "local")
    row_type = Types.ROW_NAMED(["id", "x"], [Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    stream = env.from_collection([Row(1, Point(1.0, 2.0)), Row(2, None)], row_type)
    table = t_env.from_data_stream(stream)
    assert isinstance(table.get_schema().get_field_data_type("x"), RawType)
    again = t_env.from_data_stream(t_env.to_data_stream(table.where(col("id") > 0)).map(lambda row: row, row_type))
    with t_env.to_data_stream(again).execute_and_collect() as collected:
        assert sorted((tuple(row) for row in collected), key=repr) == [(1, Point(1.0, 2.0)), (2, None)]
