"""What expressions of a step have in common is computed once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.functions.arithmetic import arithmetic
from rayflink.table.plan.typed import Call, Column, Evaluation, Literal, Session, named, with_common_parts
from rayflink.table.runtime.calc import evaluated
from rayflink.table.udf import udf

assert arithmetic
CALLS: list[int] = []


def counted(values: Any) -> Any:
    CALLS.append(len(values))
    return values


@pytest.fixture
def t_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set_string("execution.target", "local")
    environment.get_config().set_string("parallelism.default", "1")
    environment.create_temporary_view("t", environment.from_elements([(1,), (2,), (3,), (4,)], ["x"]))
    CALLS.clear()
    return environment


@pytest.mark.parametrize(("deterministic", "rows"), [(True, 4), (False, 10)])
def test_a_function_is_asked_once_for_filter_and_projection(
    t_env: TableEnvironment, deterministic: bool, rows: int
) -> None:
    own = udf(counted, result_type=DataTypes.BIGINT(), func_type="arrow", deterministic=deterministic)
    t_env.create_temporary_function("own", own)
    found = t_env.sql_query("SELECT own(x) AS a, own(x) + 1 AS b FROM t WHERE own(x) > 1").to_arrow().to_pydict()
    assert found == {"a": [2, 3, 4], "b": [3, 4, 5]}
    assert sum(CALLS) == rows  # 4 rows, and where it is asked again twice the three that are left


def test_random_numbers_of_two_calls_differ(t_env: TableEnvironment) -> None:
    assert t_env.sql_query("SELECT x FROM t WHERE RAND() = RAND()").to_arrow().num_rows == 0


def test_zeros_of_two_signs_are_not_one() -> None:
    double = DataTypes.DOUBLE()
    x = Column(double, 0, "x")
    quotients = [Call(double, named("/"), (x, Literal(double, zero))) for zero in (0.0, -0.0, 0.0)]
    one, other, again = with_common_parts(quotients)
    assert one is again and one is not other
    found = Evaluation([pa.array([1.0])], 1, Session())
    assert [found.column(each)[0].as_py() for each in (one, other)] == [float("inf"), float("-inf")]


def test_values_that_were_computed_for_all_rows_are_taken_over_for_some() -> None:
    bigint, truth = DataTypes.BIGINT(), DataTypes.BOOLEAN()
    x = Column(bigint, 0, "x")
    twice = Call(bigint, named("*"), (x, Literal(bigint, 2)))
    condition = Call(truth, named(">"), (twice, Literal(bigint, 2)))
    batch = pa.record_batch({"x": pa.array([1, None, 3, 2])})
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    found = evaluated(batch, condition, [twice, x], schema, Session())
    assert found.to_pydict() == {"a": [6, 4], "b": [3, 2]}
