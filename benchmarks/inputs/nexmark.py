"""Nexmark's queries as SQL over files of persons, auctions and bids.

The queries are those of nexmark/nexmark; q14 counts letters by built-in functions, as its own is Java's. Those
named `cep_` are of its folder queries-cep, where they are q0 to q3. Those whose results change are in
`nexmark_changes.py`; the tables that all read in `nexmark_files.py`.
"""

from __future__ import annotations

import re
from csv import reader
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

from . import nexmark_changes
from .nexmark_files import TABLES, event_files

_DECIMAL = re.compile(r"-?\d+(?:\.\d+(?:E\+?\d+)?|E\+?\d+)$")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?)$")

SINKS = {
    "q0": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
    "q1": "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING",
    "q2": "auction BIGINT, price BIGINT",
    "q5": "auction BIGINT, num BIGINT",
    "q7": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
    "q8": "id BIGINT, name STRING, stime TIMESTAMP(3)",
    "q10": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm STRING",
    "q11": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q12": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q13": "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` STRING",
    "q14": "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bidTimeType STRING, `dateTime` TIMESTAMP(3), "
    "extra STRING, c_counts BIGINT",
    "q21": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING",
    "q22": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dir1 STRING, dir2 STRING, dir3 STRING",
    "cep_q0": "auction BIGINT, bidder BIGINT, start_tstamp TIMESTAMP(3), bottom_tstamp TIMESTAMP(3), "
    "end_tstamp TIMESTAMP(3)",
    "cep_q1": "auction BIGINT, bidder BIGINT, start_tstamp TIMESTAMP(3), end_tstamp TIMESTAMP(3), avg_price BIGINT",
    "cep_q2": "auction BIGINT, bidder BIGINT, start_tstamp TIMESTAMP(3), end_tstamp TIMESTAMP(3), avg_price BIGINT",
    "cep_q3": "auction BIGINT, bidder BIGINT, drop_time TIMESTAMP(3), drop_diff BIGINT",
    **nexmark_changes.SINKS,
}
"""Columns of the table into which each query writes."""
QUERIES = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q5": """SELECT AuctionBids.auction, AuctionBids.num
FROM (
  SELECT auction, COUNT(*) AS num, window_start AS starttime, window_end AS endtime
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
) AS AuctionBids
JOIN (
  SELECT MAX(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
  FROM (
    SELECT COUNT(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
  ) AS CountBids
  GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime AND
  AuctionBids.num >= MaxBids.maxn""",
    "q7": """SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
FROM bid B
JOIN (
  SELECT MAX(price) AS maxprice, window_end AS `dateTime`
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`""",
    "q8": """SELECT P.id, P.name, P.starttime
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
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q10": """SELECT auction, bidder, price, `dateTime`, extra,
  DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid""",
    "q11": """SELECT B.bidder, COUNT(*) AS bid_count,
  SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) AS starttime,
  SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) AS endtime
FROM bid B
GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND)""",
    "q12": """SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE B, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end""",
    "q13": """SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM (SELECT *, PROCTIME() AS p_time FROM bid) B
JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S
ON MOD(B.auction, 10000) = S.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
  CASE
    WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
    WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS bidTimeType,
  `dateTime`, extra,
  CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q21": """SELECT auction, bidder, price, channel,
  CASE
    WHEN LOWER(channel) = 'apple' THEN '0'
    WHEN LOWER(channel) = 'google' THEN '1'
    WHEN LOWER(channel) = 'facebook' THEN '2'
    WHEN LOWER(channel) = 'baidu' THEN '3'
    ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
  END AS channel_id
FROM bid
WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL OR
  LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel,
  SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
FROM bid""",
    "cep_q0": """SELECT auction, bidder, start_tstamp, bottom_tstamp, end_tstamp
FROM bid
MATCH_RECOGNIZE (
  PARTITION BY auction, bidder
  ORDER BY `dateTime`
  MEASURES
    START_ROW.`dateTime` AS start_tstamp,
    LAST(PRICE_DOWN.`dateTime`) AS bottom_tstamp,
    LAST(PRICE_UP.`dateTime`) AS end_tstamp
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO LAST PRICE_UP
  PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
  DEFINE
    PRICE_DOWN AS (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
      PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
    PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)
)""",
    "cep_q1": """SELECT auction, bidder, start_tstamp, end_tstamp, avg_price
FROM bid
MATCH_RECOGNIZE (
  PARTITION BY auction, bidder
  ORDER BY `dateTime`
  MEASURES FIRST(A.`dateTime`) AS start_tstamp, LAST(A.`dateTime`) AS end_tstamp, AVG(A.price) AS avg_price
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A+ B)
  DEFINE A AS AVG(A.price) < 10000
)""",
    "cep_q2": """SELECT auction, bidder, start_tstamp, end_tstamp, avg_price
FROM bid
MATCH_RECOGNIZE (
  PARTITION BY auction, bidder
  ORDER BY `dateTime`
  MEASURES FIRST(A.`dateTime`) AS start_tstamp, LAST(A.`dateTime`) AS end_tstamp, AVG(A.price) AS avg_price
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A+ B)
  DEFINE A AS AVG(A.price) < 10000
)""",
    "cep_q3": """SELECT auction, bidder, drop_time, drop_diff
FROM bid
MATCH_RECOGNIZE (
  PARTITION BY auction, bidder
  ORDER BY `dateTime`
  MEASURES C.`dateTime` AS drop_time, A.price - C.price AS drop_diff
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B* C) WITHIN INTERVAL '5' SECOND
  DEFINE B AS B.price > A.price - 50, C AS C.price < A.price - 50
)""",
    **nexmark_changes.QUERIES,
}
VIEWS = {"q12": "CREATE VIEW B AS SELECT *, PROCTIME() AS p_time FROM bid"}
"""What a query reads besides tables."""
UNLIKE = frozenset({"q12"})
"""Queries whose rows depend on when they are run."""


_LOGGED = """'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '1 min',
  'sink.partition-commit.policy.kind' = 'success-file', 'partition.time-extractor.timestamp-pattern' = '$dt $hm:00',
  'sink.rolling-policy.rollover-interval' = '1min', 'sink.rolling-policy.check-interval' = '1min'"""
PARTITIONED = {"q10": ("dt, hm", _LOGGED)}
"""Queries that write files also where their rows are not compared: the columns of partitions, and further options."""
FOLD = "FOLD INTO "
"""Begins a statement whose second line is a query: its changes are applied, and its rows written to that file."""
SETTINGS = {
    "table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000", "table.optimizer.distinct-agg.split.enabled": "true",
}  # fmt: skip
"""Options of both engines, as nexmark/nexmark sets them."""


def statements(query: str, kept_in: Path | None = None, written_in: Path | None = None) -> list[str]:
    """Those that come before the query's own, without the tables of events; then `INSERT INTO`, or FOLD.

    Args:
        kept_in: a folder for the rows, as CSV; None: they are forgotten.
        written_in: a folder for the files of the queries in `PARTITIONED`, whose rows are forgotten.
    """
    if kept_in is not None and query in nexmark_changes.QUERIES:
        return [f"{FOLD}{kept_in / query}/rows.csv\n{nexmark_changes.folded(query)}"]
    options, partitions = "'connector' = 'blackhole'", ""
    folder = kept_in or (written_in if query in PARTITIONED else None)
    if folder is not None:
        options = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder / query}'"
        if query in PARTITIONED:
            columns, more = PARTITIONED[query]
            options, partitions = f"{options}, {more}", f"PARTITIONED BY ({columns}) "
    sink = f"CREATE TABLE nexmark_{query} ({SINKS[query]}) {partitions}WITH ({options})"
    views = [VIEWS[query]] if query in VIEWS else []
    return [sink, *views, f"INSERT INTO nexmark_{query} {QUERIES[query]}"]


def kept_rows(folder: Path) -> list[tuple[str, ...]]:
    """Return the rows of a query that were kept as CSV, sorted, with the values of their partitions at their end.

    Numbers and times are without the zeros at their end.
    """
    rows: list[tuple[str, ...]] = []
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith((".", "_")) for part in parts):
            partition = [unquote(part.partition("=")[2]) for part in parts[:-1] if "=" in part]
            with path.open(newline="", encoding="utf-8") as file:
                rows += (tuple(map(_plain, [*row, *partition])) for row in reader(file))
    return sorted(rows)


def _plain(value: str) -> str:
    if _DECIMAL.match(value):
        return f"{Decimal(value).normalize():f}"
    time = _TIME.match(value)
    return time[1].rstrip("0").rstrip(".") if time and time[2] else value


__all__ = [
    "FOLD", "PARTITIONED", "QUERIES", "SETTINGS", "SINKS", "TABLES", "UNLIKE", "VIEWS", "event_files", "kept_rows",
    "statements",
]  # fmt: skip
