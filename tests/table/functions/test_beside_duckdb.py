"""DuckDB gives the same for columns that hypothesis makes, where SQL leaves no choice."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.binding.expressions import ExpressionBinder
from rayflink.table.binding.scope import Scope
from rayflink.table.parsing.statement_parser import parse_expression
from rayflink.table.plan.typed import Column, Evaluation
from rayflink.table.types import DataTypes
from tests.table.functions.calling import SESSION, same

COLUMNS = {
    "a": (DataTypes.INT(), st.integers(-5, 5)),
    "b": (DataTypes.BIGINT(), st.integers(-(2**40), 2**40)),
    "d": (DataTypes.DECIMAL(8, 2), st.integers(-(10**6), 10**6).map(lambda one: Decimal(one).scaleb(-2))),
    "s": (DataTypes.STRING(), st.text("abc%_ ", max_size=5)),
    "r": (DataTypes.STRING(), st.sampled_from(["a", "b", "ab", "c "])),
    "t": (DataTypes.TIMESTAMP(6), st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2100, 1, 1))),
    "u": (DataTypes.DATE(), st.dates(datetime.date(1950, 1, 1), datetime.date(2100, 1, 1))),
    "p": (DataTypes.BOOLEAN(), st.booleans()),
    "q": (DataTypes.BOOLEAN(), st.booleans()),
}
ROWS = st.lists(st.tuples(*[values | st.none() for _, values in COLUMNS.values()]), min_size=1, max_size=10)
EXPRESSIONS = """
a + b; b - a; a * b; -a; a < b; a = 3; a <> b; a >= b; d > a; d + d; d - a; d * a
p AND q; p OR NOT q; p IS TRUE; p IS NOT FALSE; q IS NOT TRUE; a IS NULL; a IS DISTINCT FROM b; s IS NOT NULL
a IN (1, 2, 3); a IN (1, NULL); a NOT IN (1, 2); s IN ('a', 'b'); a BETWEEN -1 AND 2; s < r; s = r
s NOT LIKE 'a!%' ESCAPE '!'; s LIKE 'a!_%' ESCAPE '!'
CASE WHEN a > 2 THEN 'x' WHEN a < 0 THEN r END; CASE WHEN a = 0 THEN 0 ELSE b / a END; COALESCE(a, b, 7); NULLIF(a, 3)
IF(p, a, 0)
s LIKE 'a%'; s LIKE '%b%'; s LIKE '_b%'; s NOT LIKE r; a NOT BETWEEN 1 AND 2; UPPER(s); CHAR_LENGTH(s); REVERSE(s)
s || r
CONCAT_WS('-', s, r)
SUBSTRING(s, 2, 2); REPLACE(s, 'a', 'xy'); TRIM(s); LTRIM(s); RTRIM(s); POSITION('b' IN s); LPAD(s, 4, '*'); ASCII(r)
REGEXP_REPLACE(s, '[ab]+', '#'); MD5(s); LEFT(s, 2); RIGHT(s, 2)
STARTSWITH(s, r); REPEAT(r, 3); TRANSLATE(s, 'ab', 'xy')
YEAR(t); MONTH(u); EXTRACT(DAY FROM t); QUARTER(u); EXTRACT(HOUR FROM t); EXTRACT(MINUTE FROM t)
EXTRACT(ISODOW FROM u)
EXTRACT(DOY FROM t); EXTRACT(WEEK FROM u); EXTRACT(ISOYEAR FROM u); t + INTERVAL '3' HOUR; t - INTERVAL '1' MONTH
CAST(a AS STRING); CAST(t AS DATE); CAST(d AS BIGINT) IS NULL; CAST(u AS STRING); CAST(CAST(b AS STRING) AS BIGINT)
GREATEST(a, 2) IS NULL; ABS(a); SIGN(a)
"""
HERE = {
    "IF(p, a, 0)": "CASE WHEN p THEN a ELSE 0 END",
    "CASE WHEN a = 0 THEN 0 ELSE b / a END": "CASE WHEN a = 0 THEN 0 ELSE b // a END",
    "REGEXP_REPLACE(s, '[ab]+', '#')": "regexp_replace(s, '[ab]+', '#', 'g')",
    "CHAR_LENGTH(s)": "length(s)",
    "TRANSLATE(s, 'ab', 'xy')": "translate(s, 'ab', 'xy')",
    "STARTSWITH(s, r)": "starts_with(s, r)",
    "GREATEST(a, 2) IS NULL": "a IS NULL",
}
"""How DuckDB writes some of them."""


class Binder(ExpressionBinder):
    """Binds over the columns above."""

    def bind(self, tree):
        if tree.name in COLUMNS and type(tree).__name__ == "Column":
            return Column(COLUMNS[tree.name][0], list(COLUMNS).index(tree.name), tree.name)
        return super().bind(tree)


@pytest.mark.slow
@given(rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_duckdb_gives_the_same(rows):
    arrays = [
        pyarrow.array([row[at] for row in rows], kind.to_arrow()) for at, (kind, _) in enumerate(COLUMNS.values())
    ]
    given_table = pyarrow.table(dict(zip(COLUMNS, arrays, strict=True)))
    assert len(given_table) == len(rows)
    expressions = [one.strip() for line in EXPRESSIONS.strip().splitlines() for one in line.split(";") if one.strip()]
    query = ", ".join(HERE.get(one, one) for one in expressions)
    expected = duckdb.sql(f"SELECT {query} FROM given_table").fetchall()
    evaluation = Evaluation(arrays, len(rows), SESSION)
    for at, one in enumerate(expressions):
        found = evaluation.column(Binder(Scope(())).bind(parse_expression(one))).to_pylist()
        assert same(found, [row[at] for row in expected]), one
