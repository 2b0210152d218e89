"""A wrong statement is an error before anything starts: where, what was found, and what to write instead."""

from __future__ import annotations

import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

TUMBLED = "(SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)))"
SESSIONS = (
    "(SELECT COUNT(*) AS n, customer, window_start, window_end FROM TABLE(SESSION(TABLE orders PARTITION BY customer, "
    "DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY customer, window_start, window_end)"
)
CLOCKED = "(SELECT * FROM TABLE(TUMBLE(TABLE timed, DESCRIPTOR(at), INTERVAL '1' HOUR)))"
WINDOWS = "TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
MATCH = "SELECT * FROM orders MATCH_RECOGNIZE ("
BAD = [
    # the text
    ("SELEC 1", 1, "'SELEC' begins no statement", "did you mean SELECT?"),
    ("ADD JAR '/a.jar'", 1, "ADD JAR is not supported", "use add_python_file"),
    ("remove jar '/a.jar'", 1, "REMOVE JAR is not supported", "use add_python_file"),
    ("SHOW JARS", 1, "SHOW JARS is not supported", "use add_python_file"),
    ("CALL sys.compact('t')", 1, "CALL is not supported", "a function in SELECT"),
    ("ANALYZE TABLE orders COMPUTE STATISTICS", 1, "ANALYZE TABLE is not supported", "alter_table_statistics"),
    ("TRUNCATE TABLE orders", 1, "TRUNCATE TABLE is not supported", "WHERE FALSE"),
    ("DELETE FROM orders WHERE id = 1", 1, "DELETE is not supported", "INSERT OVERWRITE"),
    ("UPDATE orders SET id = 1", 1, "UPDATE is not supported", "insert the new rows"),
    ("LOAD MODULE hive", 1, "LOAD MODULE is not supported", "create_temporary_system_function"),
    ("SHOW JOBS", 1, "SHOW JOBS is not supported", "rayflink list"),
    ("STOP JOB 'a1'", 1, "STOP JOB is not supported", "rayflink stop"),
    ("ADD x", 1, "'ADD' begins no statement", "begin with one of"),
    ("SELECT id,, ts FROM orders", 11, "something is wanted behind the ','", ""),
    ("SELECT id FROM orders WHERE", 23, "something is missing after 'WHERE'", ""),
    ("SELECT id FROM orders GROUP id", 29, "'id' is not expected here", ""),
    ("SELECT 'abc FROM orders", 8, "the statement cannot be read", "close the quote"),
    ("SELECT 1 /* '' FROM orders", 10, "the statement cannot be read", "close the quote"),
    ("SELECT id FROM orders; SELECT id FROM orders", 0, "found 2 statements", "one statement per call"),
    ("CREATE TABLE t (a INTT)", 19, "a type is wanted", ""),
    ("CREATE TABLE t (a INT, a STRING)", 24, "a second column 'a'", "another name"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a))", 39, "a key that would be enforced", "NOT ENFORCED"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", 14, "there is no column 'b'", "the columns are a"),
    ("CREATE TABLE t (a INT, WATERMARK FOR a AS a)", 14, "the time column 'a'", "TIMESTAMP(3)"),
    ("CREATE TABLE t (a INT, b AS c + 1)", 1, "there is no column 'c'", ""),
    ("CREATE TABLE orders (a INT) WITH ('connector' = 'print')", 14, "there is a table 'orders' already", "drop it"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'kafkaa')", 14, "which does not exist", "the connectors are"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'elasticsearch-7')", 14, "which is not in rayflink", "HttpSink"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'kinesis-legacy')", 14, "which is not in rayflink", "by Kafka"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'pulsar')", 14, "which is not in rayflink", "Kafka's protocol"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'mongodb')", 14, "which is not in rayflink", "pymongo"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'print', 'pat' = 'x')", 14, "'print' does not know", "options are"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'filesystem')", 14, "has no option 'path'", "needs it"),
    ("SELECT id FROM orders TABLESAMPLE BERNOULLI (10)", 23, "TABLESAMPLE is not supported", "RAND()"),
    ("SELECT " + "9" * 5000, 8, "has 5000 digits", "at most 38 are possible"),
    ("SELECT '\ud800'", 0, "a string has \\ud800, half of a surrogate pair", "leave it out"),
    ("SELECT INTERVAL '999999999999999999999' SECOND", 0, "is too long for an interval of SECOND", "73 million years"),
    ("SELECT INTERVAL '178956971' YEAR", 0, "is too long for an interval of YEAR", "44 million years"),
    # names
    ("SELECT idd FROM orders", 8, "there is no column 'idd' (did you mean id?)", "the columns are id"),
    ("SELECT o.id FROM orders AS p", 8, "there is no table or column 'o'", "the tables of FROM are p"),
    ("SELECT id FROM order", 16, "", ""),
    ("SELECT id FROM ordersx", 16, "there is no table or view 'ordersx' (did you mean orders?)", "the tables and"),
    ("SELECT id FROM other.orders", 16, "there is no database 'other'", "the databases are default_database"),
    ("SELECT MODD(id, 2) FROM orders", 8, "there is no function MODD (did you mean MOD?)", ""),
    ("SELECT TRY_PARSE_JSON(product) FROM orders", 8, "TRY_PARSE_JSON is not supported yet", "JSON_VALUE"),
    ("SELECT COUNT(DISTINCT ARRAY[id]) FROM orders", 8, "COUNT(DISTINCT) of ARRAY<BIGINT> NOT NULL: its values cannot",
     "CAST them"),
    ("SELECT COLLECT(ROW(id, id)) FROM orders", 8, "COLLECT of ROW<", "aggregate a part of them"),
    ("SELECT BITMAP_CARDINALITY(id) FROM orders", 8, "BITMAP_CARDINALITY is not supported yet", "COUNT(DISTINCT"),
    ("DROP TABLE nothing", 12, "there is no table 'nothing'", "IF EXISTS"),
    # types
    ("SELECT id + product FROM orders", 8, "+ does not take (BIGINT, STRING)", "it takes"),
    ("SELECT id FROM orders WHERE id", 29, "is of type BIGINT, not BOOLEAN", ""),
    ("SELECT CAST(ts AS BOOLEAN) FROM orders", 13, "cannot be cast to BOOLEAN", ""),
    ("SELECT id FROM orders UNION ALL SELECT product FROM orders", 8, "has types BIGINT and STRING", "cast them"),
    ("SELECT id FROM orders UNION ALL SELECT id, id FROM orders", 8, "UNION ALL combines queries of 1 and 2 columns",
     "same number"),
    ("SELECT * FROM (VALUES (1, 2), (3))", 24, "VALUES has rows of different lengths", ""),
    ("INSERT INTO sink SELECT id FROM orders", 13, "the query gives 1 columns", "takes 2"),
    ("INSERT INTO sink SELECT id, 'x' FROM orders", 13, "is of type BIGINT, the query gives CHAR(1)", "CAST"),
    ("INSERT INTO sink (a, c) SELECT id, id FROM orders", 13, "there is no column 'c'", "the columns are a, b"),
    # files
    ("INSERT OVERWRITE sink SELECT id, 'x' FROM orders", 18, "INSERT OVERWRITE in streaming mode", "batch mode"),
    ("INSERT INTO sink PARTITION (b = 'x') SELECT id FROM orders", 13, "PARTITION is written", "leave PARTITION out"),
    ("INSERT INTO sales PARTITION (city = 'x') SELECT 1 FROM orders", 13, "'city' is no partition key", "country"),
    ("CREATE TABLE t (a INT NOT NULL) WITH ('connector' = 'print') AS SELECT 1", 17, "nothing for column 'a'", ""),
    ("CREATE TABLE t (a, b) AS SELECT 1 AS a", 20, "the query gives no column 'b'", "it gives a"),
    ("CREATE TABLE t (a) AS SELECT 1 AS a, 2 AS b", 14, "the names leave out b", "name all columns"),
    ("CREATE TABLE t (a, b INT) AS SELECT 1 AS a", 17, "column 'a' has no type", "names alone"),
    ("CREATE TABLE t (a AS 1) AS SELECT 1 AS a", 17, "the query gives column 'a', which is computed", "another name"),
    ("CREATE TABLE t (b INT, a)", 24, "column 'a' has no type", "AS SELECT"),
    ("REPLACE TABLE nothing WITH ('connector' = 'print') AS SELECT 1 AS a", 15, "there is no table 'nothing'", ""),
    ("REPLACE TABLE t (a INT)", 1, "REPLACE is not supported without AS", "DROP TABLE IF EXISTS"),
    ("CREATE OR REPLACE VIEW v AS SELECT 1", 11, "CREATE OR REPLACE is not supported but of tables", "DROP"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '/tmp', 'format' = 'csv', "
     "'source.monitor-interval' = 'often')", 14, "'often'", "a duration"),
    ("CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '/tmp', 'format' = 'csv', "
     "'sink.partition-commit.trigger' = 'often')", 14, "'often'", "process-time or partition-time"),
    # streams
    ("SELECT DISTINCT ARRAY[id] AS ids FROM orders", 17,
     "column 'ids' of type ARRAY<BIGINT> NOT NULL cannot be compared",
     "leave it out"),
    ("SELECT 1 FROM orders GROUP BY ARRAY[id]", 31, "GROUP BY has a key of type ARRAY<BIGINT> NOT NULL",
     "a part of it"),
    ("SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY ARRAY[id] ORDER BY ts) = 1", 63,
     "PARTITION BY has a key of type ARRAY<BIGINT> NOT NULL", "a part of it"),
    ("SELECT id FROM orders ORDER BY id", 32, "ORDER BY over an unbounded stream", "batch mode"),
    (f"SELECT id, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price) FROM {WINDOWS}", 12,
     "ROW_NUMBER() of all rows of a stream", "WHERE rn <= 3"),
    (f"SELECT id FROM {WINDOWS} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) > 3", 0,
     "ROW_NUMBER() of all rows of a stream", "WHERE rn <= 3"),
    ("SELECT id, ROW_NUMBER() OVER (PARTITION BY id) FROM orders", 12, "ROW_NUMBER() has no ORDER BY", "ORDER BY b"),
    ("SELECT id, RANK() OVER (PARTITION BY product ORDER BY id) FROM orders", 12, "OVER over a stream is ordered by id",
     "order by one time attribute, ascending"),
    ("SELECT id, SUM(id) OVER (PARTITION BY id) FROM orders", 12, "OVER over a stream has no ORDER BY", "WATERMARK"),
    ("SELECT id, LEAD(id) OVER (ORDER BY ts) FROM orders", 12, "LEAD over a stream, whose rows never end", "take LAG"),
    ("SELECT id, NTILE(3) OVER (ORDER BY ts) FROM orders", 12, "NTILE over a stream", "in_batch_mode()"),
    ("SELECT id, SUM(id) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders", 12,
     "a frame ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING over a stream", "end with CURRENT ROW"),
    ("SELECT id, SUM(id) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM orders", 12,
     "a frame ends before it begins", "ROWS BETWEEN 3 PRECEDING"),
    ("SELECT id, SUM(id) OVER (ORDER BY ts ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW) FROM orders", 12,
     "a frame of rows has a bound of type DECIMAL", "ROWS BETWEEN 3 PRECEDING"),
    ("SELECT id, SUM(id) OVER (ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM orders", 12,
     "RANGE has a length of type INT", "an interval of days or less"),
    ("SELECT id, SUM(id) OVER (ORDER BY ts GROUPS 3 PRECEDING) FROM orders", 12, "GROUPS in a frame", "ROWS or RANGE"),
    ("SELECT id, LAG(id, -1) OVER (ORDER BY ts) FROM orders", 12, "LAG is called with -1", "a whole number from 0 on"),
    ("SELECT id, RANK(id) OVER (ORDER BY ts) FROM orders", 12, "RANK has 1 arguments", "write RANK()"),
    ("SELECT id, UPPER(product) OVER (ORDER BY ts) FROM orders", 12, "UPPER with OVER", "COUNT"),
    ("SELECT id, SUM(id) OVER w FROM orders", 25, "there is no window named 'w'", "WINDOW w AS"),
    ("SELECT id, SUM(id) OVER (w ORDER BY id) FROM orders WINDOW w AS (ORDER BY ts)", 26,
     "window 'w' has ORDER BY already", "leave it out"),
    ("SELECT id, ROW_NUMBER(id) OVER (ORDER BY id) FROM orders", 12, "ROW_NUMBER() does not take arguments", ""),
    ("SELECT id, ROW_NUMBER() OVER (ORDER BY MAP[id, id]) FROM orders", 40, "values of type MAP", "have no order"),
    ("SELECT id, ROW_NUMBER() OVER (ORDER BY pric) FROM orders", 40, "there is no column 'pric'", "price"),
    ("SELECT id FROM orders WHERE ROW_NUMBER() OVER (ORDER BY id) < 3", 29, "OVER is not supported here", ""),
    (f"SELECT id FROM {CLOCKED} QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) = 1", 0,
     "ROW_NUMBER() in windows of processing time", "WATERMARK"),
    ("SELECT GROUPING(id), ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY id) AS rn FROM "
     f"{WINDOWS} GROUP BY window_start, window_end, ROLLUP (id) QUALIFY rn < 2", 22,
     "with grouping sets is not supported", "outer query"),
    ("SELECT id FROM orders QUALIFY id < 3", 31, "QUALIFY has no function with OVER", "WHERE"),
    ("SELECT id FROM orders WHERE COUNT(*) > 1", 29, "WHERE has an aggregate", "HAVING"),
    # row patterns
    (f"{MATCH} PARTITION BY product PATTERN (A))", 22, "MATCH_RECOGNIZE has no ORDER BY", "the time attribute"),
    (f"{MATCH} ORDER BY id PATTERN (A))", 0, "begins with 'id' of type BIGINT, no time attribute", "WATERMARK"),
    (f"{MATCH} ORDER BY ts DESC PATTERN (A))", 0, "the time attribute in descending order", "leave DESC out"),
    ("SELECT * FROM timed MATCH_RECOGNIZE (ORDER BY at, id PATTERN (A))", 0, "columns behind the processing time", ""),
    (f"{MATCH} PARTITION BY id + 1 ORDER BY ts PATTERN (A))", 0, "PARTITION BY has an expression", "in front of"),
    (f"{MATCH} ORDER BY ts MEASURES C.id AS c PATTERN (A B))", 61, "MEASURES names the variable C",
     "its variables are A, B"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x, B.id AS x PATTERN (A B))", 80, "'x' has the name of another measure",
     "another name"),
    (f"{MATCH} PARTITION BY id ORDER BY ts MEASURES A.ts AS id PATTERN (A))", 85, "'id' has the name of a column", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.idd AS x PATTERN (A))", 61, "no column 'idd' (did you mean id?)", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B) DEFINE C AS C.id > 1)", 0, "DEFINE names the variable C",
     "its variables are A, B"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A) DEFINE A AS A.id > 1, A AS TRUE)", 0,
     "DEFINE has two conditions of A", "AND or OR"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A) DEFINE A AS A.id)", 0, "is of type BIGINT, not BOOLEAN", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A) DEFINE A AS NEXT(A.id) > 1)", 0, "NEXT looks at rows",
     "a variable of its own"),
    (f"{MATCH} ORDER BY ts MEASURES LAST(A.id, B.id) AS x PATTERN (A B))", 61, "LAST has the offset", "LAST(A.x, 1)"),
    (f"{MATCH} ORDER BY ts MEASURES SUM(A.id + B.id) AS x PATTERN (A B))", 0, "is of rows of several variables",
     "SUM(A.x) + SUM(B.x)"),
    (f"{MATCH} ORDER BY ts MEASURES SUM(LAST(A.id)) AS x PATTERN (A B))", 0, "LAST stands within another function", ""),
    (f"{MATCH} ORDER BY ts MEASURES COUNT(DISTINCT A.id) AS x PATTERN (A B))", 61, "COUNT(DISTINCT ...)", ""),
    (f"{MATCH} ORDER BY ts MEASURES LISTAGG(A.product) AS x PATTERN (A B))", 61, "LISTAGG is not supported in",
     "COUNT"),
    (f"{MATCH} ORDER BY ts MEASURES MATCH_ROWTIME(id) AS x PATTERN (A B))", 61, "is not of the time attribute", "(ts)"),
    (f"{MATCH} ORDER BY ts PATTERN (A B))", 22, "MATCH_RECOGNIZE has no columns", "MEASURES"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A*))", 0, "PATTERN may match no row at all", "(A B*)"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B+))", 0, "may end with B+, which is greedy", "reluctant B+?"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B??))", 0, "?? is the reluctant form of ?", "write ?"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A{{3,2}} B))", 0, "{3,2} is for no row", "smaller number"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN ((A*)+ B))", 0, "is repeated, and may match no row", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A {{- B -}} C))", 0, "an exclusion {- -}", "leave it out of"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (PERMUTE(A, B)))", 0, "PERMUTE is not supported", "(A B | B A)"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (^A B))", 0, "the anchor ^ is not supported", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x)", 0, "PATTERN is wanted, found ')'", "PATTERN (A B+ C)"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x AFTER MATCH SKIP TO LAST C PATTERN (A B))", 0,
     "AFTER MATCH SKIP names the variable C", "its variables are A, B"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x AFTER MATCH SKIP TO FIRST U PATTERN (A B) SUBSET U = (A, B))", 0,
     "SKIP TO FIRST U names a subset", "one of its variables"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B) SUBSET A = (B))", 0,
     "the name of a variable of PATTERN", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B) WITHIN INTERVAL '1' MONTH)", 0, "a length in months", ""),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B) WITHIN id)", 0, "a constant interval is wanted", "WITHIN"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B))", 0,
     "WITH UNMATCHED ROWS is not supported", "leave it out"),
    (f"{MATCH} ORDER BY ts MEASURES A.id AS x PATTERN (A B)) MATCH_RECOGNIZE (ORDER BY ts PATTERN (A))", 0,
     "a second MATCH_RECOGNIZE", "a query in parentheses"),
    # joins
    ("SELECT id FROM orders WHERE id = 1 OR id IN (SELECT id FROM orders)", 39, "IN with a query", "join"),
    ("SELECT id FROM orders WHERE (id, amount) IN (SELECT id FROM orders)", 30, "2 values with 1 columns",
     "same number"),
    ("SELECT COUNT(*) FROM (SELECT a.ts FROM orders a JOIN orders b ON a.id = b.id) "
     "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", 0, "'ts' is no time attribute behind a join", "bound the times of both"),
    ("SELECT id FROM orders a JOIN orders b ON a.id = b.id", 8, "column 'id' is ambiguous: it is in a and b", "a.id"),
    ("SELECT a.id FROM orders a JOIN orders b ON a.id = c.id", 51, "there is no table or column 'c'", "are a, b"),
    ("SELECT a.id FROM orders a JOIN orders b USING (idd)", 0, "there is no column 'idd' (did you mean id?)", ""),
    ("SELECT a.id FROM orders a JOIN orders b ON a.id + b.id", 44, "the condition of ON is of type", "comparison"),
    ("SELECT a.id FROM orders a LEFT SEMI JOIN orders b ON a.id = b.id", 42, "SEMI JOIN is not in Flink's SQL",
     "EXISTS"),
    ("SELECT a.id FROM orders a JOIN orders FOR SYSTEM_TIME AS OF a.ts AS b ON a.id = b.id", 0,
     "FOR SYSTEM_TIME AS OF has no primary key", "PRIMARY KEY"),
    (f"SELECT L.id FROM {TUMBLED} L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), "
     "INTERVAL '1' MINUTE))) R ON L.window_end = R.window_end AND L.window_start = R.window_start", 0,
     "a join of windows of TUMBLE(size=[1 h]) and TUMBLE(size=[1 min])", "the same lengths"),
    (f"SELECT L.id FROM {CLOCKED} L JOIN {CLOCKED} R ON L.window_end = R.window_end AND "
     "L.window_start = R.window_start", 0, "a join of windows of processing time", "WATERMARK"),
    ("SELECT window_start, id, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
     "GROUP BY window_start, window_end", 22, "column 'id' is not in GROUP BY", "add it to GROUP BY"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(id), INTERVAL '1' HOUR))", 21, "is not a time attribute",
     "WATERMARK"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), 10))", 21, "in place of an interval", "write TUMBLE("),
    ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '4000000' DAY))", 21,
     "SIZE of TUMBLE is 4000000 d", "give 3652059 d at most"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '4000000' DAY))", 21,
     "the OFFSET of TUMBLE", "at most"),
    ("SELECT COUNT(*) FROM orders GROUP BY SESSION(ts, INTERVAL '4000000' DAY)", 38, "the GAP of SESSION", "at most"),
    ("SELECT * FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '1000' DAY))", 21,
     "into up to 86400000 windows", "for 1000000 windows at most"),
    ("SELECT id FROM orders WHERE ts > ts - INTERVAL '1000000000000' DAY", 0,
     "is too long for an interval of DAY", "73 million years"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MONTH))", 21,
     "a window has a length in months", "days"),
    ("SELECT * FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND))", 21,
     "a size of 10000 ms and a slide of 3000 ms", "multiple"),
    ("SELECT window_start, JSON_OBJECTAGG(KEY id VALUE amount) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), "
     "INTERVAL '1' HOUR)) GROUP BY window_start, window_end", 0, "the key of JSON_OBJECTAGG has type BIGINT",
     "cast it to STRING"),
    ("SELECT window_start, SUM(amount IGNORE NULLS) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), "
     "INTERVAL '1' HOUR)) GROUP BY window_start, window_end", 0, "SUM does not take IGNORE NULLS",
     "leave these words out"),
    ("SELECT id, x FROM orders CROSS JOIN UNNEST(id) AS u(x)", 44, "UNNEST has the argument id of type BIGINT",
     "an ARRAY, a MAP"),
    ("SELECT id, x FROM orders, UNNEST(ARRAY[id], ARRAY[1]) AS u(x)", 34, "UNNEST has 2 arguments", "pass one"),
    ("SELECT id, x FROM orders, UNNEST(ARRAY[id]) AS u(x, y)", 34, "2 names for 1 columns", "name all of them"),
    ("SELECT id, x FROM orders, UNNEST(ARRAY[idd]) AS u(x)", 40, "there is no column 'idd' (did you mean id?)", ""),
    ("SELECT id, x FROM orders LEFT JOIN UNNEST(ARRAY[id]) AS u(x) ON x = 1", 43, "takes no condition but ON TRUE",
     "ON TRUE"),
    ("SELECT id, x FROM orders FULL JOIN UNNEST(ARRAY[id]) AS u(x) ON TRUE", 43,
     "FULL JOIN is not possible with UNNEST", "write"),
    ("SELECT * FROM orders, LATERAL TABLE(splits(product)) AS u(x)", 37, "no table function SPLITS", "udtf"),
    ("SELECT * FROM orders, LATERAL TABLE(split(product)) AS u(x)", 37, "SPLIT is a function of SQL", "full name"),
    ("SELECT * FROM TABLE(TUMBEL(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))", 21, "", "TUMBLE"),
]  # fmt: skip


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    """The tables of the golden queries, and one to write to."""
    found = GoldenQuery(FOLDER / "project").environment()
    found.execute_sql("CREATE TABLE sink (a BIGINT, b BIGINT) WITH ('connector' = 'blackhole')")
    found.execute_sql("CREATE TABLE timed (id BIGINT, at AS PROCTIME()) WITH ('connector' = 'datagen')")
    return found


