"""Orders and customers whose rows change, as CSV, and queries over them whose state has a row for each key.

A row of a file adds to what is stored of its id. The inner GROUP BY of each query makes a changelog of that, with the
row before and the row after, which the outer GROUP BY or the join has to take back and to add. Results depend on no
order, so that readers may split the files. Both tables have two files, as a source that gives a file to one reader
needs; all rows of an id are in one of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from .nexmark import FOLD

SEED = 20260301
PARTS = 2
_CUSTOMERS = "(SELECT id, MAX(level) AS level, SUM(points) AS points FROM customers GROUP BY id)"
_ORDERS = "(SELECT id, MAX(customer) AS customer, SUM(amount) AS total FROM orders GROUP BY id)"
_PAIRS = f"""SELECT O.id, O.customer, O.total, C.level, C.points
FROM {_ORDERS} AS O JOIN {_CUSTOMERS} AS C ON O.customer = C.id"""
TABLES = """CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{path}/orders', 'format' = 'csv');
CREATE TABLE customers (id BIGINT, level BIGINT, points BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{path}/customers', 'format' = 'csv')"""
QUERIES = {
    "tables": "SELECT id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY id",
    "groups": f"SELECT customer, COUNT(*) AS n, SUM(total) AS total FROM {_ORDERS} AS O GROUP BY customer",
    "extremes": f"SELECT customer, COUNT(*) AS n, MAX(total) AS top FROM {_ORDERS} AS O GROUP BY customer",
    "join": _PAIRS,
    "tables_spilled": "SELECT id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY id",
    "join_spilled": _PAIRS,
}
"""A query that ends with `_spilled` has a tenth of its state in memory."""
COLUMNS = {
    "tables": ("id", "n", "total"),
    "groups": ("customer", "n", "total"),
    "extremes": ("customer", "n", "top"),
    "join": ("id", "customer", "total", "level", "points"),
    "tables_spilled": ("id", "n", "total"),
    "join_spilled": ("id", "customer", "total", "level", "points"),
}
"""Columns of the result of each query, all of them BIGINT."""
BYTES_A_KEY = {"tables_spilled": 65, "join_spilled": 264}
"""Bytes of state of ours for each key of a table, in all operators of the query."""
_SLOTS = 2
_LEAST_ROCKSDB_KB = 32 * 1024


def slot_memory_kb(query: str, keys: int) -> int | None:
    """Return the managed memory of a slot, a tenth of its state; None: all state may be in memory."""
    size = BYTES_A_KEY.get(query)
    return None if size is None else keys * size // (10 * _SLOTS * 1024)


def options_of_ours(query: str, keys: int) -> dict[str, str]:
    """Return the options of a query in our engine, whose managed memory is counted by slot."""
    memory_kb = slot_memory_kb(query, keys)
    return {} if memory_kb is None else {"taskmanager.memory.managed.size": f"{memory_kb} kb"}


def options_of_flink(query: str, keys: int) -> dict[str, str]:
    """Return the options of a query in Flink, whose one process has the memory of two slots.

    RocksDB gets 32 MB a slot where the tenth is less, as it hardly moves with less, and write buffers that fit them.
    """
    memory_kb = slot_memory_kb(query, keys)
    if memory_kb is None:
        return {}
    return {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.writebuffer.size": "4 mb",
        "taskmanager.memory.managed.size": f"{_SLOTS * max(memory_kb, _LEAST_ROCKSDB_KB)} kb",
    }


def statements(query: str, kept_in: Path | None, options: Mapping[str, str]) -> list[str]:
    """Return what a query needs beside its tables: options, then a sink and `INSERT INTO`, or FOLD.

    Args:
        kept_in: a folder for the rows that are left when all changes were applied, as CSV; None: they are forgotten.
        options: of the engine, for this query alone.
    """
    settings = [f"SET {name} = {value}" for name, value in options.items()]
    if kept_in is not None:
        return [*settings, f"{FOLD}{kept_in / query}/rows.csv\n{QUERIES[query]}"]
    columns = ", ".join(f"{name} BIGINT" for name in COLUMNS[query])
    sink = f"CREATE TABLE sink_{query} ({columns}) WITH ('connector' = 'blackhole')"
    return [*settings, sink, f"INSERT INTO sink_{query} {QUERIES[query]}"]


def row_files(directory: Path, keys: int, updates: int) -> Path:
    """Return the folder with `orders` and `customers`, written unless it is there.

    Each table first has a row of each id in random order, then `updates` rows of ids that are drawn uniformly.
    Customers of orders are drawn from all customers; an order moves when a later row has a higher one.
    """
    folder = directory / f"changing-rows-{keys}-{updates}-seed-{SEED}"
    if folder.exists():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    draw = np.random.default_rng(SEED)
    for table, names, most in (("orders", ("customer", "amount"), (keys, 10_000)),
                               ("customers", ("level", "points"), (10, 1_000))):  # fmt: skip
        (partial / table).mkdir(parents=True)
        ids = np.append(draw.permutation(keys), draw.integers(0, keys, updates))
        columns = [ids, *(draw.integers(0, bound, len(ids)) for bound in most)]
        for part in range(PARTS):
            is_of_part = ids % PARTS == part
            rows = pa.table({name: column[is_of_part] for name, column in zip(("id", *names), columns, strict=True)})
            csv.write_csv(rows, partial / table / f"part-{part}.csv", csv.WriteOptions(include_header=False))
    partial.replace(folder)
    return folder


__all__ = [
    "COLUMNS", "QUERIES", "TABLES", "options_of_flink", "options_of_ours", "row_files", "statements",
]  # fmt: skip
