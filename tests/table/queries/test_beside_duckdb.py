"""DuckDB gives the same rows for queries that hypothesis makes, over tables that hypothesis makes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table.queries.generated_queries import (
    CONDITIONS,
    KEYS,
    MINI_BATCHES,
    ONE_PHASE,
    PHASES,
    SESSIONS,
    SPLIT,
    WINDOWS,
    checked,
    grouped,
    rowwise,
    some,
    tables,
    windowed,
)


@pytest.mark.slow
@given(rows=tables(), query=rowwise())
@settings(max_examples=60, phases=PHASES)
def test_projections_and_filters(rows, query):
    checked(rows, query)


@pytest.mark.slow
@given(rows=tables(), generated=windowed(WINDOWS))
@settings(max_examples=60, phases=PHASES)
def test_aggregates_over_windows(rows, generated):
    query, window = generated
    checked(rows, query, w=window)


@pytest.mark.slow
@given(rows=tables(), generated=windowed(SESSIONS))
@settings(max_examples=60, phases=PHASES)
def test_aggregates_over_sessions(rows, generated):
    query, window = generated
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
@given(rows=tables().filter(bool), query=grouped(), options=st.sampled_from([{}, MINI_BATCHES, ONE_PHASE, SPLIT]))
@settings(max_examples=25, phases=PHASES)
def test_groups_of_streams(rows, query, options):
    checked(rows, query, options=options)


@pytest.mark.slow
@given(rows=tables().filter(bool), condition=st.sampled_from(CONDITIONS), options=st.sampled_from([{}, MINI_BATCHES]))
@settings(max_examples=8, phases=PHASES)
def test_last_rows_of_streams(rows, condition, options):
    last = (
        f"SELECT k, n, ts FROM t WHERE {condition} QUALIFY ROW_NUMBER() OVER (PARTITION BY k, n ORDER BY ts DESC) = 1"
    )
    checked(rows, f"SELECT k, COUNT(*) AS c, MIN(ts) AS s, SUM(n) AS t FROM ({last}) AS t GROUP BY k", options=options)


@pytest.mark.slow
@given(rows=tables(), word=st.sampled_from(["INTERSECT", "EXCEPT"]), options=st.sampled_from([{}, MINI_BATCHES]))
@settings(max_examples=5, phases=PHASES)
def test_intersections_of_streams(rows, word, options):
    checked(rows, f"SELECT k, n FROM t WHERE f {word} SELECT k, n FROM t WHERE p >= 0", options=options)


@pytest.mark.slow
@given(rows=tables(), window=st.sampled_from(WINDOWS), columns=some(["k", "n", "f"], 1, 2))
@settings(max_examples=30, phases=PHASES)
def test_distinct_rows_of_windows(rows, window, columns):
    checked(rows, f"SELECT DISTINCT {', '.join(columns)}, window_start, window_end FROM {{w}}", w=window)


@pytest.mark.slow
@given(rows=tables(), columns=some(["k", "n", "f", "d", "m", "ts", "n + 1", "UPPER(k)"], 1, 4))
@settings(max_examples=40, phases=PHASES)
def test_distinct_rows_of_streams(rows, columns):
    checked(rows, f"SELECT DISTINCT {', '.join(columns)} FROM t")


@pytest.mark.slow
@given(rows=tables(), keys=some(["k", "n", "f", "d", "m"], 2, 3), condition=st.sampled_from(CONDITIONS))
@settings(max_examples=40, phases=PHASES)
def test_unions_and_groups_of_streams(rows, keys, condition):
    one = ", ".join(keys)
    checked(rows, f"SELECT {one} FROM t UNION SELECT {one} FROM t WHERE {condition} UNION SELECT {one} FROM t WHERE f")
    checked(rows, f"SELECT {one} FROM t GROUP BY {one} HAVING {keys[0]} IS NOT NULL")


@pytest.mark.slow
@given(rows=tables(), keys=some(["k", "n", "f", "d", "m", "n + 1"], 1, 3))
@settings(max_examples=40, phases=PHASES)
def test_first_rows_of_streams(rows, keys):
    one = ", ".join(keys)
    checked(rows, f"SELECT {one}, ts FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY {one} ORDER BY ts) = 1")


@pytest.mark.slow
@given(rows=tables(), window=st.sampled_from(WINDOWS))
@settings(max_examples=20, phases=PHASES)
def test_rows_with_their_windows(rows, window):
    checked(rows, "SELECT id, window_start, window_end FROM {w}", w=window)


GROUPED = "(SELECT k, n, SUM(p) AS s, COUNT(*) AS id FROM t GROUP BY k, n) AS g"
TOP = "SELECT k, n, id, rn FROM (SELECT *, ROW_NUMBER() OVER ({}) AS rn FROM {}) AS r WHERE rn {}"


@pytest.mark.slow
@given(
    rows=tables(), options=st.sampled_from([{}, MINI_BATCHES]),
    wanted=st.sampled_from(["<= 2", "= 1", "BETWEEN 2 AND 3"]),
    ordered=st.sampled_from([
        ("PARTITION BY k ORDER BY n DESC NULLS LAST, id", "t"), ("ORDER BY p NULLS FIRST, id DESC", "t"),
        ("PARTITION BY k ORDER BY s DESC NULLS LAST, n NULLS FIRST", GROUPED),
        ("ORDER BY id DESC, k NULLS LAST, n NULLS FIRST", GROUPED),
    ]),
)  # fmt: skip
@settings(max_examples=25, phases=PHASES)
def test_first_rows_that_change(rows, options, wanted, ordered):
    order, table = ordered
    checked(rows, TOP.format(order, table, wanted), options=options)
