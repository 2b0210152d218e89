"""Tables and queries that hypothesis makes, to be given to DuckDB too.

Tables have nulls, duplicates and rows out of order; queries are put together of parts, so that what is tested together
was not thought of beforehand.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import Phase
from hypothesis import strategies as st

from rayflink.table import PlannerConfig
from tests.table.queries.duckdb_oracle import Both, Source, Window, table_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failing example is reported as it is: to make it small would take minutes."""
START = datetime.datetime(2026, 3, 1, 12)


@st.composite
def tables(draw: st.DrawFn, most: int = 40, behind: int = 15) -> list[tuple[Any, ...]]:
    """Rows whose times go on, with some so many seconds behind at most."""
    rows = []
    now = 0
    for _ in range(draw(st.integers(0, most))):
        now += draw(st.sampled_from([0, 0, 1, 400, 2_500, 7_000, 31_000]))
        at = START + datetime.timedelta(milliseconds=now - draw(st.sampled_from([0, 0, 0, 1, 900, behind * 1000])))
        rows.append(
            (
                draw(st.sampled_from(["a", "b", "", "long key"]) | st.none()),
                draw(st.integers(-3, 3) | st.none()),
                draw(st.sampled_from([0, 1, 2**40, -(2**40)]) | st.none()),
                draw(st.integers(-8, 8).map(lambda one: one / 4) | st.none()),
                draw(st.integers(-500, 500).map(lambda one: Decimal(one).scaleb(-2)) | st.none()),
                draw(st.booleans() | st.none()),
                at,
                draw(st.none() | st.lists(st.integers(-2, 2) | st.none(), max_size=3)),
            )
        )
    return rows


VALUES = [
    "n + 1", "n * 2 - id", "p - n", "-n", "d + 0.5e0", "d * n", "m + m", "m - 1", "UPPER(k)", "k || '!'",
    "COALESCE(k, 'none')", "COALESCE(n, p, 7)", "NULLIF(n, 1)", "CASE WHEN n > 0 THEN k WHEN n = 0 THEN 'zero' END",
    "CASE k WHEN 'a' THEN n ELSE p END", "CAST(n AS BIGINT)", "CAST(id AS STRING)", "ABS(n)", "ts", "id", "k", "n", "p",
    "d", "m", "f", "n > 1 AND f", "f OR n IS NULL", "NOT f", "n BETWEEN -1 AND 1", "k IN ('a', 'b')",
]  # fmt: skip
MORE = "".join(f", {at}" for at in range(3, 30))
"""Constants for an IN of many."""
CONDITIONS = [
    "n > 0", "n <> 1", "k = 'a'", "k LIKE '%o%'", "k IS NULL", "k IS NOT NULL", "f", "NOT f", "f IS NOT TRUE",
    "n IN (1, 2)", "n NOT IN (0, 3)", "p BETWEEN 0 AND 10", "d >= 0.5e0", "m < 1", "id > 5", "n IS DISTINCT FROM p",
    "n = n", "k <> ''", f"n IN (1{MORE})", f"p NOT IN (1{MORE})",
]  # fmt: skip
KEYS = ["k", "n", "f", "n + 1", "COALESCE(k, 'none')", "CASE WHEN n > 0 THEN 'some' END", "p"]
AGGREGATES = [
    "COUNT(*)", "COUNT(n)", "COUNT(DISTINCT n)", "COUNT(DISTINCT k)", "SUM(n)", "SUM(p)", "SUM(m)", "SUM(d)", "MIN(n)",
    "MAX(p)",
    "MIN(k)", "MAX(k)", "MIN(d)", "MAX(m)", "AVG(d)", "SUM(DISTINCT n)", "MAX(ts)", "MIN(ts)", "SUM(n + 1)",
    "STDDEV_POP(d)",
    "VAR_SAMP(d)", "COUNT(n) FILTER (WHERE f)", "SUM(n) FILTER (WHERE k = 'a')", "SUM(n) - MIN(n)", "COUNT(*) * 2",
    "MAX(CASE WHEN f THEN n END)",
]  # fmt: skip
HAVING = ["COUNT(*) > 1", "SUM(n) IS NOT NULL", "MIN(n) < MAX(n)", "COUNT(DISTINCT k) = 1"]
WINDOWS = [
    Window("TUMBLE", 5), Window("TUMBLE", 60), Window("HOP", 10, 5), Window("HOP", 60, 5), Window("CUMULATE", 30, 10),
    Window("CUMULATE", 60, 5),
]  # fmt: skip
SESSIONS = [Window("SESSION", 5), Window("SESSION", 2, 0, ("k",)), Window("SESSION", 10, 0, ("n", "f"))]


def some(parts: list[str], least: int = 0, most: int = 4) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(parts), min_size=least, max_size=most, unique=True)


