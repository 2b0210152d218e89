"""What tables tell of their rows, and what is guessed by it."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.connectors.statistics import file_statistics
from rayflink.table.connectors.statistics import in_memory_statistics as held_statistics
from rayflink.table.optimizer.estimates import UNKNOWN_ROWS, Estimate, Estimates
from rayflink.table.optimizer.optimizer import RuleSettings, optimized
from rayflink.table.plan.logical import Scan
from rayflink.table.plan.typed import Session

ROWS = pa.table(
    {
        "n": pa.array([None if at % 4 == 0 else at for at in range(1000)], pa.int64()),
        "w": pa.array([f"w{at % 10}" for at in range(1000)]),
        "d": pa.array([datetime.date(2026, 1, 1) + datetime.timedelta(at % 100) for at in range(1000)]),
    }
)


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.create_temporary_view("t", found.from_arrow(ROWS))
    return found


def guess(t_env: TableEnvironment, query: str) -> Estimate:
    """Of the rows of a query, behind the rules."""
    return Estimates().of(optimized(t_env.sql_query(query)._plan, Session(), RuleSettings(True)))


def files(t_env: TableEnvironment, folder: Path, form: str) -> None:
    t_env.execute_sql(
        f"CREATE TABLE f (n BIGINT, w STRING, d DATE) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        f"'format' = '{form}')"
    )


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("TRUE", 1000), ("n < 500", 376), ("n >= 250 AND n < 500", 188), ("n > 2000", 0), ("n = 7", 1),
        ("n = 2000", 0), ("w = 'w3'", 100), ("w <> 'w3'", 900), ("w IN ('w1', 'w2')", 200), ("n IS NULL", 250),
        ("n IS NOT NULL", 750), ("w = 'w1' OR w = 'w2'", 190), ("d >= DATE '2026-03-02'", 400),
        ("CHAR_LENGTH(w) > 1", 500), (f"n IN ({', '.join(map(str, range(1, 76)))})", 75),
    ],
)  # fmt: skip
def test_the_rows_that_pass_a_condition(t_env, condition, rows):
    assert guess(t_env, f"SELECT w FROM t WHERE {condition}").rows == pytest.approx(rows, rel=0.02, abs=1.5)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT w, COUNT(*) FROM t GROUP BY w", 10),
        ("SELECT w, d, COUNT(*) FROM t GROUP BY w, d", 1000),
        ("SELECT COUNT(*) FROM t", 1),
        ("SELECT a.n FROM t AS a JOIN t AS b ON a.w = b.w", 100_000),
        ("SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.n", 750),
        ("SELECT a.n FROM t AS a LEFT JOIN t AS b ON a.n = b.n", 1000),
        ("SELECT a.n FROM t AS a JOIN t AS b ON a.w = b.w AND a.d = b.d AND a.n = b.n", 1000),
        ("SELECT n FROM t WHERE w IN (SELECT w FROM t WHERE w = 'w1')", 1000),
        ("SELECT n FROM t UNION ALL SELECT n FROM t", 2000),
        ("SELECT n FROM t ORDER BY n LIMIT 7", 7),
        ("SELECT * FROM (VALUES (1), (2)) AS v(x)", 2),
    ],
)
def test_the_rows_of_a_query(t_env, query, rows):
    found = guess(t_env, query)
    assert found.is_known and found.rows == pytest.approx(rows, rel=0.05)


def test_a_large_table_in_memory_is_judged_by_some_rows(monkeypatch):
    monkeypatch.setattr(held_statistics, "MOST_ROWS", 100)
    found = held_statistics.statistics_of(ROWS)
    assert found.rows == 1000 and found.columns["n"].high == pytest.approx(1000, rel=0.05)
    assert found.columns["w"].distinct == 10
    assert found.columns["n"].distinct == pytest.approx(750, rel=0.2)


FAR = pa.array([2**60, -(2**60), None])


@pytest.mark.parametrize(
    "values",
    [
        FAR.cast(pa.timestamp("ms")), FAR.cast(pa.timestamp("us", "UTC")),
        pa.array([2**30, 1], pa.int32()).view(pa.date32()),
        pa.array([float("nan"), float("inf")]), pa.nulls(2), pa.array(["a"]).dictionary_encode(), pa.array([[1], None]),
        pa.array([b"a"], pa.binary(1)), pa.nulls(2, pa.month_day_nano_interval()), pa.array([True, False]),
        pa.array([5]).cast(pa.duration("ms")), pa.array([5]).cast(pa.time64("us")), pa.array([{"a": 1}]),
        pa.array([1.5], pa.float16()), pa.array([2**63], pa.uint64()), pa.array([], pa.int32()),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_columns_of_all_types_tell_what_they_can(values):
    found = held_statistics.statistics_of(pa.table({"x": values})).columns["x"]
    assert found.nulls == (values.null_count / len(values) if len(values) else 0)
    if pa.types.is_date32(values.type):
        assert found.high == 2**30 * 86_400_000.0


def test_a_parquet_file_with_times_beyond_those_of_python_tells_its_rows(t_env, tmp_path):
    parquet.write_table(pa.table({"n": [1], "w": ["a"], "d": pa.array([2**30], pa.int32()).view(pa.date32())}),
                        tmp_path / "a.parquet")  # fmt: skip
    files(t_env, tmp_path, "parquet")
    assert guess(t_env, "SELECT * FROM f").rows == 1


def test_a_packed_file_that_is_cut_tells_nothing(t_env, tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1,w,2026-01-01\n" * 1000)[:-20])
    files(t_env, tmp_path, "csv")
    assert not guess(t_env, "SELECT * FROM f").is_known


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "json"])
def test_files_tell_how_many_rows_they_have(t_env, tmp_path, form):
    for at in range(3):
        path = tmp_path / f"{at}.{form}"
        if form == "parquet":
            parquet.write_table(ROWS, path, row_group_size=300)
        elif form == "arrow":
            feather.write_feather(ROWS, str(path), chunksize=300, compression="uncompressed")
        elif form == "csv":
            csv.write_csv(ROWS, path, csv.WriteOptions(include_header=False))
        else:
            path.write_text("".join(f'{{"n": {n}, "w": "w{n % 10}"}}\n' for n in range(1000)))
    files(t_env, tmp_path, form)
    found = guess(t_env, "SELECT * FROM f")
    assert found.is_known and found.rows == 3000
    if form == "parquet":
        n, _, d = found.columns
        assert (n.low, n.high, n.nulls, n.distinct) == (1, 999, 0.25, 999)
        assert (d.high or 0) - (d.low or 0) == 99 * 86_400_000


def test_of_large_files_the_first_lines_are_read(t_env, tmp_path):
    lines = "".join(f"{at:07},w,2026-01-01\n" for at in range(50_000))
    (tmp_path / "a.csv").write_text(lines)
    files(t_env, tmp_path, "csv")
    assert guess(t_env, "SELECT * FROM f").rows == pytest.approx(50_000, rel=0.001)
    (tmp_path / "a.csv").unlink()
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(lines.encode()))
    assert 1_000 < guess(t_env, "SELECT * FROM f").rows < 500_000


def test_of_many_files_some_are_asked(t_env, tmp_path, monkeypatch):
    for at in range(20):
        parquet.write_table(ROWS.slice(0, 10), tmp_path / f"{at:02}.parquet")
    monkeypatch.setattr(file_statistics, "MOST_FILES", 5)
    files(t_env, tmp_path, "parquet")
    [scan] = [one for one in t_env.sql_query("SELECT * FROM f")._plan.walk() if isinstance(one, Scan)]
    found = scan.source.statistics()
    assert found is not None and found.rows == 200 and found.how == "footers of 5 of 20 files"


def test_a_file_that_cannot_be_read_tells_nothing(t_env, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    files(t_env, tmp_path, "parquet")
    found = guess(t_env, "SELECT * FROM f")
    assert not found.is_known and found.rows == UNKNOWN_ROWS


def test_a_file_that_changes_is_asked_again(t_env, tmp_path):
    files(t_env, tmp_path, "parquet")
    for rows in (10, 20):
        parquet.write_table(ROWS.slice(0, rows), tmp_path / "a.parquet")
        assert guess(t_env, "SELECT * FROM f").rows == rows
