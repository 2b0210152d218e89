"""Tables of lakes in SQL: what is written is read again, in both formats, as a snapshot and as a stream."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import EnvironmentSettings, SqlError, TableEnvironment

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402
from pyiceberg.types import StringType  # noqa: E402

pytestmark = pytest.mark.slow

COLUMNS = """n BIGINT, w STRING, d DECIMAL(10, 2), b BOOLEAN, f DOUBLE, day DATE, at TIMESTAMP(3), i TIMESTAMP_LTZ(3),
  small SMALLINT, many ARRAY<INT>, pairs MAP<STRING, BIGINT>, inner_row ROW<x INT, y STRING>"""
VALUES = """(1, 'a,b', 1.25, TRUE, 1.5E0, DATE '2020-02-29', TIMESTAMP '2020-01-01 00:00:00.123',
    TO_TIMESTAMP_LTZ(1000, 3), CAST(7 AS SMALLINT), ARRAY[1, 2], MAP['k', 5], ROW(1, 'y')),
  (2, NULL, NULL, FALSE, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local")
    found.get_config().set_string("table.local-time-zone", "UTC")
    return found


def options_of(lake: str, folder: Path, name: str = "t") -> str:
    if lake == "delta":
        return f"'connector' = 'delta', 'table-path' = '{folder / name}'"
    place = f"'uri' = 'sqlite:///{folder}/catalog.db', 'warehouse' = 'file://{folder}/tables'"
    catalog = f"'catalog-name' = 'lake', 'catalog-type' = 'sql', 'catalog-database' = 'db', 'catalog-table' = '{name}'"
    return f"'connector' = 'iceberg', {catalog}, {place}"


def bare_rows(lake: str, folder: Path, name: str = "t") -> pyarrow.Table:
    """The rows as the library alone reads them."""
    if lake == "delta":
        return deltalake.DeltaTable(str(folder / name)).to_pyarrow_table()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/tables")
    return catalog.load_table(f"db.{name}").scan().to_arrow()


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_what_is_written_is_read_again_and_by_the_bare_library(
    t_env: TableEnvironment, tmp_path: Path, lake: str
) -> None:
    t_env.execute_sql(f"CREATE TABLE t ({COLUMNS}) WITH ({options_of(lake, tmp_path)})")
    names = "n, w, d, b, f, day, at, i, small, many, pairs, inner_row"
    t_env.execute_sql(f"INSERT INTO t SELECT * FROM (VALUES {VALUES}) AS v({names})").wait()
    expected = t_env.sql_query(f"SELECT * FROM (VALUES {VALUES}) AS v({names})").to_arrow().sort_by("n")
    found = t_env.from_path("t").to_arrow().sort_by("n")
    bare = bare_rows(lake, tmp_path).sort_by("n")
    assert found["inner_row"].to_pylist() == [{"x": 1, "y": "y"}, None]
    for name in found.column_names[:-1]:
        assert found[name].to_pylist() == expected[name].cast(found[name].type).to_pylist(), name
        assert bare[name].to_pylist() == found[name].to_pylist() or name == "pairs", name


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_partitions_and_statistics_leave_out_files(t_env: TableEnvironment, tmp_path: Path, lake: str) -> None:
    options = options_of(lake, tmp_path)
    t_env.execute_sql(f"CREATE TABLE t (room STRING, n INT) PARTITIONED BY (room) WITH ({options})")
    t_env.execute_sql("INSERT INTO t VALUES ('hall', 1), ('attic', 2), (CAST(NULL AS STRING), 3)").wait()
    query = "SELECT n FROM t WHERE room = 'hall'"
    assert "filter=[room = 'hall']" in t_env.explain_sql(query)
    assert t_env.sql_query(query).to_arrow().to_pydict() == {"n": [1]}
    assert t_env.sql_query("SELECT room FROM t WHERE n >= 2").to_arrow().sort_by("room").to_pydict() == {
        "room": ["attic", None]
    }
    assert t_env.sql_query("SELECT n FROM t WHERE room IS NULL").to_arrow().to_pydict() == {"n": [3]}
    assert t_env.sql_query("SELECT 1 AS one FROM t").to_arrow().to_pydict() == {"one": [1, 1, 1]}


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_a_stream_reads_what_is_appended(t_env: TableEnvironment, tmp_path: Path, lake: str) -> None:
    t_env.execute_sql(f"CREATE TABLE t (n INT) WITH ({options_of(lake, tmp_path)})")
    t_env.execute_sql("INSERT INTO t VALUES (1)").wait()
    query = "SELECT n FROM t /*+ OPTIONS('streaming' = 'true', 'monitor-interval' = '10 ms') */"
    with t_env.sql_query(query).execute().collect() as rows:
        assert next(rows)[0] == 1
        for number in (2, 3):
            t_env.execute_sql(f"INSERT INTO t VALUES ({number})").wait()
            assert next(rows)[0] == number


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_the_windows_of_a_stream_fire_from_commit_to_commit(t_env: TableEnvironment, tmp_path: Path, lake: str) -> None:
    columns = "n INT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '1' SECOND"
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({options_of(lake, tmp_path)})")

    def commit(*rows: str) -> None:
        values = ", ".join(f"({n}, TIMESTAMP '2020-01-01 00:00:{second}')" for n, second in map(str.split, rows))
        t_env.execute_sql(f"INSERT INTO t VALUES {values}").wait()

    query = """SELECT SECOND(window_start) AS start, SUM(n) FROM TABLE(TUMBLE(
        TABLE t /*+ OPTIONS('streaming' = 'true', 'monitor-interval' = '10 ms') */,
        DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"""
    commit("1 01", "2 08", "3 03", "5 12")
    with t_env.sql_query(query).execute().collect() as rows:
        assert tuple(next(rows)) == (0, 6)  # and the stream goes on
        commit("100 09", "6 13", "7 22")  # the first of them is late
        assert tuple(next(rows)) == (10, 11)


def test_time_travel_by_version_and_by_snapshot(t_env: TableEnvironment, tmp_path: Path) -> None:
    for lake in ("delta", "iceberg"):
        t_env.execute_sql(f"CREATE TABLE {lake}_t (n INT) WITH ({options_of(lake, tmp_path)})")
        for number in (1, 2):
            t_env.execute_sql(f"INSERT INTO {lake}_t VALUES ({number})").wait()
    found = t_env.sql_query("SELECT n FROM delta_t /*+ OPTIONS('version-as-of' = '1') */").to_arrow()
    assert found["n"].to_pylist() == [1]
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/tables")
    first = catalog.load_table("db.t").snapshots()[0].snapshot_id
    found = t_env.sql_query(f"SELECT n FROM iceberg_t /*+ OPTIONS('snapshot-id' = '{first}') */").to_arrow()
    assert found["n"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("lake", "columns", "more", "statement", "message"),
    [
        ("delta", "n INT", "", "SELECT * FROM t", "does not exist"),
        ("iceberg", "n INT", "", "SELECT * FROM t", "does not exist"),
        ("delta", "x TIME(0)", "", "INSERT INTO t SELECT TIME '10:00:00'", "Delta does not have"),
        ("delta", "n INT", ", 'starting-version' = '1'", "SELECT * FROM t", "is no stream"),
        ("iceberg", "n INT", ", 'partitioning' = 'day(x)'", "INSERT INTO t VALUES (1)", "no column 'x'"),
        ("iceberg", "n INT", ", 'catalog-typ' = 'sql'", "SELECT * FROM t", "catalog-typ"),
    ],
)
def test_bad_tables_are_refused_before_anything_starts(
    t_env: TableEnvironment, tmp_path: Path, lake: str, columns: str, more: str, statement: str, message: str
) -> None:
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({options_of(lake, tmp_path)}{more})")
        t_env.execute_sql(statement)


@pytest.mark.parametrize("lake", ["delta", "iceberg"])
def test_columns_of_other_types_are_refused(t_env: TableEnvironment, tmp_path: Path, lake: str) -> None:
    options = options_of(lake, tmp_path)
    t_env.execute_sql(f"CREATE TABLE t (n INT, at TIMESTAMP(3)) WITH ({options})")
    t_env.execute_sql("INSERT INTO t VALUES (1, TIMESTAMP '2020-01-01 00:00:00')").wait()
    for columns in ("n STRING", "at TIMESTAMP_LTZ(3)", "absent INT"):
        name = columns.partition(" ")[0] + "_table"
        t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
        with pytest.raises(SqlError, match="declared as|is not in"):
            t_env.execute_sql(f"SELECT * FROM {name}")
    t_env.execute_sql(f"CREATE TABLE v (n STRING, at TIMESTAMP(3)) WITH ({options})")
    with pytest.raises(JobFailed, match="declare the type|row type|cast"):
        t_env.execute_sql("INSERT INTO v VALUES ('x', TIMESTAMP '2020-01-01 00:00:00')").wait()


def test_secrets_of_a_table_are_in_no_error(t_env: TableEnvironment, tmp_path: Path) -> None:
    secret: Any = "s3cr3tvalue"
    options = f"'connector' = 'delta', 'table-path' = 's3://nobucket/t', 's3.endpoint' = 'http://127.0.0.1:9', \
        's3.access-key' = 'key', 's3.secret-key' = '{secret}', 'storage.max_retries' = '0', \
        'storage.retry_timeout' = '1s'"
    t_env.execute_sql(f"CREATE TABLE t (n INT) WITH ({options})")
    with pytest.raises(SqlError) as raised:
        t_env.execute_sql("SELECT * FROM t")
    assert secret not in str(raised.value) and "nobucket" in str(raised.value)


def test_the_microseconds_that_statistics_of_delta_lack_hide_no_row(t_env: TableEnvironment, tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 123_456)
    rows = pyarrow.table({"n": [1], "at": pyarrow.array([moment], pyarrow.timestamp("us"))})
    deltalake.write_deltalake(str(tmp_path / "t"), rows)
    t_env.execute_sql(f"CREATE TABLE t (n BIGINT, at TIMESTAMP(6)) WITH ({options_of('delta', tmp_path)})")
    for condition in (">", "=", ">="):
        limit = "2024-01-01 00:00:00.123" + ("2" if condition == ">" else "456")
        query = f"SELECT n FROM t WHERE at {condition} TIMESTAMP '{limit}'"
        assert t_env.sql_query(query).to_arrow()["n"].to_pylist() == [1]
    assert "filter=[at" in t_env.explain_sql(query)


def test_the_last_microsecond_of_all_can_be_written(t_env: TableEnvironment, tmp_path: Path) -> None:
    t_env.execute_sql(f"CREATE TABLE t (at TIMESTAMP(6)) WITH ({options_of('delta', tmp_path)})")
    t_env.execute_sql("INSERT INTO t VALUES (TIMESTAMP '9999-12-31 23:59:59.999999')").wait()
    assert bare_rows("delta", tmp_path)["at"].to_pylist() == [datetime.max]


def test_fields_and_columns_of_iceberg_are_found_by_their_ids(t_env: TableEnvironment, tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/tables")
    catalog.create_namespace("db")
    inner = pyarrow.struct({"x": pyarrow.int64(), "gone": pyarrow.string(), "deep": pyarrow.list_(
        pyarrow.struct({"z": pyarrow.int32()}))})  # fmt: skip
    table = catalog.create_table("db.t", pyarrow.schema({"a": pyarrow.int64(), "b": pyarrow.int64(), "pos": inner}))
    row = {"a": 1, "b": 2, "pos": {"x": 3, "gone": "old", "deep": [{"z": 4}]}}
    table.append(pyarrow.Table.from_pylist([row, {"a": 1, "b": 5}], table.schema().as_arrow()))
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("a").delete_column(("pos", "gone"))
    with table.update_schema() as change:
        change.rename_column("b", "a").rename_column(("pos", "x"), "lat")
        change.rename_column(("pos", "deep", "z"), "depth").add_column(("pos", "gone"), StringType())
    columns = "a BIGINT, pos ROW<lat BIGINT, deep ARRAY<ROW<depth INT>>, gone STRING>"
    t_env.execute_sql(f"CREATE TABLE t ({columns}) WITH ({options_of('iceberg', tmp_path)})")
    for query, expected in (
        ("SELECT * FROM t WHERE a = 2", [(2, {"lat": 3, "deep": [{"depth": 4}], "gone": None})]),
        ("SELECT a FROM t WHERE a > 4", [(5,)]),
        ("SELECT pos.lat FROM t WHERE pos IS NOT NULL", [(3,)]),
        ("SELECT pos.gone, pos IS NULL FROM t WHERE a = 5", [(None, True)]),
        ("SELECT pos.deep[1].depth FROM t WHERE a = 2", [(4,)]),
    ):
        found = t_env.sql_query(query).to_arrow().to_pylist()
        assert [tuple(row.values()) for row in found] == expected, query
    assert "project=[pos.lat]" in t_env.explain_sql("SELECT pos.lat FROM t")
