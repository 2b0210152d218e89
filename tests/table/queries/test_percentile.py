"""PERCENTILE gives the numbers of Flink's own, and the same however rows are put together before."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.expressions import col
from rayflink.table.runtime.aggregates.percentiles import Weighted, percentiles

ROWS = [(1.0, 1, "A"), (5.0, 2, "A"), (4.0, 1, "A"), (2.0, 4, "A"), (9.0, 3, "A"), (1.0, 2, "A"), (4.0, 1, "A"),
        (3.0, None, "B"), (6.0, 2, "B"), (2.0, -1, "B"), (4.0, 1, "B"), (None, 1, "B"), (None, 1, "C")]  # fmt: skip


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set("execution.target", "local")
    kinds = [("x", DataTypes.DOUBLE()), ("n", DataTypes.INT()), ("k", DataTypes.STRING())]
    found.create_temporary_view("t", found.from_elements(ROWS, DataTypes.ROW(kinds)))
    return found


@pytest.mark.parametrize(
    ("call", "expected"),
    [  # A and B are those of apache/flink PercentileAggFunctionITCase
        ("PERCENTILE(x, 0.5)", [4.0, 3.5, None]),
        ("PERCENTILE(x, 0.3)", [1.7999999999999998, 2.9, None]),
        ("PERCENTILE(x, 0.5, n)", [3.0, 6.0, None]),
        ("PERCENTILE(x, ARRAY[0.9, 0.7, 0.3, 1.0])", [[6.600000000000001, 4.199999999999999, 1.7999999999999998, 9.0],
                                                     [5.4, 4.199999999999999, 2.9, 6.0], None]),
        ("PERCENTILE(x, ARRAY[0.9, 0.7, 0.3, 1.0], n)", [[9.0, 5.0, 2.0, 9.0], [6.0, 6.0, 5.2, 6.0], None]),
        ("PERCENTILE(x, ARRAY_REMOVE(ARRAY[0.0], 0.0))", [None, None, None]),
        ("PERCENTILE(CAST(x AS DECIMAL(2, 1)), 1 - 0.7)", [1.7999999999999998, 2.9, None]),
        ("PERCENTILE(DISTINCT x, 0.5) FILTER (WHERE x > 1)", [4.5, 3.5, None]),
        ("SUM0(x)", [26.0, 15.0, 0.0]),
    ],
)  # fmt: skip
def test_of_groups(t_env, call, expected):
    found = t_env.execute_sql(f"SELECT k, {call} FROM t GROUP BY k").collect()
    assert dict(map(tuple, found)) == dict(zip("ABC", expected, strict=True))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("PERCENTILE(x, 1.5)", "a percentage of PERCENTILE is 1.5; write numbers within"),
        ("PERCENTILE(x, ARRAY[0.5, -1])", "a percentage of PERCENTILE is -1.0"),
        ("PERCENTILE(x, x)", r"PERCENTILE does not take \(DOUBLE, DOUBLE\).* percentages without NULL"),
        ("PERCENTILE(x, COALESCE(x, 0.5))", "is a column; write constants"),
        ("PERCENTILE(k, 0.5)", r"does not take \(STRING"),
        ("PERCENTILE(x, 0.5, 0.5)", "does not take"),
        ("PERCENTILE(x)", "PERCENTILE has 1 arguments; write PERCENTILE"),
        ("PERCENTILE(DISTINCT x, 0.5, n)", "remove one of the two"),
    ],
)
def test_what_it_does_not_take(t_env, call, problem):
    with pytest.raises(SqlError, match=problem):
        t_env.sql_query(f"SELECT k, {call} FROM t GROUP BY k")


def test_of_an_expression(t_env):
    grouped = t_env.from_path("t").where(col("k") == "B").group_by(col("k"))
    found = grouped.select(col("x").percentile(0.5), col("x").percentile([0.3, 1.0], col("n")), col("x").sum0)
    assert list(map(tuple, found.execute().collect())) == [(3.5, [5.2, 6.0], 15.0)]


WEIGHED = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.5, -0.0, 0.0, 2.0, 7.25, math.nan, math.inf]),
                             st.integers(1, 3)), max_size=12)  # fmt: skip


def accumulated(rows):
    kind = pa.struct({"value": pa.float64(), "times": pa.int64()})
    pairs = pa.array([{"value": x, "times": n} for _, x, n in rows], kind)
    return Weighted(0, None).from_rows(pairs, np.array([key for key, _, _ in rows], dtype=np.intp), 3)


@given(rows=WEIGHED, cut=st.integers(0, 12))
def test_partial_rows_joined_are_those_of_all_rows(rows, cut):
    parts = [accumulated(rows[:cut]), accumulated(rows[cut:])]
    columns = [pa.concat_arrays(list(parts_of_column)) for parts_of_column in zip(*parts, strict=True)]
    joined = Weighted(0, None).merge(columns, np.array([0, 1, 2] * 2, dtype=np.intp), 3)
    assert [list(map(repr, one.to_pylist())) for one in joined] == [
        list(map(repr, one.to_pylist())) for one in accumulated(rows)
    ]


@given(rows=WEIGHED, asked=st.lists(st.floats(0, 1), min_size=1, max_size=3))
def test_it_is_linear_between_two_values_as_numpy_has_it(rows, asked):
    rows = [row for row in rows if math.isfinite(row[1])]
    for one, found in zip(asked, percentiles(*accumulated(rows), asked), strict=True):
        for key in range(3):
            values = [x for k, x, n in rows if k == key for _ in range(n)]
            wanted = np.percentile(values, one * 100) if values else None
            assert found[key].as_py() == (wanted if wanted is None else pytest.approx(wanted, abs=1e-9))
