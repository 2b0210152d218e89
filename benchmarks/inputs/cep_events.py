"""Events for patterns of three steps: (account, kind, price, time in ms), the same on every machine and in Java.

Event i belongs to account `i * 7919 mod ACCOUNTS`, so accounts come in turns, and there are 100 events a millisecond.
The turns of an account are cut into blocks of three. A share of the blocks is relevant: its events have a kind of 1, 2
or 3, in half of the blocks in this order, in the others drawn. All other events are of kind 0, which no step wants.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ACCOUNTS = 10_000
EVENTS_A_MS = 100
WITHIN_S = 10
SHARES = {"1pct": 1, "all": 100}
"""Percent of the blocks that are relevant."""
CASES = ("relaxed-1pct", "strict-1pct", "sql-1pct", "relaxed-all", "strict-all", "sql-all")
"""How a step follows the one before it, or `sql` for MATCH_RECOGNIZE, and the share."""
TABLE = """CREATE TABLE events (account BIGINT, kind INT, price BIGINT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""
QUERY = f"""SELECT account, paid, last_ts FROM events MATCH_RECOGNIZE (
  PARTITION BY account ORDER BY ts
  MEASURES a.price + c.price AS paid, c.ts AS last_ts
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (a b c) WITHIN INTERVAL '{WITHIN_S}' SECOND
  DEFINE a AS a.kind = 1, b AS b.kind = 2, c AS c.kind = 3)"""
_CHUNK = 1 << 20


def event_columns(first: int, stop: int, share: int) -> tuple[NDArray[np.int64], ...]:
    """Return accounts, kinds, prices and times of the events of a range."""
    numbers = np.arange(first, stop, dtype=np.int64)
    accounts, turns = numbers * 7919 % ACCOUNTS, numbers // ACCOUNTS
    blocks, draws = _scrambled(accounts << 20 | turns // 3), _scrambled(numbers)
    in_order = (blocks & 1).astype(bool)
    kinds = np.where(in_order, turns % 3, draws % 3) + 1
    kinds[(blocks >> 1) % 100 >= share] = 0
    return accounts, kinds, draws % 1000, numbers // EVENTS_A_MS


def _scrambled(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the mixer of SplitMix64, as numbers of 63 bits."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def event_file(directory: Path, events: int, share: int) -> Path:
    """Return the CSV file of the first events, written unless it is there."""
    import pyarrow as pa
    from pyarrow import csv

    path = directory / f"cep-{events}-{share}.csv"
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as out:
        for first in range(0, events, _CHUNK):
            *columns, times = map(pa.array, event_columns(first, min(first + _CHUNK, events), share))
            names = ["account", "kind", "price", "ts"]
            table = pa.table([*columns, times.cast(pa.timestamp("ms"))], names)
            csv.write_csv(table, out, csv.WriteOptions(include_header=False))
    partial.replace(path)
    return path
