"""The same connections at Flink's own gateway."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from benchmarks.runs.environments import Unavailable
from rayflink import dbapi
from tests.gateway.flink_gateway import running_gateway

VALUES = [
    True, 1 << 63, 1.5, Decimal("1.50"), "it's ?", b"\x00\xff", dt.date(2024, 1, 31), dt.time(1, 2, 3),
    dt.datetime(2024, 1, 1, 1, 2, 3, 456789), dt.timedelta(days=1, milliseconds=5), [1, 2], {"a": 1},
]  # fmt: skip


def rows_at(url: str, tmp_path: object) -> None:
    with dbapi.connect(url, options={"table.local-time-zone": "Asia/Tokyo"}) as connection:
        marks = ", ".join("?" for _ in VALUES)
        cursor = connection.execute(f"SELECT {marks}", VALUES)
        assert list(cursor.fetchone()) == VALUES
        assert [column[1] for column in cursor.description][1:4] == [dbapi.NUMBER] * 3
        query = "SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)"
        assert connection.execute(query).fetchone() == ("1970-01-01 09:00:00.000",)
        files = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}'"
        assert connection.execute(f"CREATE TABLE people (id INT, name STRING) WITH ({files})").description is None
        written = connection.execute("INSERT INTO people VALUES (?, ?), (?, ?)", (1, "ann", 2, "bo"))
        assert written.job_id and written.fetchall() == []
        assert sorted(connection.execute("SELECT * FROM people")) == [(1, "ann"), (2, "bo")]
        with pytest.raises(dbapi.ProgrammingError, match="Object 'missing' not found"):
            connection.execute("SELECT * FROM missing")


def changes_at(url: str) -> None:
    with dbapi.connect(url, mode="streaming", changelog=True) as connection:
        connection.execute("CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')")
        cursor = connection.execute("SELECT COUNT(*) FROM endless")
        assert [row[0] for row in cursor.fetchmany(3)] == ["+I", "-U", "+U"]
        cursor.close()


@pytest.mark.slow
@pytest.mark.soak
def test_flinks_gateway_runs_the_same_statements(tmp_path):
    try:
        with running_gateway() as url:
            rows_at(url, tmp_path)
            changes_at(url)
    except Unavailable as problem:
        pytest.skip(str(problem))
