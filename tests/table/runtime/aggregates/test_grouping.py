"""Rows in groups, against a dictionary of their keys."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rayflink.table.runtime.aggregates.grouping import grouped

MANY = (Phase.explicit, Phase.reuse, Phase.generate)
EXTREMES = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 1000, 2**62, 2**63 - 1])
VALUES = {
    pa.int64(): st.one_of(st.integers(-5, 5), st.integers(-3, 3).map(lambda i: i * 10_000 + 7), EXTREMES),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.one_of(st.integers(0, 9), st.sampled_from([2**64 - 1, 2**64 - 5, 2**63])),
    pa.timestamp("ms"): st.integers(-9, 9).map(lambda i: dt.datetime(2026, 1, 1) + dt.timedelta(minutes=i)),
    pa.date32(): st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "b"]),
    pa.float64(): st.sampled_from([0.5, 1.5]),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.Array], int]:
    rows = draw(st.integers(1, 40))
    columns = []
    for kind in draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4)):
        some = VALUES[kind] if draw(st.booleans()) else st.one_of(st.none(), VALUES[kind])
        columns.append(pa.array(draw(st.lists(some, min_size=rows, max_size=rows)), kind))
    before = draw(st.integers(0, rows - 1))
    return [one.slice(before) for one in columns], rows - before


@pytest.mark.slow
@settings(phases=MANY, deadline=None, max_examples=300)
@given(tables())
def test_rows_with_equal_keys_are_a_group(table: tuple[list[pa.Array], int]) -> None:
    columns, rows = table
    groups = grouped(columns, rows)
    keys = list(zip(*(one.to_pylist() for one in groups.keys), strict=True))
    assert len(set(keys)) == len(keys) == groups.count
    assert [one.type for one in groups.keys] == [one.type for one in columns]
    assert groups.codes.dtype == np.intp
    wanted = list(zip(*(one.to_pylist() for one in columns), strict=True))
    assert [keys[code] for code in groups.codes] == wanted
    assert len(set(wanted)) == groups.count


@pytest.mark.parametrize("step", [1, 10_000], ids=["close", "a_step_apart"])
def test_keys_that_fill_more_places_than_there_is_room_for(step: int) -> None:
    """Each column has places, both together have too many."""
    draw = np.random.RandomState(1)
    first, second = draw.randint(0, 9_000, 5_000) * step, draw.randint(0, 9_000, 5_000)
    groups = grouped([pa.array(first), pa.array(second)], 5_000)
    given_back = [np.asarray(one)[groups.codes] for one in groups.keys]
    assert (given_back[0] == first).all() and (given_back[1] == second).all()
    assert groups.count == len(set(zip(first.tolist(), second.tolist(), strict=True)))


def test_no_rows_and_no_keys() -> None:
    assert grouped([pa.array([], pa.int64())], 0).count == 0
    assert grouped([], 0).count == 0
    assert grouped([], 3).codes.tolist() == [0, 0, 0]
