"""Queries that read some fields of rows have the results of those that read the rows whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from rayflink.table import EnvironmentSettings, PlannerConfig, TableEnvironment
from rayflink.table.planner import Relation

LINES = """
{"kind": 2, "bid": {"auction": 1, "price": 7, "at": "2020-01-01 00:00:01", "channel": {"name": "a", "url": "u"}}}
{"kind": 2, "bid": {"auction": 2, "price": null, "channel": null}}
{"kind": 0, "bid": null}
{"kind": 2, "bid": {"auction": 1, "price": 9, "at": "2020-01-01 00:00:05", "channel": {"url": "w"}, "more": [1]}}
{"bid": {}}
"""
TABLE = """CREATE TABLE events (kind INT, bid ROW<auction BIGINT, price BIGINT, at TIMESTAMP(3),
    channel ROW<name STRING, url STRING>>, moment AS COALESCE(bid.at, TIMESTAMP '2020-01-01 00:00:00'),
    WATERMARK FOR moment AS moment - INTERVAL '1' SECOND)
    WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}')"""
EXPRS = ["kind", "bid.auction", "bid.price + 1", "bid.channel.url", "bid.channel", "bid", "bid IS NULL", "moment",
         "bid.channel IS NOT NULL", "COALESCE(bid.channel.name, bid.channel.url)"]  # fmt: skip
CONDITIONS = ["kind = 2", "bid IS NOT NULL", "bid.channel.name = 'a'", "bid.price > 7", "bid.auction IN (1, 3)"]


def unchanged(relation: Relation) -> Relation:
    return relation


def environment(path: Path, is_narrow: bool) -> TableEnvironment:
    """Narrow reads are those of a stream, where watermarks lie between the fields and their uses."""
    mode = EnvironmentSettings.in_streaming_mode() if is_narrow else EnvironmentSettings.in_batch_mode()
    t_env = TableEnvironment.create(mode)
    t_env.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    if not is_narrow:
        config = PlannerConfig().replace_rule("push_nested_projection_into_scan", unchanged)
        t_env.get_config().set_planner_config(config)
    t_env.execute_sql(TABLE.format(path=path))
    return t_env


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> list[TableEnvironment]:
    path = tmp_path_factory.mktemp("events") / "events.json"
    path.write_text(LINES)
    return [environment(path, is_narrow) for is_narrow in (True, False)]


def rows_of(t_env: TableEnvironment, query: str) -> list[str]:
    return sorted(str(row) for row in t_env.execute_sql(query).collect())


@given(
    st.lists(st.sampled_from(EXPRS), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True),
)
def test_rows_are_those_of_whole_reads(environments, exprs, conditions):
    chosen = ", ".join(f"{expr} AS c{index}" for index, expr in enumerate(exprs))
    query = f"SELECT {chosen} FROM events" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
    narrow, whole = environments
    assert rows_of(narrow, query) == rows_of(whole, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.bid.auction, b.bid.channel.url FROM events AS a JOIN events AS b ON a.bid.price = b.bid.price",
        "SELECT bid.auction AS n FROM events UNION ALL SELECT bid.price FROM events WHERE kind = 2",
        "SELECT bid, 1 AS n FROM events UNION ALL SELECT bid, bid.auction FROM events WHERE bid.price = 7",
        "SELECT window_start, COUNT(*) AS n, MAX(bid.price) AS most FROM TABLE("
        "TUMBLE(TABLE events, DESCRIPTOR(moment), INTERVAL '2' SECOND)) "
        "WHERE moment IS NOT NULL GROUP BY window_start, window_end",
    ],
)
def test_several_reads_of_a_table_share_its_scan(environments, query):
    narrow, whole = environments
    assert rows_of(narrow, query) == rows_of(whole, query)


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("SELECT bid.price FROM events WHERE kind = 2", "kind, bid.price"),
        ("SELECT bid.price FROM events WHERE moment > CURRENT_WATERMARK(moment)", "bid.price, bid.at"),
        ("SELECT moment FROM events", "bid.at"),
        ("SELECT n.url, moment FROM (SELECT bid.channel AS n, moment FROM events)", "bid.at, bid.channel.url"),
        ("SELECT bid FROM events", "bid"),
    ],
)
def test_fields_are_read_below_watermarks(environments, query, fields):
    assert f"project=[{fields}]" in environments[0].explain_sql(query)


def test_a_malformed_field_that_is_not_read_does_no_harm(tmp_path):
    path = tmp_path / "events.json"
    path.write_text('{"kind": 1, "bid": {"auction": 1, "price": "many"}}\n')
    t_env = environment(path, True)
    assert rows_of(t_env, "SELECT bid.auction FROM events") == ["<Row(1)>"]
    with pytest.raises(Exception, match="price"):
        rows_of(t_env, "SELECT bid.price FROM events")


def test_of_rows_in_parquet_files_only_the_wanted_fields_are_read(tmp_path, monkeypatch):
    kind = pyarrow.struct({"price": pyarrow.int64(), "url": pyarrow.string(), "channel": pyarrow.struct(
        {"name": pyarrow.string(), "id": pyarrow.list_(pyarrow.int32())})})  # fmt: skip
    bids = [{"price": 7, "url": "u", "channel": {"name": "a", "id": [1, 2]}}, None, {"price": None, "channel": None}]
    table = pyarrow.table({"n": [1, 2, 3], "bid": pyarrow.array(bids, kind), "bid.price": ["other"] * 3})
    parquet.write_table(table, tmp_path / "bids.parquet")
    read = []
    whole = parquet.ParquetFile.iter_batches

    def noted(file, *args, **options):
        for batch in whole(file, *args, **options):
            read.append(str(batch.schema.field("bid").type))
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set_string("execution.target", "local")
    columns = "bid ROW<url STRING, price BIGINT, late INT, channel ROW<name STRING, id ARRAY<INT>>>, `bid.price` STRING"
    t_env.execute_sql(f"CREATE TABLE bids ({columns}) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
                      f"'path' = '{tmp_path}')")  # fmt: skip
    for exprs, found, kinds in (
        ("bid.price", ["<Row(7)>", "<Row(None)>", "<Row(None)>"], "struct<price: int64>"),
        ("bid.channel.id", ["<Row([1, 2])>", "<Row(None)>", "<Row(None)>"],
         "struct<channel: struct<id: list<element: int32>>>"),
        ("bid IS NULL, bid.channel IS NULL", ["<Row(False, False)>", "<Row(False, True)>", "<Row(True, True)>"],
         "struct<channel: struct<name: string>>"),
        ("bid.late, bid.late IS NULL", ["<Row(None, True)>"] * 3, "struct<price: int64>"),
        ("bid.url, `bid.price`", ["<Row('u', 'other')>", "<Row(None, 'other')>", "<Row(None, 'other')>"],
         "struct<price: int64, url: string>"),
    ):  # fmt: skip
        read.clear()
        assert rows_of(t_env, f"SELECT {exprs} FROM bids") == sorted(found)
        assert read == [kinds]
    plan = t_env.explain_sql("SELECT bid.channel.name, bid.price FROM bids")
    assert "project=[bid.price, bid.channel.name]" in plan
