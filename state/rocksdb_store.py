"""One RocksDB database of a subtask: columns of sorted rows, opened when the first row is written.

There is no write-ahead log: what is durable is in snapshots. A database belongs to one attempt and lies in a fresh
folder, for RocksDB keeps its lock as long as any iterator lives. Rows are written in batches of a few thousand, because
a write holds the interpreter's lock.

Source: apache/flink RocksDBResourceContainer, RocksDBMemoryControllerUtils (one cache and one write buffer manager for
all databases of a slot).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import RayflinkError, StateError

WRITE_ROWS = 4096
"""Rows of one write."""
WRITE_BYTES = 1 << 20
"""Bytes after which a write has no further row."""
READ_ROWS = 1024
"""Rows asked for at once, at most."""
_LEAST_READ_ROWS = 64


@dataclass(frozen=True, slots=True)
class RocksDBOptions:
    """How databases are made; None leaves RocksDB's own default.

    Args:
        bloom_bits: bits a key of the filters that tell which files cannot hold it; 0 for none.
        block_bytes: uncompressed size of a block.
        write_buffer_bytes: of one memtable; None for a part of the memory.
        write_buffers: memtables of a column at most.
        max_open_files: -1 for all.
        background_jobs: threads that flush and compact.
        direct_io: do not go through the page cache of the operating system.
        compression: "none", "snappy", "lz4" or "zstd".
        compaction: "level", or "universal", which rewrites files less often and takes more space.
    """

    bloom_bits: int = 10
    block_bytes: int = 4096
    write_buffer_bytes: int | None = None
    write_buffers: int | None = None
    max_open_files: int = -1
    background_jobs: int = 2
    direct_io: bool = False
    compression: str = "lz4"
    compaction: str = "level"


class RocksDBMemory:
    """The memory all databases of a slot share: blocks that were read, and memtables, which count to the same bytes.

    Args:
        size: bytes of both together.
        write_ratio: share of it that memtables may fill before they are flushed, in (0, 1).
        read_threads: that read the rows of one batch.
    """

    def __init__(self, size: int, write_ratio: float = 0.5, read_threads: int = 8) -> None:
        import rocksdict

        self.size = size
        self.write_buffer_bytes = min(64 << 20, max(64 << 10, int(size * write_ratio) // 4))
        """Of a column's memtable where no option says it: several columns have to share."""
        self.cache = rocksdict.Cache(size)
        self.writes = rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(
            max(1, int(size * write_ratio)), False, self.cache
        )

        self.readers = ThreadPoolExecutor(read_threads, "rocksdb-read") if read_threads > 1 else None
        """Read parts of a batch at the same time: RocksDB waits for one block after the other."""
        self.read_threads = read_threads
        self.flushers = ThreadPoolExecutor(4, "rocksdb-flush")
        """Write memtables to disk, of several columns at the same time."""

    @property
    def used(self) -> int:
        """Bytes in use."""
        return int(self.cache.get_usage())

    def close(self) -> None:
        """End the threads."""
        self.flushers.shutdown()
        if self.readers is not None:
            self.readers.shutdown()


