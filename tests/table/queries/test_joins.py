"""Joins in SQL give the rows that DuckDB gives, the golden ones and those of Nexmark as they are published."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from rayflink.common.types import RowKind
from rayflink.table import StreamTableEnvironment, TableEnvironment
from rayflink.table.expressions import col
from rayflink.table.plan.changelog import ChangelogMode
from rayflink.table.plan.changelog_fold import materialized
from tests.table.connectors.test_nexmark_table import FIELDS, declared
from tests.table.queries.golden_queries import FOLDER, GoldenQuery, golden_queries

LEFT_OUT = {"window_join_cumulate"} | {
    query.folder.name for query in golden_queries() if "lookup" in query.folder.name or "temporal" in query.folder.name
}
JOINS = [one for one in golden_queries() if "join" in one.folder.name and one.folder.name not in LEFT_OUT]
"""Windows of CUMULATE are beside DuckDB in test_beside_duckdb.py, and it has no FOR SYSTEM_TIME."""
CLICKS = {"id": "BIGINT", "who": "VARCHAR", "ms": "BIGINT"}
TICKER = {"symbol": "VARCHAR", "price": "INT", "tax": "INT", "ts": "TIMESTAMP"}
TUMBLE = (
    r"(SELECT *, time_bucket(INTERVAL '10 seconds', \2) AS window_start, "
    r"time_bucket(INTERVAL '10 seconds', \2) + INTERVAL '10 seconds' AS window_end FROM \1)"
)
HOP = (
    r"(SELECT t.*, time_bucket(INTERVAL '\3 seconds', \2) - k * INTERVAL '\3 seconds' AS window_start, window_start + "
    r"INTERVAL '\4 seconds' AS window_end FROM \1 AS t, range(\4 // \3) AS r(k))"
)


def in_duckdb(query: str) -> str:
    """The query with windows written out."""
    table, stamp, length = r"TABLE (\w+)", r"DESCRIPTOR\(`?(\w+)`?\)", r"INTERVAL '(\d+)' SECONDS?"
    query = re.sub(rf"TABLE\(\s*TUMBLE\({table}, {stamp}, INTERVAL '10' SECONDS?\)\)", TUMBLE, query)
    query = re.sub(rf"TABLE\(\s*HOP\({table}, {stamp}, {length}, {length}\)\)", HOP, query)
    return query.replace("`", '"')


def named(rows: Any, names: list[str]) -> Counter[str]:
    """Rows without the order of their columns."""
    return Counter(str(sorted(zip(names, row, strict=True))) for row in rows)


def same(t_env: TableEnvironment, query: str, other: duckdb.DuckDBPyConnection) -> int:
    """Check that both give the same rows; how many."""
    result = t_env.execute_sql(query)
    names = result.get_table_schema().get_field_names()
    found = [list(row) for row in materialized(result.collect())]
    cursor = other.execute(in_duckdb(query))
    expected = cursor.fetchall()
    assert cursor.description is not None
    assert named(found, names) == named(map(list, expected), [one[0] for one in cursor.description])
    return len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("query", JOINS, ids=lambda query: query.folder.name)
def test_a_golden_join_gives_the_rows_of_duckdb(query: GoldenQuery) -> None:
    columns = {
        "id": "BIGINT", "customer": "VARCHAR", "product": "VARCHAR", "price": "DECIMAL(10, 2)", "amount": "INT",
        "ts": "TIMESTAMP",
    }  # fmt: skip
    other = duckdb.connect()
    other.execute(f"CREATE TABLE orders AS FROM read_csv('{FOLDER}/orders.csv', header = false, columns = {columns})")
    other.execute(f"CREATE TABLE clicks AS FROM read_csv('{FOLDER}/clicks.csv', header = false, columns = {CLICKS})")
    other.execute(f"CREATE TABLE ticker AS FROM read_csv('{FOLDER}/ticker.csv', header = false, columns = {TICKER})")
    other.execute(re.findall(r"CREATE VIEW [^;]*", (FOLDER / "tables.sql").read_text())[0])
    assert (same(query.environment(), query.text, other) == 0) == query.folder.name.endswith("_nothing")


@pytest.mark.slow
def test_a_join_of_groups_gives_upserts_without_the_row_before() -> None:
    s_env = StreamTableEnvironment.create()
    s_env.get_config().set_string("execution.target", "local").set_string("parallelism.default", "1")
    words = s_env.from_elements([("a", 1), ("b", 2), ("a", 3)], ["word", "n"])
    others = s_env.from_elements([("a", 1), ("b", 7), ("b", 2)], ["other", "m"])
    sums = words.group_by(col("word")).select(col("word"), col("n").sum.alias("total"))
    greatest = others.group_by(col("other")).select(col("other"), col("m").max.alias("most"))
    pairs = sums.join(greatest, col("word") == col("other")).select(col("word"), col("total"), col("most"))
    upserts = s_env.to_changelog_stream(pairs, changelog_mode=ChangelogMode.upsert())
    kinds, rows = set(), {}
    for row in upserts.execute_and_collect():
        kinds.add(row.get_row_kind())
        rows[row[0]] = tuple(row)
    assert RowKind.UPDATE_BEFORE not in kinds
    assert RowKind.DELETE not in kinds
    assert rows == {"a": ("a", 4, 1), "b": ("b", 2, 7)}


Q5 = """SELECT AuctionBids.auction, AuctionBids.num
 FROM (
   SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
   FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
   GROUP BY auction, window_start, window_end
 ) AS AuctionBids
 JOIN (
   SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
   FROM (
     SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
     FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
     GROUP BY auction, window_start, window_end
   ) AS CountBids
   GROUP BY CountBids.starttime, CountBids.endtime
 ) AS MaxBids
 ON AuctionBids.starttime = MaxBids.starttime AND
    AuctionBids.endtime = MaxBids.endtime AND
    AuctionBids.num >= MaxBids.maxn"""
Q7 = """SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
from bid B
JOIN (
  SELECT MAX(price) AS maxprice, window_end as `dateTime`
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`"""
Q8 = """SELECT P.id, P.name, P.starttime
FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) P
JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime"""


@pytest.mark.slow
@pytest.mark.parametrize("query", [Q5, Q7, Q8], ids=["q5", "q7", "q8"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_queries_of_nexmark_give_the_rows_of_duckdb(query: str, parallelism: int) -> None:
    t_env = declared("'first-event.rate' = '100', 'next-event.rate' = '100', 'events.num' = '6000'", parallelism)
    other = duckdb.connect()
    for number, (name, fields) in enumerate(FIELDS.items()):
        names = [field.split()[0] for field in fields.split(", ")]
        chosen = ", ".join(one if "dateTime" in one else f"{name}.{one}" for one in names)
        t_env.execute_sql(f"CREATE VIEW {name} AS SELECT {chosen} FROM datagen WHERE event_type = {number}")
        other.register(f"held_{name}", t_env.sql_query(f"SELECT * FROM {name}").to_arrow())
        other.execute(f"CREATE TABLE {name} AS FROM held_{name}")
    assert same(t_env, query, other) > 5


@pytest.mark.slow
def test_keys_that_are_no_numbers_or_zeros_of_other_signs_are_distinguished_alike(tmp_path):
    """Rows are dealt by their keys' bytes, in Flink too: NaN meets NaN, and -0.0 does not meet 0.0."""
    keys = [0.0, -0.0, float("nan"), None, 1.5]
    rows = pyarrow.table({
        "id": pyarrow.array(range(5)), "k": pyarrow.array(keys, pyarrow.float64()),
        "h": pyarrow.array(keys, pyarrow.float32()), "ts": pyarrow.array([0] * 5, pyarrow.timestamp("ms")),
    })  # fmt: skip
    parquet.write_table(rows, tmp_path / "rows.parquet")
    t_env = GoldenQuery(FOLDER / "project").environment()
    t_env.execute_sql(
        "CREATE TABLE t (id BIGINT, k DOUBLE, h FLOAT, ts TIMESTAMP(3), "
        "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH "
        f"('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path}')"
    )
    window = "(SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)))"
    for key in ("k", "h"):
        for query in (
            f"SELECT a.id, b.id FROM t a JOIN t b ON a.{key} = b.{key} AND a.ts = b.ts",
            f"SELECT a.id, b.id FROM t a JOIN t b ON a.{key} = b.{key} AND a.ts BETWEEN b.ts AND "
            "b.ts + INTERVAL '1' SECOND",
            f"SELECT a.id, b.id FROM {window} a JOIN {window} b ON a.{key} = b.{key} AND "
            "a.window_start = b.window_start AND a.window_end = b.window_end",
        ):
            found = sorted(tuple(row) for row in t_env.execute_sql(query).collect())
            assert found == [(0, 0), (1, 1), (2, 2), (4, 4)], query
