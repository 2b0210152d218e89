"""The parts of a program of tables: environment, source, query, sink, execution."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.common import Configuration
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, Schema, StreamTableEnvironment, TableDescriptor
from rayflink.table.expressions import col


@pytest.mark.slow
@pytest.mark.spec("R01", "registered", "select", "sql", "sink", "execute", "R02", "columns")
def test_a_registered_file_is_queried_in_both_ways_and_written_to_a_registered_sink(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "local"}))
    t_env = StreamTableEnvironment.create(env, EnvironmentSettings.in_batch_mode())
    (tmp_path / "in.csv").write_text(f"1,x,{2**40}\n2,y,7\n", encoding="utf-8")
    schema = Schema.new_builder().column("a", "INT").column("b", "STRING").column("c", "BIGINT").build()
    files = TableDescriptor.for_connector("filesystem").schema(schema).format("csv")
    t_env.create_temporary_table("source", files.option("path", str(tmp_path / "in.csv")).build())
    t_env.create_temporary_table("sink", files.option("path", str(tmp_path / "out")).build())
    assert t_env.list_tables() == ["sink", "source"]
    selected = t_env.from_path("source").select(col("a") + 10, col("b"), col("c"))
    queried = t_env.sql_query("SELECT a, b, c FROM source WHERE c > 7")
    written = selected.union_all(queried)
    assert not (tmp_path / "out").exists()
    written.execute_insert("sink").wait()
    lines = [line for path in (tmp_path / "out").rglob("part*") for line in path.read_text().splitlines()]
    assert sorted(lines) == [f"1,x,{2**40}", f"11,x,{2**40}", "12,y,7"]
