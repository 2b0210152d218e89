"""Tables that change: what their files have, and that each query leaves the rows that DuckDB finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.inputs import changing_rows
from benchmarks.inputs.changing_rows import QUERIES, options_of_flink, options_of_ours, row_files, statements
from benchmarks.inputs.nexmark import FOLD, kept_rows
from benchmarks.tables.ours_sql_state import job_of

KEYS, UPDATES = 400, 1_200


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return row_files(tmp_path_factory.mktemp("changing"), KEYS, UPDATES)


def ids(path: Path) -> list[int]:
    return [int(line.split(",")[0]) for line in path.read_text().splitlines()]


def test_a_file_has_each_of_its_ids_once_before_it_has_one_again(rows: Path) -> None:
    for table in ("orders", "customers"):
        parts = [ids(rows / table / f"part-{part}.csv") for part in range(changing_rows.PARTS)]
        assert sum(map(len, parts)) == KEYS + UPDATES
        for number, part in enumerate(parts):
            first = KEYS // changing_rows.PARTS
            assert sorted(part[:first]) == list(range(number, KEYS, changing_rows.PARTS))
            assert set(part[first:]) <= set(part[:first])


def test_files_that_are_there_are_not_written_again(rows: Path) -> None:
    before = (rows / "orders" / "part-0.csv").stat().st_mtime_ns
    assert row_files(rows.parent, KEYS, UPDATES) == rows
    assert (rows / "orders" / "part-0.csv").stat().st_mtime_ns == before


def test_only_a_spilled_query_bounds_its_memory_which_is_not_too_small_for_rocksdb() -> None:
    size = "taskmanager.memory.managed.size"
    assert options_of_ours("join", 1_000_000) == options_of_flink("join", 1_000_000) == {}
    assert options_of_ours("tables_spilled", 10_240)[size] == "32 kb"
    assert options_of_flink("tables_spilled", 10_240)[size] == f"{2 * 32 * 1024} kb"
    assert options_of_flink("tables_spilled", 20_480_000)[size] == f"{2 * 65_000} kb"


def test_options_come_before_the_table_and_the_insert() -> None:
    setting, sink, insert = statements("join", None, {"state.backend.type": "rocksdb"})
    assert setting == "SET state.backend.type = rocksdb"
    assert sink.startswith("CREATE TABLE sink_join (id BIGINT,") and insert.startswith("INSERT INTO sink_join SELECT")


@pytest.mark.slow
@pytest.mark.parametrize("query", ["extremes", "join_spilled"])
def test_a_query_leaves_the_rows_of_duckdb(query: str, rows: Path, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    job_of(query, rows, KEYS, tmp_path, 2, "local")
    base = duckdb.connect()
    for table, columns in (("orders", "id, customer, amount"), ("customers", "id, level, points")):
        declared = ", ".join(f"'{name}': 'BIGINT'" for name in columns.split(", "))
        files = f"'{rows / table}/*.csv', header=false, columns={{{declared}}}"
        base.execute(f"CREATE TABLE {table} AS FROM read_csv({files})")
    wanted = base.execute(QUERIES[query]).fetchall()
    assert kept_rows(tmp_path / query) == sorted(tuple(map(str, row)) for row in wanted)
    assert statements(query, tmp_path, {})[-1].startswith(FOLD)
