"""What a query asks for reaches the files."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pyarrow
import pytest
from pyarrow import parquet

from rayflink.connectors.formats.parquet_files import ParquetFormat
from rayflink.connectors.formats.parquet_pruning import RowGroupFilter, Wanted
from rayflink.table import EnvironmentSettings, TableEnvironment

ROWS = 1000
COLUMNS = (
    "n BIGINT, w STRING, x DOUBLE, f FLOAT, m DECIMAL(8, 2), day DATE, ts TIMESTAMP(3), b BOOLEAN, few INT, nothing INT"
)


def rows() -> pyarrow.Table:
    day = datetime.datetime(2020, 1, 1)
    return pyarrow.table(
        {
            "n": pyarrow.array(range(ROWS)),
            "w": [f"w{n:04}" for n in range(ROWS)],
            "x": [n / 8 if n % 7 else float("nan") for n in range(ROWS)],
            "f": pyarrow.array([n / 10 for n in range(ROWS)], pyarrow.float32()),
            "m": pyarrow.array([Decimal(n) / 4 for n in range(ROWS)], pyarrow.decimal128(8, 2)),
            "day": pyarrow.array([(day + datetime.timedelta(days=n)).date() for n in range(ROWS)]),
            "ts": pyarrow.array([day + datetime.timedelta(hours=n) for n in range(ROWS)], pyarrow.timestamp("us")),
            "b": [n >= 500 for n in range(ROWS)],
            "few": pyarrow.array([n if 300 <= n < 320 else None for n in range(ROWS)], pyarrow.int32()),
            "nothing": pyarrow.nulls(ROWS, pyarrow.int32()),
        }
    )


@pytest.fixture
def t_env(tmp_path) -> TableEnvironment:
    parquet.write_table(rows(), tmp_path / "rows.parquet", row_group_size=100)
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    found.execute_sql(
        f"CREATE TABLE t ({COLUMNS}, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
        f"'path' = '{tmp_path}')"
    )
    return found


@pytest.fixture
def groups_read(monkeypatch) -> list[int]:
    found: list[int] = []
    whole = ParquetFormat._group

    def counted(self, file, names, path, group):
        found.append(group)
        return whole(self, file, names, path, group)

    monkeypatch.setattr(ParquetFormat, "_group", counted)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("n = 250", 1), ("n < 250 AND n >= 150", 2), ("250 > n", 3), ("n IN (5, 950)", 2), ("n = 5000", 0),
        ("n > 98.5 + 800", 2),
        ("w >= 'w0890'", 2), ("w = 'w0050'", 1), ("day = DATE '2020-01-05'", 1), ("few IS NOT NULL", 1),
        ("few = 310", 1), ("few IS NULL", 10), ("ts < TIMESTAMP '2020-01-02 00:00:00'", 1), ("nothing IS NULL", 10),
        ("nothing = 1", 0), ("nothing IS NOT NULL", 0), ("x > 112", 2),
        ("n = 250 OR n = 850", 10), ("n + 0 = 250", 10), ("m = 25", 10), ("f = 0.1", 10), ("b", 10),
    ],
)  # fmt: skip
def test_row_groups_without_a_wanted_row_are_passed_over(t_env, groups_read, condition, read):
    query = f"SELECT n FROM t WHERE {condition}"
    found = sorted(row[0] for row in t_env.execute_sql(query).collect())
    assert len(groups_read) == read
    asked = f"SELECT n FROM t WHERE COALESCE({condition}, FALSE)"  # no source takes that
    assert found == sorted(row[0] for row in t_env.execute_sql(asked).collect())


def test_the_plan_shows_what_a_source_takes(t_env):
    told = t_env.explain_sql("SELECT w FROM t WHERE n > 5 AND MOD(n, 2) = 1 AND few IS NULL")
    assert "filter=[n > 5, few IS NULL], project=[n, w, few]]]" in told
    assert "where=[((n > 5) AND ((n % 2) = 1)) AND IS NULL(few)]" in told


def test_no_filter_goes_where_watermarks_are_made(t_env, tmp_path):
    stream = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, watermark in (("with", ", WATERMARK FOR ts AS ts"), ("without", "")):
        stream.execute_sql(
            f"CREATE TABLE {name}_it ({COLUMNS}{watermark}) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
            f"'path' = '{tmp_path}')"
        )
    assert "filter=" not in stream.explain_sql("SELECT w FROM with_it WHERE n > 5 AND ts > CURRENT_WATERMARK(ts)")
    assert "filter=[n > 5]" in stream.explain_sql("SELECT w FROM without_it WHERE n > 5")


@pytest.mark.parametrize(
    ("low", "high", "sign", "value", "may"),
    [(1, 5, "=", 6, False), (1, 5, "=", 5, True), (1, 5, "<", 1, False), (1, 5, "<=", 1, True), (1, 5, ">", 5, False),
     (1, 5, ">=", 5, True), (float("nan"), float("nan"), "=", 6, True), (1, 5, "=", "x", True),
     (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2), "=", datetime.date(2021, 1, 1), True)],
)  # fmt: skip
def test_statistics_that_say_nothing_keep_a_row_group(low, high, sign, value, may):
    class Statistics:
        has_min_max, has_null_count, null_count, num_values = True, True, 0, 5
        min, max = low, high

        class logical_type:  # as pyarrow names it
            type = "NONE"

    assert Wanted("a", sign, (value,)).may_be_in(Statistics) is may
    assert Wanted("a", sign, (value,)).may_be_in(None)


def test_a_row_group_without_the_column_is_kept(tmp_path):
    path = tmp_path / "one.parquet"
    parquet.write_table(pyarrow.table({"a": [1]}), path)
    group = parquet.ParquetFile(path).metadata.row_group(0)
    assert RowGroupFilter((Wanted("other", "=", (7,)),))(group)
    assert not RowGroupFilter((Wanted("a", "=", (7,)),))(group)


def test_a_limit_ends_the_reading(t_env, groups_read):
    query = "SELECT n FROM t LIMIT 120 OFFSET 10"
    assert "limit=[130]" in t_env.explain_sql(query)
    t_env.get_config().set_string("parallelism.default", "1")
    assert len(list(t_env.execute_sql(query).collect())) == 120
    assert len(groups_read) == 2


@pytest.mark.parametrize("mode", ["in_batch_mode", "in_streaming_mode"])
def test_a_limit_leaves_files_closed(tmp_path, monkeypatch, mode):
    for number in range(30):
        parquet.write_table(rows().slice(number * 20, 20).select(["n"]), tmp_path / f"{number:02}.parquet")
    opened = []
    whole = ParquetFormat.open_split

    def counted(form, split):
        opened.append(split.path)
        return whole(form, split)

    monkeypatch.setattr(ParquetFormat, "open_split", counted)
    t_env = TableEnvironment.create(getattr(EnvironmentSettings, mode)())
    t_env.get_config().set_string("execution.target", "local").set_string("parallelism.default", "2")
    t_env.execute_sql(f"CREATE TABLE t (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
                      f"'path' = '{tmp_path}')")  # fmt: skip
    found = [row[0] for row in t_env.execute_sql("SELECT n FROM t LIMIT 50").collect()]
    assert len(set(found)) == 50
    assert len(opened) <= 6, "each of two readers needs three files at most"


@pytest.mark.parametrize(
    "query", ["SELECT n FROM t WHERE MOD(n, 9) = 1 LIMIT 50", "SELECT n FROM t ORDER BY n DESC LIMIT 50"]
)
def test_a_limit_of_what_is_filtered_or_sorted_stays_behind(t_env, query):
    assert "limit=[" not in t_env.explain_sql(query)
    assert len(list(t_env.execute_sql(query).collect())) == 50


def test_a_limit_reaches_tables_in_memory_and_made_up_rows(t_env):
    held = t_env.from_arrow(rows())
    t_env.create_temporary_view("held", held)
    t_env.execute_sql("CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000')")
    for table in ("held", "endless"):
        taken = random.Random(3).randrange(5, 90)
        assert len(list(t_env.execute_sql(f"SELECT n FROM {table} LIMIT {taken}").collect())) == taken
