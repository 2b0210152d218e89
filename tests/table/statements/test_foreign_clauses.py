"""No clause is passed over: one of another system is refused, or changes the plan."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.parsing import statements
from tests.table.statements.foreign_clauses import INSERTS, OTHERS, QUERIES, TABLES, Statement, some

COLUMNS = (
    "a INT, b STRING, ts TIMESTAMP(3), x ARRAY<INT>, m MAP<STRING, INT>, r ROW<f INT, g STRING>, WATERMARK FOR ts AS ts"
)
_PLANS: dict[str, str] = {}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name in ("t", "u"):
        (folder / name).write_text("")
        found.execute_sql(
            f"CREATE TABLE {name} ({COLUMNS}) WITH ('connector' = 'filesystem', 'format' = 'json', "
            f"'path' = '{folder / name}')"
        )
    options = f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder / 'snk'}')"
    found.execute_sql(f"CREATE TABLE snk (a INT, b STRING) {options}")
    found.execute_sql("CREATE TABLE e (a INT, b STRING) WITH ('connector' = 'print')")
    return found


def outcome(environment, text):
    """What a statement does, as text: its plan, the table that it makes, or what it shows.

    Raises:
        SqlError: it is refused.
    """
    if text.startswith(("SELECT", "WITH", "INSERT")):
        return environment.explain_sql(text)
    if not text.startswith("CREATE"):
        result = environment.execute_sql(text)
        return "\n".join(map(str, result.collect()))
    environment.execute_sql(text)
    try:
        [row] = environment.execute_sql("SHOW CREATE TABLE d").collect()
        return str(row)
    finally:
        kind = "TEMPORARY " if "TEMPORARY" in str(row) else ""
        environment.execute_sql(f"DROP {kind}TABLE d")


def passed_over(environment, statement: Statement) -> bool:
    """Whether a statement is run as if its clauses were not there."""
    try:
        found = outcome(environment, statement.text)
    except SqlError:
        return False
    if statement.plain not in _PLANS:
        _PLANS[statement.plain] = outcome(environment, statement.plain)
    return found == _PLANS[statement.plain] and not statement.is_meaningless


@pytest.mark.parametrize("bases", [QUERIES, INSERTS, TABLES, OTHERS], ids=["queries", "inserts", "tables", "others"])
def test_a_clause_of_another_system_is_not_passed_over(environment, bases):
    wrong = [one.text for one in some(bases, 40, seed=7) if passed_over(environment, one)]
    assert wrong == []


@pytest.mark.slow
def test_none_of_a_thousand_clauses_of_other_systems_is_passed_over(environment):
    counts = {QUERIES: 700, INSERTS: 100, TABLES: 150, OTHERS: 150}
    fuzzed = [one for bases, count in counts.items() for one in some(bases, count, seed=11)]
    assert len(fuzzed) > 1000 and len({one.text for one in fuzzed}) > 950
    assert [one.text for one in fuzzed if passed_over(environment, one)] == []


@pytest.mark.parametrize(
    ("text", "column", "shown", "problem", "remedy"),
    [
        ("SELECT * EXCEPT (b) FROM t", 10, "EXCEPT (b", "EXCEPT is not supported", "list the columns"),
        ("SELECT * EXCLUDE b FROM t", 10, "EXCLUDE b", "EXCLUDE is not supported", "list the columns"),
        ("SELECT DISTINCT ON (b) a FROM t", 17, "ON (b", "ON is not supported", "ROW_NUMBER()"),
        ("SELECT a FROM t\nSORT BY a DESC", 1, "SORT BY a", "SORT BY is not supported", "ORDER BY"),
        ("SELECT a FROM t FOR UPDATE", 17, "FOR UPDATE", "FOR UPDATE is not supported", "no locks"),
        ("SELECT a INTO z FROM t", 10, "INTO z", "INTO is not supported", "INSERT INTO"),
        ("SELECT a FROM t LIMIT 1 WITH TIES", 25, "WITH TIES", "WITH TIES is not supported", "a number of rows"),
        ("SELECT a FROM t FINAL", 17, "FINAL", "FINAL is not supported", "write AS FINAL"),
        ("SELECT a FROM t UNION BY NAME SELECT a FROM u", 23, "BY NAME", "BY NAME is not supported", "in one order"),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u CLUSTER BY a)", 45, "CLUSTER BY a", "CLUSTER BY is not", "keys"),
        ("SELECT a FROM t AT (OFFSET => -60)", 17, "AT (OFFSET => -60", "AT is not supported", "'version-as-of'"),
        ("SELECT a FROM t UNPIVOT (v FOR n IN (a))", 17, "UNPIVOT (v FOR n IN (a", "UNPIVOT is not", "UNION ALL"),
        ("SELECT SUM(a ORDER BY b) FROM t", 12, "a ORDER BY b", "ORDER BY is not supported here", "leave it out"),
        ("SELECT UPPER(b).f(3) FROM t", 17, "f(3", "f(3 is not supported here", "docs/sql.md"),
        ("SELECT /*+ FAST(t) */ a FROM t", 8, "/*+ FAST(t) */", "there is no hint FAST", "STATE_TTL"),
        ("SELECT /*+ LOKUP('a'='b') */ a FROM t", 8, "/*+ LOKUP('a'='b') */", "(did you mean LOOKUP?)", "NEST_LOOP"),
        ("SELECT a FROM t /*+ BROADCAST(t) */", 17, "/*+ BROADCAST(t) */", "BROADCAST is not allowed here",
         "SELECT /*+"),
        ("SELECT /*+ a b */ a FROM t", 8, "/*+ a b */", "a hint cannot be read", "OPTIONS("),
        ("SELECT a FROM t *", 17, "*", "a name or a clause is wanted", "docs/sql.md"),
        ("SELECT a FROM t |> LIMIT 3", 17, "|>", "|> is no SQL of Flink", ""),
        ("SELECT t.a FROM t OUTER JOIN u ON t.a = u.a", 30, "u ON t.a = u.a", "OUTER JOIN does not exist", "LEFT"),
        ("SELECT t.a FROM t CROSS JOIN u ON t.a = u.a", 30, "u ON t.a = u.a", "CROSS JOIN does not take ON",
         "remove one"),
        ("SELECT a FROM t NATURAL JOIN u USING (a)", 30, "u USING (a", "NATURAL JOIN does not take USING",
         "remove one"),
        ("SELECT a FROM t NATURAL JOIN UNNEST(x) AS w(z)", 37, "x) AS w(z",
         "NATURAL JOIN is not possible with UNNEST", "CROSS JOIN"),
        ("SELECT JSON_VALUE(b, '$' NULL) FROM t", 30, ")", "ON EMPTY or ON ERROR are wanted", ""),
        ("SELECT OVERLAY(b PLACING 'x' FOR 2) FROM t", 30, "FOR", "the word FROM is wanted", ""),
        ("SELECT TIMESTAMPADD(DAY 3, ts) FROM t", 25, "3", ", is wanted behind the unit", ""),
        ("CREATE OR REPLACE TABLE d (a INT)", 11, "REPLACE", "CREATE OR REPLACE is not supported", "DROP"),
        ("CREATE TEMPORARY DATABASE d", 18, "DATABASE", "CREATE TEMPORARY DATABASE is not known", "create a TABLE"),
        ("DROP TEMPORARY DATABASE d", 25, "d", "there are no temporary databases", "leave TEMPORARY out"),
        ("DROP TABLE e CASCADE", 14, "CASCADE", "'CASCADE' is not expected here", ""),
        ("SET GLOBAL 'a' = 'b'", 12, "'a'", "= is wanted", ""),
    ],
)  # fmt: skip
def test_a_foreign_clause_is_refused_where_it_stands(environment, text, column, shown, problem, remedy):
    with pytest.raises(SqlError) as caught:
        environment.execute_sql(text)
    error = caught.value
    assert problem in error.problem and remedy in error.remedy
    assert error.place is not None and (error.column, text[error.place.start : error.place.stop]) == (column, shown)


def test_words_of_foreign_clauses_are_names_where_they_are_meant_so(environment):
    environment.explain_sql("WITH final AS (SELECT a AS sample, b AS top FROM t) SELECT sample, top FROM final")
    environment.explain_sql("SELECT final.a FROM t AS final JOIN u AS `sample` ON final.a = `sample`.a")


def test_between_symmetric_takes_its_bounds_in_any_order(environment):
    plan = environment.explain_sql(
        "SELECT 3 BETWEEN SYMMETRIC 3 AND 2, 1 NOT BETWEEN SYMMETRIC 3 AND 2, 1 BETWEEN SYMMETRIC 3 AND 2, "
        "2 BETWEEN ASYMMETRIC 3 AND 2, CAST(NULL AS INT) BETWEEN SYMMETRIC 3 AND 2"
    )
    assert "Values(tuples=[[{ True, True, False, False, None }]])" in plan


def test_tables_in_parentheses_have_joins_and_names_of_columns(environment):
    plan = environment.explain_sql(
        "SELECT q.n, v.k FROM t LEFT JOIN ((u) JOIN (VALUES (1)) AS v(k) ON u.a = v.k) ON t.a = u.a, "
        "(VALUES (1, 2)) AS q(m, n)"
    )
    assert plan.split("==")[2].count("Join(") == 3
    with pytest.raises(SqlError, match="3 names for 6 columns"):
        environment.explain_sql("SELECT p FROM (t) AS w(p, q, r)")


def test_a_query_of_exists_keeps_its_qualify(environment):
    plan = environment.explain_sql(
        "SELECT 1 WHERE EXISTS (SELECT a FROM (VALUES (1)) AS v(a) QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 2)"
    )
    assert (
        "joinType=[LeftSemiJoin]" in plan and "Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=2, rankEnd=2]" in plan
    )


OF_CATALOGS = (
    "CREATE CATALOG IF NOT EXISTS lab COMMENT 'c' WITH ('type' = 'generic_in_memory')",
    "ALTER CATALOG lab SET ('default-database' = 'd')",
    "ALTER CATALOG lab RESET ('default-database')",
    "ALTER CATALOG lab COMMENT 'd'",
    "CREATE DATABASE IF NOT EXISTS shop COMMENT 'c' WITH ('a' = 'b')",
    "ALTER DATABASE shop SET ('a' = 'c')",
    "CREATE FUNCTION IF NOT EXISTS f AS 'tests.table.catalog.stored_functions.twice' LANGUAGE PYTHON",
    "CREATE TEMPORARY SYSTEM FUNCTION f AS 'tests.table.catalog.stored_functions.twice' LANGUAGE PYTHON",
    "ALTER TEMPORARY FUNCTION IF EXISTS f AS 'tests.table.catalog.stored_functions.twice' LANGUAGE PYTHON",
    "DESCRIBE FUNCTION EXTENDED f",
    "DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f",
    "CREATE TABLE parted (k INT) PARTITIONED BY (k) WITH ('connector' = 'print')",
    "ALTER TABLE parted ADD IF NOT EXISTS PARTITION (k = 1)",
    "SHOW PARTITIONS parted PARTITION (k = 1)",
    "CREATE TEMPORARY MODEL IF NOT EXISTS m INPUT (a INT) OUTPUT (b INT) COMMENT 'c' "
    "WITH ('provider' = 'python', 'python.model' = 'a.b')",
    "ALTER MODEL IF EXISTS m SET ('python.form' = 'pandas')",
    "ALTER MODEL m RESET ('python.form')",
    "ALTER MODEL IF EXISTS m RENAME TO n",
)


def test_each_word_of_a_statement_is_heeded(environment, monkeypatch, tmp_path):
    read: set[tuple[str, str]] = set()

    def asked(statement, name):
        if not name.startswith("__"):
            read.add((type(statement).__name__, name))
        return object.__getattribute__(statement, name)

    strings = [
        *OF_CATALOGS,
        "CREATE TEMPORARY TABLE IF NOT EXISTS shop.f (k INT PRIMARY KEY NOT ENFORCED COMMENT 'c', l AS k + 1, n STRING "
        "METADATA FROM 'file.path' VIRTUAL, at TIMESTAMP(3), WATERMARK FOR at AS at) COMMENT 'c' PARTITIONED BY (k) "
        "WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'csv')",
        "CREATE TABLE g WITH ('connector' = 'print') LIKE e (EXCLUDING OPTIONS)",
        "CREATE TEMPORARY VIEW IF NOT EXISTS w (z) COMMENT 'c' AS SELECT a FROM t",
        "CREATE VIEW v AS SELECT a FROM t",
        "ALTER VIEW v AS SELECT b FROM t",
        "ALTER TABLE IF EXISTS g RENAME TO h",
        "ALTER TABLE IF EXISTS h SET ('print-identifier' = 'x')",
        "ALTER TABLE IF EXISTS h RESET ('print-identifier')",
        "ALTER TABLE IF EXISTS h ADD (c INT FIRST, at TIMESTAMP(3), WATERMARK FOR at AS at, "
        "PRIMARY KEY (c) NOT ENFORCED)",
        "ALTER TABLE IF EXISTS h DROP (b)",
        "ALTER TABLE IF EXISTS nothing RENAME TO other",
        "ALTER TABLE IF EXISTS nothing SET ('a' = 'b')",
        "ALTER TABLE IF EXISTS nothing DROP (b)",
        "SHOW TABLES FROM shop NOT LIKE 'x%'",
        "SHOW CREATE VIEW w",
        "DESCRIBE t",
        "SET 'a.b' = 'c'",
        "RESET 'a.b'",
        "EXPLAIN CHANGELOG_MODE INSERT INTO snk (b, a) SELECT b, a FROM t",
        "EXPLAIN STATEMENT SET BEGIN INSERT OVERWRITE snk SELECT a, b FROM t; END",
        f"COMPILE PLAN '{tmp_path}/p' IF NOT EXISTS FOR INSERT INTO snk SELECT 1, 'x'",
        f"COMPILE PLAN '{tmp_path}/p' IF NOT EXISTS FOR INSERT INTO snk SELECT 1, 'x'",
        "SET 'execution.target' = 'local'",
        f"EXECUTE PLAN '{tmp_path}/p'",
        "CREATE OR REPLACE TABLE replaced (k INT, WATERMARK FOR ts AS ts) WITH ('connector' = 'print') "
        "AS SELECT a, ts FROM t",
        "USE CATALOG default_catalog",
        "DROP TABLE IF EXISTS h",
        "DROP VIEW v",
        "DROP TEMPORARY VIEW w",
        "DROP TEMPORARY TABLE shop.f",
        "DROP DATABASE IF EXISTS shop CASCADE",
    ]  # fmt: skip
    kinds = [
        one for one in vars(statements).values() if isinstance(one, type) and one.__module__ == statements.__name__
    ]
    for kind in kinds:
        monkeypatch.setattr(kind, "__getattribute__", asked)
    for text in strings:
        environment.execute_sql(text)
    given = {(kind.__name__, field.name) for kind in kinds for field in fields(kind) if field.name != "place"}
    assert given - read == set()
    [shown] = environment.execute_sql("SHOW TABLES FROM default_database LIKE 'sn_'").collect()
    assert shown[0] == "snk"
