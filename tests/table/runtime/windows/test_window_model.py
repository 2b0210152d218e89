"""Window aggregation of any rows in any order, beside a model that goes row by row."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.runtime.aggregates.window_spec import WindowAggregation
from rayflink.table.runtime.windows import session_store, slice_store, sliced_windows
from rayflink.testing import OperatorHarness
from rayflink.testing.elements import Mark, Record

from .test_window_aggregates import one_phase, sessions, two_phases
from .window_cases import (
    OK,
    WORD,
    Model,
    N,
    SessionModel,
    aggregate,
    by_word,
    cumulate,
    hop,
    rows,
    session,
    tumble,
    value_of,
)

AGGREGATES = (
    aggregate("COUNT"), aggregate("COUNT", N, filter=OK), aggregate("SUM", N), aggregate("SUM", N, filter=OK),
    aggregate("AVG", N), aggregate("MIN", N), aggregate("MAX", N, filter=OK), aggregate("MIN", WORD),
    aggregate("MAX", OK), aggregate("COUNT", N, distinct=True), aggregate("SUM", N, distinct=True),
    aggregate("AVG", N, distinct=True, filter=OK), aggregate("COUNT", WORD, distinct=True), aggregate("COLLECT", N),
    aggregate("VAR_POP", N), aggregate("STDDEV_POP", N),
)  # fmt: skip
SPECS = {
    "tumble": tumble(), "tumble with an offset": tumble(10, offset_ms=-3), "hop": hop(), "hop by one": hop(5, 1),
    "hop over many slices": hop(24, 2, offset_ms=1),
    "cumulate over many slices": cumulate(24, 2, offset_ms=1),
    "cumulate": cumulate(), "cumulate with an offset": cumulate(12, 4, offset_ms=5),
}  # fmt: skip
SESSIONS = {"session": session(), "session with a gap of one": session(1)}
ORDERED = (
    aggregate("FIRST_VALUE", N), aggregate("LAST_VALUE", N, filter=OK), aggregate("LISTAGG", WORD),
    aggregate("LISTAGG", WORD, distinct=True, filter=OK, separator="; "),
)  # fmt: skip
"""Aggregates whose results depend on the order in which rows came, which slices of overlapping windows do not keep."""

values = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.none() | st.integers(-5, 5),
    st.integers(-20, 60),
    st.sampled_from([True, False, None]),
)
streams = st.lists(st.lists(values, max_size=6) | st.integers(-10, 70), max_size=8)


def found_in(harness: OperatorHarness, aggregation: WindowAggregation) -> list[tuple[Any, ...]]:
    keys = len(aggregation.keys)
    found = []
    for entry in harness.take():
        if isinstance(entry, Record):
            fields = [_sorted(value) for value in entry.value]
            ms = [round((value - datetime(1970, 1, 1)) / timedelta(milliseconds=1)) for value in fields[-3:-1]]
            found.append((tuple(ms), tuple(fields[:keys]), tuple(fields[keys:-3])))
        else:
            assert isinstance(entry, Mark)
    return found


def _sorted(value: Any) -> Any:
    """Lists in order, multisets as pairs of a value and its count in order."""
    if isinstance(value, dict):
        return sorted(value.items())
    return sorted(value) if isinstance(value, list) else value


def late_in(harness: OperatorHarness) -> int:
    return harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count()


@pytest.fixture(autouse=True)
def _pieces_are_joined_early(monkeypatch):
    monkeypatch.setattr(slice_store, "LEAST_WEIGHT", 2)
    monkeypatch.setattr(session_store, "LEAST_WEIGHT", 2)
    monkeypatch.setattr(sliced_windows, "FIRING_WEIGHT", 5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "phases"), [*product(SPECS, [one_phase, two_phases]), *product(SESSIONS, [sessions])])
@settings(max_examples=40, deadline=None)
@given(stream=streams, keys=st.sampled_from([(), (WORD,), (WORD, OK), (OK,)]), seed=st.integers(0, 9))
def test_results_are_those_of_the_model(name, phases, stream, keys, seed):
    spec, draw = (SPECS | SESSIONS)[name], random.Random(seed)
    aggregates = AGGREGATES + (ORDERED if name in SESSIONS else ())
    aggregation = by_word(spec, *aggregates, keys=keys)
    model = (SessionModel if name in SESSIONS else Model)(spec, keys)
    harness = OperatorHarness(phases(aggregation))
    lost = 0
    try:
        for element in [*stream, 1000]:
            if isinstance(element, int):
                harness.advance_watermark(element)
                fired = model.advance(element)
                wanted = [
                    (window, key, tuple(value_of(one, held) for one in aggregates)) for window, key, held in fired
                ]
                found = found_in(harness, aggregation)
                assert Counter(map(repr, found)) == Counter(map(repr, wanted))
                assert [one[0] for one in found] == [one[0] for one in wanted]
            elif element:
                for row in element:
                    model.add(row)
                harness.give(rows(*element))
            if draw.random() < 0.3:
                snapshot = harness.snapshot()
                lost += late_in(harness)
                harness = harness.restore(phases(aggregation), snapshot)
        lost += late_in(harness)
        assert lost == model.late
    finally:
        harness.close()
