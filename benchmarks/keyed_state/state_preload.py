"""Counts of 0 for many keys in a ValueState on RocksDB: sorted rows in SST files, which are made once and ingested.

This is the one place of the benchmarks that knows how the RocksDB backend lays out its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import numpy.typing as npt
import rocksdict

from rayflink.state.keys.key_columns import hash_keys
from rayflink.state.keys.key_groups import key_groups_of
from rayflink.state.rocksdb.rocksdb_store import RocksDBMemory, RocksDBOptions, RocksDBStore
from rayflink.state.rocksdb.row_layout import RowLayout, to_pickle

MAX_PARALLELISM = 128
"""Of the job; it decides the key groups."""
_CHUNK = 1 << 20
_FILE_ROWS = 1_000_000


def sst_folder(directory: Path, keys: int) -> Path:
    """A folder with the files of the keys 0, 1, ... below `keys`, made unless it is there.

    For 50 M keys that takes about 2 minutes, 1.5 GB of memory and 0.4 GB of disk.

    Args:
        directory: where they are kept, in a folder for each number of keys, layout and options.
    """
    layout, options = RowLayout(MAX_PARALLELISM, lambda keys, groups: None), RocksDBOptions()
    told = repr((layout.rows(list(range(100)), None), to_pickle(0), options))
    folder = directory / f"state-{keys}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    if not folder.exists():
        directory.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(prefix=f"{folder.name}-partial-", dir=directory))
        store = RocksDBStore(partial / "unused", lambda: RocksDBMemory(64 << 20), options)
        for number, rows in enumerate(_sorted_rows(layout, keys)):
            _write(partial / f"{number:04d}.sst", rows, store.settings())
        partial.rename(folder)
    return folder


def _sorted_rows(layout: RowLayout, keys: int) -> Iterator[list[bytes]]:
    """All rows in order, some key groups at a time."""
    starts = range(0, keys, _CHUNK)
    groups = np.concatenate([_groups(range(start, min(start + _CHUNK, keys))) for start in starts])
    order = np.argsort(groups, kind="stable")
    start = 0
    for end in np.cumsum(np.bincount(groups, minlength=MAX_PARALLELISM)).tolist():
        if end > start and (end - start >= _FILE_ROWS or end == keys):
            yield sorted(layout.rows(order[start:end].tolist(), None))
            start = end


def _groups(keys: range) -> npt.NDArray[np.int16]:
    return key_groups_of(hash_keys(list(keys)), MAX_PARALLELISM).astype(np.int16)


def _write(path: Path, rows: list[bytes], settings: Any) -> None:
    writer, value = rocksdict.SstFileWriter(settings), to_pickle(0)
    writer.open(str(path))
    for row in rows:
        writer[row] = value
    writer.finish()


def ingest(state: Any, folder: Path) -> None:
    """Give an empty ValueState on RocksDB the rows of the files of `sst_folder`, which stay where they are."""
    table = state._table
    column = table._column
    column._rows, column._handle = column._store.open_column(column.name)
    options = rocksdict.IngestExternalFileOptions()
    options.set_move_files(False)
    column._rows.ingest_external_file([str(file) for file in sorted(folder.glob("*.sst"))], options)
    table.assume_any_stored()  # nothing was written through the cache, and yet there are rows
