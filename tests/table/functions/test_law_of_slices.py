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
    """Calls of constants by function, kinds of arguments and options, each with the arguments it is recorded with."""
    found: dict[tuple[Any, ...], tuple[Call, list[tuple[Any, ...]]]] = {}
    for case in recorded():
        if case.is_refused or case.expression in DIFFERENT:
            continue
        for one in bound(case.expression).walk():
            if isinstance(one, Call) and one.args and all(isinstance(arg, Literal) for arg in one.args):
                roots = tuple((arg.type.root, arg.type.scale) for arg in one.args)
                key = (one.function.name, one.options, one.type.root, one.type.scale, one.type.precision, roots)
                call, rows = found.setdefault(key, (one, []))
                rows.append(tuple(arg.value for arg in one.args if isinstance(arg, Literal)))
    return found


POOLS = pools()
LITERALS_WANTED = ("JSON_OBJECT",)
KEPT = {key: pool for key, pool in POOLS.items() if pool[0].function.is_deterministic and key[0] not in LITERALS_WANTED}


def as_columns(call: Call) -> Call:
    args: list[Expr] = [Column(_wide(arg), at, f"c{at}") for at, arg in enumerate(call.args)]
    return Call(_wide(call), call.function, tuple(args), call.options)


def _wide(expr: Expr) -> Any:
    kind = expr.type.nullable()
    return DataTypes.STRING() if kind.root is Root.CHAR else kind


def evaluated(call: Call, columns: list[Any], rows: int) -> Any:
    """The values, or the error's text."""
    try:
        return list(Evaluation(columns, rows, SESSION).column(call).to_pylist())
    except RowError as error:
        return str(error)


@pytest.mark.slow  # many functions
@pytest.mark.parametrize("key", KEPT, ids=[f"{key[0]}-{at}" for at, key in enumerate(KEPT)])
@given(data=st.data())
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_slices_give_slices(key, data):
    call, known = KEPT[key]
    changed = as_columns(call)
    fields = [st.sampled_from([row[at] for row in known]) | st.none() for at in range(len(call.args))]
    rows = data.draw(st.lists(st.tuples(*fields), min_size=2, max_size=6))
    cut = data.draw(st.integers(0, len(rows)))
    columns = [pyarrow.array([row[at] for row in rows], _wide(arg).to_arrow()) for at, arg in enumerate(call.args)]
    whole = evaluated(changed, columns, len(rows))
    parts = [
        evaluated(changed, [one.slice(*part) for one in columns], part[1])
        for part in ((0, cut), (cut, len(rows) - cut))
    ]
    if any(isinstance(part, str) for part in (whole, *parts)):
        assert isinstance(whole, str) and any(isinstance(part, str) for part in parts)
        return
    assert same([value for part in parts for value in part], whole)


def test_most_functions_are_among_them():
    by_name = defaultdict(int)
    for key in KEPT:
        by_name[key[0]] += 1
    assert len(by_name) > 110
