"""Aggregates, and rows as sets, of whole tables in batch mode."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.runtime.keyed_state.frame_memory import FrameMemory
from tests.table.queries.duckdb_oracle import Both, table_of
from tests.table.queries.generated_queries import AGGREGATES, HAVING, KEYS, PHASES, filters, named, some, tables


def environment(**options: str) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "2", **options}.items():
        t_env.get_config().set_string(key, value)
    return t_env


@st.composite
def grouped(draw: st.DrawFn) -> str:
    keys, calls = draw(some(KEYS, 0, 2)), draw(some(AGGREGATES, 1))
    having = draw(st.none() | st.sampled_from(HAVING))
    selected = ", ".join([*(f"{one} AS g{at}" for at, one in enumerate(keys)), named(calls)])
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {selected} FROM t{draw(filters())}{group}" + (f" HAVING {having}" if having else "")


@st.composite
def sets(draw: st.DrawFn) -> str:
    word = draw(st.sampled_from(["UNION", "INTERSECT", "EXCEPT"]))
    columns = ", ".join(draw(some(["k", "n", "f", "m"], 1, 3)))
    return f"SELECT {columns} FROM t{draw(filters())} {word} SELECT {columns} FROM t{draw(filters())}"


@pytest.mark.slow
@given(
    rows=tables(), query=grouped() | sets() | st.just("SELECT DISTINCT k, f FROM t"),
    strategy=st.sampled_from(["AUTO", "ONE_PHASE"]),
)  # fmt: skip
@settings(max_examples=60, phases=PHASES)
def test_duckdb_gives_the_same(rows, query, strategy):
    with tempfile.TemporaryDirectory() as folder:
        options = {"table.optimizer.agg-phase-strategy": strategy}
        Both(Path(folder), {"t": table_of(rows)}, is_batch=True, **options).agree(query)


@pytest.mark.spec("X61", "shape", "operands", "R13")
def test_the_plan_is_a_filter_over_an_aggregate_over_a_scan():
    t_env = environment()
    rows = [(deptno, number * 10.0) for deptno, count in ((10, 12), (20, 3)) for number in range(count)]
    t_env.create_temporary_view("emp", t_env.from_elements(rows, ["deptno", "sal"]))
    query = "SELECT deptno, COUNT(*) AS c, SUM(sal) AS s FROM emp GROUP BY deptno HAVING COUNT(*) > 10"
    plan = t_env.explain_sql(query).split("\n\n")[0]
    steps = [line.strip(" +-").partition("(")[0] for line in plan.splitlines()[1:]]
    assert steps == ["Project", "Filter", "GroupAggregate", "Project", "TableSourceScan"]
    assert "Filter(where=[EXPR$0 > 10])" in plan
    assert "GroupAggregate(groupBy=[deptno], select=[deptno, COUNT(*) AS EXPR$0, SUM(sal) AS EXPR$1])" in plan
    assert [tuple(row) for row in t_env.execute_sql(query).collect()] == [(10, 12, 660.0)]


@pytest.mark.spec("R12")
def test_the_five_operations_of_relational_algebra():
    t_env = environment()
    first, second = {(1, "a"), (2, "b"), (3, "a")}, {(2, "b"), (4, "c")}
    for name, rows in (("r", first), ("s", second)):
        t_env.create_temporary_view(name, t_env.from_elements(sorted(rows), ["n", "k"]))

    def found(query: str) -> list[tuple]:
        return sorted(tuple(row) for row in t_env.execute_sql(query).collect())

    assert found("SELECT * FROM r UNION SELECT * FROM s") == sorted(first | second)
    assert found("SELECT * FROM r EXCEPT SELECT * FROM s") == sorted(first - second)
    assert found("SELECT * FROM r INTERSECT SELECT * FROM s") == sorted(first & second)
    assert found("SELECT r.n, s.n FROM r CROSS JOIN s") == sorted((a, b) for a, _ in first for b, _ in second)
    assert found("SELECT DISTINCT k FROM r") == [("a",), ("b",)]
    assert found("SELECT * FROM r WHERE n > 1") == [(2, "b"), (3, "a")]


@pytest.mark.slow
@pytest.mark.soak
def test_groups_beyond_the_memory_go_to_files(tmp_path, monkeypatch):
    written = []
    write = FrameMemory.written
    monkeypatch.setattr(FrameMemory, "written", lambda self, pieces: written.append(1) or write(self, pieces))
    keys = pyarrow.array([f"{number % 150_000:0500d}" for number in range(300_000)])
    ones = pyarrow.array(range(300_000), pyarrow.int64())
    t_env = environment(**{"taskmanager.memory.managed.size": "8 mb", "io.tmp.dirs": str(tmp_path)})
    t_env.create_temporary_view("t", t_env.from_arrow(pyarrow.table({"k": keys, "n": ones})))
    found = t_env.sql_query("SELECT k, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY k").to_polars()
    assert written
    assert found.height == 150_000
    assert set(found["c"].to_list()) == {2}
    assert found["s"].sum() == sum(range(300_000))


def test_maps_are_not_compared():
    t_env = environment()
    t_env.create_temporary_view("t", t_env.sql_query("SELECT MAP['a', 1] AS m"))
    with pytest.raises(SqlError, match="column 'm' of type MAP<.*> NOT NULL cannot be compared; leave it out"):
        t_env.sql_query("SELECT DISTINCT m FROM t")


def test_each_grouping_set_has_a_number():
    t_env = environment()
    t_env.create_temporary_view("t", t_env.from_elements([("a", "x"), ("b", "y")], ["k", "l"]))
    query = "SELECT k, l, GROUP_ID(), GROUPING_ID(k, l) FROM t GROUP BY GROUPING SETS ((k, l), (l), (k), ())"
    found = {tuple(row) for row in t_env.execute_sql(query).collect()}
    assert {(k is None, m is None, one) for k, m, one, _ in found} == {
        (False, False, 0), (False, True, 1), (True, False, 2), (True, True, 3)
    }  # fmt: skip
    assert all(one == other for _, _, one, other in found)
    assert [tuple(row) for row in t_env.execute_sql("SELECT GROUP_ID() FROM t GROUP BY k").collect()] == [(0,), (0,)]


@pytest.mark.parametrize("broadcast", ["-1", "1000000"])
def test_windows_behind_what_gives_its_rows_at_the_end_have_them(tmp_path, broadcast):
    (tmp_path / "t.csv").write_text("1,2024-01-01 00:00:01\n2,2024-01-01 00:00:02\n")
    t_env = environment(**{"table.optimizer.join.broadcast-threshold": broadcast})
    t_env.execute_sql(
        "CREATE TABLE t (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path}')"
    )
    numbered = "SELECT *, ROW_NUMBER() OVER ({} ORDER BY ts) AS rn FROM t"
    for at, view in enumerate((
        "SELECT t.n, t.ts FROM t JOIN t AS u ON t.n = u.n",
        f"SELECT * FROM ({numbered.format('PARTITION BY n')}) WHERE rn = 1",
        numbered.format(""), "SELECT * FROM t ORDER BY ts LIMIT 2",
    )):  # fmt: skip
        t_env.execute_sql(f"CREATE VIEW v{at} AS {view}")
        window = f"TUMBLE(TABLE v{at}, DESCRIPTOR(ts), INTERVAL '1' HOUR)"
        found = t_env.execute_sql(f"SELECT SUM(n) FROM TABLE({window}) GROUP BY window_start, window_end").collect()
        assert list(map(tuple, found)) == [(3,)], view