@pytest.mark.spec("R05", "R09", "syntax", "table", "field", "function", "types")
@pytest.mark.parametrize(("statement", "column", "problem", "remedy"), BAD, ids=[one[0][:60] for one in BAD])
def test_a_bad_statement_says_where_what_and_the_remedy(t_env, statement, column, problem, remedy):
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql(statement)
    assert problem in raised.value.problem and remedy in str(raised.value), str(raised.value)
    if column:
        assert raised.value.column == column, str(raised.value)
    assert raised.value.remedy


@pytest.mark.spec("R06", "parser", "validator", "R09", "syntax")
def test_the_text_is_read_before_names_are_looked_up_and_those_before_types(t_env):
    steps = [
        ("SELECT id + product FROM ordersx WHERE", "something is missing after 'WHERE'"),
        ("SELECT id + product FROM ordersx", "there is no table or view 'ordersx'"),
        ("SELECT id + product FROM orders", "+ does not take (BIGINT, STRING)"),
    ]
    for statement, problem in steps:
        with pytest.raises(SqlError) as raised:
            t_env.execute_sql(statement)
        assert problem in raised.value.problem


def test_the_place_is_underlined(t_env):
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql("SELECT id,\n       prise * 2 AS twice\nFROM orders")
    assert str(raised.value).splitlines()[1:] == ["         prise * 2 AS twice", "         ^^^^^"]
    assert (raised.value.line, raised.value.column) == (2, 8)


def test_what_only_writes_is_not_read():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql("CREATE TABLE out (a INT) WITH ('connector' = 'print')")
    with pytest.raises(SqlError, match="cannot be read"):
        t_env.execute_sql("SELECT a FROM out")


def test_an_order_of_values_without_one_is_reported():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    with pytest.raises(SqlError, match="values of type MAP<INT NOT NULL, INT NOT NULL> NOT NULL have no order"):
        t_env.execute_sql("SELECT MAP[a, 1] AS m FROM (VALUES (1)) AS t(a) ORDER BY m")
