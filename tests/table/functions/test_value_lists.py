"""A long list of constants says what the same constants say one by one."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.binding.expressions import call
from rayflink.table.errors import SqlError
from rayflink.table.functions import value_lists
from rayflink.table.functions.value_lists import ValueList
from rayflink.table.plan.typed import Column, Evaluation, Literal, RowError, named
from rayflink.table.types import DataType, DataTypes
from tests.table.functions.calling import BIGINT, BOOLEAN, DOUBLE, INT, SESSION, STRING

IS_SEARCHED = value_lists._is_searched
DAYS = [datetime.date(2020, 1, 1), datetime.date(1969, 12, 31)]
TIMES = [datetime.datetime(2020, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59)]
DECIMAL = DataTypes.DECIMAL(5, 2)
COLUMNS: list[tuple[DataType, list[Any]]] = [
    (INT, [0, 1, -7]),
    (BIGINT, [2**40, 1]),
    (DOUBLE, [0.0, -0.0, 1.0, math.nan, math.inf]),
    (DataTypes.FLOAT(), [0.0, 1.0, math.nan]),
    (DECIMAL, [Decimal("1.00")]),
    (STRING, ["", "a", "2020-01-01"]),
    (DataTypes.BYTES(), [b"", b"a"]),
    (BOOLEAN, [True, False]),
    (DataTypes.DATE(), DAYS),
    (DataTypes.TIMESTAMP(3), TIMES),
    (DataTypes.TIMESTAMP_LTZ(3), [one.replace(tzinfo=datetime.timezone.utc) for one in TIMES]),
]
CONSTANTS: list[list[tuple[DataType, Any]]] = [
    [],
    [(INT, 0), (INT, 1), (BIGINT, 2**40), (DECIMAL, Decimal("1.00")), (DOUBLE, 0.5)],
    [(INT, 1), (DECIMAL, Decimal("0.99"))],
    [(INT, 1), (INT, -7)],
    [(DOUBLE, -0.0), (DOUBLE, 1.0)],
    [(DataTypes.CHAR(1), "a"), (DataTypes.CHAR(10), "2020-01-01")],
    [(DataTypes.CHAR(10), str(one)) for one in DAYS],
    [(DataTypes.BINARY(1), b"a")],
    [(BOOLEAN, True)],
    [(DataTypes.DATE(), DAYS[0]), (DataTypes.TIMESTAMP(3), TIMES[1])],
    [(DataTypes.DATE(), one) for one in DAYS],
]


def said(expr: Any, array: pyarrow.Array) -> Any:
    """What the expression is for each row, or its error."""
    try:
        return Evaluation([array], len(array), SESSION).column(expr).to_pylist()
    except RowError as error:
        return str(error)


@pytest.mark.slow
@pytest.mark.parametrize("has_search", [True, False])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_list_says_what_its_constants_say(has_search, data):
    kind, values = data.draw(st.sampled_from(COLUMNS))
    literals = [Literal(one.not_null(), value) for one, value in data.draw(st.sampled_from(CONSTANTS))]
    literals += data.draw(st.sampled_from([[], [Literal(DataTypes.NULL(), None)]]))
    column, array = Column(kind, 0, "c"), pyarrow.array([*values, None], kind.to_arrow())
    if not literals or isinstance(named("IN").result([column, *literals]), str):
        return
    short, long = call("IN", [column, *literals]), call("IN", [column], None, (ValueList.of(literals),))
    assert short.type == long.type
    with mock.patch.object(value_lists, "_is_searched", (lambda kind: False) if not has_search else IS_SEARCHED):
        found = said(long, array)
    assert found == said(short, array), (str(kind), str(short))
    assert long.may_raise or not isinstance(found, str)


def test_lists_are_equal_where_their_constants_are():
    of = [ValueList.of([Literal(INT, at) for at in range(count)]) for count in (30, 30, 31)]
    assert of[0] == of[1] != of[2]
    assert pickle.loads(pickle.dumps(of[0])) == of[0]
    assert list(of[0]) == [Literal(INT, at) for at in range(30)]
    many = ValueList.of([Literal(INT, at) for at in range(1000)])
    assert str(many).startswith("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 1000 values, ")


def test_constants_of_another_kind_are_refused():
    with pytest.raises(SqlError, match=r"IN does not take \(INT\); it takes a value that is compared with CHAR\(1\)"):
        call("IN", [Column(INT, 0, "c")], None, (ValueList.of([Literal(DataTypes.CHAR(1), "a")]),))
