"""A column family in memory, and the simplest layout of rows, to test a row cache without RocksDB."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any


class ColumnInMemory:
    """Rows in a dict, with those written during a capture in an overlay, as in a `ColumnFamily`.

    `reads` counts the rows that were looked up, `writes` those that were set.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self._overlay: dict[bytes, bytes | None] | None = None
        self._deleted_ranges: list[tuple[bytes, bytes]] = []
        self._has_rows = False
        self.reads = self.writes = 0

    @property
    def is_empty(self) -> bool:
        return not self._has_rows

    def read(self, row: bytes) -> bytes | None:
        self.reads += 1
        if self._overlay is not None and row in self._overlay:
            return self._overlay[row]
        return self.rows.get(row)

    def read_all(self, rows: list[bytes]) -> list[bytes | None]:
        assert rows == sorted(rows)
        return [self.read(row) for row in rows]

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = ()) -> None:
        target: Any = self.rows if self._overlay is None else self._overlay
        for row in deletes:
            target[row] = None
        for row, data in puts:
            target[row] = data
            self.writes += 1
            self._has_rows = True
        self._drop_deleted()

    def delete_range(self, start: bytes, stop: bytes) -> None:
        if self._overlay is not None:
            self._deleted_ranges.append((start, stop))
        self.write((), [row for row in self.visible() if start <= row < stop])

    def visible(self) -> dict[bytes, bytes]:
        """Return all rows that a read sees."""
        overlaid = {**self.rows, **(self._overlay or {})}
        return {row: data for row, data in overlaid.items() if data is not None}

    def begin_capture(self) -> None:
        """Hold back what is written from now on."""
        self._overlay, self._has_rows = {}, True

    def end_capture(self, captured: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        """Write the captured rows, return all rows of the capture, and then write what was held back."""
        self.rows.update(captured)
        rows = dict(self.rows)
        overlay, self._overlay = self._overlay or {}, None
        for start, stop in self._deleted_ranges:
            self.rows = {row: data for row, data in self.rows.items() if not start <= row < stop}
        self._deleted_ranges = []
        self.rows.update(overlay)  # type: ignore[arg-type]
        self._drop_deleted()
        return rows

    def _drop_deleted(self) -> None:
        if self._overlay is None:
            self.rows = {row: data for row, data in self.rows.items() if data is not None}


class PickledRows:
    """Rows named by the text of namespace and key, with pickled values."""

    def row(self, namespace: Any, key: Any) -> bytes:
        return f"{namespace!r}/{key!r}".encode()

    def rows(self, namespace: Any, keys: list[Any]) -> list[bytes]:
        return [self.row(namespace, key) for key in keys]

    def encode(self, namespace: Any, key: Any, value: Any) -> bytes:
        return pickle.dumps((namespace, key, value))

    def encode_all(self, namespace: Any, keys: list[Any], values: list[Any]) -> list[bytes]:
        return [self.encode(namespace, key, value) for key, value in zip(keys, values, strict=True)]

    def decode(self, data: bytes) -> Any:
        return pickle.loads(data)[2]

    def decode_all(self, rows: list[bytes | None]) -> list[Any]:
        return [None if data is None else self.decode(data) for data in rows]

    def key_of(self, namespace: Any, key: Any) -> Any:
        return key


__all__ = ["ColumnInMemory", "PickledRows"]
