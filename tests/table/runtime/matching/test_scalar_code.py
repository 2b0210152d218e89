"""Conditions computed in Python give what the kernels give."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.cep.nfa.raw_values import raw_column, raw_values
from rayflink.table.binding.expressions import ExpressionBinder
from rayflink.table.binding.scope import Scope
from rayflink.table.parsing.statement_parser import parse_expression
from rayflink.table.plan.logical import Attribute
from rayflink.table.plan.matching import AggregateReference
from rayflink.table.plan.typed import Evaluation, Session
from rayflink.table.runtime.matching.match_values import reader
from rayflink.table.runtime.matching.scalar_code import scalar
from rayflink.table.types import DataTypes

COLUMNS = {
    "i": DataTypes.INT(), "j": DataTypes.BIGINT(), "d": DataTypes.DOUBLE(), "e": DataTypes.DECIMAL(6, 2),
    "s": DataTypes.STRING(), "t": DataTypes.TIMESTAMP(3), "b": DataTypes.BOOLEAN(), "f": DataTypes.FLOAT(),
}  # fmt: skip
EXPRESSIONS = [
    "i < j", "i + i > j - i", "i * i", "d * 2e0 > d + 1e0", "e > i", "e * 2 < e + j", "s < 'b' OR s IS NULL",
    "b AND i > 0",
    "NOT b OR NOT (d = d)", "t > TIMESTAMP '1970-01-01 00:00:01'", "t + INTERVAL '1' SECOND", "f > d", "f = f",
    "i IS NOT NULL AND i / 2 > 1", "CASE WHEN i > 1 THEN s ELSE UPPER(s) END = 'B'", "j = i AND j <> 3",
    "i BETWEEN 1 AND j",
    "MOD(j, 3) = 1 OR b",
]  # fmt: skip
VALUES = st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 3),
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 3),
    st.none() | st.floats() | st.sampled_from([0.0, -0.0, 1.0]),
    st.none() | st.decimals(-9999, 9999, places=2),
    st.none() | st.sampled_from(["", "a", "b", "B", "\u00e4", "\U0001f600"]),
    st.none() | st.integers(-5_000, 5_000),
    st.none() | st.booleans(),
    st.none() | st.floats(width=32),
)


@pytest.mark.slow
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_one_row_is_that_of_the_kernel(text):
    schema = tuple(Attribute(name, kind) for name, kind in COLUMNS.items())
    expr = ExpressionBinder(Scope.of("", schema)).bind(parse_expression(text))
    compute = scalar(expr, Session())

    @settings(max_examples=60, deadline=None)
    @given(VALUES)
    def check(values):
        arrays = [raw_column([value], kind.to_arrow()) for value, kind in zip(values, COLUMNS.values(), strict=True)]
        row = [raw_values(array)[0] for array in arrays]
        expected = raw_values(Evaluation(arrays, 1, Session()).column(expr))[0]
        found = compute(row)
        assert found == expected or found != found and expected != expected
        assert (found is None) == (expected is None)

    check()


@pytest.mark.parametrize(("kind", "type_", "values", "expected"), [
    ("SUM", DataTypes.INT(), [2**31 - 1, 1, None], -(2**31)),
    ("SUM", DataTypes.INT(), [None], None),
    ("AVG", DataTypes.INT(), [-1, -2], -1),
    ("AVG", DataTypes.DECIMAL(38, 6), [Decimal("1.00"), Decimal("1.00"), Decimal("0.00")], Decimal("0.666667")),
    ("AVG", DataTypes.DOUBLE(), [1.0, None, 2.0], 1.5),
    ("SUM", DataTypes.DOUBLE(), [0.1, 0.2, 0.3], 0.1 + 0.2 + 0.3),
    ("COUNT", DataTypes.BIGINT(), [None, 1, None], 1),
    ("MIN", DataTypes.STRING(), ["b", None, "a"], "a"),
    ("MAX", DataTypes.STRING(), [], None),
])  # fmt: skip
def test_aggregates_of_rows_of_a_match(kind, type_, values, expected):
    node = None
    for number, value in enumerate(values):
        node = (number % 2, number, (value,), node)
    reference = AggregateReference(type_, kind, kind, (0, 1), 0)
    assert reader(reference, {0: 0}, "AB")(node) == expected


@pytest.mark.parametrize("kind", ["SUM", "AVG"])
def test_an_aggregate_of_zeros_below_zero_is_one(kind):
    node = (0, 1, (-0.0,), (0, 0, (-0.0,), None))
    value = reader(AggregateReference(DataTypes.DOUBLE(), kind, kind, (), 0), {0: 0}, "A")(node)
    assert str(value) == "-0.0"


def test_times_are_numbers_in_their_unit_and_come_back():
    for kind in (pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.date32(), pa.time32("ms"), pa.duration("ms")):
        column = pa.array([1, None, 86_400_000], pa.int64())
        column = column.cast(pa.int32()).view(kind) if kind.bit_width == 32 else column.view(kind)
        assert raw_values(column) == [1, None, 86_400_000] and raw_column(raw_values(column), kind).equals(column)
