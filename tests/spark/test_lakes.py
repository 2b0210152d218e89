"""Spark reads what is written here: Parquet files, a Delta table, and an Iceberg table of a catalog in SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rayflink.connectors.iceberg.iceberg_compaction import IcebergCompaction
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, TableLoader
from rayflink.table import EnvironmentSettings, TableEnvironment
from tests.spark.lake_jars import lake_jars

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

COLUMNS = """n BIGINT, w STRING, d DECIMAL(10, 2), b BOOLEAN, f DOUBLE, day DATE, at TIMESTAMP(3), i TIMESTAMP_LTZ(3),
  small INT, many ARRAY<INT>, pairs MAP<STRING, BIGINT>, inner_row ROW<x INT, y STRING>"""
NAMES = "n, w, d, b, f, day, at, i, small, many, pairs, inner_row"
VALUES = """(1, 'a,b', 1.25, TRUE, 1.5E0, DATE '2020-02-29', TIMESTAMP '2020-01-01 00:00:00.123',
    TO_TIMESTAMP_LTZ(1000, 3), 7, ARRAY[1, 2], MAP['k', 5], ROW(1, 'y')),
  (2, NULL, NULL, FALSE, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
READ = ["n", "w", "CAST(d AS STRING)", "b", "f", "CAST(day AS STRING)", "CAST(at AS STRING)", "unix_millis(i)", "small",
        "many", "pairs", "CAST(inner_row AS STRING)"]  # fmt: skip
FIRST = (1, "a,b", "1.25", True, 1.5, "2020-02-29", "2020-01-01 00:00:00.123", 1000, 7, [1, 2], {"k": 5}, "{1, y}")
SECOND = (2, None, None, False, *[None] * 8)


def written(t_env: TableEnvironment, options: str, commits: int = 2, partitions: str = "") -> None:
    t_env.execute_sql(f"CREATE TABLE t ({COLUMNS}) {partitions} WITH ({options})")
    for _ in range(commits):
        t_env.execute_sql(f"INSERT INTO t SELECT * FROM (VALUES {VALUES}) AS v({NAMES})").wait()


@pytest.fixture
def lake_spark(spark: Any) -> Any:
    """The Spark, if it has what reads tables of lakes."""
    if not lake_jars():
        pytest.skip("the jars of Delta and Iceberg are missing, and Maven cannot bring them")
    return spark


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    return found


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.selectExpr(*READ).collect())


def test_spark_reads_parquet_files(spark: Any, t_env: TableEnvironment, tmp_path: Path) -> None:
    written(t_env, f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path}/t'")
    assert rows(spark.read.parquet(f"{tmp_path}/t")) == [FIRST, FIRST, SECOND, SECOND]


@pytest.mark.soak
def test_spark_reads_a_delta_table_and_its_versions(lake_spark: Any, t_env: TableEnvironment, tmp_path: Path) -> None:
    options = f"'connector' = 'delta', 'table-path' = '{tmp_path}/t', 'sink.compaction.every-commits' = '2'"
    written(t_env, options, partitions="PARTITIONED BY (small)")
    reader = lake_spark.read.format("delta")
    assert rows(reader.load(f"{tmp_path}/t")) == [FIRST, FIRST, SECOND, SECOND]
    assert rows(lake_spark.read.format("delta").option("versionAsOf", 1).load(f"{tmp_path}/t")) == [FIRST, SECOND]
    assert rows(reader.load(f"{tmp_path}/t").where("n = 1 AND small = 7")) == [FIRST, FIRST]
    written_by = lake_spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/t`").select("operation").collect()
    assert {row[0] for row in written_by} >= {"CREATE TABLE", "WRITE"}
    lake_spark.sql(f"DELETE FROM delta.`{tmp_path}/t` WHERE n = 2")
    assert t_env.sql_query("SELECT n FROM t").to_arrow()["n"].to_pylist() == [1, 1], "and we read what Spark writes"


@pytest.mark.soak
def test_spark_reads_an_iceberg_table_of_the_same_catalog(
    lake_spark: Any, t_env: TableEnvironment, tmp_path: Path
) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/tables"
    written(
        t_env,
        f"'connector' = 'iceberg', 'catalog-name' = 'lake', 'catalog-type' = 'sql', 'uri' = '{uri}', 'warehouse' = "
        f"'{warehouse}', 'catalog-database' = 'db', 'catalog-table' = 't', 'partitioning' = 'bucket(4, n), day(at)'",
    )
    loader = TableLoader.from_catalog(CatalogLoader.sql("lake", {"uri": uri, "warehouse": warehouse}), "db.t")
    assert IcebergCompaction(loader, None).merge() == "4 files merged into 2"
    lake_spark.conf.set("spark.sql.catalog.lake.uri", f"jdbc:sqlite:{tmp_path}/catalog.db")
    lake_spark.conf.set("spark.sql.catalog.lake.warehouse", warehouse)
    assert rows(lake_spark.table("lake.db.t")) == [FIRST, FIRST, SECOND, SECOND]
    assert rows(lake_spark.table("lake.db.t").where("n = 2")) == [SECOND, SECOND]
    snapshots = lake_spark.table("lake.db.t.snapshots").orderBy("committed_at").collect()
    assert [snapshot.operation for snapshot in snapshots] == ["append", "append", "replace"]
    assert all("flink.max-committed-checkpoint-id" in snapshot.summary for snapshot in snapshots[:2])
    assert lake_spark.table("lake.db.t.files").count() == 2, "of the merged files"
    first = lake_spark.read.option("snapshot-id", snapshots[0].snapshot_id).table("lake.db.t")
    assert rows(first) == [FIRST, SECOND]
    lake_spark.sql("INSERT INTO lake.db.t SELECT * FROM lake.db.t WHERE n = 1")
    assert t_env.sql_query("SELECT n FROM t").to_arrow().sort_by("n")["n"].to_pylist() == [1, 1, 1, 1, 2, 2]
