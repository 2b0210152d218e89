"""Databases as files of a snapshot: their metadata, and how their rows are read into another backend.

The rows of a key group are neighbours, so a group is read, deleted or moved as one range. A file of sorted rows that
one database made cannot be taken in by another: rows come over by an iterator and a new file.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from ..errors import SerializationError, SnapshotMismatch, UnresolvedClassError, VersionMismatch
from ..group_content import Content
from ..keys.key_encoding import KEY_ENCODING_VERSION, read_key
from ..snapshots import Blob, DatabaseFiles, SnapshotReader
from .column_family import ColumnFamily, DatabaseError, scan_rows
from .rocksdb_rows import StoredRow, entry_reader, read_timer
from .rocksdb_store import RocksDBStore, column_name
from .row_layout import RowLayout, prefixes

if TYPE_CHECKING:
    import rocksdict

DATABASE_FORMAT = 1
"""Version of the rows and of what is said about them; the first byte of `DatabaseFiles.about`."""
STATE, TIMERS = "state/", "timers/"
"""Prefix of the names of columns."""
_READERS = 4
_INTEGERS = 1
_FILE_ROWS = 1 << 20
Loads = Callable[[Any], Any]
"""Reads a pickle."""


@dataclass(frozen=True, slots=True)
class AboutDatabase:
    """The metadata needed to read a database.

    Args:
        max_parallelism: key groups in all.
        tables: state -> stored kind.
        next_parts: list state -> a number above those of all parts of lists.
        far_from_ms: queue -> no timer in the database is before that time.
        classes: of windows, by their number in the rows.
        key_encoding: version of the bytes of keys.
    """

    max_parallelism: int
    tables: Mapping[str, str]
    next_parts: Mapping[str, int]
    far_from_ms: Mapping[str, int]
    classes: tuple[type, ...]
    key_encoding: int = KEY_ENCODING_VERSION

    def encode(self) -> bytes:
        """Encode the metadata as bytes.

        Raises:
            SerializationError: a class has no name by which it is found.
        """
        fields = (self.max_parallelism, dict(self.tables), dict(self.next_parts), dict(self.far_from_ms), self.classes,
                  self.key_encoding)  # fmt: skip
        try:
            return bytes((DATABASE_FORMAT,)) + pickle.dumps(fields, protocol=5)
        except Exception as error:  # pickle says it in several ways
            problem = f"the class of a window ({type(error).__name__}: {error})"
            raise SerializationError(
                "the RocksDB backend", problem, "define it at the top level of a module"
            ) from error


def read_about(
    database: DatabaseFiles, max_parallelism: int, operator_uid: str, loads: Loads = pickle.loads
) -> AboutDatabase:
    """Read the metadata of a database that is to be restored.

    Raises:
        VersionMismatch: it is of a format that is not read here.
        SnapshotMismatch: it is of another max parallelism.
        UnresolvedClassError: the class of a window is not there.
    """
    if database.about[:1] != bytes((DATABASE_FORMAT,)):
        written = f"database format {database.about[0]}" if database.about else "no bytes"
        raise VersionMismatch(written, f"database format {DATABASE_FORMAT}", "(all)", operator_uid)
    try:
        about = AboutDatabase(*loads(memoryview(database.about)[1:]))
    except (AttributeError, ImportError) as error:  # what pickle raises where the name of a class leads nowhere
        name = getattr(error, "name", None) or f"of a window of operator {operator_uid or '(unknown)'}"
        raise UnresolvedClassError(str(name), str(error)) from error
    if about.key_encoding != KEY_ENCODING_VERSION:
        written, read = f"key encoding {about.key_encoding}", f"key encoding {KEY_ENCODING_VERSION}"
        raise VersionMismatch(written, read, "(all)", operator_uid)
    if about.max_parallelism != max_parallelism:
        written, declared = f"max parallelism {about.max_parallelism}", f"max parallelism {max_parallelism}"
        raise SnapshotMismatch("(all)", operator_uid, written, declared, "the key groups differ")
    return about


def owned_part(database: DatabaseFiles, owned: range) -> range:
    """Return the key groups of a database that are owned."""
    first = max(database.first_group, owned.start)
    return range(first, max(first, min(database.end_group, owned.stop)))


def fetch(files: Mapping[str, Blob], reader: SnapshotReader, folder: Path) -> None:
    """Write the files of a database to a folder, several at a time.

    Raises:
        StorageError, DamagedFileError: one is missing or not what was written.
    """
    with ThreadPoolExecutor(_READERS, "restore") as pool:
        for copied in [pool.submit(reader.copy, blob, folder / name) for name, blob in files.items()]:
            copied.result()


class StoredDatabase:
    """A read-only database, closed at the end of the `with` block.

    Args:
        folder: of its files.
        about: what it holds.
        loads: reads the pickles in rows.
    """

    def __init__(self, folder: Path, about: AboutDatabase, loads: Loads = pickle.loads) -> None:
        self._folder, self.about = folder, about
        self.layout = RowLayout(about.max_parallelism, lambda keys, groups: None, about.classes, loads)
        self._columns: dict[str, rocksdict.Rdict] = {}
        self._opened: rocksdict.Rdict | None = None

    def __enter__(self) -> StoredDatabase:
        import rocksdict

        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(rocksdict.Cache(4 << 20))
        options = rocksdict.Options(raw_mode=True)
        options.set_block_based_table_factory(blocks)
        try:
            names = rocksdict.Rdict.list_cf(str(self._folder), options)
            self._opened = rocksdict.Rdict(
                str(self._folder), options, dict.fromkeys(names, options), rocksdict.AccessType.read_only(False)
            )
            self._columns = {column_name(name): self._opened.get_column_family(name) for name in names}
        except Exception as error:
            self.__exit__()
            raise DatabaseError("open a snapshot", str(self._folder), str(error)) from error
        return self

    def __exit__(self, *raised: object) -> None:
        self._columns = {}
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def rows(self, column: str, group: int) -> Iterator[StoredRow]:
        """Yield the rows of a key group in a column family, sorted; none where there is no such column family."""
        rows = self._columns.get(column)
        if rows is None:
            return
        try:
            yield from scan_rows(rows, prefixes[group])
        except Exception as error:
            raise DatabaseError("read a snapshot", str(self._folder), str(error)) from error

    def entries(self, state: str, group: int) -> Iterator[tuple[UserKey, Namespace, UserValue]]:
        """Yield (key, namespace, value) of all entries of a state in a key group."""
        return entry_reader(self.about.tables[state])(self.layout, self.rows(STATE + state, group))

    def timers(self, queue: str, group: int) -> Iterator[tuple[int, Any, Any]]:
        """Yield (timestamp, key, namespace) of the timers of a key group, in the order of firing."""
        return (read_timer(self.layout, row, data) for row, data in self.rows(TIMERS + queue, group))

    def add_group(self, group: int, content: Content, filters: Mapping[str, Callable[[Any], Any]]) -> None:
        """Append the database's rows of a key group to its content.

        Args:
            filters: state -> what a snapshot holds of a value; nothing where that is None.
        """
        for state, kind in self.about.tables.items():
            rows = [(index, space, key, value) for index, (key, space, value) in enumerate(self.entries(state, group))]
            if state in filters:
                filtered = ((index, space, key, filters[state](value)) for index, space, key, value in rows)
                rows = [row for row in filtered if row[3] is not None]
            if rows:
                content["tables"][state] = kind, rows
        for queue in self.about.far_from_ms:
            near = content["timers"].get(queue, [])
            behind = 1 + max((row[0] for row in near), default=-1)
            far = [(behind, space, key, timestamp) for timestamp, key, space in self.timers(queue, group)]
            if far:
                content["timers"][queue] = near + far


def database_contents(
    databases: Iterable[DatabaseFiles],
    reader: SnapshotReader,
    owned: range,
    max_parallelism: int,
    operator_uid: str,
) -> Iterator[Content]:
    """Yield the contents of the owned key groups in databases, group by group."""
    for _, content in database_groups(databases, reader, owned, (max_parallelism, operator_uid)):
        yield content


def database_groups(
    databases: Iterable[DatabaseFiles],
    reader: SnapshotReader,
    owned: range,
    whose: tuple[int, str],
    loads: Loads = pickle.loads,
) -> Iterator[tuple[int, Content]]:
    """Yield (key group, its content in the databases) of the owned key groups, with one database on disk at a time.

    Args:
        whose: max parallelism and uid of the operator.
        loads: reads the pickles in rows.
    """
    max_parallelism, operator_uid = whose
    RowLayout(max_parallelism, lambda keys, groups: None)  # makes the prefixes
    for database in databases:
        groups = owned_part(database, owned)
        if not groups:
            continue
        about = read_about(database, max_parallelism, operator_uid, loads)
        with tempfile.TemporaryDirectory(prefix="rayflink-") as folder:
            fetch(database.files, reader, Path(folder))
            with StoredDatabase(Path(folder), about, loads) as stored:
                for group in groups:
                    content: Content = {"tables": {}, "timers": {}}
                    stored.add_group(group, content, {})
                    yield group, content


def open_restored(
    store: RocksDBStore,
    layout: RowLayout,
    databases: Sequence[tuple[DatabaseFiles, AboutDatabase]],
    reader: SnapshotReader,
    owned: range,
) -> Mapping[str, Blob]:
    """Open the store's database with the owned key groups of all these databases; return the base's shared files.

    That is the one with most of the owned groups: its others are deleted, and rows of the other databases added.
    """
    base, *others = sorted(databases, key=lambda pair: -len(owned_part(pair[0], owned)))
    names = store.open_from(lambda folder: fetch(base[0].files, reader, folder))
    layout.namespaces.numbers_of(base[1].classes)
    present = range(base[0].first_group, base[0].end_group)
    for surplus in (range(present.start, owned.start), range(owned.stop, present.stop)):
        if surplus:
            for name in names:
                store.column(name).delete_range(prefixes[surplus.start], prefixes[surplus.stop - 1] + b"\xff" * 64)
    for number, (database, about) in enumerate(others):
        folder = store.folder / f"from-{number}"
        folder.mkdir()
        fetch(database.files, reader, folder)
        with StoredDatabase(folder, about) as stored:
            _take_in(store, layout, stored, owned_part(database, owned))
        shutil.rmtree(folder)
    return {name: base[0].files[name] for name in base[0].shared}


def _take_in(store: RocksDBStore, layout: RowLayout, stored: StoredDatabase, groups: range) -> None:
    """Add the rows of these key groups."""
    renumbered = layout.namespaces.numbers_of(stored.about.classes)
    columns = [STATE + state for state in stored.about.tables]
    columns += [TIMERS + queue for queue in stored.about.far_from_ms]
    for name in columns:
        rows = (pair for group in groups for pair in stored.rows(name, group))
        if renumbered:
            is_timers = name.startswith(TIMERS)
            store.column(name).write(
                (_renumbered(row, 10 if is_timers else read_key(row, 2)[1], renumbered), data) for row, data in rows
            )
        else:
            _ingest(store, store.column(name), rows)


def _renumbered(row: bytes, position: int, numbers: Mapping[int, int]) -> bytes:
    """Return a row whose namespace begins at `position`, with the number of its class changed."""
    if row[position] != _INTEGERS or row[position + 1] not in numbers:
        return row
    return row[: position + 1] + bytes((numbers[row[position + 1]],)) + row[position + 2 :]


def _ingest(store: RocksDBStore, column: ColumnFamily, rows: Iterator[StoredRow]) -> None:
    """Add sorted rows by ingesting files of their own."""
    import rocksdict

    row = next(rows, None)
    files: list[Path] = []
    while row is not None:
        files.append(store.folder / f"rows-{len(files)}.sst")
        try:
            writer = rocksdict.SstFileWriter(store.settings())
            writer.open(str(files[-1]))
            for _ in range(_FILE_ROWS):
                writer[row[0]] = row[1]
                row = next(rows, None)
                if row is None:
                    break
            writer.finish()
        except DatabaseError:
            raise
        except Exception as error:
            raise DatabaseError("write rows", str(files[-1]), str(error)) from error
    if files:
        column.ingest(files)


__all__ = [
    "AboutDatabase", "DATABASE_FORMAT", "STATE", "StoredDatabase", "TIMERS", "database_contents", "database_groups",
    "fetch", "open_restored", "owned_part", "read_about",
]  # fmt: skip