@st.composite
def filters(draw: st.DrawFn) -> str:
    chosen = draw(some(CONDITIONS, 0, 3))
    return f" WHERE {draw(st.sampled_from([' AND ', ' OR '])).join(f'({one})' for one in chosen)}" if chosen else ""


def named(parts: list[str]) -> str:
    return ", ".join(f"{part} AS c{at}" for at, part in enumerate(parts))


@st.composite
def rowwise(draw: st.DrawFn) -> str:
    """SELECT and WHERE, with queries in one another, and UNION ALL."""
    first = f"SELECT {named(draw(some(VALUES, 1)))} FROM t{draw(filters())}"
    form = draw(st.sampled_from(["plain", "nested", "with", "union"]))
    if form == "plain":
        return first
    if form == "union":
        columns = named(draw(some(VALUES, 1)))
        return f"SELECT {columns} FROM t{draw(filters())} UNION ALL SELECT {columns} FROM t{draw(filters())}"
    outer = f"SELECT c.k, {named(draw(some(VALUES, 1)))} FROM {{}}{draw(filters())}"
    inner = f"SELECT * FROM t{draw(filters())}"
    if form == "with":
        return f"WITH c AS ({inner}) {outer.format('c')}"
    return outer.format(f"({inner}) AS c")


@st.composite
def windowed(draw: st.DrawFn, windows: list[Window]) -> tuple[str, Window]:
    """Aggregates over windows, with HAVING or a query around."""
    window = draw(st.sampled_from(windows))
    keys = list(window.keys) if window.kind == "SESSION" else draw(some(KEYS, 0, 2))
    calls = draw(some(AGGREGATES, 1))
    having = draw(st.none() | st.sampled_from(HAVING))
    selected = ", ".join(
        [*(f"{one} AS g{at}" for at, one in enumerate(keys)), "window_start", "window_end", named(calls)]
    )
    group = ", ".join([*keys, "window_start", "window_end"])
    query = f"SELECT {selected} FROM {{w}}{draw(filters())} GROUP BY {group}"
    query += f" HAVING {having}" if having else ""
    if draw(st.booleans()):
        query = f"SELECT window_end, c0 FROM ({query}) AS x WHERE c0 IS NOT NULL"
    return query, window


@st.composite
def grouped(draw: st.DrawFn) -> str:
    """Aggregates over groups without a window, of rows or of the results of other groups, with HAVING."""
    keys, calls = draw(some(KEYS, 0, 2)), draw(some(AGGREGATES, 1))
    selected = ", ".join([*(f"{one} AS g{at}" for at, one in enumerate(keys)), named(calls)])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = draw(st.none() | st.sampled_from(HAVING))
    inner = "t"
    if draw(st.booleans()):
        columns = "MAX(id) AS id, MIN(n) AS n, SUM(p) AS p, SUM(d) AS d, SUM(m) AS m, MAX(f) AS f, MAX(ts) AS ts"
        inner = f"(SELECT k, {columns} FROM t GROUP BY k, n > 0) AS t"
    conditions = [*([having] if having else []), *([] if keys else ["COUNT(*) > 0"])]  # a stream without rows has none
    query = f"SELECT {selected} FROM {inner}{draw(filters())}{group}"
    return f"{query} HAVING {' AND '.join(conditions)}" if conditions else query


MINI_BATCHES = {
    "table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "10 ms",
    "table.exec.mini-batch.size": "7",
}  # fmt: skip
ONE_PHASE = {**MINI_BATCHES, "table.optimizer.agg-phase-strategy": "ONE_PHASE"}
SPLIT = {**MINI_BATCHES, "table.optimizer.distinct-agg.split.enabled": "true"}


@dataclass(frozen=True)
class Tables:
    """Rows of the tables t and u."""

    t: list[tuple[Any, ...]]
    u: list[tuple[Any, ...]]

    def both(self, folder: str, is_batch: bool = False, rules: PlannerConfig | None = None, **options: str) -> Both:
        """The tables in both engines."""
        return Both(Path(folder), {"t": table_of(self.t), "u": table_of(self.u)}, is_batch, rules, **options)


def checked(
    rows: list[tuple[Any, ...]] | Tables, query: str, ordered: bool = False, is_batch: bool = False,
    options: Mapping[str, str] | None = None, **sources: Source,
) -> int:  # fmt: skip
    """Check that both engines give the same rows; how many."""
    given = rows if isinstance(rows, Tables) else Tables(rows, [])
    with tempfile.TemporaryDirectory() as folder:
        return given.both(folder, is_batch, None, **(options or {})).agree(query, ordered, **sources)


def pairs() -> st.SearchStrategy[Tables]:
    """Two tables, each with a disorder of its own."""
    return st.builds(Tables, tables(24), tables(24, behind=45))
