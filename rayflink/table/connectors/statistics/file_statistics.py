"""Statistics of files: of Parquet and Arrow from their metadata, of lines from the first ones.

A file is asked once, as long as it stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from rayflink.connectors.files.compression import UNPACK_ERRORS, is_compressed, open_bytes

from .table_statistics import ColumnStatistics, TableStatistics, as_number, merge_statistics

MOST_FILES = 100
"""Files that are asked; where there are more, this many of them, and the others are judged by their size."""
MOST_GROUPS = 64
"""Row groups of a Parquet file that are asked for the values of columns."""
HEAD_BYTES = 1 << 16
"""Bytes at the head of a file of lines that are read as a sample."""
PACKED = 4
"""Estimated size of the lines of a compressed file, as a multiple of its bytes."""
_ORDERED = frozenset({"NONE", "INT", "DATE", "TIMESTAMP"})
_Part = tuple[float, dict[str, ColumnStatistics]]


def statistics_of(paths: Sequence[str], form: str) -> TableStatistics | None:
    """Return statistics that the files contain; None: they cannot be read, which is an error when the query runs.

    Args:
        form: parquet, arrow, csv or json.
    """
    import pyarrow

    read, how = _READERS[form]
    try:
        sized = [(path, os.stat(path)) for path in paths]
        step = -(-len(sized) // MOST_FILES) if sized else 1
        sample = sized[::step]
        parts = [read(path, status.st_size, status.st_mtime_ns) for path, status in sample]
    except (*UNPACK_ERRORS, ValueError, ImportError, pyarrow.ArrowException):
        return None
    whole, seen = (float(sum(status.st_size for _, status in files)) for files in (sized, sample))
    rows = sum(count for count, _ in parts) * (whole / seen if seen else 1)
    names = {name for _, columns in parts for name in columns}
    columns = {
        name: merge_statistics([(count, columns[name]) for count, columns in parts])
        for name in sorted(names)
        if all(name in columns for _, columns in parts)
    }
    origin = f"{how} of {len(sample)} of {len(sized)} files" if step > 1 else how
    return TableStatistics(rows, origin, columns)


@lru_cache(maxsize=1024)
def _parquet(path: str, size: int, changed_ns: int) -> _Part:
    from pyarrow import parquet

    with open_bytes(path) as raw:
        metadata = parquet.ParquetFile(raw).metadata
    step = max(1, -(-metadata.num_row_groups // MOST_GROUPS))
    parts: dict[str, list[tuple[float, ColumnStatistics]]] = {}
    for group in map(metadata.row_group, range(0, metadata.num_row_groups, step)):
        for index in range(group.num_columns):
            column = group.column(index)
            parts.setdefault(column.path_in_schema, []).append((float(group.num_rows), _chunk(column, group.num_rows)))
    return float(metadata.num_rows), {name: merge_statistics(groups) for name, groups in parts.items()}


def _chunk(column: Any, rows: int) -> ColumnStatistics:
    """Return a column in a row group."""
    width = column.total_uncompressed_size / max(1, rows)
    statistics = column.statistics
    if statistics is None:
        return ColumnStatistics(width=width)
    nulls = statistics.null_count / max(1, rows) if statistics.has_null_count else None
    if not statistics.has_min_max or statistics.logical_type.type not in _ORDERED:
        return ColumnStatistics(nulls=nulls, width=width)
    try:
        low, high = as_number(statistics.min), as_number(statistics.max)
    except (ValueError, ArithmeticError):  # a time that Python does not have
        low = high = None
    return ColumnStatistics(low, high, nulls, None, width)


@lru_cache(maxsize=1024)
def _arrow(path: str, size: int, changed_ns: int) -> _Part:
    """Estimate by the first record batch, and by one column of it and of the last batch."""
    import pyarrow

    with open_bytes(path) as raw:
        is_file = raw.read(6) == b"ARROW1"
        raw.seek(0)
        if not is_file:
            batch = next(iter(pyarrow.ipc.open_stream(raw)), None)
            return (0.0, {}) if batch is None or not batch.nbytes else (batch.num_rows * size / batch.nbytes, {})
        reader = pyarrow.ipc.open_file(raw, options=pyarrow.ipc.IpcReadOptions(included_fields=[0]))
        if not reader.num_record_batches:
            return 0.0, {}
        first, last = reader.get_batch(0), reader.get_batch(reader.num_record_batches - 1)
    return float(first.num_rows * (reader.num_record_batches - 1) + last.num_rows), {}


@lru_cache(maxsize=1024)
def _lines(path: str, size: int, changed_ns: int) -> _Part:
    """Estimate by the length of the first lines."""
    with open_bytes(path) as raw:
        head = raw.read(HEAD_BYTES)
    lines = head.count(b"\n") + (not head.endswith(b"\n") and bool(head))
    if len(head) < HEAD_BYTES:
        return float(lines), {}
    return lines * size * (PACKED if is_compressed(path) else 1) / len(head), {}


_READERS: dict[str, tuple[Callable[[str, int, int], _Part], str]] = {
    "parquet": (_parquet, "footers"),
    "arrow": (_arrow, "record batches"),
    "csv": (_lines, "lines by their length"),
    "json": (_lines, "lines by their length"),
}

__all__ = ["HEAD_BYTES", "MOST_FILES", "statistics_of"]
