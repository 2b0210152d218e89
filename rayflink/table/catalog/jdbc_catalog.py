"""The tables of a PostgreSQL server as a catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError
from rayflink.connectors.jdbc.jdbc_url import dsn_of
from rayflink.connectors.postgres.postgres_session import PostgresError, Session
from rayflink.connectors.postgres.postgres_values import arrow_type_of

from ..conversion.arrow_columns import type_of
from ..definitions import ColumnDefinition, TableDefinition
from .catalog_api import Catalog
from .catalog_objects import CatalogBaseTable, CatalogDatabase
from .exceptions import CatalogException, DatabaseNotExistException, TableNotExistException

if TYPE_CHECKING:
    import psycopg

    from .object_names import ObjectPath

__all__ = ["JdbcCatalog"]

PUBLIC = "public"
"""The schema of tables that are named without one."""
_DATABASES = "SELECT datname FROM pg_database WHERE NOT datistemplate AND datallowconn ORDER BY datname"
_TABLES = """
SELECT n.nspname, c.relname, c.relkind IN ('v', 'm') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
WITH RECURSIVE bases AS (
    SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier FROM pg_attribute a
    WHERE a.attrelid = to_regclass(%(table)s) AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT b.attnum, t.typbasetype, t.typtypmod FROM bases b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT a.attname, t.typname, b.modifier, NOT a.attnotnull, array_position(k.indkey::int2[], a.attnum),
       col_description(a.attrelid, a.attnum), obj_description(a.attrelid, 'pg_class')
FROM pg_attribute a JOIN bases b USING (attnum) JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
LEFT JOIN pg_index k ON k.indrelid = a.attrelid AND k.indisprimary
WHERE a.attrelid = to_regclass(%(table)s) ORDER BY a.attnum
"""


class JdbcCatalog(Catalog):
    """The databases, tables and views of a PostgreSQL server, as Flink's catalog of this name shows them.

    A table is called "table", or "schema.table" where its schema is not `public`. Tables are read and written by the
    connector `jdbc`; they are created and dropped in PostgreSQL. Views are read as tables.

    In SQL: `CREATE CATALOG pg WITH ('type' = 'jdbc', 'base-url' = 'jdbc:postgresql://host:5432/',
    'default-database' = 'shop', 'username' = ..., 'password' = ...)`.

    Args:
        catalog_name: of the catalog.
        default_database: with which it connects first.
        username: of the server.
        pwd: its password.
        base_url: "jdbc:postgresql://host:port/", without a database.

    Raises:
        CatalogException: the URL is none of PostgreSQL, or has a database.
    """

    def __init__(self, catalog_name: str, default_database: str, username: str, pwd: str, base_url: str) -> None:
        super().__init__(catalog_name, default_database)
        self._user, self._password = username, pwd
        address, _, parameters = base_url.partition("?")
        if address.count("/") > 2 and address.rstrip("/").count("/") > 2:
            problem = f"the base URL of catalog {catalog_name!r} names a database"
            raise CatalogException(problem, "end it behind the port; databases are those of the catalog")
        self._address, self._parameters = address.rstrip("/"), parameters
        self._sessions: dict[str, Session] = {}
        with self._errors():
            self._dsn(default_database)

    def open(self) -> None:
        self.get_database(self._default_database)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def list_databases(self) -> list[str]:
        return [name for (name,) in self._rows(self._default_database, _DATABASES)]

    def get_database(self, database_name: str) -> CatalogDatabase:
        if database_name not in self.list_databases():
            raise DatabaseNotExistException(self.name, database_name)
        return CatalogDatabase()

    def list_tables(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return [_joined(schema, table) for schema, table, _ in self._rows(database_name, _TABLES)]

    def list_views(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return []  # they are read as tables

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        database, name = table_path.get_database_name(), table_path.get_object_name()
        schema, _, table = name.rpartition(".")
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema or PUBLIC, table))
        if database not in self.list_databases():
            raise TableNotExistException(self.name, table_path)
        rows = self._rows(database, _COLUMNS, {"table": quoted})
        if not rows:
            raise TableNotExistException(self.name, table_path)
        columns = tuple(_column(name, kind, modifier, is_nullable, comment)
                        for name, kind, modifier, is_nullable, _, comment, _ in rows)  # fmt: skip
        keys = tuple(row[0] for row in sorted((row for row in rows if row[4] is not None), key=lambda row: row[4]))
        options = {
            "connector": "jdbc", "url": self._url(database), "table-name": f"{schema or PUBLIC}.{table}",
            "username": self._user, "password": self._password,
        }  # fmt: skip
        return CatalogBaseTable(TableDefinition(columns, None, keys, (), options, rows[0][6]))

    def _url(self, database: str) -> str:
        return f"{self._address}/{database}" + (f"?{self._parameters}" if self._parameters else "")

    def _dsn(self, database: str) -> str:
        return dsn_of(self._url(database), self._user, self._password)

    def _rows(self, database: str, query: str, parameters: dict[str, str] | None = None) -> list[Any]:
        def work(cursor: psycopg.Cursor[Any]) -> list[Any]:
            cursor.execute(query, parameters)
            return cursor.fetchall()

        with self._errors():
            session = self._sessions.get(database)
            if session is None:
                session = self._sessions[database] = Session(self._dsn(database))
            return session.run(work)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except PostgresError as error:
            raise CatalogException(f"catalog {self.name!r}: {error.problem}", error.remedy) from error


def _joined(schema: str, table: str) -> str:
    return table if schema == PUBLIC and "." not in table else f"{schema}.{table}"


def _column(name: str, kind: str, modifier: int, is_nullable: bool, comment: str | None) -> ColumnDefinition:
    import pyarrow

    field = pyarrow.field(name, arrow_type_of(kind, modifier), is_nullable)
    try:
        data_type = type_of(field)
    except InvalidTypesError as error:
        raise CatalogException(f"column {name!r} of type {kind}: {error}", "cast it in a view of PostgreSQL") from error
    return ColumnDefinition(name, data_type, comment=comment)
