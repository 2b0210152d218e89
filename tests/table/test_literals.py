"""Constants of a program: their types, and what they are in a query."""

from __future__ import annotations

from array import array
from datetime import date
from decimal import Decimal

import pytest

from rayflink.common.types import Row
from rayflink.table import DataTypes as D
from rayflink.table import EnvironmentSettings, Schema, TableEnvironment
from rayflink.table.expressions import call_sql, col, lit

PAIR = D.ROW([D.FIELD("s", D.SMALLINT()), D.FIELD("price", D.DECIMAL(4, 1))]).not_null()
PRICES = D.MAP(D.STRING(False), D.FLOAT()).not_null()
DEEP = D.ARRAY(D.ROW([D.FIELD("days", D.ARRAY(D.DATE())), D.FIELD("prices", PRICES)])).not_null()
DAY = date(2026, 8, 3)
CONSTANTS = [
    ([1, None], D.ARRAY(D.SMALLINT()).not_null(), [1, None]),
    ((7, Decimal("1.25")), PAIR, Row(7, Decimal("1.3"))),
    (Row(price=None, s=1), PAIR, Row(1, None)),
    ({"tea": 1.1}, PRICES, {"tea": 1.1}),
    ([([DAY], {"tea": 2.5}), None], DEEP, [Row([DAY], {"tea": 2.5}), None]),
    ([], D.ARRAY(D.INT(False)).not_null(), []),
    ({}, PRICES, {}),
    (None, D.ARRAY(D.INT()), None),
    (14, D.INTERVAL(D.YEAR(), D.MONTH()).not_null(), 14),
]


@pytest.fixture
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    return t_env


def test_constants_of_a_type_are_of_it_also_within(t_env):
    table = t_env.from_elements([(1,)], ["id"])
    chosen = table.select(*(lit(value, kind).alias(f"c{place}") for place, (value, kind, _) in enumerate(CONSTANTS)))
    assert chosen.get_resolved_schema().get_column_data_types() == [kind for _, kind, _ in CONSTANTS]
    assert [list(row) for row in chosen.execute().collect()] == [[expected for _, _, expected in CONSTANTS]]
    assert "literal" not in chosen.explain()


def test_they_are_arguments_and_conditions(t_env):
    table = t_env.from_elements([(1,), (2,)], ["id"])
    numbers = lit([2, 3], D.ARRAY(D.BIGINT(False)).not_null())
    chosen = table.where(numbers.at(1) == col("id")).select(numbers.cardinality, lit((7, None), PAIR).get("s"))
    assert list(map(tuple, chosen.execute().collect())) == [(2, 7)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [(array("h"), D.SMALLINT(False)), (array("d", [1, 2]), D.DOUBLE(False)), (array("I", [1]), D.BIGINT(False))],
)
def test_an_array_of_the_module_array_has_the_type_of_its_code(t_env, values, kind):
    table = t_env.from_elements([(1,)], ["id"]).select(lit(values))
    assert table.get_resolved_schema().get_column_data_types() == [D.ARRAY(kind).not_null()]
    assert [row[0] for row in table.execute().collect()] == [values.tolist()]


@pytest.mark.parametrize(
    ("value", "kind", "error", "problem"),
    [
        ([1.25], D.ARRAY(D.SMALLINT()), TypeError, "element of field 'literal': found 1.25 of float, wanted SMALLINT"),
        ((1, 2), D.ROW([D.FIELD("v", D.INT())]), ValueError, "field 'literal': found 2 fields"),
        ({"a": 1}, D.MAP(D.INT(), D.INT()), TypeError, "key of field 'literal': found 'a'"),
        ([None], D.ARRAY(D.INT(False)), ValueError, "found None, wanted INT NOT NULL"),
        (3, D.ARRAY(D.INT()), TypeError, "field 'literal': found 3"),
    ],
)
def test_constants_of_another_type_are_errors(value, kind, error, problem):
    with pytest.raises(error, match=problem):
        lit(value, kind)


def test_a_text_of_sql_is_stored_as_it_was_written():
    text = "CASE WHEN n > 1 THEN 'many' END"
    builder = Schema.new_builder().column("n", "INT").column_by_expression("w", call_sql(text))
    [_, column] = builder.build().columns
    assert column.computed == text
    builder = Schema.new_builder().column("n", "INT").column_by_expression("m", call_sql("n + 1") * 2)
    assert builder.build().columns[1].computed == "((n + 1) * 2)"
