"""User functions with state, joins of several tables, models and conflicts give on Ray, where a slot process is killed,
the rows that they give on the local runner.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.common import Encoder, Types
from rayflink.datastream.connectors.file_system import FileSink
from rayflink.table import DataTypes, EnvironmentSettings, ListView, MapView, TableEnvironment
from rayflink.table.connectors.contract import Connected, Connector, TableSink
from rayflink.table.udf import AggregateFunction, udf
from tests.cluster import watching
from tests.cluster.test_sql_under_kills import NUMBERS, OPTIONS, buckets, goes_on, rows_of

pytestmark = [pytest.mark.ray, pytest.mark.slow]

FEW = NUMBERS.replace("'4000'", "'1200'").replace("'3999'", "'1199'")
COARSE = "CREATE VIEW coarse AS SELECT MOD(k, 3) AS k, v, ts FROM numbers"
MODEL = """CREATE MODEL twice INPUT (number BIGINT) OUTPUT (d BIGINT)
  WITH ('provider' = 'python', 'python.model' = 'tests.table.prediction_models.doubled')"""
ROWS = {
    "triples": (
        "a BIGINT, b BIGINT, c BIGINT",
        "SELECT /*+ MULTI_JOIN(a, b, c) */ a.id, b.id, c.id FROM numbers AS a "
        "JOIN (SELECT * FROM numbers WHERE v BETWEEN 50 AND 52) AS b ON a.k = b.k "
        "JOIN (SELECT * FROM numbers WHERE v > 97) AS c ON c.k = a.k WHERE a.v < 4",
    ),
    "sums": (
        "k INT, n INT, v BIGINT, s TIMESTAMP(3)",
        "SELECT k, n, v, s FROM buckets(r => TABLE coarse PARTITION BY k, on_time => DESCRIPTOR(ts))",
    ),
    "predictions": (
        "id BIGINT, d BIGINT",
        "SELECT id, plus(id, d) FROM ML_PREDICT(TABLE numbers, MODEL twice, DESCRIPTOR(v))",
    ),
}
UPSERTS = {
    "contents": ("k INT, found ARRAY<BIGINT>", "SELECT k, present(MOD(v, 7), id) FROM numbers GROUP BY k"),
    "firsts": ("k INT, id BIGINT", "SELECT k, id FROM numbers ON CONFLICT DO NOTHING"),
}


@dataclass
class Values:
    """How often each value came, and numbers of rows."""

    counts: MapView
    chosen: ListView


class Present(AggregateFunction):
    """The values that came, each with the number of its rows, and behind them numbers of some rows."""

    def create_accumulator(self):
        return Values(MapView(), ListView())

    def accumulate(self, accumulator, value, number):
        accumulator.counts[value] = (accumulator.counts[value] or 0) + 1
        if number % 7 == 0:
            accumulator.chosen.add(number)

    def get_value(self, accumulator):
        pairs = sorted(accumulator.counts.items())
        return [*(number for pair in pairs for number in pair), *sorted(accumulator.chosen)]

    def get_result_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())


@udf(result_type=DataTypes.BIGINT())
async def plus(*numbers):
    await asyncio.sleep(0)
    return sum(numbers)


class UpsertFiles(Connector, TableSink):
    """A table of upserts whose changes are lines of JSON in files, which are there once."""

    prefixes = ("",)
    is_append_only = requires_update_before = False
    key = row_key = ("k",)

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def sink(self, table: Connected) -> TableSink:
        return self

    def attach(self, stream, name):
        lines = stream.map(lambda row: json.dumps([row.get_row_kind().name, *row]), Types.STRING())
        files = FileSink.for_row_format(self._path, Encoder.simple_string_encoder()).build()
        return lines.sink_to(files).name(name)


def submitted(folder: Path, target: str, rate: int) -> Any:
    """The job of all statements."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    places = {"execution.checkpointing.dir": f"file://{folder}/checkpoints", "parallelism.default": "2"}
    for key, value in {**OPTIONS, **places, "execution.target": target}.items():
        t_env.get_config().set_string(key, value)
    for name, function in {"buckets": buckets, "plus": plus, "present": Present()}.items():
        t_env.create_temporary_system_function(name, function)
    for statement in (FEW.format(rate=rate), COARSE, MODEL):
        t_env.execute_sql(statement)
    statements = t_env.create_statement_set()
    for name, (columns, query) in ROWS.items():
        options = f"'connector' = 'filesystem', 'path' = '{folder}/{target}/{name}', 'format' = 'parquet'"
        t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
        statements.add_insert_sql(f"INSERT INTO {name} {query}")
    for name, (columns, query) in UPSERTS.items():
        keyed = f"{columns}, PRIMARY KEY (k) NOT ENFORCED"
        t_env.execute_sql(f"CREATE TABLE {name} ({keyed}) WITH ('connector' = 'blackhole')")
        path, table = t_env._context.catalogs.find((name,))
        t_env._context.catalogs.replace(path, replace(table, connected=UpsertFiles(folder / target / name)))
        statements.add_insert_sql(f"INSERT INTO {name} {query}")
    return statements.execute().get_job_client()


def changes_of(folder: Path) -> list[list[Any]]:
    """The changes of a table, those of a key in their order."""
    paths = sorted(path for path in folder.rglob("[!.]*") if path.is_file())
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def contents_of(folder: Path) -> dict[int, list[int]]:
    """The last contents of each key, to which values are only added."""
    longest: dict[int, list[int]] = {}
    for kind, key, values in changes_of(folder):
        assert kind in ("INSERT", "UPDATE_AFTER")
        longest[key] = max(longest.get(key, []), values, key=lambda each: (len(each), sum(each)))
    return longest


def test_functions_with_state_give_the_same_rows_where_a_slot_is_killed(cluster, tmp_path):
    client = submitted(tmp_path, "ray", 400)
    os.kill(goes_on(client, 2)[1], signal.SIGKILL)
    assert watching.eventually(lambda: client.status()["metrics"]["numRestarts"], within_s=30)
    client.get_job_execution_result().result()
    submitted(tmp_path, "local", 1_000_000).get_job_execution_result().result()
    for name in ROWS:
        expected = rows_of(tmp_path / "local" / name)
        assert len(expected) > 300 and rows_of(tmp_path / "ray" / name) == expected, name
    expected_contents = contents_of(tmp_path / "local" / "contents")
    assert len(expected_contents) == 13 and contents_of(tmp_path / "ray" / "contents") == expected_contents
    firsts = changes_of(tmp_path / "ray" / "firsts")
    assert Counter(key for _, key, _ in firsts) == dict.fromkeys(range(13), 1), "what follows the first is dropped"
    assert all(kind == "INSERT" and key == number * 31 % 13 for kind, key, number in firsts)
