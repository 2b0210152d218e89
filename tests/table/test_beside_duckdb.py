"""DuckDB gives the same rows for queries that hypothesis makes, over tables that hypothesis makes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table.made_queries import KEYS, PHASES, SESSIONS, WINDOWS, checked, rowwise, some, tables, windowed


@pytest.mark.slow
@given(rows=tables(), query=rowwise())
@settings(max_examples=60, phases=PHASES)
def test_projections_and_filters(rows, query):
    checked(rows, query)


@pytest.mark.slow
@given(rows=tables(), made=windowed(WINDOWS))
@settings(max_examples=60, phases=PHASES)
def test_aggregates_over_windows(rows, made):
    query, window = made
    checked(rows, query, w=window)


@pytest.mark.slow
@given(rows=tables(), made=windowed(SESSIONS))
@settings(max_examples=60, phases=PHASES)
def test_aggregates_over_sessions(rows, made):
    query, window = made
    checked(rows, query, w=window)


@pytest.mark.slow
@given(rows=tables(), inner=st.sampled_from(WINDOWS[:4]), keys=some(KEYS[:3], 0, 2))
@settings(max_examples=25, phases=PHASES)
def test_aggregates_of_aggregates(rows, inner, keys):
    group = ", ".join([*keys, "window_start", "window_end"])
    counted = f"SELECT {group}, COUNT(*) AS c, SUM(n) AS s FROM {{w}} GROUP BY {group}"
    query = f"SELECT window_start, window_end, MAX(c), SUM(s), COUNT(*) FROM ({counted}) AS x"
    checked(rows, f"{query} GROUP BY window_start, window_end", w=inner)


@pytest.mark.slow
@given(rows=tables(), window=st.sampled_from(WINDOWS), sets=st.sampled_from(
    ["GROUPING SETS ((k), (n), ())", "ROLLUP (k, f)", "CUBE (k, f)", "GROUPING SETS ((k, f), (f))"]
))  # fmt: skip
@settings(max_examples=25, phases=PHASES)
def test_grouping_sets(rows, window, sets):
    named = [one for one in ("k", "n", "f") if one in sets.replace("SETS", "")]
    query = f"SELECT {', '.join(named)}, window_start, window_end, COUNT(*), SUM(n) FROM {{w}}"
    checked(rows, f"{query} GROUP BY window_start, window_end, {sets}", w=window)


@pytest.mark.slow
@given(rows=tables(), window=st.sampled_from(WINDOWS), columns=some(["k", "n", "f"], 1, 2))
@settings(max_examples=30, phases=PHASES)
def test_distinct_rows_of_windows(rows, window, columns):
    checked(rows, f"SELECT DISTINCT {', '.join(columns)}, window_start, window_end FROM {{w}}", w=window)


@pytest.mark.slow
@given(rows=tables(), window=st.sampled_from(WINDOWS))
@settings(max_examples=20, phases=PHASES)
def test_rows_with_their_windows(rows, window):
    checked(rows, "SELECT id, window_start, window_end FROM {w}", w=window)
