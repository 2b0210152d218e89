"""The bids of W2 and W3 as CSV: auction, bidder, price, ts; the same bytes on every machine."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

SEED = 20260201
_CHUNK = 1 << 20
TABLES = """CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv');
CREATE TABLE w2_out (auction BIGINT, window_start TIMESTAMP(3), n BIGINT, top BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE w3_out (auction BIGINT, price BIGINT) WITH ('connector' = 'blackhole')"""
QUERIES = {
    "w2": "INSERT INTO w2_out SELECT auction, window_start, COUNT(*), MAX(price) FROM TABLE(TUMBLE(TABLE bid, "
    "DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end",
    "w3": "INSERT INTO w3_out SELECT auction, price * 9 / 10 FROM bid WHERE MOD(auction, 3) = 0",
}


def bid_file(directory: Path, rows: int) -> Path:
    """The file of the first `rows` bids, written unless it is there.

    Auctions are zipf(1.3) mod 10,000, bidders uniform below 50,000, prices uniform from 1 to 9,999, and times
    row // 10 + uniform(0, 200) ms: 10,000 bids a second of event time, out of order by 200 ms.
    """
    path = directory / f"bids-{rows}-seed-{SEED}.csv"
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    draw = np.random.RandomState(SEED)
    with partial.open("wb") as out:
        for start in range(0, rows, _CHUNK):
            count = min(_CHUNK, rows - start)
            stamps = np.arange(start, start + count) // 10 + draw.randint(0, 200, count)
            columns = {
                "auction": draw.zipf(1.3, count) % 10_000,
                "bidder": draw.randint(0, 50_000, count),
                "price": draw.randint(1, 10_000, count),
                "ts": pa.array(stamps).cast(pa.timestamp("ms")),
            }
            csv.write_csv(pa.table(columns), out, csv.WriteOptions(include_header=False))
    partial.replace(path)
    return path
