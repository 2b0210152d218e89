"""Values of tables as a program gets them: rows, maps and floats at any depth, by collect(), streams and pandas."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from rayflink.common import Row
from rayflink.common.records.arrow_rows import arrow_to_rows, rows_to_arrow
from rayflink.common.records.arrow_values import values_of
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import DataTypes, StreamTableEnvironment

INNER = DataTypes.ROW([DataTypes.FIELD("who", DataTypes.STRING()), DataTypes.FIELD("size", DataTypes.FLOAT())])
SCHEMA = DataTypes.ROW([
    DataTypes.FIELD("r", INNER),
    DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), INNER)),
    DataTypes.FIELD("a", DataTypes.ARRAY(INNER)),
    DataTypes.FIELD("deep", DataTypes.ARRAY(DataTypes.MAP(DataTypes.INT(), DataTypes.ARRAY(INNER)))),
    DataTypes.FIELD("f", DataTypes.FLOAT()),
])  # fmt: skip
ANN, BOB = Row(who="ann", size=1.23), Row(who="bob", size=None)
VALUES = (ANN, {"x": ANN, "y": None}, [ANN, None, BOB], [{7: [BOB]}, None, {}], 0.1)


@pytest.fixture
def t_env():
    return StreamTableEnvironment.create(StreamExecutionEnvironment({"execution.target": "local"}))


@pytest.fixture
def table(t_env):
    return t_env.from_elements([VALUES, (None,) * 5], SCHEMA)


def test_collected_values_are_rows_dicts_and_short_floats(table):
    found = list(table.execute().collect())
    ann, bob = Row("ann", 1.23), Row("bob", None)  # without names, as PyFlink
    expected = (ann, {"x": ann, "y": None}, [ann, None, bob], [{7: [bob]}, None, {}], 0.1)
    assert [tuple(row) for row in found] == [expected, (None,) * 5]
    assert [type(value) for value in found[0]] == [Row, dict, list, list, float]


def test_so_are_those_of_the_stream_that_a_table_becomes(t_env, table):
    stream = t_env.to_data_stream(table)
    got = list(stream.map(lambda row: (row.r, row.m, row.a, row.deep, row.f)).execute_and_collect())
    assert got == [VALUES, (None,) * 5]


def test_a_stream_of_nested_rows_is_the_same_table_again(t_env, table):
    again = t_env.from_data_stream(t_env.to_data_stream(table).filter(lambda row: row.r is not None))
    assert again.to_arrow() == table.to_arrow().slice(0, 1)


def test_nested_values_that_a_program_makes_become_columns_whose_types_are_guessed():
    batch = rows_to_arrow([Row(a=Row(b=1, c=[Row(d=2)]))])
    assert batch.to_pylist() == [{"a": {"b": 1, "c": [{"d": 2}]}}]
    assert arrow_to_rows(batch) == [Row(a=Row(b=1, c=[Row(d=2)]))]


def test_every_float_of_32_bits_is_a_short_number_and_comes_back():
    given = pa.array([1.23, None, math.inf, -math.inf, -0.0, 1e-45, 3.4028235e38, 16777216.0, 0.1], pa.float32())
    found = values_of(given)
    assert found == [1.23, None, math.inf, -math.inf, 0.0, 1e-45, 3.4028235e38, 16777216.0, 0.1]
    assert math.copysign(1, found[4]) == -1 and math.isnan(values_of(pa.array([math.nan], pa.float32()))[0])
    assert pa.array(found, pa.float32()) == given


def test_a_function_computes_with_the_value_that_a_float_has(t_env):
    from rayflink.table.udf import udf

    t_env.create_temporary_function("twice", udf(lambda x: x * 2, result_type=DataTypes.DOUBLE()))
    query = "SELECT twice(x), CAST(x AS DOUBLE) * 2 FROM (VALUES (CAST(1.23 AS FLOAT))) AS t(x)"
    [row] = t_env.sql_query(query).execute().collect()
    assert row[0] == row[1] == 2.4600000381469727


def test_pandas_has_rows_as_dicts_and_maps_as_dicts(table):
    found = table.to_pandas()
    assert found["m"][0] == {"x": {"who": "ann", "size": pytest.approx(1.23)}, "y": None}
    assert found["r"][0] == {"who": "ann", "size": pytest.approx(1.23)} and found["f"].dtype == "float32"
