"""LIMIT of streams: the first rows, counted across restarts, and the end of the job."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common.records.batches import ArrowBatch
from rayflink.connectors.collection import CollectSink
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.expressions import col
from rayflink.table.runtime.ranks.arrival_sort import ArrivalSortOperator
from rayflink.table.runtime.ranks.limits import LimitOperator
from rayflink.table.table import plan_of
from rayflink.testing import KillTask, rec, simulate, verify, wm
from tests.table.planned_streams import planned_stream

NUMBERS = """
    CREATE TABLE numbers (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen',
    'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '2000000000', 'rows-per-second' = '1000')"""


@pytest.fixture(params=[1, 2])
def t_env(request):
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set("execution.target", "local").set("parallelism.default", str(request.param))
    found.execute_sql(NUMBERS)
    return found


def values(result):
    return [row[0] for row in result.collect()]


def test_the_first_rows_are_given_whatever_happens():
    records = [rec(n, n) for n in range(1, 8)]
    given = [*records[:3], wm(3), *records[3:]]
    verify(lambda: LimitOperator(2, 3), given, [records[2], wm(3), *records[3:5]])
    verify(lambda: LimitOperator(4, None), [*given, wm(7)], [wm(3), *records[4:], wm(7)])
    verify(lambda: LimitOperator(0, 0), records, [])


def test_a_job_that_goes_on_ends_with_its_rows(t_env):
    found = values(t_env.execute_sql("SELECT n FROM numbers WHERE MOD(n, 2) = 0 LIMIT 3"))
    assert len(found) == 3 and all(n % 2 == 0 for n in found)


@pytest.mark.parametrize("query", ["SELECT n FROM numbers WHERE n > 0 LIMIT 0", "SELECT n + 1 FROM numbers LIMIT 0"])
def test_no_rows_at_all_end_it_too(t_env, query):
    assert values(t_env.execute_sql(query)) == []


def test_rows_are_left_out_first():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "1")
    table = t_env.from_elements([(n,) for n in range(10)], ["n"])
    t_env.create_temporary_view("t", table)
    assert values(t_env.execute_sql("SELECT n FROM t WHERE n > 1 LIMIT 3 OFFSET 2")) == [4, 5, 6]
    assert values(table.offset(2).fetch(3).execute()) == [2, 3, 4]
    assert values(t_env.execute_sql("SELECT n FROM t OFFSET 8")) == [8, 9]
    assert values(t_env.execute_sql("SELECT n FROM t LIMIT 30")) == list(range(10))


INSERTS = {
    "SELECT n FROM numbers LIMIT 4": 4,
    "SELECT n FROM numbers WHERE MOD(n, 2) = 0 LIMIT 4 OFFSET 3": 4,
    "SELECT n FROM (SELECT n * 2 AS n FROM numbers WHERE n > 0 LIMIT 4) WHERE n > 0": 4,
    "SELECT n FROM (SELECT n FROM numbers WHERE n > 0 UNION ALL SELECT n FROM others WHERE n > 0) LIMIT 4": 4,
    "SELECT n FROM (SELECT n FROM numbers LIMIT 3) UNION ALL SELECT n FROM (SELECT n FROM others LIMIT 2)": 5,
    """SELECT a.n FROM numbers AS a JOIN others AS b
        ON a.n = b.n AND a.ts BETWEEN b.ts - INTERVAL '1' DAY AND b.ts + INTERVAL '1' DAY LIMIT 4""": 4,
    "SELECT n FROM numbers WHERE n > 0 LIMIT 0": 0,
}


@pytest.mark.parametrize("query", INSERTS)
def test_the_job_of_an_insert_ends_with_its_limits(t_env, capsys, query):
    t_env.execute_sql("CREATE TABLE others LIKE numbers")
    t_env.execute_sql("CREATE TABLE shown (n INT) WITH ('connector' = 'print')")
    t_env.execute_sql(f"INSERT INTO shown {query}").wait(30_000)
    assert len(capsys.readouterr().out.splitlines()) == INSERTS[query]


@pytest.mark.slow
def test_a_source_that_others_read_too_goes_on(t_env, capsys):
    t_env.execute_sql("CREATE TABLE shown (n INT) WITH ('connector' = 'print')")
    t_env.execute_sql("CREATE TABLE counted (n INT) WITH ('connector' = 'print', 'print-identifier' = 'all')")
    inserts = t_env.create_statement_set()
    inserts.add_insert_sql("INSERT INTO shown SELECT n FROM numbers WHERE n > 0 LIMIT 2")
    inserts.add_insert_sql("INSERT INTO counted SELECT n FROM numbers WHERE n > 0 LIMIT 700")
    inserts.execute().wait(30_000)
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "all" in line]) == 700 and len(lines) == 702


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_limit_are_committed_once_and_the_job_ends_whoever_dies(width, seed):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = {"parallelism.default": str(width), "execution.checkpointing.interval": "5 ms",
               "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "50",
               "restart-strategy.fixed-delay.delay": "0 s"}  # fmt: skip
    for key, value in options.items():
        t_env.get_config().set(key, value)
    t_env.execute_sql(NUMBERS)
    table = t_env.sql_query("SELECT n FROM (SELECT n FROM numbers WHERE MOD(n, 2) = 0 LIMIT 20) WHERE n > 0")
    with t_env._queries.env.apart():
        stream = planned_stream(t_env, table)
        stream.sink_to(CollectSink()).uid("out")
        graph = t_env._queries.env.get_job_graph()
    story = simulate(graph, seed, [KillTask("", at) for at in (150, 250, 300, 350, 400)])
    assert story.status is JobStatus.FINISHED and any(one.what == "kill" for one in story.happenings)
    assert len(story.collected()) == len({row[0] for row in story.collected()}) == 20


