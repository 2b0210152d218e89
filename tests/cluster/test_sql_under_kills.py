"""What one program of SQL writes is there once, though slot processes are killed and the job goes on elsewhere.

The rows are made up, and written as they came, too: of these DuckDB computes what the other tables must hold.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from rayflink.common import Encoder, Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink
from rayflink.table import DataTypes, EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from rayflink.table.udf import (
    ProcessTableFunctionArgumentTrait,
    map_view,
    table_arg,
    udptf,
    udtf,
    value_state,
)
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ROWS = 30_000
OPTIONS = {
    "execution.target": "ray", "table.local-time-zone": "UTC", "pipeline.max-parallelism": "16",
    "execution.checkpointing.interval": "200 ms", "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "20", "restart-strategy.fixed-delay.delay": "100 ms",
}  # fmt: skip
MADE = f"""CREATE TABLE made (id BIGINT, k INT, v INT,
  ts AS TIMESTAMPADD(SECOND, CAST(id / 50 AS INT), TIMESTAMP '2026-01-01 00:00:00.000'),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'datagen', 'rows-per-second' = '1500', 'number-of-rows' = '{ROWS}', 'fields.id.kind' = 'sequence',
  'fields.id.start' = '0', 'fields.id.end' = '{ROWS - 1}', 'fields.k.min' = '0', 'fields.k.max' = '29',
  'fields.v.min' = '0', 'fields.v.max' = '99999')"""
TUMBLED = "(SELECT * FROM TABLE(TUMBLE(TABLE made, DESCRIPTOR(ts), INTERVAL '10' SECOND)))"
BUCKETS = "(SELECT *, time_bucket(INTERVAL 10 SECOND, ts, TIMESTAMP '2026-01-01') AS s FROM written)"
NEAR = "JOIN {} r ON l.k = r.k AND l.v < 20000 AND r.v > 90000 AND r.ts BETWEEN l.ts - INTERVAL '2' SECOND AND l.ts"
SAME = "FULL JOIN (SELECT * FROM {0} WHERE v > 80000) r ON l.k = r.k AND l.{1} = r.{1}"
PLACES = "row_number() OVER (PARTITION BY {}k ORDER BY v DESC, id)"
TABLES = {
    "written": ("id BIGINT, k INT, v INT, ts TIMESTAMP(3)", "SELECT id, k, v, ts FROM made", ""),
    "sums": (
        "k INT, s TIMESTAMP(3), n BIGINT, v BIGINT, part INT) PARTITIONED BY (part",
        f"SELECT k, window_start, COUNT(*), SUM(CAST(v AS BIGINT)), k % 5 FROM {TUMBLED} "
        "GROUP BY k, window_start, window_end",
        f"SELECT k, s, count(*), sum(v), k % 5 FROM {BUCKETS} GROUP BY k, s",
    ),
    "tops": (
        "id BIGINT, place BIGINT",
        f"SELECT id, p FROM (SELECT *, {PLACES.format('window_start, window_end, ')} AS p FROM {TUMBLED}) WHERE p <= 2",
        f"SELECT id, {PLACES.format('s, ')} AS p FROM {BUCKETS} QUALIFY p <= 2",
    ),
    "sessions": (
        "k INT, s TIMESTAMP(3), e TIMESTAMP(3), n BIGINT",
        "SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE made PARTITION BY k, DESCRIPTOR(ts), "
        "INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end",
        "SELECT k, min(ts), max(ts) + INTERVAL 1 SECOND, count(*) FROM (SELECT *, sum(CASE WHEN gap <= INTERVAL 1 "
        "SECOND THEN 0 ELSE 1 END) OVER by_time AS one FROM (SELECT *, ts - lag(ts) OVER by_time AS gap FROM written "
        "WINDOW by_time AS (PARTITION BY k ORDER BY ts, id)) WINDOW by_time AS (PARTITION BY k ORDER BY ts, id)) "
        "GROUP BY k, one",
    ),
    "near": (
        "a BIGINT, b BIGINT",
        f"SELECT l.id, r.id FROM made l {NEAR.format('made')}",
        f"SELECT l.id, r.id FROM written l {NEAR.format('written')}",
    ),
    "pairs": (
        "a BIGINT, b BIGINT",
        f"SELECT l.id, r.id FROM (SELECT * FROM {TUMBLED} WHERE v < 20000) l "
        f"{SAME.format(TUMBLED, 'window_start')} AND l.window_end = r.window_end",
        f"SELECT l.id, r.id FROM (SELECT * FROM {BUCKETS} WHERE v < 20000) l {SAME.format(BUCKETS, 's')}",
    ),
    "taken_apart": (
        "id BIGINT, e INT, place INT",
        "SELECT id, e, p FROM made CROSS JOIN UNNEST(ARRAY[k, v]) AS u(e), LATERAL TABLE(places(e)) AS l(p)",
        "SELECT id, e, p FROM (SELECT id, unnest([k, v]) AS e FROM written), (VALUES (1), (2)) AS l(p)",
    ),
    "buckets": (
        "k INT, n INT, v BIGINT, s TIMESTAMP(3)",
        "SELECT k, n, v, s FROM buckets(r => TABLE made PARTITION BY k, on_time => DESCRIPTOR(ts))",
        f"SELECT k, count(*), sum(v), s FROM {BUCKETS} GROUP BY k, s",
    ),
}  # fmt: skip



@udptf(
    arguments={"r": table_arg(traits={ProcessTableFunctionArgumentTrait.SET_SEMANTIC_TABLE})},
    states={"sums": map_view("BIGINT", "BIGINT"), "size": value_state("ROW<rows_of MAP<BIGINT, INT>>")},
    result_type="ROW<n INT, v BIGINT, s TIMESTAMP(3)>",
)
def buckets(ctx, sums, size, r):
    """Sums of ten seconds, when these are over."""
    time = ctx.time_context()
    start = time.time() - time.time() % 10_000
    sums[start] = (sums[start] or 0) + r.v
    size["rows_of"] = {**(size.rows_of or {}), start: (size.rows_of or {}).get(start, 0) + 1}
    time.register_on_time(str(start), start + 9_999)


@buckets.on_timer
def bucket_over(ctx, sums, size):
    start = int(ctx.current_timer())
    rows = size.rows_of.pop(start)
    yield rows, sums[start], datetime(1970, 1, 1) + timedelta(milliseconds=start)
    sums.remove(start)


NUMBERS = """CREATE TABLE numbers (id BIGINT, k AS MOD(id * 31, 13), v AS MOD(id * 7919, 101),
  ts AS TIMESTAMPADD(SECOND, CAST(id AS INT), TIMESTAMP '2026-01-01 00:00:00.000'),
  WATERMARK FOR ts AS ts - INTERVAL '40' SECOND)
  WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}', 'number-of-rows' = '4000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '3999')"""
RISES = """INSERT INTO rises SELECT k, low, high, n, before FROM numbers MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES A.id AS low, LAST(B.id) AS high, COUNT(*) AS n, PREV(A.v) AS before
  PATTERN (A B+ C) WITHIN INTERVAL '5' MINUTE DEFINE B AS B.v > PREV(B.v), C AS C.v < LAST(B.v))"""


def rises(folder: Path, target: str, rate: int) -> Any:
    """The job of a query with a row pattern."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    places = {"execution.checkpointing.dir": f"file://{folder}/checkpoints", "parallelism.default": "2"}
    for key, value in {**OPTIONS, **places, "execution.target": target}.items():
        t_env.get_config().set_string(key, value)
    t_env.execute_sql(NUMBERS.format(rate=rate))
    options = f"'connector' = 'filesystem', 'path' = '{folder}/{target}', 'format' = 'parquet'"
    columns = "k BIGINT, low BIGINT, high BIGINT, n BIGINT, `before` BIGINT"
    t_env.execute_sql(f"CREATE TABLE rises ({columns}) WITH ({options})")
    return t_env.execute_sql(RISES).get_job_client()


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(path) for path in folder.rglob("[!.]*.parquet")]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


