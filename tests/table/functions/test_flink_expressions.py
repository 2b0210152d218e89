"""Expressions give what Flink gives: as constants, as columns with nulls among them, and in slices."""

from __future__ import annotations

import pyarrow
import pytest

from rayflink.table.binding.expressions import ExpressionBinder, cast
from rayflink.table.binding.scope import Scope
from rayflink.table.errors import SqlError
from rayflink.table.parsing.statement_parser import parse_expression
from rayflink.table.plan.typed import Call, Column, Evaluation, Expr, Literal, RowError, named
from rayflink.table.types import DataTypes, Root
from tests.table.functions.calling import CALLED, SESSION, same
from tests.table.functions.flink_expressions import DIFFERENT, Recorded, recorded

OVERFLOW = "Column 'EXPR$0' is NOT NULL"
"""Flink fails where a result of a type without nulls overflows; here it is null."""
ALL = recorded()


def bound(expression: str) -> Expr:
    found = ExpressionBinder(Scope(())).bind(parse_expression(expression))
    CALLED.update(one.function.name for one in found.walk() if isinstance(one, Call))
    return found


def ids(given: list[Recorded]) -> list[str]:
    return [one.expression[:60] for one in given]


SAME = [one for one in ALL if one.expression not in DIFFERENT and not one.is_refused]
COLUMNS = [one for one in SAME if "JSON_OBJECT" not in one.expression]  # its keys are literals
REFUSED = [one for one in ALL if one.expression not in DIFFERENT and one.is_refused]


def test_there_are_many_and_the_different_ones_are_known():
    assert len(SAME) > 500
    assert DIFFERENT.keys() <= {one.expression for one in ALL}


@pytest.mark.parametrize("case", SAME, ids=ids(SAME))
def test_a_constant_gives_what_flink_gives(case):
    found = bound(case.expression)
    text = Evaluation([], 1, SESSION).column(cast(found, DataTypes.STRING()))
    assert text.to_pylist() == [case.text]


def as_columns(expr: Expr) -> tuple[Expr, list[pyarrow.Array]]:
    """The expression with a column for each constant, of three rows, where the second one is null."""
    columns: list[pyarrow.Array] = []

    def change(one: Expr) -> Expr:
        if not isinstance(one, Literal) or one.value is None:
            return one
        columns.append(pyarrow.array([one.value, None, one.value], one.type.to_arrow()))
        return Column(one.type, len(columns) - 1, f"c{len(columns)}")

    return expr.mapped(change), columns


@pytest.mark.parametrize("case", COLUMNS, ids=ids(COLUMNS))
def test_columns_give_what_constants_give_and_slices_what_the_whole_gives(case):
    expr = bound(case.expression)
    changed, columns = as_columns(expr)
    if not all(one.function.is_deterministic for one in changed.walk() if isinstance(one, Call)) or not columns:
        return
    try:
        whole = Evaluation(columns, 3, SESSION).column(changed)
    except RowError:
        assert expr.type.root is not Root.NULL  # what a null among constants makes an error is one
        return
    alone = Evaluation([], 1, SESSION).column(expr)
    values = whole.to_pylist()
    assert whole.type == expr.type.to_arrow()
    whole.validate(full=True)
    assert same(values[0], alone.to_pylist()[0]) and same(values[2], alone.to_pylist()[0])
    parts = [
        Evaluation([one.slice(at, size) for one in columns], size, SESSION) for at, size in ((0, 2), (2, 1), (1, 0))
    ]
    glued = [value for part in parts for value in part.column(changed).to_pylist()]
    assert same(glued, values)


@pytest.mark.parametrize("case", REFUSED, ids=ids(REFUSED))
def test_what_flink_refuses_is_refused(case):
    if case.text is not None and OVERFLOW in case.text:
        assert Evaluation([], 1, SESSION).column(bound(case.expression)).to_pylist() == [None]
        return
    with pytest.raises((SqlError, RowError)):
        Evaluation([], 1, SESSION).column(bound(case.expression))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'abc' NOT LIKE 'a%'", False),
        ("'abc' NOT LIKE 'b%'", True),
        ("'a%' NOT LIKE 'a!%' ESCAPE '!'", False),
        ("'abc' NOT SIMILAR TO 'a(b|c)*'", False),
        ("NOT 'abc' LIKE 'b%'", True),
    ],
)
def test_what_does_not_match(expression, expected):
    assert Evaluation([], 1, SESSION).column(bound(expression)).to_pylist() == [expected]


def test_types_are_those_of_flink():
    """Of what depends on rules of types: operators on numbers, conditions, rounding."""
    names = ("+", "-", "*", "/", "%", "CASE", "IF", "COALESCE", "ROUND", "TRUNCATE", "FLOOR", "CEIL", "GREATEST", "||")
    for case in SAME:
        expr = bound(case.expression)
        if isinstance(expr, Call) and expr.function.name in names and not expr.type.is_interval:
            assert str(expr.type) == case.type, case.expression
    assert named("+")
