"""Queries as values, and sets of rows with repetitions, beside DuckDB; and their errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.errors import SqlError
from tests.table.queries.generated_queries import MINI_BATCHES, PHASES, checked, pairs, tables

QUERIES = [
    "SELECT id, (SELECT MAX(n) FROM u) AS most FROM t",
    "SELECT id, n - (SELECT MIN(n) + COUNT(*) FROM u WHERE f) AS more FROM t",
    "SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS times FROM t",
    "SELECT id, (SELECT SUM(u.n) + COUNT(u.n) FROM u WHERE u.k = t.k AND t.n = u.n AND u.f) AS total FROM t",
    "SELECT id FROM t WHERE d > (SELECT AVG(d) FROM u) AND f",
    "SELECT id FROM t WHERE n = (SELECT MAX(u.n) FROM u WHERE u.k = t.k) OR n = (SELECT MIN(n) FROM u)",
    "SELECT id, CASE WHEN n < (SELECT MAX(n) FROM u) THEN k ELSE (SELECT MIN(k) FROM u) END AS word FROM t",
    "SELECT k, SUM(n) AS total FROM t GROUP BY k HAVING SUM(n) > (SELECT AVG(d) FROM u)",
    "SELECT id FROM t WHERE n IN (SELECT n FROM u) AND p >= (SELECT MIN(p) FROM u)",
    "SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.k = t.k AND u.n > (SELECT MIN(n) FROM t WHERE t.k = u.k))",
    "SELECT id FROM t WHERE n NOT IN (SELECT n FROM u WHERE k IN (SELECT k FROM u WHERE f) AND n > (SELECT 1))",
    "SELECT k, SUM(n - (SELECT MIN(n) FROM u)) AS more FROM t GROUP BY k HAVING COUNT(*) <= (SELECT COUNT(*) FROM u)",
    "SELECT MAX((SELECT COUNT(*) FROM u WHERE u.k = t.k)) AS most, SUM(n) FILTER (WHERE n > (SELECT 1)) AS s FROM t",
    "SELECT id, (SELECT k FROM u ORDER BY id LIMIT 1) AS earliest FROM t",
    "SELECT id, (SELECT MAX(total) FROM (SELECT k, SUM(n) AS total FROM u GROUP BY k) AS s) AS best FROM t",
]
_V = "SELECT * FROM t AS v WHERE v.n = u.n AND v.p = t.p"
FURTHER_OUT = [
    f"SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.k = t.k AND EXISTS ({_V}))",
    f"SELECT id FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.k = t.k AND NOT EXISTS ({_V}))",
    "SELECT id FROM t WHERE n IN (SELECT n FROM u WHERE p IN (SELECT p FROM t AS v WHERE v.k = t.k))",
    "SELECT id FROM t WHERE n NOT IN (SELECT n FROM u WHERE p NOT IN (SELECT p FROM t AS v WHERE v.k = t.k))",
    """SELECT id FROM t WHERE EXISTS (
        SELECT * FROM u WHERE u.n > (SELECT MIN(v.n) FROM t AS v WHERE v.k = u.k AND v.p = t.p))""",
    f"SELECT id, (SELECT COUNT(*) FROM u WHERE u.k = t.k AND EXISTS ({_V})) AS c FROM t",
    "SELECT id, (SELECT COUNT(*) FROM u WHERE u.id < t.id) AS c FROM t",
    """SELECT id, (SELECT SUM(u.n + t.n) FROM u WHERE u.k = t.k) AS c,
        (SELECT MAX(u.n) - t.n FROM u WHERE u.k = t.k) AS e FROM t""",
    """SELECT id, (SELECT MAX(u.n) FROM u
        WHERE u.n <= (SELECT MAX(n) FROM t AS v WHERE v.k = u.k AND v.f = t.f)) AS c FROM t""",
    """SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE EXISTS (SELECT * FROM t AS v WHERE v.k = u.k AND EXISTS (
        SELECT * FROM u AS w WHERE w.n = t.n AND w.p = u.p AND w.f = v.f)))""",
    "SELECT id FROM t WHERE p >= (SELECT COUNT(*) FROM u WHERE u.k = t.k OR u.n = t.n)",
    "SELECT k, (SELECT COUNT(*) FROM u WHERE u.n > x.s) AS c FROM (SELECT k, SUM(n) AS s FROM t GROUP BY k) AS x",
    """SELECT id FROM t WHERE EXISTS (SELECT * FROM (SELECT k, SUM(n) AS s FROM u GROUP BY k) AS g
        WHERE g.k = t.k AND NOT EXISTS (SELECT * FROM u WHERE u.k = g.k AND u.n > t.n))""",
    """SELECT id FROM t WHERE EXISTS (
        SELECT u.p FROM u WHERE u.k = t.k GROUP BY u.p HAVING COUNT(*) > 1 AND MAX(u.n) >= t.n)""",
    """SELECT id FROM t WHERE n NOT IN (SELECT MAX(u.n) FROM u WHERE u.k = t.k AND NOT EXISTS (
        SELECT * FROM u AS v WHERE v.p = u.p AND v.id < t.id) GROUP BY u.p)""",
    "SELECT id FROM t WHERE n IN (SELECT DISTINCT n FROM u WHERE u.k = t.k)",
    """SELECT a.id FROM t AS a JOIN u AS b USING (k) WHERE EXISTS (SELECT * FROM u WHERE u.n = b.n AND EXISTS (
        SELECT * FROM t AS v WHERE v.k = a.k AND v.id = u.id))""",
    """SELECT id FROM t WHERE EXISTS (SELECT * FROM u AS t WHERE t.n = 1 AND EXISTS (SELECT * FROM u WHERE u.n = t.n))
        AND EXISTS (SELECT * FROM u WHERE id < 10 AND NOT EXISTS (
            SELECT * FROM u AS w WHERE w.id > u.id AND w.k = t.k))""",
]
"""Queries within queries that use columns two levels out, or columns outside otherwise than by =."""
SETS = [
    "SELECT k, n FROM t EXCEPT ALL SELECT k, n FROM u",
    "SELECT k, n FROM t INTERSECT ALL SELECT k, n FROM u",
    "SELECT k FROM t EXCEPT ALL (SELECT k FROM u INTERSECT ALL SELECT k FROM t WHERE f)",
]


@pytest.mark.slow
@given(rows=pairs(), query=st.sampled_from(QUERIES))
@settings(max_examples=30, phases=PHASES, deadline=None)
def test_queries_as_values(rows, query):
    checked(rows, query, is_batch=True)


@pytest.mark.slow
@given(rows=pairs(), query=st.sampled_from(FURTHER_OUT))
@settings(max_examples=12, phases=PHASES, deadline=None)
def test_columns_further_out(rows, query):
    checked(rows, query, is_batch=True)


@pytest.mark.slow
@given(rows=pairs(), query=st.sampled_from(FURTHER_OUT))
@settings(max_examples=5, phases=PHASES, deadline=None)
def test_columns_further_out_of_streams(rows, query):
    checked(rows, query)


@pytest.mark.slow
@given(rows=pairs(), query=st.sampled_from(SETS))
@settings(max_examples=10, phases=PHASES, deadline=None)
def test_sets_with_repetitions(rows, query):
    checked(rows, query, is_batch=True)


@pytest.mark.slow
@given(rows=tables(), word=st.sampled_from(["INTERSECT", "EXCEPT"]), options=st.sampled_from([{}, MINI_BATCHES]))
@settings(max_examples=6, phases=PHASES, deadline=None)
def test_sets_with_repetitions_of_streams(rows, word, options):
    checked(rows, f"SELECT k, n FROM t WHERE f {word} ALL SELECT k, n FROM t WHERE p >= 0", options=options)


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    for name in "ab":
        table = t_env.from_elements([(1, "x"), (1, "y"), (2, "z")], ["id", "s"])
        t_env.create_temporary_view(name, table)
    return t_env


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT (SELECT id, s FROM b) FROM a", "a query as a value returns 2 columns"),
        ("SELECT (SELECT * FROM b) FROM a", "a query as a value returns 2 columns"),
        ("SELECT (SELECT MAX(id) FROM b WHERE b.id < a.idd) FROM a", "there is no column 'idd'"),
        ("SELECT id FROM a WHERE EXISTS (SELECT * FROM b WHERE EXISTS (SELECT * FROM a AS c WHERE c.id = x.id))",
         "there is no table or column 'x'"),
        ("SELECT s, (SELECT MAX(b.id) FROM b WHERE b.id = a.id) FROM a GROUP BY s", "whose rows are grouped"),
        ("SELECT a.id FROM a JOIN b ON a.id = (SELECT MAX(id) FROM b)", "a query as a value is not supported"),
    ],
)
def test_what_no_query_as_a_value_may_be(t_env, query, problem):
    with pytest.raises(SqlError, match=problem):
        t_env.sql_query(query)


def test_a_query_as_a_value_may_return_one_row(t_env):
    rows = t_env.execute_sql("SELECT (SELECT s FROM b WHERE b.id = a.id) FROM a WHERE id = 2").collect()
    assert [tuple(row) for row in rows] == [("z",)]
    with pytest.raises(Exception, match="a query that is used as a value returns 2 rows; aggregate it"):
        list(t_env.execute_sql("SELECT (SELECT s FROM b WHERE b.id = a.id) FROM a").collect())


def test_queries_as_values_are_in_aggregates_and_in_queries_of_in(t_env):
    query = """SELECT COUNT(*), SUM((SELECT MAX(id) FROM b WHERE b.s = a.s)) FROM a
        WHERE id IN (SELECT id FROM b WHERE id < (SELECT MAX(id) FROM b))"""
    [row] = t_env.execute_sql(query).collect()
    assert tuple(row) == (2, 2)
