"""Programs of Flink 1.x: register a source, scan it, write to a sink, execute."""

from __future__ import annotations

import pytest

from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import (
    CsvTableSink,
    CsvTableSource,
    DataTypes,
    EnvironmentSettings,
    SqlError,
    StreamTableEnvironment,
    TableEnvironment,
    WriteMode,
)

NAMES, TYPES = ["a", "b", "c"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.BIGINT()]


@pytest.fixture(params=["streaming", "batch"])
def t_env(request):
    found = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{request.param}_mode")())
    found.get_config().set("execution.target", "local").set("parallelism.default", "1")
    return found


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in.csv").write_text(f"1,tea,{2**40}\n2,cake,5\n3,,6\n", encoding="utf-8")
    return CsvTableSource(str(tmp_path / "in.csv"), NAMES, TYPES)


def lines(folder):
    return sorted(line for path in folder.iterdir() if path.is_file() for line in path.read_text().splitlines())


@pytest.mark.spec("R01", "registered", "select", "sql", "sink", "execute", "names", "R02", "columns", "class")
def test_a_program_registers_scans_and_writes_to_a_sink(t_env, source, tmp_path):
    t_env.register_table_source("orders", source)
    t_env.register_table_sink("big", CsvTableSink(["a", "c"], [TYPES[0], TYPES[2]], str(tmp_path / "big"), "|"))
    orders = t_env.scan("orders")
    t_env.insert_into("big", orders.where(orders.c < 100).select(orders.a, orders.c))
    strings = t_env.sql_query("SELECT b FROM orders WHERE a = 1")
    strings.write_to_sink(CsvTableSink(["b"], [DataTypes.STRING()], str(tmp_path / "strings")))
    assert not (tmp_path / "big").exists()  # nothing runs before
    t_env.execute("both")
    assert lines(tmp_path / "big") == ["2|5", "3|6"] and lines(tmp_path / "strings") == ["tea"]


@pytest.mark.spec("R02", "columns", "class")
def test_tables_of_sources_are_tables_like_others(t_env, source):
    t_env.register_table_source("my_orders", source)
    scanned = t_env.scan("default_catalog", "default_database", "my_orders")
    assert scanned.to_arrow().to_pydict() == t_env.from_table_source(source).to_arrow().to_pydict()
    assert scanned.to_arrow().to_pydict() == {"a": [1, 2, 3], "b": ["tea", "cake", ""], "c": [2**40, 5, 6]}
    with pytest.raises(SqlError, match="there is no table or view 'my`x'"):
        t_env.scan("my`x")
    with pytest.raises(SqlError, match="my_orders' already"):
        t_env.register_table_source("my_orders", source)


@pytest.mark.spec("R01", "registered", "sink", "execute", "names")
def test_the_job_of_a_stream_environment_runs_them_too(source, tmp_path):
    env = StreamExecutionEnvironment({"execution.target": "local"})
    t_env = TableEnvironment.get_table_environment(env)
    assert isinstance(t_env, StreamTableEnvironment)
    t_env.register_table_source("file", source)
    t_env.register_table("orders", t_env.scan("file"))
    t_env.scan("orders").write_to_sink(CsvTableSink(NAMES, TYPES, str(tmp_path / "out")))
    env.execute()
    assert lines(tmp_path / "out") == [f"1,tea,{2**40}", "2,cake,5", "3,,6"]


@pytest.mark.spec("R02", "class")
def test_a_source_has_the_forms_of_csv(t_env, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("1|'a|b'|\n# no row\nx|y|z\n2||5\n", encoding="utf-8")
    form = {"field_delim": "|", "quote_character": "'", "ignore_comments": "#", "lenient": True}
    found = t_env.from_table_source(CsvTableSource(str(path), NAMES, TYPES, **form, empty_column_as_null=True))
    rows = [(1, "a|b", None), (None, "y", None), (2, None, 5)]
    assert [tuple(row.values()) for row in found.to_arrow().to_pylist()] == rows
    path.write_text("1,'a',7\n", encoding="utf-8")
    assert t_env.from_table_source(CsvTableSource(str(path), NAMES, TYPES)).to_arrow()["b"].to_pylist() == ["'a'"]


@pytest.mark.parametrize("wrong", [
    lambda: CsvTableSource("x", NAMES, TYPES[:2]), lambda: CsvTableSource("x", NAMES, TYPES, line_delim=";"),
    lambda: CsvTableSource("x", NAMES, TYPES, ignore_first_line=True), lambda: CsvTableSink(NAMES, TYPES, "x", ",", 3),
    lambda: CsvTableSource("x", NAMES, TYPES, ignore_comments="//"),
])  # fmt: skip
def test_what_is_not_supported_is_refused_at_once(wrong):
    with pytest.raises(SqlError, match="CsvTable|3 names for 2 types"):
        wrong()


def test_files_that_are_there_are_overwritten_where_that_is_said(source, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old.csv").write_text("7,x,8\n", encoding="utf-8")
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "1")
    table = t_env.from_table_source(source)
    with pytest.raises(SqlError, match="there are files at .*not to overwrite; .*WriteMode.OVERWRITE"):
        table.write_to_sink(CsvTableSink(NAMES, TYPES, str(out)))
    table.write_to_sink(CsvTableSink(NAMES, TYPES, str(out), write_mode=WriteMode.OVERWRITE))
    t_env.execute()
    assert lines(out) == [f"1,tea,{2**40}", "2,cake,5", "3,,6"]