class DatabaseError(StateError):
    """RocksDB refused an operation.

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


class Column:
    """The sorted rows of one state; until something is written it is empty and costs nothing."""

    def __init__(self, store: RocksDBStore, name: str) -> None:
        self._store = store
        self._name = name
        self._rows: Any = None
        self._handle: Any = None

    @property
    def is_empty(self) -> bool:
        """True while nothing was ever written."""
        return self._rows is None

    def read(self, row: bytes) -> bytes | None:
        """What a row holds, or None.

        Raises:
            DatabaseError: RocksDB refused; so do all methods.
        """
        if self._rows is None:
            return None
        try:
            found: bytes | None = self._rows.get(row)
        except Exception as error:
            raise self._refused("read", error) from error
        return found

    def read_all(self, rows: list[bytes]) -> list[bytes | None]:
        """What rows hold, or None, in their order; they are best sorted."""
        if self._rows is None:
            return [None] * len(rows)
        found: list[bytes | None] = []
        try:
            for part in self._store.read_in_parallel(self._rows, rows):
                found += part
        except Exception as error:
            raise self._refused("read", error) from error
        return found

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = ()) -> None:
        """Delete rows, then set rows; what `puts` raises is passed on."""
        batch = None
        try:
            for row in deletes:
                batch = self._batch() if batch is None else batch
                batch.delete(row)
                batch = self._written(batch)
            for row, value in puts:
                batch = self._batch() if batch is None else batch
                batch[row] = value
                batch = self._written(batch)
            if batch is not None:
                self._put_in(batch)
        except RayflinkError:
            raise  # of a value or a key, not of the disk
        except Exception as error:
            raise self._refused("write", error) from error

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Delete all rows from `start` on and before `stop`."""
        if self._rows is not None:
            try:
                self._rows.delete_range(start, stop)
            except Exception as error:
                raise self._refused("delete rows", error) from error

    def scan(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """(row, value) of all rows with a prefix, in order, from `start` on; as of the first that is asked for."""
        if self._rows is None:
            return
        try:
            yield from scanned(self._rows, prefix, start)
        except Exception as error:
            raise self._refused("read", error) from error

    def flush(self) -> None:
        """Write the memtable to disk; other threads run meanwhile."""
        if self._rows is not None:
            try:
                self._rows.flush()
            except Exception as error:
                raise self._refused("flush", error) from error

    @property
    def unflushed_bytes(self) -> int:
        """Size of what is in memtables; 0 for one that is empty."""
        if self._rows is None or not self._rows.property_int_value("rocksdb.num-entries-active-mem-table"):
            return 0
        return int(self._rows.property_int_value("rocksdb.cur-size-active-mem-table"))

    def ingest(self, files: list[Path]) -> None:
        """Take in files of sorted rows, which go away."""
        import rocksdict

        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        try:
            if self._rows is None:
                self._rows, self._handle = self._store.open_column(self._name)
            self._rows.ingest_external_file([str(file) for file in files], options)
        except Exception as error:
            raise self._refused("take in rows", error) from error

    def bind(self, rows: Any, handle: Any) -> None:
        """The database was opened with this column in it."""
        self._rows, self._handle = rows, handle

    def release(self) -> None:
        """Let go of the database."""
        self._rows = self._handle = None

    def _refused(self, action: str, error: Exception) -> DatabaseError:
        """RocksDB's errors are of one class, with the story in the text."""
        return DatabaseError(action, str(self._store.folder), str(error))

    def _batch(self) -> Any:
        import rocksdict

        if self._rows is None:
            self._rows, self._handle = self._store.open_column(self._name)
        batch = rocksdict.WriteBatch(raw_mode=True)
        batch.set_default_column_family(self._handle)
        return batch

    def _written(self, batch: Any) -> Any:
        if len(batch) < WRITE_ROWS and batch.size_in_bytes() < WRITE_BYTES:
            return batch
        self._put_in(batch)
        return None

    def _put_in(self, batch: Any) -> None:
        """Write a batch; where memtables have all of their memory, wait until they are on disk.

        RocksDB's own way to wait would do so inside of the write, which holds the interpreter's lock; a flush does not.
        """
        self._store.database.write(batch)
        if self._store.writes_are_full:
            self._rows.flush()


class RocksDBStore:
    """The database of one operator in one subtask, with a column for each state.

    Args:
        folder: which is made when the first row is written, and goes with the store.
        memory: gives what the databases of the slot share, when the database is opened.
        options: how it is made.
    """

    def __init__(
        self, folder: Path, memory: Callable[[], RocksDBMemory], options: RocksDBOptions | None = None
    ) -> None:
        self.folder = folder
        self._memory = memory
        self._options = options or RocksDBOptions()
        self._columns: dict[str, Column] = {}
        self._opened: Any = None
        self._flushing: dict[str, Future[None]] = {}
        self._links: set[Path] = set()
        self._links_made = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether anything was written."""
        return self._opened is not None

    @property
    def database(self) -> Any:
        """The database, which is opened now if it is not."""
        if self._opened is None:
            import rocksdict

            try:
                self.folder.mkdir(parents=True, exist_ok=False)
                self._opened = rocksdict.Rdict(str(self._files), self.settings())
            except Exception as error:
                raise DatabaseError("open a database", str(self.folder), str(error)) from error
            self._opened.set_write_options(self._without_log())
        return self._opened

    @property
    def _files(self) -> Path:
        return self.folder / "db"

    def open_from(self, fetch: Callable[[Path], None]) -> list[str]:
        """Open the database whose files `fetch` puts into a folder; the names of its columns.

        Raises:
            DatabaseError: it cannot be opened; what `fetch` raises is passed on.
        """
        import rocksdict

        try:
            self._files.mkdir(parents=True, exist_ok=False)
        except OSError as error:
            raise DatabaseError("restore a database", str(self.folder), str(error)) from error
        fetch(self._files)
        try:
            stored = rocksdict.Rdict.list_cf(str(self._files), self.settings())
            columns = {name: self.settings() for name in stored}
            self._opened = rocksdict.Rdict(str(self._files), self.settings(), column_families=columns)
            self._opened.set_write_options(self._without_log())
            names = []
            for name in stored:
                if name != "default":
                    rows = self._opened.get_column_family(name)
                    rows.set_write_options(self._without_log())
                    names.append(name_in(name))
                    self.column(names[-1]).bind(rows, self._opened.get_column_family_handle(name))
        except Exception as error:
            raise DatabaseError("open a restored database", str(self.folder), str(error)) from error
        return names

    @property
    def writes_are_full(self) -> bool:
        """Whether what was written and is not on disk yet takes more memory than it may."""
        writes = self._memory().writes
        return bool(writes.get_usage() > writes.get_buffer_size())

    def read_in_parallel(self, column: Any, rows: list[bytes]) -> Iterable[list[bytes | None]]:
        """What rows hold, part by part in their order; the parts are read at the same time."""
        memory = self._memory()
        size = min(READ_ROWS, max(_LEAST_READ_ROWS, -(-len(rows) // memory.read_threads)))
        parts = [rows[at : at + size] for at in range(0, len(rows), size)]
        if memory.readers is None or len(parts) == 1:
            return map(column.__getitem__, parts)
        return memory.readers.map(column.__getitem__, parts)

    def column(self, name: str) -> Column:
        """The column of a state; the same for the same name."""
        if name not in self._columns:
            self._columns[name] = Column(self, name)
        return self._columns[name]

    def open_column(self, name: str) -> tuple[Any, Any]:
        """Make the column in the database: its rows, and its handle for batches."""
        name = stored_name(name)
        rows = self.database.create_column_family(name, self.settings())
        rows.set_write_options(self._without_log())
        return rows, self.database.get_column_family_handle(name)

    def flush_beside(self, least_bytes: int) -> None:
        """Let other threads write to disk the memtables of so many bytes, while rows are written to new ones."""
        for name, column in self._columns.items():
            if name not in self._flushing or self._flushing[name].done():
                if column.unflushed_bytes >= least_bytes:
                    self._flushing[name] = self._memory().flushers.submit(column.flush)

    def link(self) -> Path:
        """A folder with hard links to files that hold all rows as they are now; give it back to `unlink`.

        Making the links holds the interpreter's lock, and would write memtables under it: they are written before.
        """
        import rocksdict

        self.flush_beside(1)
        flushing, self._flushing = self._flushing, {}
        for flushed in flushing.values():
            flushed.result()
        for column in self._columns.values():
            if column.unflushed_bytes:  # written after another flush of it had begun
                column.flush()
        self._links_made += 1
        folder = self.folder / f"links-{self._links_made}"
        try:
            checkpoint = rocksdict.Checkpoint(self.database)
            checkpoint.create_checkpoint(str(folder))
            del checkpoint  # it keeps the database open
        except Exception as error:
            raise DatabaseError("make links to its files", str(folder), str(error)) from error
        self._links.add(folder)
        return folder

    def unlink(self, folder: Path) -> None:
        """Remove a folder with links; may be called by any thread, and after `close`."""
        _remove(folder)
        with self._lock:
            self._links.discard(folder)
            if self._closed and not self._links:
                _remove(self.folder)

    def bytes_on_disk(self) -> int:
        """Size of all files; 0 where there are none."""
        if self._opened is None:
            return 0
        return sum(file.stat().st_size for file in self._files.glob("*.sst"))

    def close(self) -> None:
        """Close the database and remove its folder, but for links that are still read; a second call does nothing."""
        for flushed in self._flushing.values():
            flushed.exception()  # whoever needed the rows on disk would have been told
        self._flushing.clear()
        for column in self._columns.values():
            column.release()
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
            del opened
        with self._lock:
            self._closed = True
            _remove(self._files if self._links else self.folder)

    def settings(self) -> Any:
        """How a database and each of its columns is made."""
        import rocksdict

        given, memory, settings = self._options, self._memory(), rocksdict.Options(raw_mode=True)
        settings.create_if_missing(True)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(memory.cache)
        blocks.set_block_size(given.block_bytes)
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
        blocks.set_format_version(5)
        if given.bloom_bits:
            blocks.set_bloom_filter(given.bloom_bits, False)
        settings.set_block_based_table_factory(blocks)
        settings.set_write_buffer_manager(memory.writes)
        settings.set_compression_type(getattr(rocksdict.DBCompressionType, given.compression)())
        settings.set_compaction_style(getattr(rocksdict.DBCompactionStyle, given.compaction)())
        settings.set_level_compaction_dynamic_level_bytes(True)
        settings.set_max_open_files(given.max_open_files)
        settings.set_max_background_jobs(given.background_jobs)
        settings.set_use_direct_reads(given.direct_io)
        settings.set_use_direct_io_for_flush_and_compaction(given.direct_io)
        settings.set_bytes_per_sync(1 << 20)  # else a flush waits for all that compactions have not written out yet
        settings.set_keep_log_file_num(1)
        settings.set_stats_dump_period_sec(0)
        settings.set_write_buffer_size(given.write_buffer_bytes or memory.write_buffer_bytes)
        if given.write_buffers is not None:
            settings.set_max_write_buffer_number(given.write_buffers)
        return settings

    def _without_log(self) -> Any:
        import rocksdict

        options = rocksdict.WriteOptions()
        options.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, whatever its stub says
        return options


def scanned(rows: Any, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """(row, value) of all rows of an open column with a prefix, in order, from `start` on."""
    import rocksdict

    options = rocksdict.ReadOptions()
    stop = beyond(prefix)
    if stop is not None:
        options.set_iterate_upper_bound(stop)
    yield from rows.items(from_key=max(prefix, start), read_opt=options)


def stored_name(name: str) -> str:
    r"""The name of a column in the database: RocksDB's are C strings of UTF-8.

    >>> stored_name("a\tb") == "a\tb", name_in(stored_name("a\tb")) == "a\tb"
    (False, True)
    """
    return name.encode("unicode_escape").decode()


def name_in(stored: str) -> str:
    """The name whose `stored_name` it is."""
    return stored.encode().decode("unicode_escape")


def _remove(folder: Path) -> None:
    """Remove a folder; one that has gone with its parent already is no error."""
    try:
        shutil.rmtree(folder)
    except (FileNotFoundError, NotADirectoryError):
        return


def beyond(prefix: bytes) -> bytes | None:
    """The least bytes above all that begin with a prefix; None where there are none.

    >>> beyond(b"ab"), beyond(bytes([1, 255])), beyond(bytes([255]))
    (b'ac', b'\\x02', None)
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


__all__ = [
    "Column", "DatabaseError", "RocksDBMemory", "RocksDBOptions", "RocksDBStore", "beyond", "name_in", "scanned",
    "stored_name",
]  # fmt: skip
