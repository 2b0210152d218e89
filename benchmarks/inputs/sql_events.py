"""Bids that arrive at a rate, and the query whose results tell how late they are; the same text for both engines."""

from __future__ import annotations

RATE = 10_000
"""Bids a second."""
SECONDS = 30
WARM_WINDOWS = 5
"""Results of the first windows are not measured."""
_BID = """CREATE TABLE bid (auction BIGINT, price BIGINT, ts AS LOCALTIMESTAMP,
 WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}', 'number-of-rows' = '{rows}', 'fields.auction.min' = '0',
 'fields.auction.max' = '9999', 'fields.price.min' = '1', 'fields.price.max' = '9999')"""
QUERY = """SELECT window_end, LOCALTIMESTAMP AS told, n FROM (
  SELECT auction, window_end, COUNT(*) AS n, MAX(price) AS top
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY auction, window_start, window_end) AS w
WHERE top > 0 AND MOD(auction, 50) = 0"""
"""W2 over windows of a second, and when each result was made; every fiftieth is looked at."""

CHANGES = """SELECT latest, LOCALTIMESTAMP AS told, n FROM (
  SELECT auction, COUNT(*) AS n, MAX(ts) AS latest, SUM(price) AS total FROM bid GROUP BY auction) AS g
WHERE MOD(total, 50) = 0"""
"""A changelog with the time of the row that made each change, and when it was made; a fiftieth is looked at."""
BUFFER_TIMEOUT = "10 ms"
"""Of that query: how long a row may wait for others before it is sent. Both engines wait 100 ms by default."""
WARM_SECONDS = 5
"""Changes of the first seconds are not measured."""

FIRST = "SELECT auction, price FROM bid WHERE price > 0"
"""What is asked first of all: how long it takes to its first row."""


def table(seconds: int = SECONDS) -> str:
    """The DDL of bids for so long."""
    return _BID.format(rate=RATE, rows=RATE * seconds)
