"""Joins, first rows of windows and elements of arrays, as queries that hypothesis makes over the tables t and u."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.table.queries.duckdb_oracle import Source
from tests.table.queries.generated_queries import HAVING, KEYS, WINDOWS, filters, some

GeneratedQuery = tuple[str, dict[str, Source]]
"""A query and what stands for the names in it."""
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
BOUNDS = "L.window_start = R.window_start AND L.window_end = R.window_end"
EQUAL = ["L.k = R.k", "L.n = R.n", "L.n + 1 = R.n", "L.f = R.f", "L.p = R.id", "L.m = R.n"]
NOT_DISTINCT = "L.k IS NOT DISTINCT FROM R.k"
EXTRA = [
    "L.id < R.id", "L.n > R.n", "L.n <> R.n", "COALESCE(L.n, 0) + COALESCE(R.n, 1) > 0", "L.f", "R.n IS NOT NULL",
    "L.d < R.d", "R.k <> 'a'", "L.p IS NULL OR R.f",
]  # fmt: skip
ORDERS = ["n", "n DESC", "d", "k DESC", "ts DESC", "ts", "m DESC", "COALESCE(n, 1) * 2", "f"]


@st.composite
def window_pairs(draw: st.DrawFn) -> dict[str, Source]:
    """The same windows over t and u, or over t twice."""
    window = draw(st.sampled_from(WINDOWS))
    return {"w": (window, "t"), "v": (window, draw(st.sampled_from(["u", "t"])))}


def conditions(draw: st.DrawFn, most: int = 2) -> str:
    parts = [*draw(some(EQUAL, 0, most)), *draw(some(EXTRA, 0, 2))]
    if draw(st.integers(0, 5)) == 0:
        parts.append(NOT_DISTINCT)
    return "".join(f" AND ({part})" for part in parts)


@st.composite
def window_joins(draw: st.DrawFn) -> GeneratedQuery:
    """Both sides with windows and conditions of their own."""
    sides = [f"(SELECT * FROM {{{name}}}{draw(filters())})" for name in "wv"]
    on = f"{BOUNDS}{conditions(draw)}"
    columns = "L.id, R.id AS other, L.k, R.n, R.window_end"
    query = f"SELECT {columns} FROM {sides[0]} AS L {draw(st.sampled_from(KINDS))} {sides[1]} AS R ON {on}"
    if draw(st.booleans()):
        query += f" WHERE {draw(st.sampled_from(['R.n > 0', 'L.k IS NULL', 'L.id <> R.id', 'R.id IS NULL OR L.f']))}"
    return query, draw(window_pairs())


@st.composite
def window_semi_joins(draw: st.DrawFn) -> GeneratedQuery:
    """IN and EXISTS, with NOT and without."""
    negated = draw(st.sampled_from(["", "NOT "]))
    inner = f"SELECT {{}} FROM (SELECT * FROM {{v}}{draw(filters())}) AS R WHERE {BOUNDS}"
    if draw(st.booleans()):
        column = draw(st.sampled_from(["k", "n", "f"]))
        condition = f"L.{column} {negated}IN ({inner.replace('{}', f'R.{column}')}{conditions(draw, 1)})"
    else:
        condition = f"{negated}EXISTS ({inner.replace('{}', '*')}{conditions(draw)})"
    more = draw(st.sampled_from(["", " AND L.n > 0", " AND L.k IS NOT NULL"]))
    return f"SELECT L.id, L.window_end FROM (SELECT * FROM {{w}}) AS L WHERE {condition}{more}", draw(window_pairs())


def interval(draw: st.DrawFn) -> str:
    """Bounds of R.ts by L.ts, some of them the other way round."""
    low, high = draw(st.integers(0, 40)), draw(st.integers(0, 40))
    return draw(
        st.sampled_from(
            [
                f"R.ts BETWEEN L.ts - INTERVAL '{low}' SECOND AND L.ts + INTERVAL '{high}' SECOND",
                f"R.ts > L.ts - INTERVAL '{low}' SECOND AND R.ts < L.ts + INTERVAL '{high}' SECOND",
                f"L.ts >= R.ts + INTERVAL '{low}' SECOND AND L.ts < R.ts + INTERVAL '{low + high}' SECOND",
                f"R.ts >= L.ts AND L.ts + INTERVAL '{high}' SECOND >= R.ts",
                "L.ts = R.ts",
            ]
        )
    )


@st.composite
def interval_joins(draw: st.DrawFn) -> GeneratedQuery:
    sides = [f"(SELECT * FROM {name}{draw(filters())})" for name in ("t", draw(st.sampled_from(["u", "t"])))]
    on = f"{interval(draw)}{conditions(draw)}"
    kind = draw(st.sampled_from(KINDS))
    return f"SELECT L.id, R.id AS other, L.k, R.n, L.ts FROM {sides[0]} AS L {kind} {sides[1]} AS R ON {on}", {}


@st.composite
def lookup_joins(draw: st.DrawFn) -> GeneratedQuery:
    """Rows of t with those of u that have their keys, some of which are constants."""
    on = draw(st.sampled_from([*EQUAL[:5], "L.k = R.k AND L.n = R.n", "R.k = 'a'", "R.n = 1 AND L.f = R.f"]))
    kind = draw(st.sampled_from(KINDS[:2]))
    where = draw(st.sampled_from(["", " WHERE R.n > 0", " WHERE L.k IS NULL", " WHERE R.id IS NULL OR L.f"]))
    query = (
        f"SELECT L.id, R.id AS other, L.k, R.n FROM (SELECT *{{p}} FROM t{draw(filters())}) AS L "
        f"{kind} u{{v}} AS R ON {on}{conditions(draw, 1)}{where}"
    )
    return query, {"p": (", PROCTIME() AS pt", ""), "v": (" FOR SYSTEM_TIME AS OF L.pt", "")}


def ordered_by(draw: st.DrawFn, last: str = "id") -> str:
    parts = draw(some(ORDERS, 1, 2))
    return ", ".join([*(f"{one} NULLS {draw(st.sampled_from(['FIRST', 'LAST']))}" for one in parts), last])


@st.composite
def first_rows(draw: st.DrawFn) -> GeneratedQuery:
    """ROW_NUMBER in windows, with bounds of several forms."""
    keys = ", ".join(["window_start", "window_end", *draw(some(KEYS, 0, 2))])
    number = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {ordered_by(draw)}) AS place"
    bound = draw(st.sampled_from(["place <= 2", "place = 1", "place < 3", "place BETWEEN 2 AND 3", "3 >= place"]))
    more = draw(st.sampled_from(["", " AND k <> 'a'", " AND n IS NOT NULL"]))
    chosen = draw(st.sampled_from(["id, window_end, place", "id, k, window_start", "place, n, d, window_end"]))
    query = f"SELECT {chosen} FROM (SELECT *, {number} FROM {{w}}{draw(filters())}) AS x WHERE {bound}{more}"
    return query, {"w": draw(st.sampled_from(WINDOWS))}


@st.composite
def deduplications(draw: st.DrawFn) -> GeneratedQuery:
    """By time alone: which of the rows of one time is taken is not said, so it is not asked for."""
    keys = draw(some(["k", "n", "f"], 0, 2))
    by = ", ".join(["window_start", "window_end", *keys])
    number = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY ts {draw(st.sampled_from(['ASC', 'DESC']))}) AS place"
    query = f"SELECT {by}, ts FROM (SELECT *, {number} FROM {{w}}{draw(filters())}) AS x WHERE place = 1"
    return query, {"w": draw(st.sampled_from(WINDOWS))}


@st.composite
def unnested(draw: st.DrawFn) -> GeneratedQuery:
    """Elements of a column or of an array that is made, and what joins them to their rows."""
    array = draw(st.sampled_from(["l", "{a}n, id{b}", "{a}n, CAST(id AS INT) - 5, 7{b}"]))
    form = draw(st.sampled_from([", {e}", " CROSS JOIN {e}", " LEFT JOIN {e} ON TRUE", " JOIN {e} ON x > n"]))
    where = draw(st.sampled_from(["", " WHERE x > 0", " WHERE x IS NULL OR k = 'a'", " WHERE n > 0 AND x <> n"]))
    source = f"(SELECT * FROM t{draw(filters())}) AS r"
    elements = f"UNNEST({array}) AS e(x)"
    made = f"SELECT id, x, x + 1 AS y, k FROM {source}{form.replace('{e}', elements)}{where}"
    return made, {"a": ("ARRAY[", "["), "b": ("]", "]")}


AGGREGATED = (
    "SELECT {g}window_start, window_end, COUNT(*) AS c, SUM(n) AS s, MAX(id) AS top FROM {x} "
    "GROUP BY {g}window_start, window_end"
)


@st.composite
def nested(draw: st.DrawFn) -> GeneratedQuery:
    """A join of aggregates, an aggregate of a join, the first rows of a join, windows of an interval join."""
    form = draw(
        st.sampled_from(["of aggregates", "aggregated", "first rows", "with window", "aggregate of first rows"])
    )
    kind = draw(st.sampled_from(KINDS))
    sources = draw(window_pairs())
    on = f"{BOUNDS}{conditions(draw)}"
    if form == "of aggregates":
        key = draw(st.sampled_from(["k", "n", ""]))
        left, right = (AGGREGATED.format(g=f"{key}, " if key else "", x=f"{{{one}}}") for one in "wv")
        more = f" AND L.{key} = R.{key}" if key else ""
        extra = draw(st.sampled_from(["", " AND L.c >= R.c", " AND L.s < R.s"]))
        chosen = "L.c, R.c AS other, L.s + R.s AS s, L.window_end, R.window_start"
        return f"SELECT {chosen} FROM ({left}) AS L {kind} ({right}) AS R ON {BOUNDS}{more}{extra}", sources
    if form == "with window":
        joined = f"SELECT L.id, R.id AS other, L.ts, L.k FROM t AS L JOIN u AS R ON {interval(draw)}{conditions(draw)}"
        counted = (
            "SELECT k, window_end, COUNT(*) AS c, SUM(id - other) AS s FROM {z} GROUP BY k, window_start, window_end"
        )
        window = draw(st.sampled_from(WINDOWS))
        return f"WITH z AS ({joined}) {counted}", {"z": (window, "z")}
    if form == "aggregate of first rows":
        inner, found = draw(first_rows())
        kept = inner[inner.index("FROM") :]
        having = draw(st.sampled_from(["", f" HAVING {draw(st.sampled_from(HAVING))}"]))
        return f"SELECT window_end, COUNT(*), SUM(n), MIN(d) {kept} GROUP BY window_start, window_end{having}", found
    joined = (
        "SELECT L.id, R.id AS other, L.n, R.k, L.window_start, L.window_end FROM (SELECT * FROM {w}) AS L "
        f"JOIN (SELECT * FROM {{v}}{draw(filters())}) AS R ON {on}"
    )
    if form == "aggregated":
        group = draw(st.sampled_from(["", "k, "]))
        counted = (
            f"SELECT {group}window_start, COUNT(*) AS c, SUM(n) AS s, COUNT(DISTINCT other) AS o FROM ({joined}) AS z"
        )
        return f"{counted} GROUP BY {group}window_start, window_end", sources
    order = draw(st.sampled_from(["n DESC NULLS LAST", "k NULLS FIRST", "other DESC"]))
    number = f"ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {order}, id, other) AS place"
    return f"SELECT * FROM (SELECT *, {number} FROM ({joined}) AS z) AS y WHERE place <= 2", sources


@st.composite
def batch_joins(draw: st.DrawFn) -> GeneratedQuery:
    """Of whole tables, with any condition."""
    sides = [f"(SELECT * FROM {name}{draw(filters())})" for name in "tu"]
    on = conditions(draw)[len(" AND ") :] or "TRUE"
    kind = draw(st.sampled_from(KINDS))
    query = f"SELECT L.id, R.id AS other, L.k, R.n FROM {sides[0]} AS L {kind} {sides[1]} AS R ON {on}"
    return f"{query}{draw(st.sampled_from(['', ' WHERE L.n > 0', ' WHERE R.id IS NULL OR L.f']))}", {}


@st.composite
def sorted_rows(draw: st.DrawFn) -> GeneratedQuery:
    limit = draw(st.sampled_from(["", " LIMIT 5", " LIMIT 3 OFFSET 2", " OFFSET 4"]))
    return f"SELECT id, k, n, d FROM t{draw(filters())} ORDER BY {ordered_by(draw)}{limit}", {}