COUNTS = "SELECT k, COUNT(*) AS n, SUM(id) AS total, MAX(v) AS high, COUNT(DISTINCT v) AS c FROM numbers GROUP BY k"


def changes_of_counts(folder: Path) -> Any:
    """The job that writes the changes of groups as JSON, on Ray with mini-batches."""
    options = {
        **OPTIONS, "execution.checkpointing.dir": f"file://{folder}/checkpoints", "parallelism.default": "2",
        "execution.checkpointing.interval": "100 ms", "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "50 ms", "table.exec.mini-batch.size": "500",
    }  # fmt: skip
    t_env = StreamTableEnvironment.create(StreamExecutionEnvironment(options))
    t_env.execute_sql(NUMBERS.format(rate=1000))
    changes = t_env.to_changelog_stream(t_env.sql_query(COUNTS))
    lines = changes.map(lambda row: json.dumps([row.get_row_kind().name, *row]), Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build())
    return t_env._queries.env.execute_async("counts")


def submitted(folder: Path, width: int, path: str = "") -> Any:
    """The program's job, from a savepoint where there is one."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    restored = {"execution.state-recovery.path": path} if path else {}
    places = {"execution.checkpointing.dir": f"file://{folder}/checkpoints", "parallelism.default": str(width)}
    for key, value in {**OPTIONS, **places, **restored}.items():
        t_env.get_config().set_string(key, value)
    both = udtf(lambda value: iter((1, 2)), result_types=[DataTypes.INT()])
    t_env.create_temporary_system_function("places", both)
    t_env.create_temporary_system_function("buckets", buckets)
    t_env.execute_sql(MADE)
    statements = t_env.create_statement_set()
    for name, (columns, query, _) in TABLES.items():
        options = f"'connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = 'parquet'"
        t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
        statements.add_insert_sql(f"INSERT INTO {name} {query}")
    return statements.execute().get_job_client()


def goes_on(client: Any, width: int) -> list[int]:
    """The processes of the slots, when its tasks run and one more checkpoint is complete."""

    def completed() -> int:
        return int(client.checkpoints()["counts"]["completed"])

    def processes() -> list[int]:
        vertices = client.status()["vertices"]
        if any(set(one["states"]) - {"RUNNING", "FINISHED"} for one in vertices):  # a source without numbers ends
            return []
        metrics = [subtask["metrics"] for one in vertices for subtask in one["subtasks"]]
        found = sorted({int(one["pid"]) for one in metrics if "pid" in one})
        return found if len(found) == width else []

    found: list[int] = watching.eventually(processes, within_s=30)
    before = completed()
    assert found and watching.eventually(lambda: completed() > before, within_s=30)
    return found


def test_row_patterns_match_the_same_rows_where_a_slot_is_killed(cluster, tmp_path):
    client = rises(tmp_path, "ray", 1000)
    os.kill(goes_on(client, 2)[1], signal.SIGKILL)
    assert watching.eventually(lambda: client.status()["metrics"]["numRestarts"], within_s=30)
    client.get_job_execution_result().result()
    rises(tmp_path, "local", 1_000_000).get_job_execution_result().result()
    expected = rows_of(tmp_path / "local")
    assert len(expected) > 500 and rows_of(tmp_path / "ray") == expected


def test_changes_of_groups_fold_to_the_rows_of_batch_mode_where_a_slot_is_killed(cluster, tmp_path):
    client = changes_of_counts(tmp_path)
    os.kill(goes_on(client, 2)[1], signal.SIGKILL)
    assert watching.eventually(lambda: client.status()["metrics"]["numRestarts"], within_s=30)
    client.get_job_execution_result().result()
    folded: Counter[tuple[Any, ...]] = Counter()
    for path in (tmp_path / "out").rglob("[!.]*"):
        for kind, *values in map(json.loads, path.read_text().splitlines() if path.is_file() else ()):
            folded[tuple(values)] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    t_env.execute_sql(NUMBERS.format(rate=1_000_000))
    expected = Counter(map(tuple, t_env.execute_sql(COUNTS).collect()))
    assert len(expected) == 13 and {row: count for row, count in folded.items() if count} == dict(expected)


@pytest.mark.soak
def test_tables_hold_each_row_once_whoever_is_killed(cluster, tmp_path):
    chance = random.Random(7)
    client = submitted(tmp_path, 1)  # a reader of several ranges of numbers would have late rows
    os.kill(goes_on(client, 1)[0], signal.SIGKILL)
    goes_on(client, 1)
    savepoint = client.stop_with_savepoint(False, f"file://{tmp_path}/savepoints").result()
    client = submitted(tmp_path, 2, savepoint)
    for _ in range(2):
        os.kill(chance.choice(goes_on(client, 2)), signal.SIGKILL)
    client.get_job_execution_result().result()
    engine = duckdb.connect()
    engine.execute("SET threads = 1; SET TimeZone = 'UTC'")
    for name in TABLES:
        files = [str(path) for path in (tmp_path / name).rglob("[!.]*.parquet")]
        engine.execute(f"CREATE VIEW {name} AS FROM read_parquet({files}, hive_partitioning = {name == 'sums'})")
    assert engine.execute("SELECT count(*), count(DISTINCT id) FROM written").fetchone() == (ROWS, ROWS)
    for name, (_, _, wanted) in TABLES.items():
        if wanted:
            for more, less in ((f"FROM {name}", f"({wanted})"), (f"({wanted})", f"FROM {name}")):
                assert engine.execute(f"{more} EXCEPT ALL {less}").fetchall() == [], name
            (count,) = engine.execute(f"SELECT count(*) FROM {name}").fetchone() or (0,)
            assert count > 50, name
