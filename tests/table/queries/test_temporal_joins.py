"""Joins with versions by event time: the rows of DuckDB's ASOF JOIN, and errors that name what is missing."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.errors import SqlError

ORDERS = "id BIGINT, cur STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
RATES = "cur STRING, ts TIMESTAMP(3), rate BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"


def random_tables() -> dict[str, pa.Table]:
    chance, count = np.random.default_rng(7), 400
    noise = chance.integers(-450, 450, count)  # less than the second of the watermark apart: no row is late
    times = np.sort(chance.integers(0, 60_000, count)) + noise
    words = np.array(["EUR", "USD", "JPY", "CHF", None], dtype=object)
    orders = {
        "id": np.arange(count), "cur": words[chance.integers(0, 5, count)], "amount": chance.integers(1, 9, count),
        "ts": pa.array(times.astype("datetime64[ms]")),
    }  # fmt: skip
    versions = sorted({(500 * int(time), int(at)) for at, time in chance.integers(0, [3, 100], (90, 2))})
    rates = {
        "cur": [words[at] for _, at in versions], "rate": chance.integers(1, 200, len(versions)),
        "ts": pa.array(np.array([time for time, _ in versions]).astype("datetime64[ms]")),
    }  # fmt: skip
    return {"orders": pa.table(orders), "rates": pa.table(rates)}


def environment(folder: Path, rates: str) -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "2")
    for name, columns in (("orders", ORDERS), ("rates", rates)):
        options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{folder / name}'"
        t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
    return t_env


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "LEFT"])
@pytest.mark.parametrize("more", ["", " AND r.rate > o.amount * 10", " AND r.rate > 100"])
def test_rows_are_those_of_an_asof_join(tmp_path, kind, more):
    tables = random_tables()
    for name, rows in tables.items():
        (tmp_path / name).mkdir()
        parquet.write_table(rows, tmp_path / name / "part.parquet", row_group_size=50)
    t_env = environment(tmp_path, f"{RATES}, PRIMARY KEY (cur) NOT ENFORCED")
    query = f"""SELECT o.id, o.cur, r.rate, r.ts FROM orders AS o
        {kind} JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur{more}"""
    found = sorted(map(tuple, t_env.execute_sql(query).collect()), key=repr)
    engine = duckdb.connect()
    engine.register("orders", tables["orders"])
    engine.register("rates", tables["rates"])
    at = """SELECT o.id, o.cur, v.rate, v.ts AS since, o.amount
        FROM orders AS o ASOF LEFT JOIN rates AS v ON o.cur = v.cur AND o.ts >= v.ts"""
    met = "rate IS NOT NULL" + more.replace("r.", "").replace("o.", "")
    if kind:  # no older version is tried
        wanted = f"SELECT id, cur, CASE WHEN {met} THEN rate END, CASE WHEN {met} THEN since END FROM ({at})"
    else:
        wanted = f"SELECT id, cur, rate, since FROM ({at}) WHERE {met}"
    assert found == sorted(engine.execute(wanted).fetchall(), key=repr)


@pytest.mark.spec("R25", "needs")
@pytest.mark.parametrize(
    ("rates", "join", "problem"),
    [
        (RATES, "o.cur = r.cur", "has no primary key, so its rows have no versions"),
        (f"{RATES}, PRIMARY KEY (cur) NOT ENFORCED", "o.id = r.rate", "does not compare the primary key .*: cur"),
        ("cur STRING, ts TIMESTAMP(3), rate BIGINT, PRIMARY KEY (cur) NOT ENFORCED", "o.cur = r.cur",
         "has 0 columns with an event time"),
        (f"{RATES}, PRIMARY KEY (cur) NOT ENFORCED".replace("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"), "o.cur = r.cur",
         r"a TIMESTAMP\(3\) of a table whose versions hold from a TIMESTAMP_LTZ\(3\)"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(tmp_path, rates, join, problem):
    for name, rows in random_tables().items():
        (tmp_path / name).mkdir()
        parquet.write_table(rows, tmp_path / name / "part.parquet")
    t_env = environment(tmp_path, rates)
    with pytest.raises(SqlError, match=problem):
        t_env.explain_sql(f"SELECT o.id FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON {join}")
