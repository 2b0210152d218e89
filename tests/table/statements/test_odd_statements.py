"""Odd statements: each gives what Flink gives, or an error at its place."""

from __future__ import annotations

import pytest

from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment


@pytest.fixture(scope="module")
def t_env():
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set("execution.target", "local").set("parallelism.default", "1")
    columns = [("id", DataTypes.INT()), ("name", DataTypes.STRING()), ("dept", DataTypes.INT())]
    rows = found.from_elements([(1, "ann", 10), (2, "bob", 10), (3, None, 20)], DataTypes.ROW(columns))
    found.create_temporary_view("emp", rows)
    found.execute_sql("CREATE TABLE sink (a INT, b STRING) WITH ('connector' = 'blackhole')")
    timed = "CREATE TABLE timed (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')"
    found.execute_sql(timed)
    found.execute_sql("CREATE VIEW two AS SELECT 1 AS x, 2 AS y")
    made = "CREATE TABLE made (n INT COMMENT 'it''s', m INT) COMMENT 'b''s' WITH ('connector' = 'datagen')"
    found.execute_sql(made)
    return found


REFUSED = [
    # parentheses, brackets and lists that do not end
    ("SELECT CAST(id AS INT FROM emp", 23, "expecting ), found 'FROM'"),
    ("SELECT SUBSTRING(name FROM 1 FROM emp", 30, "expecting ), found 'FROM'"),
    ("SELECT EXTRACT(YEAR FROM DATE '2020-01-01' FROM emp", 44, "expecting ), found 'FROM'"),
    ("SELECT POSITION('a' IN name FROM emp", 29, "expecting ), found 'FROM'"),
    ("SELECT FLOOR(1.5 FROM emp", 18, "expecting ), found 'FROM'"),
    ("SELECT CAST(id) FROM emp", 15, "AS and a type are wanted in a CAST, found ')'"),
    ("CREATE TABLE t (a INT,) WITH ('connector' = 'datagen')", 23, "a name is wanted, found ')'"),
    ("CREATE TABLE t () WITH ('connector' = 'datagen')", 17, "a name is wanted, found ')'"),
    # numbers
    ("SELECT 1_000", 8, "1_000 is not a number"),
    ("SELECT 1a FROM emp", 8, "1a is not a number"),
    ("SELECT 1.e FROM emp", 8, "1.e is not a number"),
    ("SELECT 0x1F", 8, "0x1F is not a number"),
    ("SELECT 0b11", 8, "0b11 is not a number"),
    ("SELECT id FROM emp LIMIT 1.5", 26, "1.5 is not a whole number"),
    ("SELECT INTERVAL 'abc' DAY", 8, "'abc' is not an interval of DAY"),
    # queries of nothing, twice the same
    ("SELECT FROM emp", 13, "SELECT has no columns"),
    ("SELECT COUNT() FROM emp", 8, "COUNT has no argument; write COUNT(*)"),
    ("SELECT MAX() FROM emp", 8, "MAX has no argument"),
    ("WITH a AS (SELECT 1 AS x), a AS (SELECT 2 AS x) SELECT * FROM a", 28, "WITH has two queries named 'a'"),
    ("INSERT INTO sink (b, b) VALUES ('a', 'b')", 13, "column 'b' of default_catalog.default_database.sink is given"),
    ("CREATE VIEW v (x, x) AS SELECT 1, 2", 13, "a second column 'x'"),
    ("EXECUTE STATEMENT SET BEGIN END", 29, "a statement set without a statement"),
    ("SELECT 1; SELECT 2", 11, "found 2 statements"),
    # values and types
    ("SELECT MULTISET[1, 1]", 8, "2 values in the brackets after MULTISET"),
    ("SELECT MAP[NULL, 1]", 8, "MAP does not take (NULL, INT NOT NULL)"),
    ("SELECT FLOOR(1.5 TO DAY)", 14, "FLOOR does not take (DECIMAL(2, 1) NOT NULL); it takes a date"),
    ("SELECT id::INT FROM emp", 10, "'::' is not expected here; write CAST(a AS INT)"),
    ("SELECT CAST(1 AS NUMBER)", 18, "a type is wanted, found 'NUMBER'; write one such as INT"),
    ("SELECT CAST(1 AS DECIMAL(50, 2))", 32, "the precision of a DECIMAL is 50; give a whole number within [1, 38]\n"),
    # windows and hints
    ("SELECT TUMBLE_END(ts, INTERVAL '2' DAY) FROM timed GROUP BY TUMBLE(ts, INTERVAL '1' DAY)", 8, "other arguments"),
    (
        "SELECT HOP_END(ts, INTERVAL '1' DAY, INTERVAL '1' DAY) FROM timed GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
        8,
        "HOP_END has other arguments than the window of GROUP BY",
    ),
    (
        "SELECT * FROM TABLE(TUMBLE(SIZE => INTERVAL '1' DAY, SIZE => INTERVAL '2' DAY, DATA => TABLE timed, "
        "TIMECOL => DESCRIPTOR(ts)))",
        21,
        "two arguments SIZE",
    ),
    (
        "SELECT /*+ STATE_TTL('nosuch' = '1 d') */ id FROM emp",
        43,
        "STATE_TTL of 'nosuch', which is not a table of FROM",
    ),
    ("SELECT /*+ STATE_TTL('emp' = 'abc') */ id FROM emp", 40, "'abc' is not a duration"),
    (
        "SELECT /*+ MULTI_JOIN(emp, nosuch) */ emp.id FROM emp",
        39,
        "MULTI_JOIN of 'nosuch', which is not a table of FROM",
    ),
    ("SELECT /*+ MULTI_JOIN(emp) */ emp.id FROM emp", 8, "write the names of the tables that are joined, two"),
    # definitions
    ("CREATE TABLE t (a INT, UNIQUE (a) NOT ENFORCED) WITH ('connector' = 'datagen')", 24, "UNIQUE is not supported"),
    ("CREATE TABLE t (a INT, CHECK (a > 1)) WITH ('connector' = 'datagen')", 24, "CHECK is not supported"),
    ("DROP TABLE two", 12, "'two' is a view, not a table; write DROP VIEW"),
    ("DROP VIEW made", 11, "'made' is a table, not a view; write DROP TABLE"),
    ("DROP TEMPORARY TABLE emp", 22, "'emp' is a view, not a table; write DROP TEMPORARY VIEW"),
    ("CREATE TABLE two (a INT) WITH ('connector' = 'datagen')", 14, "there is a view 'two' already"),
    ("SELECT n FROM made /*+ OPTIONS('number-of-row' = '1') */", 15, "has an option 'number-of-row'"),
    ("EXPLAIN DROP VIEW two", 19, "this cannot be explained"),
]


