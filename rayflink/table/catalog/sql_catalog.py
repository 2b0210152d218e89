"""A catalog in a database, which outlives programs and is shared between them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from .exceptions import CatalogException
from .stored_catalog import DATABASE, StoredCatalog
from .stored_definitions import StoredObject, decode, encode

if TYPE_CHECKING:
    import sqlite3

    import sqlalchemy

__all__ = ["SqlCatalog"]

_TABLE, _LOCK = "rayflink_catalog", "rayflink_catalog_lock"
_WAIT_S = 30
"""Seconds that a change waits for one of another process."""


class SqlCatalog(StoredCatalog):
    """A catalog in SQLite or PostgreSQL, or in another database that SQLAlchemy knows.

    Several catalogs may be in one database, each with a name of its own. Objects are rows of the table
    `rayflink_catalog`, which is created when it is missing; definitions are JSON. Options of tables are stored as they
    are written, with passwords among them: see that strangers cannot read the database.

    In SQL: `CREATE CATALOG shop WITH ('type' = 'sql', 'url' = 'sqlite:////data/catalog.db')`.

    Args:
        name: of the catalog.
        url: of the database, as SQLAlchemy has it: "sqlite:////data/catalog.db", "postgresql+psycopg://me@host/db".
        default_database: created if it does not exist.

    Raises:
        CatalogException: SQLAlchemy or the driver is missing, or the database cannot be reached.
    """

    def __init__(self, name: str, url: str, default_database: str = "default") -> None:
        super().__init__(name, default_database, ObjectsInDatabase(name, url))
        self.open()

    def close(self) -> None:
        assert isinstance(self._store, ObjectsInDatabase)
        self._store.close()


class ObjectsInDatabase:
    """An `ObjectStore` in a table of a database. Changes take a lock, so that checks before them hold.

    Args:
        catalog: name of the catalog, which is part of the key.
        url: of the database.
    """

    def __init__(self, catalog: str, url: str) -> None:
        self._sql = _library()
        self._catalog = catalog
        self._engine = self._open(url)
        self._connection: sqlalchemy.Connection | None = None
        self._table, self._lock = self._create_tables()

    def load(self, kind: str, database: str, name: str) -> StoredObject | None:
        """Return an object; None: there is none."""
        query = self._sql.select(self._table.c.definition).where(self._is(kind, database, name))
        with self._connected() as connection:
            text = connection.execute(query).scalar_one_or_none()
        return None if text is None else decode(text)

    def add(self, kind: str, database: str, name: str, value: StoredObject) -> bool:
        """Store an object that is new; False: there is one, which stays."""
        text = encode(value)
        with self.transaction(), self._connected() as connection:
            taken = self._sql.select(self._table.c.name).where(self._is(kind, database, name))
            if connection.execute(taken).first() is not None:
                return False
            row = {"catalog": self._catalog, "kind": kind, "database": database, "name": name, "definition": text}
            connection.execute(self._table.insert().values(**row))
            return True

    def replace(self, kind: str, database: str, name: str, value: StoredObject) -> None:
        """Store an object in the place of another, if there is one."""
        change = self._table.update().where(self._is(kind, database, name)).values(definition=encode(value))
        with self.transaction(), self._connected() as connection:
            connection.execute(change)

    def remove(self, kind: str, database: str, name: str) -> bool:
        """Remove an object; False: there is none."""
        with self.transaction(), self._connected() as connection:
            return bool(connection.execute(self._table.delete().where(self._is(kind, database, name))).rowcount)

    def names(self, kind: str, database: str, prefix: str = "") -> list[str]:
        """Return the names of the objects of a kind in a database that begin so, in order."""
        columns = self._table.c
        is_there = (columns.catalog == self._catalog) & (columns.kind == kind) & (columns.database == database)
        with self._connected() as connection:
            names = connection.execute(self._sql.select(columns.name).where(is_there)).scalars().all()
        return sorted(name for name in names if name.startswith(prefix))

    def databases(self) -> list[str]:
        """Return the names of the databases, in order."""
        columns = self._table.c
        is_database = (columns.catalog == self._catalog) & (columns.kind == DATABASE)
        with self._connected() as connection:
            return sorted(connection.execute(self._sql.select(columns.database).where(is_database)).scalars().all())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all, or nothing, alone among all processes."""
        if self._connection is not None:
            yield
            return
        with self._errors(), self._engine.begin() as connection:
            connection.execute(self._sql.select(self._lock.c.id).with_for_update()).all()
            self._connection = connection
            try:
                yield
            finally:
                self._connection = None

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Iterator[sqlalchemy.Connection]:
        if self._connection is not None:
            yield self._connection
            return
        with self._errors(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of the database as those of catalogs."""
        try:
            yield
        except self._sql.exc.SQLAlchemyError as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())
            problem = f"catalog {self._catalog!r} cannot use its database: {reason}"
            raise CatalogException(problem, "check its URL, and whether the database can be reached") from error

    def _is(self, kind: str, database: str, name: str) -> sqlalchemy.ColumnElement[bool]:
        columns = self._table.c
        place = (columns.catalog == self._catalog) & (columns.kind == kind)
        return place & (columns.database == database) & (columns.name == name)

    def _open(self, url: str) -> sqlalchemy.Engine:
        sql = self._sql
        try:
            address = sql.engine.make_url(url)
            is_sqlite = address.get_backend_name() == "sqlite"
            settings = {"timeout": _WAIT_S} if is_sqlite else {}
            engine: sqlalchemy.Engine = sql.create_engine(address, connect_args=settings, pool_pre_ping=True)
        except sql.exc.ArgumentError as error:
            problem = f"the URL of catalog {self._catalog!r} is none of a database: {error}"
            raise CatalogException(problem, "write it as 'sqlite:////data/catalog.db'") from error
        except ImportError as error:
            remedy = "pip install 'rayflink[postgres]', and write postgresql+psycopg://, or install the driver"
            raise CatalogException(f"the driver of catalog {self._catalog!r} is missing: {error}", remedy) from error
        if is_sqlite:  # Python's module would begin transactions late
            sql.event.listen(engine, "connect", _leave_transactions)
            sql.event.listen(engine, "begin", _begin_immediately)
        return engine

    def _create_tables(self) -> tuple[sqlalchemy.Table, sqlalchemy.Table]:
        sql = self._sql
        metadata = sql.MetaData()
        keys = [sql.Column(name, sql.String(255), primary_key=True) for name in ("catalog", "kind", "database")]
        name = sql.Column("name", sql.String(1000), primary_key=True)
        table = sql.Table(_TABLE, metadata, *keys, name, sql.Column("definition", sql.Text, nullable=False))
        lock = sql.Table(_LOCK, metadata, sql.Column("id", sql.Integer, primary_key=True))
        with self._errors():
            try:
                metadata.create_all(self._engine)
            except sql.exc.DBAPIError:  # another process creates them
                metadata.create_all(self._engine)
            with self._engine.begin() as connection:
                is_empty = connection.execute(sql.select(lock.c.id)).first() is None
            if is_empty:
                try:
                    with self._engine.begin() as connection:
                        connection.execute(lock.insert().values(id=1))
                except sql.exc.IntegrityError:  # another process was first
                    pass
        return table, lock


def _leave_transactions(connection: sqlite3.Connection, record: object) -> None:
    connection.isolation_level = None


def _begin_immediately(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _library() -> ModuleType:
    try:
        import sqlalchemy
    except ImportError as error:
        remedy = "pip install 'rayflink[catalog]'"
        raise CatalogException(f"a catalog in a database wants SQLAlchemy ({error})", remedy) from error
    return sqlalchemy
