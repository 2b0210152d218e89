"""Three-valued logic, and that what one argument decides shields the others."""

from __future__ import annotations

import itertools

import pyarrow
import pytest

from rayflink.table.plan.typed import Call, Column, Evaluation, Literal, RowError, Session, named
from rayflink.table.types import DataTypes
from tests.table.functions.calling import BOOLEAN, INT, column, result, resulting

PAIRS = list(itertools.product([True, False, None], repeat=2))
LEFT, RIGHT = column(BOOLEAN, *[a for a, _ in PAIRS]), column(BOOLEAN, *[b for _, b in PAIRS])


def test_and_and_or_know_three_values():
    def both(a, b):
        return False if a is False or b is False else None if a is None or b is None else True

    def either(a, b):
        return True if a or b else None if a is None or b is None else False

    assert result("AND", LEFT, RIGHT) == [both(a, b) for a, b in PAIRS]
    assert result("OR", LEFT, RIGHT) == [either(a, b) for a, b in PAIRS]
    assert result("AND", LEFT, RIGHT, True) == [both(a, b) for a, b in PAIRS]
    assert result("OR", LEFT, None) == [either(a, None) for a, _ in PAIRS]
    assert result("NOT", column(BOOLEAN, True, False, None)) == [False, True, None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IS TRUE", [True, False, False]),
        ("IS NOT TRUE", [False, True, True]),
        ("IS FALSE", [False, True, False]),
        ("IS NOT FALSE", [True, False, True]),
        ("IS UNKNOWN", [False, False, True]),
        ("IS NOT UNKNOWN", [True, True, False]),
    ],
)
def test_is(name, expected):
    assert result(name, column(BOOLEAN, True, False, None)) == expected
    assert resulting(name, column(BOOLEAN)) == BOOLEAN.not_null()


def quotient_is_positive(divisor: Column) -> Call:
    quotient = Call(INT, named("/"), (Literal(INT.not_null(), 10), divisor))
    return Call(BOOLEAN, named(">"), (quotient, Literal(INT.not_null(), 0)))


def test_a_row_that_is_decided_is_not_computed_further():
    divisor = Column(INT, 0, "d")
    is_zero = Call(BOOLEAN, named("="), (divisor, Literal(INT.not_null(), 0)))
    columns = [pyarrow.array([0, 5, -5, None], "int32")]

    def values(name: str, first: Call) -> list[bool | None]:
        call = Call(BOOLEAN, named(name), (first, quotient_is_positive(divisor)))
        return Evaluation(columns, 4, Session()).column(call).to_pylist()

    assert values("OR", is_zero) == [True, True, False, None]
    assert values("AND", Call(BOOLEAN, named("NOT"), (is_zero,))) == [False, True, False, None]
    with pytest.raises(RowError):
        values("AND", is_zero)


def test_what_is_no_truth_value_is_refused():
    assert resulting("AND", 1, True) == "a truth value, a truth value, any number of arguments, each a truth value"
    assert DataTypes.BOOLEAN() == resulting("OR", None, True)