@pytest.mark.parametrize(("statement", "column", "problem"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_is_wrong_is_refused_at_its_place(t_env, statement, column, problem):
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql(statement)
    assert (raised.value.line, raised.value.column) == (1, column)
    assert problem in str(raised.value)


def test_a_select_of_nothing_at_all_is_refused(t_env):
    with pytest.raises(SqlError, match="SELECT has no columns"):
        t_env.execute_sql("SELECT")


GIVEN = [
    ("(SELECT id FROM emp) UNION ALL (SELECT 7) ORDER BY id DESC LIMIT 2", [(7,), (3,)]),
    ("((SELECT id FROM emp)) ORDER BY id DESC LIMIT 1", [(3,)]),
    ("(VALUES (1), (2)) UNION ALL VALUES (3)", [(1,), (2,), (3,)]),
    ("SELECT 1 /* a /* b */ AS x", [(1,)]),
    ("SELECT 1e3, 1E-2, .5, 5., 007, 12 abc", [(1000.0, 0.01, 0.5, 5, 7, 12)]),
    ("SELECT id FROM emp LIMIT 99999999999999999999", [(1,), (2,), (3,)]),
    ("SELECT id FROM emp ORDER BY id LIMIT 99999999999999999999 OFFSET 1", [(2,), (3,)]),
    ("SELECT id FROM emp OFFSET 99999999999999999999", []),
    ("SELECT NULL = NULL, NULL < NULL, NULL IS DISTINCT FROM NULL, NULL IN (NULL)", [(None, None, False, None)]),
    ("SELECT GREATEST(NULL, NULL), UPPER(NULL), EXTRACT(YEAR FROM NULL)", [(None, None, None)]),
    ("SELECT CAST('abc' AS CHARACTER VARYING(2)), CAST(1 AS DOUBLE  PRECISION)", [("ab", 1.0)]),
    ("SHOW COLUMNS FROM emp LIKE 'n%'", [("name", "STRING", True, None, None, None)]),
]


@pytest.mark.parametrize(("statement", "rows"), GIVEN, ids=[one[0] for one in GIVEN])
def test_what_is_odd_and_right_gives_rows(t_env, statement, rows):
    assert [tuple(row) for row in t_env.execute_sql(statement).collect()] == rows


def test_bounds_of_a_window_may_be_written_in_other_units(t_env):
    query = "SELECT TUMBLE_START(ts, INTERVAL '60' SECOND) AS s FROM timed GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
    assert names(t_env, query) == ["s"]


def names(t_env, query: str) -> list[str]:
    return t_env.sql_query(query).get_schema().get_field_names()


def test_expressions_without_a_name_are_numbered_by_their_place_in_select(t_env):
    counted = "SELECT dept, COUNT(*), SUM(id) AS s, (MAX(id)), (dept) AS d FROM emp GROUP BY dept"
    assert names(t_env, counted) == ["dept", "EXPR$1", "s", "EXPR$3", "d"]
    assert names(t_env, "SELECT dept + 1, COUNT(*) FROM emp GROUP BY dept + 1") == ["EXPR$0", "EXPR$1"]
    assert names(t_env, "SELECT (id), ROW_NUMBER() OVER (ORDER BY id) FROM emp") == ["id", "EXPR$1"]


def test_inserts_take_queries_in_parentheses(t_env):
    for columns in ("", "(a, b)"):
        t_env.execute_sql(f"INSERT INTO sink {columns} (SELECT id, name FROM emp)").wait(30_000)
    t_env.execute_sql("CREATE VIEW united AS (SELECT 1 AS a) UNION ALL (SELECT 2)")
    assert [row[0] for row in t_env.execute_sql("SELECT * FROM united").collect()] == [1, 2]


def test_what_is_shown_of_definitions_can_be_run_again(t_env):
    [shown] = t_env.execute_sql("SHOW CREATE TABLE made").collect()
    assert "COMMENT 'it''s'" in shown[0] and "COMMENT 'b''s'" in shown[0]
    t_env.execute_sql(shown[0].replace("`made`", "`made_again`"))
    t_env.execute_sql("CREATE VIEW noted COMMENT 'it''s' AS SELECT 1 AS x")
    [shown] = t_env.execute_sql("SHOW CREATE VIEW noted").collect()
    t_env.execute_sql(shown[0].replace("`noted`", "`noted_again`"))


def test_words_of_constraints_may_be_names(t_env):
    t_env.execute_sql("CREATE TABLE words (check INT, unique STRING) WITH ('connector' = 'datagen')")
    assert names(t_env, "SELECT * FROM words") == ["check", "unique"]
