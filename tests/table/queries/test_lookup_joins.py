"""Lookup joins of SQL: what is refused with which remedy, caches, changes of rows, and files that change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.plan.changelog_fold import materialized
from rayflink.table.table_environment import StreamTableEnvironment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery

JOINED = "SELECT a.id FROM clocked AS a JOIN orders FOR SYSTEM_TIME AS OF"


def hinted(options: str) -> str:
    query = f"{JOINED} a.clock AS b ON a.id = b.id"
    return query.replace("SELECT", f"SELECT /*+ LOOKUP({options}) */", 1)


REFUSED = [
    (f"{JOINED} a.clock AS b ON a.id = b.id + 1", "no equality by which its rows are looked up", "o.customer_id"),
    (f"{JOINED} a.clock AS b ON a.id < b.id", "no equality by which its rows are looked up", "o.customer_id"),
    (f"{JOINED} a.clock AS b ON a.id = b.amount", "no equality by which", "CAST(id AS INT): amount is INT"),
    (f"{JOINED} a.ts AS b ON a.id = b.id", "FOR SYSTEM_TIME AS OF has no primary key", "PRIMARY KEY"),
    (f"{JOINED} a.id AS b ON a.id = b.id", "id, which is not a time attribute", "proc_time AS PROCTIME()"),
    (f"{JOINED} PROCTIME() AS b ON a.id = b.id", "which is not a time attribute", "proc_time AS PROCTIME()"),
    (f"{JOINED} a.clock AS b ON a.id = b.id".replace(" JOIN", " RIGHT JOIN"), "a RIGHT JOIN with", "or LEFT JOIN"),
    ("SELECT * FROM orders FOR SYSTEM_TIME AS OF PROCTIME()", "not behind a table that JOIN names", "FROM a JOIN"),
    (f"{JOINED} a.clock AS b ON a.id = b.id".replace("JOIN orders", "JOIN endless"), "cannot be looked up by key: its",
     "sql-lookup-joins.md"),
    (f"{JOINED} a.clock AS b ON a.id = b.id".replace("JOIN orders", "JOIN counted"), "which is no table", "a view"),
    (hinted("'table' = 'c'"), "LOOKUP of 'c', which is not a table of FROM", "the tables are a, b"),
    (hinted("'table' = 'a'"), "LOOKUP of 'a', which is not joined by", "FOR SYSTEM_TIME AS OF a.proc_time AS a"),
    (hinted("'async' = 'true'"), "LOOKUP has no option 'table'", "LOOKUP('table' = 'c'"),
    (hinted("'table' = 'b', 'capactiy' = '3'"), "no option 'capactiy' (did you mean capacity?)", "max-attempts"),
    (hinted("'table' = 'b', 'capacity' = '0'"), "'capacity' of LOOKUP is '0'", "above 0"),
    (hinted("'table' = 'b', 'timeout' = 'soon'"), "'timeout' of LOOKUP is 'soon'", "'10 s'"),
    (hinted("'table' = 'b', 'max-attempts' = '2'"), "'max-attempts' without 'retry-predicate'", "all four"),
]  # fmt: skip


@pytest.fixture(scope="module")
def t_env():
    t_env = GoldenQuery(FOLDER / "project").environment()
    t_env.execute_sql("CREATE VIEW clocked AS SELECT *, PROCTIME() AS clock FROM orders")
    t_env.execute_sql("CREATE VIEW counted AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id")
    t_env.execute_sql("CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen')")
    return t_env


@pytest.mark.parametrize(("query", "problem", "remedy"), REFUSED, ids=[problem for _, problem, _ in REFUSED])
def test_what_is_refused_says_what_to_write(t_env, query, problem, remedy):
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql(query)
    assert problem in raised.value.problem and remedy in raised.value.remedy, str(raised.value)


@pytest.mark.spec("R26", "hints")
def test_a_hint_and_the_options_say_how_a_table_is_asked(t_env):
    options = (
        "'table' = 'b', 'async' = 'true', 'output-mode' = 'allow_unordered', 'capacity' = '7', 'timeout' = '10s', "
        "'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay', 'fixed-delay' = '1s', "
        "'max-attempts' = '3', 'shuffle' = 'true'"
    )
    plan = t_env.explain_sql(hinted(options))
    assert (
        "async=[true], output=[ALLOW_UNORDERED], capacity=[7], timeout=[10000 ms], "
        "retry=[lookup_miss, FIXED_DELAY, 1000 ms, 3], shuffle=[true])" in plan
    )
    assert "Exchange(distribution=[hash[id]])" in plan


@pytest.fixture
def changing():
    """An environment with counts of words, which change, and a table of the words' lengths."""
    t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local")
    words = pa.table({"word": ["a", "b", "a", "c", "a", None]})
    t_env.create_temporary_view("words", t_env.from_arrow(words))
    t_env.create_temporary_view("kinds", t_env.from_arrow(pa.table({"w": ["a", "c", "a"], "kind": [1, 2, 3]})))
    t_env.execute_sql("CREATE VIEW counts AS SELECT word, n, PROCTIME() AS clock FROM "
                      "(SELECT word, COUNT(*) AS n FROM words GROUP BY word)")  # fmt: skip
    return t_env


COUNTED = "SELECT {}word, n, kind FROM counts AS l LEFT JOIN kinds FOR SYSTEM_TIME AS OF l.clock AS k ON l.word = k.w"


@pytest.mark.spec("R26", "changes")
def test_rows_that_change_find_what_they_found_before(changing):
    changes = list(changing.execute_sql(COUNTED.format("")).collect())
    rows = [("a", 3, 1), ("a", 3, 3), ("b", 1, None), ("c", 1, 2), (None, 1, None)]
    assert sorted(map(repr, map(tuple, materialized(changes)))) == sorted(map(repr, rows))


def test_rows_without_key_are_refused_where_they_cannot_be_compared(changing):
    changing.get_config().set("table.optimizer.non-deterministic-update.strategy", "TRY_RESOLVE")
    both = "SELECT word, ARRAY[n] AS n FROM counts UNION ALL SELECT word, ARRAY[n] AS n FROM counts"
    changing.execute_sql(f"CREATE VIEW all_counts AS SELECT *, PROCTIME() AS clock FROM ({both})")
    with pytest.raises(SqlError, match="have no key.*'n' is of type ARRAY<BIGINT NOT NULL>.*let the rows have a key"):
        changing.execute_sql(COUNTED.format("").replace("FROM counts", "FROM all_counts"))
    changing.execute_sql("SELECT word FROM (SELECT word, PROCTIME() AS t FROM words) AS o "
                         "JOIN kinds FOR SYSTEM_TIME AS OF o.t AS k ON o.word = k.w").collect().close()  # fmt: skip


def test_changes_are_not_shuffled(changing):
    with pytest.raises(SqlError, match="changes of a row would lose their order"):
        changing.execute_sql(COUNTED.format("/*+ LOOKUP('table' = 'k', 'shuffle' = 'true') */ "))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("'lookup.full-cache.periodic-reload.interval' = '0 s'", "periodic-reload.interval' of .* is 0 ms"),
        ("'lookup.full-cache.reload-strategy' = 'TIMED'", "expected PERIODIC"),
        ("'lookup.partial-cache.max-rows' = '5'", "which 'filesystem' does not know"),
    ],
)
def test_options_of_lookups_are_checked(tmp_path, options, problem):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with pytest.raises(SqlError, match=problem):
        t_env.execute_sql(f"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', "
                          f"'format' = 'csv', {options})")  # fmt: skip
        t_env.sql_query("SELECT * FROM t")
