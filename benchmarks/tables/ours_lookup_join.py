"""Lookup joins of SQL in one process: rows a second from columns in memory to a sink that discards them.

The table has a row for each key, and keys are drawn uniformly. It is in memory; behind a function that answers at once,
with and without a cache of rows by key; and behind one whose cache has room for half of the keys.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rayflink.table import TableEnvironment


def run(data_path: str = "", rows: int = 4_000_000, keys: int = 100_000) -> dict[str, Any]:
    """Measure a join with each of the tables, after the first ones were warmed up by a tenth of the rows.

    Args:
        data_path: not used; rows are drawn.
        rows: of each measurement.
        keys: rows of the table.
    """
    result: dict[str, Any] = {}
    _measure(rows // 10, keys)
    for name, (wall_s, cpu_s) in _measure(rows, keys).items():
        result[f"m_rows_per_second_{name}"] = rows / wall_s / 1e6
        result[f"m_rows_per_cpu_second_{name}"] = rows / cpu_s / 1e6
    return result


def _measure(rows: int, keys: int) -> dict[str, tuple[float, float]]:
    """Return the seconds and the CPU seconds of each join."""
    t_env = _environment(rows, keys)
    return {name: _timed(t_env, name) for name in ("memory", "function", "cached", "half_cached")}


def _environment(rows: int, keys: int) -> TableEnvironment:
    import numpy as np
    import pyarrow as pa

    from rayflink.datastream.connectors.postgres import LookupCache
    from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment

    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "1")
    drawn = np.random.default_rng(7).integers(0, keys, rows)
    t_env.create_temporary_view("given", t_env.from_arrow(pa.table({"n": np.arange(rows), "k": drawn})))
    t_env.execute_sql("CREATE VIEW orders AS SELECT *, PROCTIME() AS clock FROM given")
    names = pa.array([f"name {key}" for key in range(keys)])
    table = pa.table({"id": np.arange(keys), "name": names})
    fields = [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("name", DataTypes.STRING())]

    async def find(asked: pa.RecordBatch) -> pa.Table:
        return table.take(asked.column(0))

    row = DataTypes.ROW(fields)
    t_env.create_temporary_view("memory", t_env.from_arrow(table))
    t_env.create_temporary_view("function", t_env.from_lookup(find, row))
    t_env.create_temporary_view("cached", t_env.from_lookup(find, row, cache=LookupCache(2 * keys)))
    t_env.create_temporary_view("half_cached", t_env.from_lookup(find, row, cache=LookupCache(keys // 2)))
    t_env.execute_sql("CREATE TABLE discarded (n BIGINT, name STRING) WITH ('connector' = 'blackhole')")
    return t_env


def _timed(t_env: TableEnvironment, table: str) -> tuple[float, float]:
    began, cpu_s = time.perf_counter(), time.process_time()
    t_env.execute_sql(
        f"INSERT INTO discarded SELECT o.n, t.name FROM orders AS o "
        f"JOIN `{table}` FOR SYSTEM_TIME AS OF o.clock AS t ON o.k = t.id"
    ).wait()
    return time.perf_counter() - began, time.process_time() - cpu_s


__all__ = ["run"]
