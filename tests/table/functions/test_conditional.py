"""CASE and its kin, and that branches see only their own rows."""

from __future__ import annotations

from decimal import Decimal

import pyarrow
import pytest

from rayflink.table.plan.typed import Call, Column, Evaluation, Expr, Literal, RowError, Session, named
from rayflink.table.types import DataType, DataTypes
from tests.table.functions.calling import BIGINT, BOOLEAN, INT, STRING, column, one, result, resulting


def test_case_takes_the_first_that_is_true():
    first, second = column(BOOLEAN, True, False, None, False), column(BOOLEAN, True, True, True, False)
    assert result("CASE", first, 1, second, 2, 3) == [1, 2, 2, 3]
    assert result("CASE", first, "a", None) == ["a", None, None, None]
    assert result("CASE", first, 1, decimals("2.5")) == [Decimal("1.0")] + [Decimal("2.5")] * 3
    assert result("CASE", first, column(DataTypes.ARRAY(INT), [1], [2], [3], [4]), None) == [[1], None, None, None]
    assert one("CASE", False, 1, True, 2, 3) == 2
    assert resulting("CASE", True, 1, 2) == INT.not_null()
    assert resulting("CASE", True, 1, None) == INT
    assert resulting("CASE", True, 1, "a") == "values of one kind"
    assert resulting("CASE", 1, 1, 2) == "conditions that are true or false"


def decimals(text: str):
    return column(DataTypes.DECIMAL(2, 1), *[Decimal(text)] * 4)


def test_if():
    assert result("IF", column(BOOLEAN, True, False, None), 5, 3) == [5, 3, 3]
    assert result("IF", column(BOOLEAN, True, False), column(INT, 1, 2), column(BIGINT, 10, 2**40)) == [1, 2**40]
    assert resulting("IF", True, 1) == "a condition and two values of one kind"


def test_coalesce_ifnull_nullif():
    assert result("COALESCE", column(INT, None, 1), column(INT, None, 2), 5) == [5, 1]
    assert one("COALESCE", None, "default") == "default"
    assert one("COALESCE", column(INT, None), None) is None
    assert resulting("COALESCE", column(INT), 5) == INT.not_null()
    assert result("IFNULL", column(INT, None, 1), 5) == [5, 1]
    assert resulting("IFNULL", column(INT), column(BIGINT)) == BIGINT
    assert result("NULLIF", column(INT, 5, 0, None), 5) == [None, 0, None]
    assert result("NULLIF", column(STRING, "a", "b"), column(STRING, "a", None)) == [None, "b"]
    assert one("NULLIF", 5, 5) is None
    assert one("NULLIF", 5, 6) == 5


def quotient(by: Expr) -> Call:
    return Call(INT, named("/"), (Literal(INT.not_null(), 12), by))


def test_a_branch_that_may_be_an_error_sees_only_its_rows():
    d = Column(INT, 0, "d")
    zero = Call(BOOLEAN, named("="), (d, Literal(INT.not_null(), 0)))
    columns = [pyarrow.array([0, 3, None, 4], "int32")]

    def values(kind: DataType, name: str, *args: Expr) -> list[object]:
        return list(Evaluation(columns, 4, Session()).column(Call(kind, named(name), args)).to_pylist())

    minus = Literal(INT.not_null(), -1)
    assert values(INT, "CASE", zero, minus, quotient(d)) == [-1, 4, None, 3]
    assert values(BIGINT, "IF", zero, minus, quotient(d)) == [-1, 4, None, 3]
    positive = Call(BOOLEAN, named(">"), (quotient(d), Literal(INT.not_null(), 3)))
    assert values(INT, "CASE", zero, minus, positive, Literal(INT.not_null(), 7), d) == [-1, 7, None, 4]
    assert values(INT, "COALESCE", Call(INT, named("NULLIF"), (d, minus)), quotient(d)) == [0, 3, None, 4]
    with pytest.raises(RowError):
        values(INT, "CASE", zero, quotient(d), minus)
    nobody = Call(BOOLEAN, named("="), (d, minus))
    assert values(INT, "IF", nobody, quotient(Literal(INT.not_null(), 0)), d) == [0, 3, None, 4]


def test_an_undeclared_error_of_a_function_fails_only_the_rows_that_reach_it():
    number, text = Column(INT, 0, "n"), Column(STRING, 1, "s")
    columns = [pyarrow.array([1, 2_000_000_000, 2], "int32"), pyarrow.array(["a", "b", "c"])]

    def values(kind: DataType, name: str, *args: Expr) -> list[object]:
        return list(Evaluation(columns, 3, Session()).column(Call(kind, named(name), args)).to_pylist())

    repeated = Call(STRING, named("REPEAT"), (text, number))
    is_large = Call(BOOLEAN, named(">"), (number, Literal(INT.not_null(), 5)))
    is_small = Call(BOOLEAN, named("<="), (number, Literal(INT.not_null(), 5)))
    is_pair = Call(BOOLEAN, named("="), (repeated, Literal(STRING.not_null(), "cc")))
    assert values(STRING, "CASE", is_large, Literal(STRING.not_null(), "-"), repeated) == ["a", "-", "cc"]
    assert values(BOOLEAN, "AND", is_small, is_pair) == [False, False, True]
    assert values(BOOLEAN, "OR", is_large, is_pair) == [False, True, True]
    large = Call(STRING, named("CASE"), (is_large, text, Literal(STRING, None)))
    assert values(STRING, "COALESCE", large, repeated) == ["a", "b", "cc"]
    with pytest.raises(RowError, match="make them shorter"):
        values(STRING, "CASE", is_small, Literal(STRING.not_null(), "-"), repeated)
    with pytest.raises(RowError, match="make them shorter"):
        values(BOOLEAN, "AND", is_large, is_pair)
