"""The RocksDB database of a subtask: column families of sorted rows, opened when the first row is written.

There is no write-ahead log: what is durable is in snapshots. A database belongs to one attempt and lies in a fresh
folder, for RocksDB keeps its lock as long as any iterator lives. Rows are written in batches of a few thousand, because
a write holds the interpreter's lock.

Source: apache/flink RocksDBResourceContainer, RocksDBMemoryControllerUtils (one cache and one write buffer manager for
all databases of a slot).
"""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..private_folders import make_private
from .column_family import ColumnFamily, DatabaseError
from .sorted_files import SortedFile, SortedFiles, sorted_files

if TYPE_CHECKING:
    import rocksdict

READ_ROWS = 1024
"""Rows asked for at once, at most."""
_LEAST_READ_ROWS = 64
_REMOVALS = 100
_MEANWHILE = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY}


@dataclass(frozen=True, slots=True)
class RocksDBOptions:
    """Options of databases; None leaves RocksDB's own default.

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
    """The memory that all databases of a slot share: one budget for the block cache and the memtables.

    Args:
        size: bytes of both together.
        write_ratio: share of it that memtables may fill before they are flushed, in (0, 1).
        read_threads: that read the rows of one batch.
    """

    def __init__(self, size: int, write_ratio: float = 0.5, read_threads: int = 8) -> None:
        import rocksdict

        self.size = size
        self._write_bytes = max(1, int(size * write_ratio))
        self.write_buffer_bytes = min(64 << 20, max(64 << 10, self._write_bytes // 4))
        """Size of a column's memtable where no option sets it: several columns have to share."""
        self.overlaid: set[ColumnFamily] = set()
        """Columns that have written rows since links began to be made, which wait in memory."""
        self.cache = rocksdict.Cache(size)
        self.writes = rocksdict.WriteBufferManager.new_write_buffer_manager_with_cache(
            self._write_bytes, False, self.cache
        )

        self.readers = ThreadPoolExecutor(read_threads, "rocksdb-read") if read_threads > 1 else None
        """Read parts of a batch at the same time: RocksDB waits for one block after the other."""
        self.read_threads = read_threads
        self.flushers = ThreadPoolExecutor(4, "rocksdb-flush")
        """Write memtables to disk, of several columns at the same time."""
        self.linkers = ThreadPoolExecutor(4, "rocksdb-link")
        """Wait for them, and make links to the files."""

    @property
    def used(self) -> int:
        """Return the bytes in use."""
        return int(self.cache.get_usage())

    @property
    def max_overlay_bytes(self) -> int:
        """Return the most bytes a column family may overlay while links are made: a memtable's, and its share of all
        memtables.
        """
        return min(self.write_buffer_bytes, self._write_bytes // max(1, len(self.overlaid)))

    def close(self) -> None:
        """Stop the threads."""
        self.linkers.shutdown()
        self.flushers.shutdown()
        if self.readers is not None:
            self.readers.shutdown()


class RocksDBStore:
    """The database of one operator in one subtask, with a column family for each state.

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
        self.sorted_files = SortedFiles()
        """The files of its checkpoints, by state and key group."""
        self._columns: dict[str, ColumnFamily] = {}
        self._opened: rocksdict.Rdict | None = None
        self._flushing: dict[str, Future[None]] = {}
        self._linking: Future[Path] | None = None
        self._links: set[Path] = set()
        self._links_made = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Return whether anything was written."""
        return self._opened is not None

    @property
    def database(self) -> rocksdict.Rdict:
        """Return the database, which is opened now if it is not."""
        if self._opened is None:
            import rocksdict

            try:
                make_private(self.folder, may_exist=False)
                self._opened = rocksdict.Rdict(str(self._files), self.settings())
            except Exception as error:
                raise DatabaseError("open a database", str(self.folder), str(error)) from error
            self._opened.set_write_options(self._without_log())
        return self._opened

    @property
    def _files(self) -> Path:
        return self.folder / "db"

    def open_from(self, fetch: Callable[[Path], None]) -> list[str]:
        """Open the database whose files `fetch` puts into a folder; return the names of its column families.

        Raises:
            DatabaseError: it cannot be opened; what `fetch` raises is passed on.
        """
        import rocksdict

        try:
            make_private(self._files, may_exist=False)
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
                    names.append(column_name(name))
                    self.column(names[-1]).bind(rows, self._opened.get_column_family_handle(name))
        except Exception as error:
            raise DatabaseError("open a restored database", str(self.folder), str(error)) from error
        return names

    @property
    def writes_are_full(self) -> bool:
        """Return whether unflushed writes take more memory than they may."""
        writes = self._memory().writes
        return bool(writes.get_usage() > writes.get_buffer_size())

    def read_in_parallel(self, column: Any, rows: list[bytes]) -> Iterable[list[bytes | None]]:
        """Return the values of rows, part by part in their order; the parts are read concurrently."""
        memory = self._memory()
        size = min(READ_ROWS, max(_LEAST_READ_ROWS, -(-len(rows) // memory.read_threads)))
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        if memory.readers is None or len(parts) == 1:
            return map(column.__getitem__, parts)
        return memory.readers.map(column.__getitem__, parts)

    def column(self, name: str) -> ColumnFamily:
        """Return the column family of a state; the same for the same name."""
        if name not in self._columns:
            self._columns[name] = ColumnFamily(self, name)
            if self._linking is not None and self.is_linking:
                self._columns[name].overlay_until(self._linking)
        return self._columns[name]

    def open_column(self, name: str) -> tuple[Any, Any]:
        """Create the column family in the database; return its rows, and its handle for batches."""
        name = stored_name(name)
        rows = self.database.create_column_family(name, self.settings())
        rows.set_write_options(self._without_log())
        return rows, self.database.get_column_family_handle(name)

    @property
    def max_overlay_bytes(self) -> int:
        """Return the most bytes a column family may overlay while links are made, since memtables are empty then."""
        return self._memory().max_overlay_bytes

    @property
    def overlaid(self) -> set[ColumnFamily]:
        """Return the column families of the slot that have an overlay."""
        return self._memory().overlaid

    @property
    def is_linking(self) -> bool:
        """Return whether links are being made."""
        return self._linking is not None and not self._linking.done()

    def flush_in_background(self, least_bytes: int) -> None:
        """Let other threads flush memtables of at least this size, while rows are written to new ones."""
        for name, column in self._columns.items():
            if name not in self._flushing or self._flushing[name].done():
                if column.unflushed_bytes >= least_bytes:
                    self._flushing[name] = self._memory().flushers.submit(column.flush)

    def drain_some(self) -> bool:
        """Write some of the overlays; return whether nothing is left in them."""
        for column in self._columns.values():
            column.drain_some()
        return all(column.is_drained for column in self._columns.values())

    def drain(self) -> None:
        """Wait for links that are being made, then write all overlays."""
        if self._linking is not None:
            self._linking.exception()  # a capture sees the error
        for column in self._columns.values():
            column.drain()

    def link(self, dirty: Mapping[ColumnFamily, Iterable[tuple[bytes, bytes]]]) -> Future[Path]:
        """Begin to make a folder with hard links to files that hold all rows as they are now; pass it to `unlink`.

        Another thread does it: it writes the dirty rows, and waits for memtables to be on disk, and so for
        compactions. Rows that are written until it is done are held back, for they would be in the files.
        """
        self.drain()
        flushing, self._flushing = list(self._flushing.values()), {}
        for column in dirty:
            column.open()
        self._links_made += 1
        folder = self.folder / f"links-{self._links_made}"
        columns = list(self._columns.values())
        self._linking = self._memory().linkers.submit(self._make_links, dirty, columns, flushing, folder)
        for column in self._columns.values():
            column.overlay_until(self._linking)
        return self._linking

    def _make_links(
        self,
        dirty: Mapping[ColumnFamily, Iterable[tuple[bytes, bytes]]],
        columns: Sequence[ColumnFamily],
        flushing: Sequence[Future[None]],
        folder: Path,
    ) -> Path:
        """Make the folder when all is flushed: making it would flush too, but under the interpreter's lock."""
        import rocksdict

        flushers, under_way = self._memory().flushers, list(flushing)
        try:
            for column, rows in dirty.items():
                column.write_now(rows)
            under_way += [flushers.submit(column.flush) for column in columns if column.unflushed_bytes]
        finally:
            wait(under_way)  # whoever closes the database waits for this thread alone
        for flushed in under_way:
            flushed.result()
        try:
            before = self._files_by_name(columns)
            checkpoint = rocksdict.Checkpoint(self.database)
            checkpoint.create_checkpoint(str(folder))
            del checkpoint  # it keeps the database open
            self.sorted_files.linked(folder, before | self._files_by_name(columns))  # a compaction may come between
        except Exception as error:
            _remove(folder)
            raise DatabaseError("make links to its files", str(folder), str(error)) from error
        with self._lock:
            self._links.add(folder)
        return folder

    def _files_by_name(self, columns: Sequence[ColumnFamily]) -> dict[str, SortedFile]:
        return sorted_files(self.database.live_files(), {column.name: column.files_text for column in columns})

    def unlink(self, link: Future[Path]) -> None:
        """Remove a folder with links, once it is made; may be called by any thread, and after `close`."""
        link.add_done_callback(self._unlink)

    def _unlink(self, link: Future[Path]) -> None:
        if link.exception() is not None:
            return  # there is none
        self.sorted_files.unlinked(link.result())
        _remove(link.result())
        with self._lock:
            self._links.discard(link.result())
            if self._closed and not self._links:
                _remove(self.folder)

    def bytes_on_disk(self) -> int:
        """Return the size of all files; 0 where there are none."""
        if self._opened is None:
            return 0
        return sum(file.stat().st_size for file in self._files.glob("*.sst"))

    def close(self) -> None:
        """Close the database and remove its folder, except links that are still read; a second call does nothing."""
        for flushed in self._flushing.values():
            flushed.exception()  # whoever needed the rows on disk would have seen the error
        self._flushing.clear()
        linking, self._linking = self._linking, None
        if linking is not None:
            linking.exception()
        for column in self._columns.values():
            column.release()
        opened, self._opened = self._opened, None
        try:
            if opened is not None:
                opened.close()
        except Exception as error:  # it would write rows that are not needed any more
            if self._files.exists():
                raise DatabaseError("close a database", str(self.folder), str(error)) from error
        finally:
            del opened
            with self._lock:
                self._closed = True
                _remove(self._files if self._links else self.folder)

    def settings(self) -> Any:
        """Return the RocksDB options of a database and each of its column families."""
        import rocksdict

        options, memory, settings = self._options, self._memory(), rocksdict.Options(raw_mode=True)
        settings.create_if_missing(True)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(memory.cache)
        blocks.set_block_size(options.block_bytes)
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
        blocks.set_format_version(5)
        if options.bloom_bits:
            blocks.set_bloom_filter(options.bloom_bits, False)
        settings.set_block_based_table_factory(blocks)
        settings.set_write_buffer_manager(memory.writes)
        settings.set_compression_type(getattr(rocksdict.DBCompressionType, options.compression)())
        settings.set_compaction_style(getattr(rocksdict.DBCompactionStyle, options.compaction)())
        settings.set_level_compaction_dynamic_level_bytes(True)
        settings.set_max_open_files(options.max_open_files)
        settings.set_max_background_jobs(options.background_jobs)
        settings.set_use_direct_reads(options.direct_io)
        settings.set_use_direct_io_for_flush_and_compaction(options.direct_io)
        settings.set_bytes_per_sync(1 << 20)  # else a flush waits for all that compactions have not written out yet
        settings.set_keep_log_file_num(1)
        settings.set_stats_dump_period_sec(0)
        settings.set_write_buffer_size(options.write_buffer_bytes or memory.write_buffer_bytes)
        if options.write_buffers is not None:
            settings.set_max_write_buffer_number(options.write_buffers)
        return settings

    def _without_log(self) -> Any:
        import rocksdict

        options = rocksdict.WriteOptions()
        options.disable_wal = True  # type: ignore[method-assign, assignment]  # a property, whatever its stub says
        return options


def stored_name(name: str) -> str:
    r"""Return the name of a column family in the database: RocksDB's are C strings of UTF-8.

    >>> stored_name("a\tb") == "a\tb", column_name(stored_name("a\tb")) == "a\tb"
    (False, True)
    """
    return name.encode("unicode_escape").decode()


def column_name(stored: str) -> str:
    """Return the name whose `stored_name` this is."""
    return stored.encode().decode("unicode_escape")


def _remove(folder: Path) -> None:
    """Remove a folder; it is no error if it has already gone with its parent.

    An iterator that has not been read to its end keeps the database at work: files come and go meanwhile.
    """
    for left in reversed(range(_REMOVALS)):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            if error.errno not in _MEANWHILE or (not left and folder.exists()):
                raise
        if not folder.exists():
            return


__all__ = [
    "RocksDBMemory", "RocksDBOptions", "RocksDBStore", "column_name", "stored_name",
]  # fmt: skip