def test_whole_results_of_streams_with_a_limit_are_there(t_env):
    assert t_env.sql_query("SELECT n FROM numbers WHERE n > 0 LIMIT 2").to_arrow().num_rows == 2


def test_rows_that_change_have_no_limit():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = {"execution.target": "local", "table.exec.emit.early-fire.enabled": "true",
              "table.exec.emit.early-fire.delay": "0 s"}  # fmt: skip
    for key, value in config.items():
        t_env.get_config().set(key, value)
    t_env.execute_sql("""CREATE TABLE s (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
        WITH ('connector' = 'datagen', 'number-of-rows' = '3')""")
    early = "SELECT n, COUNT(*) FROM s GROUP BY n, TUMBLE(ts, INTERVAL '1' HOUR) LIMIT 1"
    with pytest.raises(SqlError, match=r"Limit doesn't support consuming update changes.*stop there when"):
        t_env.execute_sql(early)


def test_an_order_of_all_rows_is_refused(t_env):
    for query in ("SELECT n FROM numbers ORDER BY n", "SELECT n FROM numbers ORDER BY n OFFSET 3"):
        with pytest.raises(SqlError, match="ORDER BY over an unbounded stream; order by a time attribute first"):
            t_env.execute_sql(query)
    with pytest.raises(SqlError, match="ORDER BY over an unbounded stream; order by a time attribute first"):
        t_env.from_path("numbers").order_by(col("n")).execute()
    with pytest.raises(SqlError, match="there is no column 'm'"):
        t_env.from_path("numbers").order_by(col("m"))


TIMED = """CREATE TABLE timed (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"""


def test_rows_of_a_stream_are_ordered_by_time(t_env, tmp_path):
    lines = [f"{n},2024-01-01 00:00:0{second}" for n, second in ((3, 3), (1, 1), (2, 1), (9, 2))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    t_env.execute_sql(TIMED.format(path=tmp_path))

    def rows(query: str) -> list[int]:
        return [row[0] for row in t_env.execute_sql(query).collect()]

    assert rows("SELECT n FROM timed ORDER BY ts, n DESC") == [2, 1, 9, 3]
    ordered = t_env.from_path("timed").order_by(col("ts"), col("n"))
    assert [row[0] for row in ordered.execute().collect()] == [1, 2, 9, 3]
    assert sorted(rows("SELECT n FROM (SELECT n, PROCTIME() AS p FROM timed) ORDER BY p")) == [1, 2, 3, 9]
    for order in ("ts DESC", "n, ts", "ts OFFSET 1"):
        with pytest.raises(SqlError, match="ORDER BY over an unbounded stream"):
            t_env.execute_sql(f"SELECT n, ts FROM timed ORDER BY {order}")


def test_rows_of_one_time_are_ordered_by_the_columns_behind_it():
    operator = ArrivalSortOperator(((1, True, False), (0, False, True)))
    batch = pa.record_batch({"a": [1, 2, 3, None], "b": ["x", "y", "x", "y"]})
    [element] = operator.process(ArrowBatch(batch), 0)
    assert element.data.to_pydict() == {"a": [None, 2, 1, 3], "b": ["y", "y", "x", "x"]}
    assert ArrivalSortOperator(()).process(ArrowBatch(batch), 0) == (ArrowBatch(batch),)


WORDS = [("tea", 3), ("cup", 8), ("pot", 5), ("tea", 6), ("jar", None)]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("word, n FROM words ORDER BY n DESC LIMIT 2", [("cup", 8), ("tea", 6)]),
        ("word, n FROM words ORDER BY n LIMIT 2", [("jar", None), ("tea", 3)]),
        ("n FROM words ORDER BY word, n DESC LIMIT 2 OFFSET 2", [(5,), (6,)]),
        ("word FROM words ORDER BY MOD(n, 5) DESC NULLS LAST LIMIT 2", [("cup",), ("tea",)]),
        ("word, SUM(n) AS n FROM words GROUP BY word ORDER BY n DESC LIMIT 1", [("tea", 9)]),
        ("word FROM words ORDER BY n LIMIT 0", []),
    ],
)
def test_the_first_rows_in_an_order_are_those_of_the_whole_stream(t_env, clauses, expected):
    t_env.create_temporary_view("words", t_env.from_elements(WORDS, ["word", "n"]))
    table = t_env.sql_query(f"SELECT {clauses}")
    assert sorted(table.to_arrow().to_pylist(), key=str) == sorted(
        (dict(zip(table.get_schema().get_field_names(), row, strict=True)) for row in expected), key=str
    )


def test_rows_in_order_that_are_fetched_are_the_query_with_limit(t_env):
    t_env.create_temporary_view("words", t_env.from_elements(WORDS, ["word", "n"]))
    ordered = t_env.from_path("words").order_by(col("n").desc, (col("n") + 1).asc)
    query = "SELECT * FROM words ORDER BY n DESC, n + 1 LIMIT 2"
    assert plan_of(ordered.fetch(2)) == plan_of(t_env.sql_query(query))
    assert plan_of(ordered.offset(1).fetch(2)) == plan_of(t_env.sql_query(f"{query} OFFSET 1")) == plan_of(
        ordered.limit(2, 1)
    )  # fmt: skip
