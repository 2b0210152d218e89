"""Tables in Avro files: what is written is read again, with the types of the table and part of its columns."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest

from rayflink.common import Row
from rayflink.connectors.avro.container_blocks import read_header
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)

TABLE = """
    CREATE TABLE {name} (id BIGINT NOT NULL, word STRING, price DECIMAL(9, 2), at TIMESTAMP(3), day DATE,
        tags MAP<STRING, INT>, nested ROW<x INT, y ARRAY<STRING>>)
    WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'avro'{more})
"""


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set_string("execution.target", "local")
    return found


@pytest.mark.parametrize("codec", ["", "zstandard"])
def test_a_table_is_written_and_read(codec: str, t_env: TableEnvironment, tmp_path: Path) -> None:
    more = f", 'avro.codec' = '{codec}'" if codec else ""
    t_env.execute_sql(TABLE.format(name="t", path=tmp_path / "t", more=more))
    t_env.execute_sql("""
        INSERT INTO t VALUES
            (1, 'tea', 1.5, TIMESTAMP '2026-01-02 03:04:05.678', DATE '2026-01-02', MAP['a', 1], ROW(1, ARRAY['z'])),
            (2, CAST(NULL AS STRING), -7.25, CAST(NULL AS TIMESTAMP(3)), CAST(NULL AS DATE),
             CAST(NULL AS MAP<STRING, INT>), CAST(NULL AS ROW<x INT, y ARRAY<STRING>>))
    """).wait()
    query = "SELECT nested, id, word, price, tags, at, day FROM t"
    rows = sorted((tuple(row) for row in t_env.execute_sql(query).collect()), key=lambda row: row[1])
    assert rows == [
        (Row(1, ["z"]), 1, "tea", Decimal("1.50"), {"a": 1}, AT, AT.date()),
        (None, 2, None, Decimal("-7.25"), None, None, None),
    ]
    [(count, total)] = t_env.execute_sql("SELECT COUNT(*), SUM(price) FROM t WHERE word = 'tea'").collect()
    assert (count, str(total)) == (1, "1.50")
    [path] = [path for path in (tmp_path / "t").rglob("*") if path.is_file() and path.name[0] not in "._"]
    with path.open("rb") as file:
        header = read_header(file)
    assert header.codec == (codec or "snappy")
    assert json.loads(str(header.schema))["namespace"] == "org.apache.flink.avro.generated"


def test_columns_that_files_do_not_have_are_null_or_an_error(t_env: TableEnvironment, tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
    with (tmp_path / "a.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"id": 5}])
    options = f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'avro')"
    t_env.execute_sql(f"CREATE TABLE t (id BIGINT, other STRING) {options}")
    assert [tuple(row) for row in t_env.execute_sql("SELECT * FROM t").collect()] == [(5, None)]
    t_env.execute_sql(f"CREATE TABLE u (id STRING) {options}")
    with pytest.raises(Exception, match="field 'id' is int in the schema of the writer, string is wanted"):
        list(t_env.execute_sql("SELECT * FROM u").collect())


def test_types_and_options_that_avro_does_not_have(t_env: TableEnvironment, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="'avro.codec'"):
        t_env.execute_sql(TABLE.format(name="t", path=tmp_path, more=", 'avro.codec' = 'zip'"))
        t_env.execute_sql("SELECT * FROM t")
    t_env.execute_sql(f"""CREATE TABLE u (at TIMESTAMP_LTZ(3))
        WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'avro')""")
    with pytest.raises(SqlError, match="older mapping of timestamps"):
        t_env.execute_sql("INSERT INTO u VALUES (CURRENT_TIMESTAMP)")
