"""The sorted rows of one state in a RocksDB database.

While the files of a checkpoint are made, what is written stays in memory: the files hold what was written before, and
nothing waits for them. Whoever reads sees all of it. Afterwards it is written, some with each write that follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RayflinkError, StateError
from .write_overlay import NOT_OVERLAID, WriteOverlay

if TYPE_CHECKING:
    import rocksdict

    from .rocksdb_store import RocksDBStore

WRITE_ROWS = 4096
"""Rows of one write."""
WRITE_BYTES = 1 << 20
"""Bytes after which a write has no further row."""


class DatabaseError(StateError):
    """Raised when RocksDB refuses an operation.

    Args:
        action: what was tried.
        folder: of the database.
        cause: what it said.
    """

    def __init__(self, action: str, folder: str, cause: str) -> None:
        super().__init__(action, folder, cause)
        self.action, self.folder, self.cause = action, folder, cause

    def __str__(self) -> str:
        return (
            f"RocksDB could not {self.action} in {self.folder}: {self.cause}; look for a full or failing disk, or set "
            "state.backend.rocksdb.localdir to another one"
        )


class ColumnFamily:
    """The sorted rows of one state in a RocksDB column family; it is created by the first write."""

    def __init__(self, store: RocksDBStore, name: str) -> None:
        self._store = store
        self.name = name
        self._rows: rocksdict.Rdict | None = None
        self._handle: rocksdict.ColumnFamily | None = None
        self._overlay: WriteOverlay | None = None
        self._linked: Future[Path] | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was ever written."""
        return self._rows is None and not self._overlay

    # the overlay

    def overlay_until(self, linked: Future[Path]) -> None:
        """Keep writes in memory until `linked` is done; the previous overlay must be drained."""
        self._overlay, self._linked = WriteOverlay(), linked

    def drain(self) -> None:
        """Wait for the links, then write the whole overlay."""
        if self._linked is not None:
            self._linked.exception()  # a capture sees the error
        while not self.is_drained:
            self.drain_some()

    @property
    def is_drained(self) -> bool:
        """Return whether no write waits in memory."""
        return self._overlay is None

    def drain_some(self) -> None:
        """Write some rows of the overlay, unless the links are still being made."""
        overlay = self._overlay
        if overlay is None or self._still_linking():
            return
        batch = None
        try:
            for row, value in overlay.pop_rows(WRITE_ROWS):
                batch = self._batch() if batch is None else batch
                if value is None:
                    batch.delete(row)
                else:
                    batch[row] = value
                batch = self._write_if_full(batch)
            if batch is not None:
                self._write_batch(batch)
        except Exception as error:
            raise self._database_error("write", error) from error
        if not overlay:
            self._drop_overlay()

    def _still_linking(self) -> bool:
        """Return whether writes still have to wait; when they need not any more, delete ranges, since rows come after
        them.
        """
        if self._linked is not None and self._linked.done():
            self._linked = None
            assert self._overlay is not None
            for start, stop in self._overlay.pop_ranges():
                self._delete_range(start, stop)
        return self._linked is not None

    def _drop_overlay(self) -> None:
        """Drop the overlay, which is empty."""
        if self._overlay is not None:
            self._overlay = None
            self._store.overlaid.discard(self)

    def _write_to_overlay(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        overlay, linked = self._overlay, self._linked
        assert overlay is not None and linked is not None
        self._store.overlaid.add(self)
        for row in deletes:
            overlay.put(row, None)
        for row, value in puts:
            overlay.put(row, value)
        if overlay.bytes > self._store.max_overlay_bytes:
            linked.exception()  # wait: what is written faster than the disk takes it does not fill the memory

    def open(self) -> None:
        """Create the column family, if it does not exist: another thread is about to write rows."""
        if self._rows is None:
            try:
                self._rows, self._handle = self._store.open_column(self.name)
            except DatabaseError:
                raise
            except Exception as error:
                raise self._database_error("create a column family", error) from error

    def write_now(self, puts: Iterable[tuple[bytes, bytes]]) -> None:
        """Write rows beneath the overlay, in an open column family; called by the thread that makes the links."""
        self._write(puts, ())

    # rows

    def read(self, row: bytes) -> bytes | None:
        """Return the value of a row, or None.

        Raises:
            DatabaseError: RocksDB refused; so do all methods.
        """
        if self._overlay is not None and (overlaid := self._overlay.get(row)) is not NOT_OVERLAID:
            return overlaid
        if self._rows is None:
            return None
        try:
            value: bytes | None = self._rows.get(row)
        except Exception as error:
            raise self._database_error("read", error) from error
        return value

    def read_all(self, rows: list[bytes]) -> list[bytes | None]:
        """Return the values of rows in their order, None where there is no row; sorted rows are read fastest."""
        values: list[bytes | None] = []
        if self._rows is None:
            values = [None] * len(rows)
        else:
            try:
                for part in self._store.read_in_parallel(self._rows, rows):
                    values += part
            except Exception as error:
                raise self._database_error("read", error) from error
        if self._overlay is not None:
            overlaid = map(self._overlay.get, rows)
            values = [data if new is NOT_OVERLAID else new for new, data in zip(overlaid, values, strict=True)]
        return values

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = ()) -> None:
        """Delete rows, then set rows; an error raised by `puts` is passed on."""
        overlay = self._overlay
        if overlay is not None and self._still_linking():
            self._write_to_overlay(puts, deletes)
            return
        if overlay is None:
            self._write(puts, deletes)
            return
        deletes = [row for row in deletes if not overlay.replace_if_present(row, None)]
        self._write((pair for pair in puts if not overlay.replace_if_present(*pair)), deletes)
        self.drain_some()

    def _write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        batch = None
        try:
            for row in deletes:
                batch = self._batch() if batch is None else batch
                batch.delete(row)
                batch = self._write_if_full(batch)
            for row, value in puts:
                batch = self._batch() if batch is None else batch
                batch[row] = value
                batch = self._write_if_full(batch)
            if batch is not None:
                self._write_batch(batch)
        except RayflinkError:
            raise  # of a value or a key, not of the disk
        except Exception as error:
            raise self._database_error("write", error) from error

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Delete all rows from `start` on and before `stop`."""
        if self._overlay is not None:
            if self._still_linking():
                self._overlay.delete_range(start, stop)
                self._write_to_overlay((), ())
                return
            self._overlay.discard_range(start, stop)
        self._delete_range(start, stop)

    def _delete_range(self, start: bytes, stop: bytes) -> None:
        if self._rows is not None:
            try:
                self._rows.delete_range(start, stop)
            except Exception as error:
                raise self._database_error("delete rows", error) from error

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield (row, value) of all rows with a prefix, in order, from `start` on, as of the first `next`."""
        if self.is_empty:
            return
        stored: Iterator[tuple[bytes, bytes]] = iter(()) if self._rows is None else scan_rows(self._rows, prefix, start)
        try:
            yield from (
                stored if self._overlay is None else self._overlay.merge(stored, max(prefix, start), prefix_end(prefix))
            )
        except Exception as error:
            raise self._database_error("read", error) from error

    def flush(self) -> None:
        """Write the memtable to disk; other threads run meanwhile."""
        if self._rows is not None:
            try:
                self._rows.flush()
            except Exception as error:
                raise self._database_error("flush", error) from error

    @property
    def unflushed_bytes(self) -> int:
        """Return the size of unflushed memtables; 0 where they are empty."""
        if self._rows is None or not self._rows.property_int_value("rocksdb.num-entries-active-mem-table"):
            return 0
        return self._rows.property_int_value("rocksdb.cur-size-active-mem-table") or 0

    @property
    def files_text(self) -> str | None:
        """Return RocksDB's text on the column family's files; None where there are none."""
        return None if self._rows is None else self._rows.property_value("rocksdb.sstables")

    def ingest(self, files: list[Path]) -> None:
        """Ingest files of sorted rows, which are moved into the database."""
        import rocksdict

        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        try:
            if self._rows is None:
                self._rows, self._handle = self._store.open_column(self.name)
            self._rows.ingest_external_file([str(file) for file in files], options)
        except Exception as error:
            raise self._database_error("ingest rows", error) from error

    def bind(self, rows: rocksdict.Rdict, handle: rocksdict.ColumnFamily) -> None:
        """Use this open column family: the database was opened with it."""
        self._rows, self._handle = rows, handle

    def release(self) -> None:
        """Release the database."""
        self._drop_overlay()
        self._rows = self._handle = self._linked = None

    def _database_error(self, action: str, error: Exception) -> DatabaseError:
        """Wrap an error of RocksDB, which raises one class for all errors, with the cause in its message."""
        return DatabaseError(action, str(self._store.folder), str(error))

    def _batch(self) -> rocksdict.WriteBatch:
        import rocksdict

        if self._rows is None:
            self._rows, self._handle = self._store.open_column(self.name)
        batch = rocksdict.WriteBatch(raw_mode=True)
        batch.set_default_column_family(self._handle)
        return batch

    def _write_if_full(self, batch: rocksdict.WriteBatch) -> rocksdict.WriteBatch | None:
        if len(batch) < WRITE_ROWS and batch.size_in_bytes() < WRITE_BYTES:
            return batch
        self._write_batch(batch)
        return None

    def _write_batch(self, batch: rocksdict.WriteBatch) -> None:
        """Write a batch; where memtables have used up their memory, wait until they are flushed.

        RocksDB's own way to wait would do so inside of the write, which holds the interpreter's lock; a flush does not.
        """
        self._store.database.write(batch)
        if self._store.writes_are_full and self._rows is not None:
            self._rows.flush()


def scan_rows(rows: rocksdict.Rdict, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Yield (row, value) of all rows of an open column family with a prefix, in order, from `start` on."""
    import rocksdict

    options = rocksdict.ReadOptions()
    stop = prefix_end(prefix)
    if stop is not None:
        options.set_iterate_upper_bound(stop)
    yield from rows.items(from_key=max(prefix, start), read_opt=options)


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the least bytes above all that begin with a prefix; None where there are none.

    >>> prefix_end(b"ab"), prefix_end(bytes([1, 255])), prefix_end(bytes([255]))
    (b'ac', b'\\x02', None)
    """
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None


__all__ = ["ColumnFamily", "DatabaseError", "prefix_end", "scan_rows"]
