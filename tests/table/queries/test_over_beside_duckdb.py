"""DuckDB gives the same rows for functions OVER frames that hypothesis makes, in streams and in batch mode."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table.queries.generated_queries import PHASES, checked, some, tables

AGGREGATES = [
    "COUNT(*)", "COUNT(n)", "COUNT(DISTINCT n)", "SUM(n)", "SUM(p)", "SUM(m)", "SUM(d)", "MIN(n)", "MAX(p)", "MIN(k)",
    "MAX(d)", "MIN(m)", "MAX(f)", "AVG(d)", "STDDEV_POP(d)", "VAR_SAMP(d)", "SUM(DISTINCT n)", "MAX(ts)",
    "COUNT(n) FILTER (WHERE f)", "SUM(DISTINCT p) FILTER (WHERE k = 'a')", "{first}", "{last}",
]  # fmt: skip
PLACES = [
    "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)", "LAG(n)", "LAG(k, 2)",
    "LAG(p, 1, 7)", "LEAD(n)", "LEAD(m, 3)", "LEAD(id, 2, -1)",
]  # fmt: skip
BEFORE = ["UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "CURRENT ROW"]
FRAMES = [
    *(f"ROWS BETWEEN {first} AND CURRENT ROW" for first in BEFORE), "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
]  # fmt: skip
WHOLE = [
    *FRAMES, "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
]  # fmt: skip
LENGTHS = ["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING"]
NULLS = {
    "first": ("FIRST_VALUE(n)", "FIRST_VALUE(n IGNORE NULLS)"),
    "last": ("LAST_VALUE(p)", "LAST_VALUE(p IGNORE NULLS)"),
}
TIME = {**NULLS, "ts": ("ts", "ts::TIMESTAMP")}
PARTITIONS = st.sampled_from(["", "PARTITION BY k", "PARTITION BY n, f"])


def apart(rows):
    """Return rows of which no two have one time: those of one time come in any order from two files."""
    return [(*row[:6], row[6].replace(microsecond=1000 * number), *row[7:]) for number, row in enumerate(rows)]


def query(functions, window):
    """Select functions over one window."""
    shown = ", ".join(f"{function} OVER w" for function in functions)
    return f"SELECT id, {shown} FROM t WINDOW w AS ({window})"


@pytest.mark.slow
@given(rows=tables().map(apart), partition=PARTITIONS, functions=some(AGGREGATES, 1, 4), frame=st.sampled_from(FRAMES))
@settings(max_examples=25, phases=PHASES)
def test_frames_of_rows_of_streams(rows, partition, functions, frame):
    checked(rows, query(functions, f"{partition} ORDER BY ts {frame}"), **NULLS)


@pytest.mark.slow
@given(
    rows=tables(), partition=PARTITIONS, functions=some(AGGREGATES[:-2], 1, 4),
    seconds=st.sampled_from([None, 0, 1, 8, 60]),
)  # fmt: skip
@settings(max_examples=25, phases=PHASES)
def test_frames_of_time_of_streams(rows, partition, functions, seconds):
    first = "UNBOUNDED" if seconds is None else f"INTERVAL '{seconds}' SECOND"
    frame = f"RANGE BETWEEN {first} PRECEDING AND CURRENT ROW"
    checked(rows, query(functions, f"{partition} ORDER BY {{ts}} {frame}"), **TIME)


@pytest.mark.slow
@given(rows=tables().map(apart), partition=PARTITIONS, functions=some([*PLACES[:3], *PLACES[6:9]], 1, 4))
@settings(max_examples=15, phases=PHASES)
def test_places_in_streams(rows, partition, functions):
    checked(rows, query(functions, f"{partition} ORDER BY ts"))


@pytest.mark.slow
@given(
    rows=tables(), partition=PARTITIONS, functions=some([*AGGREGATES, "NTH_VALUE(n, 2)"], 1, 4),
    order=st.sampled_from(["id", "n DESC NULLS LAST, id", "d NULLS FIRST, id DESC"]), frame=st.sampled_from(WHOLE),
)  # fmt: skip
@settings(max_examples=40, phases=PHASES)
def test_frames_of_whole_tables(rows, partition, functions, order, frame):
    checked(rows, query(functions, f"{partition} ORDER BY {order} {frame}"), is_batch=True, **NULLS)


@pytest.mark.slow
@given(
    rows=tables(), partition=PARTITIONS, functions=some(AGGREGATES[:-2], 1, 4), bounds=some(LENGTHS, 2, 2),
    column=st.sampled_from(["n", "d", "m", "p"]), direction=st.sampled_from(["NULLS FIRST", "DESC NULLS LAST"]),
)  # fmt: skip
@settings(max_examples=40, phases=PHASES)
def test_frames_of_lengths_of_whole_tables(rows, partition, functions, bounds, column, direction):
    first, last = sorted(bounds, key=LENGTHS.index)
    window = f"{partition} ORDER BY {column} {direction} RANGE BETWEEN {first} AND {last}"
    checked(rows, query(functions, window), is_batch=True)


@pytest.mark.slow
@given(
    rows=tables(), partition=PARTITIONS, functions=some(PLACES, 1, 4),
    order=st.sampled_from(["id DESC", "n NULLS FIRST, id", "k DESC NULLS LAST, f NULLS FIRST, id"]),
)  # fmt: skip
@settings(max_examples=30, phases=PHASES)
def test_places_in_whole_tables(rows, partition, functions, order):
    checked(rows, query(functions, f"{partition} ORDER BY {order}"), is_batch=True)


