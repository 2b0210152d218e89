"""The law of batches for every function: slices of the rows give slices of the result, whatever the rows are."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayflink.table.plan.typed import Call, Column, Evaluation, Expr, Literal, RowError
from rayflink.table.types import DataTypes, Root
from tests.table.functions.calling import SESSION, same
from tests.table.functions.flink_expressions import DIFFERENT, recorded
from tests.table.functions.test_flink_expressions import bound


def pools() -> dict[tuple[Any, ...], tuple[Call, list[tuple[Any, ...]]]]:
    """Return calls of constants by function, types of arguments and options, each with the recorded arguments."""
    calls: dict[tuple[Any, ...], tuple[Call, list[tuple[Any, ...]]]] = {}
    for case in recorded():
        if case.is_refused or case.expression in DIFFERENT:
            continue
        for expr in bound(case.expression).walk():
            if isinstance(expr, Call) and expr.args and all(isinstance(arg, Literal) for arg in expr.args):
                roots = tuple((arg.type.root, arg.type.scale) for arg in expr.args)
                result = expr.type
                key = (expr.function.name, expr.options, result.root, result.scale, result.precision, roots)
                _, rows = calls.setdefault(key, (expr, []))
                rows.append(tuple(arg.value for arg in expr.args if isinstance(arg, Literal)))
    return calls


POOLS = pools()
LITERALS_WANTED = ("JSON_OBJECT",)
CHECKED = {
    key: pool for key, pool in POOLS.items() if pool[0].function.is_deterministic and key[0] not in LITERALS_WANTED
}


def as_columns(call: Call) -> Call:
    args: list[Expr] = [Column(_wide(arg), index, f"c{index}") for index, arg in enumerate(call.args)]
    return Call(_wide(call), call.function, tuple(args), call.options)


def _wide(expr: Expr) -> Any:
    kind = expr.type.nullable()
    return DataTypes.STRING() if kind.root is Root.CHAR else kind


def evaluated(call: Call, columns: list[Any], rows: int) -> Any:
    """Return the values, or the text of the error."""
    try:
        return list(Evaluation(columns, rows, SESSION).column(call).to_pylist())
    except RowError as error:
        return str(error)


@pytest.mark.slow  # many functions
@pytest.mark.parametrize("key", CHECKED, ids=[f"{key[0]}-{number}" for number, key in enumerate(CHECKED)])
@given(data=st.data())
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_slices_give_slices(key, data):
    call, recorded_rows = CHECKED[key]
    call_of_columns = as_columns(call)
    fields = [st.sampled_from([row[index] for row in recorded_rows]) | st.none() for index in range(len(call.args))]
    rows = data.draw(st.lists(st.tuples(*fields), min_size=2, max_size=6))
    cut = data.draw(st.integers(0, len(rows)))
    columns = [
        pyarrow.array([row[index] for row in rows], _wide(arg).to_arrow()) for index, arg in enumerate(call.args)
    ]
    whole = evaluated(call_of_columns, columns, len(rows))
    parts = [
        evaluated(call_of_columns, [column.slice(*part) for column in columns], part[1])
        for part in ((0, cut), (cut, len(rows) - cut))
    ]
    if any(isinstance(part, str) for part in (whole, *parts)):
        assert isinstance(whole, str) and any(isinstance(part, str) for part in parts)
        return
    assert same([value for part in parts for value in part], whole)


def test_most_functions_are_among_them():
    by_name = defaultdict(int)
    for key in CHECKED:
        by_name[key[0]] += 1
    assert len(by_name) > 110
