"""The files of sorted rows of a database: which state each is of, its key groups, and how many entries it has.

RocksDB says it from memory, and the index of a file, which never changes, is read once. All of that is done by the
threads that make and store the files of a checkpoint, so it costs the task nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RayflinkError
from ..state_sizes import UNKNOWN, GroupSize, StateSize
from .block_index import bytes_by_group

_FILE = re.compile(r"^ (\d+):\d+\[", re.MULTILINE)
"""A file in RocksDB's text on the files of a column family: its number, then its size."""


@dataclass(frozen=True, slots=True)
class SortedFile:
    """A file of sorted rows.

    Args:
        column: the column family that it belongs to.
        size_bytes: on disk.
        rows: that are in it and not deleted by it, as RocksDB estimates.
        groups: its rows are of these key groups.
    """

    column: str
    size_bytes: int
    rows: int
    groups: range


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column family as a checkpoint describes it.

    Args:
        name: of the state, or queue of timers.
        kind: in which it is stored.
        column: the name of the column family.
        counts_rows: whether a row is an entry.
    """

    name: str
    kind: str
    column: str
    counts_rows: bool = True


class SortedFiles:
    """The files of one database, as checkpoints need them; its methods are called by several threads."""

    def __init__(self) -> None:
        self._linked: dict[Path, Mapping[str, SortedFile]] = {}
        self._shares: Mapping[str, Mapping[int, int]] = {}

    def linked(self, folder: Path, files: Mapping[str, SortedFile]) -> None:
        """Note what the files of a checkpoint are, or more files than it has.

        Args:
            folder: with links to them.
        """
        self._linked[folder] = files

    def unlinked(self, folder: Path) -> None:
        """Forget the files of a checkpoint."""
        self._linked.pop(folder, None)

    def sizes(
        self, folder: Path, columns: Iterable[StoredColumn], stored: Collection[str], owned: range
    ) -> tuple[StateSize, ...]:
        """Return the sizes of states in a checkpoint.

        Args:
            folder: with links to its files.
            columns: of the states.
            stored: files that an earlier checkpoint has stored.
            owned: key groups of the subtask; a restored file may have rows of others, which are deleted.
        """
        present = {file.name for file in folder.iterdir()}
        files = {name: file for name, file in self._linked.get(folder, {}).items() if name in present}
        shares = {name: self._shares.get(name) or _shares(folder / name, file) for name, file in files.items()}
        self._shares = shares
        return tuple(
            _column_size(column, {name: file for name, file in files.items() if file.column == column.column},
                         shares, stored, owned)
            for column in columns
        )  # fmt: skip


def sorted_files(live_files: Iterable[Mapping[str, Any]], columns: Mapping[str, str | None]) -> dict[str, SortedFile]:
    """Return the files of a database by name.

    >>> live = {"name": "/000012.sst", "size": 900, "num_entries": 30, "num_deletions": 5}
    >>> live |= {"start_key": b"\\x00\\x01a", "end_key": b"\\x00\\x03z"}
    >>> sorted_files([live], {"state/total": "--- level 0 ---\\n 12:900[1 .. 30](0)\\n"})["000012.sst"]
    SortedFile(column='state/total', size_bytes=900, rows=20, groups=range(1, 4))

    Args:
        live_files: as `rocksdict.Rdict.live_files` gives them.
        columns: name of a column family -> its property `rocksdb.sstables`, which numbers its files.
    """
    column_of = {int(number): name for name, text in columns.items() for number in _FILE.findall(text or "")}
    files: dict[str, SortedFile] = {}
    for live in live_files:
        name = live["name"].lstrip("/")
        column = column_of.get(int(name.partition(".")[0]))
        start, stop = live["start_key"] or b"", live["end_key"] or b""
        if column is not None and len(start) >= 2 and len(stop) >= 2:
            rows = max(0, live["num_entries"] - 2 * live["num_deletions"])  # a deletion, and what it deletes
            first, last = (int.from_bytes(key[:2], "big") for key in (start, stop))
            files[name] = SortedFile(column, live["size"], rows, range(first, last + 1))
    return files


def _shares(path: Path, file: SortedFile) -> Mapping[int, int]:
    """Return the bytes of rows by key group; where the file's index cannot be read, the same for all of them."""
    try:
        shares = bytes_by_group(path)
    except (OSError, ValueError, RayflinkError):  # a checkpoint does not fail for its figures
        shares = None
    inside = {group: size for group, size in (shares or {}).items() if group in file.groups}
    return inside if sum(inside.values()) else dict.fromkeys(file.groups, 1)


def _column_size(
    column: StoredColumn, files: Mapping[str, SortedFile], shares: Mapping[str, Mapping[int, int]],
    stored: Collection[str], owned: range,
) -> StateSize:  # fmt: skip
    bytes_of: dict[int, float] = {}
    rows_of: dict[int, float] = {}
    for name, file in files.items():
        whole = sum(shares[name].values())
        for group, part in shares[name].items():
            if group in owned:
                bytes_of[group] = bytes_of.get(group, 0) + file.size_bytes * part / whole
                rows_of[group] = rows_of.get(group, 0) + file.rows * part / whole
    groups = tuple(
        GroupSize(group, group + 1, round(bytes_of[group]), round(rows_of[group]) if column.counts_rows else UNKNOWN)
        for group in sorted(bytes_of)
    )
    written = sum(file.size_bytes for name, file in files.items() if name not in stored)
    return StateSize(column.name, column.kind, written, groups, is_estimate=True)


__all__ = ["SortedFile", "SortedFiles", "StoredColumn", "sorted_files"]
