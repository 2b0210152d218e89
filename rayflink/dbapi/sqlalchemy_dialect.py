"""The dialect of SQLAlchemy: `create_engine("rayflink://")`.

    rayflink://                                  statements run in this process
    rayflink://HOST:8083/CATALOG/DATABASE        at a SQL gateway; ?tls=true for https

The query of the URL may have `mode`, `changelog`, `token`, `ca_file`, `timeout_s`, and options of the session. Queries,
INSERT, and CREATE TABLE with `rayflink_with={...}` are written in Flink's SQL; UPDATE, DELETE and transactions are not
there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, cast

from sqlalchemy import exc, types
from sqlalchemy.engine import default
from sqlalchemy.sql import compiler
from sqlalchemy.sql.schema import Table

from rayflink.table.parsing.statement_parser import parse_type
from rayflink.table.types import MOST_LENGTH, DataType, Root

from .gateway_client import Gateway
from .parameters import literal

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.engine import URL
    from sqlalchemy.engine.interfaces import (
        DBAPIConnection,
        ReflectedColumn,
        ReflectedForeignKeyConstraint,
        ReflectedIndex,
        ReflectedPrimaryKeyConstraint,
    )

__all__ = ["RayflinkDialect"]


class _Names(compiler.IdentifierPreparer):
    """Names in backticks; all of them, as Flink has hundreds of reserved words."""

    def __init__(self, dialect: default.DefaultDialect) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`")

    def _requires_quotes(self, value: str) -> bool:
        return True


class _Types(compiler.GenericTypeCompiler):
    """Names of types in Flink's SQL."""

    def visit_text(self, type_, **kw):  # type: ignore[no-untyped-def]
        return "STRING"

    visit_TEXT = visit_unicode = visit_string = visit_text

    def visit_datetime(self, type_, **kw):  # type: ignore[no-untyped-def]
        return "TIMESTAMP_LTZ(6)" if type_.timezone else "TIMESTAMP(6)"

    visit_TIMESTAMP = visit_DATETIME = visit_datetime

    def visit_large_binary(self, type_, **kw):  # type: ignore[no-untyped-def]
        return "BYTES"


class _Definitions(compiler.DDLCompiler):
    """CREATE TABLE with the options of a connector."""

    def post_create_table(self, table: Table) -> str:
        options = cast("Mapping[str, str]", table.dialect_options["rayflink"]["with"])
        if not options:
            raise exc.CompileError(
                f"the table {table.name!r} has no options; pass rayflink_with={{'connector': ...}} to Table()"
            )
        return "WITH (" + ", ".join(f"{literal(key)} = {literal(value)}" for key, value in options.items()) + ")"

    def visit_primary_key_constraint(self, constraint, **kw):  # type: ignore[no-untyped-def]
        text = super().visit_primary_key_constraint(constraint, **kw)
        return f"{text} NOT ENFORCED" if text else text


class RayflinkDialect(default.DefaultDialect):
    """Speaks to rayflink, or to any SQL gateway of Flink, through `rayflink.dbapi`."""

    name, driver = "rayflink", "dbapi"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_alter = supports_sane_rowcount = supports_sane_multi_rowcount = False
    supports_native_boolean = supports_native_decimal = supports_multivalues_insert = True
    supports_default_values = supports_empty_insert = postfetch_lastrowid = False
    supports_schemas = True
    preparer: type[compiler.IdentifierPreparer] = _Names
    type_compiler_cls, ddl_compiler = _Types, _Definitions
    construct_arguments = [(Table, {"with": None})]

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return sys.modules[__package__]  # it is loaded, as this module is one of its own

    def create_connect_args(self, url: URL) -> tuple[Sequence[str], MutableMapping[str, object]]:
        """Return the arguments of `rayflink.dbapi.connect`."""
        options = {key: value if isinstance(value, str) else value[-1] for key, value in url.query.items()}
        catalog, _, database = (url.database or "").partition("/")
        arguments: dict[str, object] = {
            "mode": options.pop("mode", "batch"), "changelog": options.pop("changelog", "false") == "true",
            "catalog": catalog or None, "database": database or None,
        }  # fmt: skip
        scheme = "https" if options.pop("tls", "false") == "true" else "http"
        token, ca_file = options.pop("token", None), options.pop("ca_file", None)
        if url.host:
            timeout_s = float(options.pop("timeout_s", 60.0))
            arguments["gateway"] = Gateway(f"{scheme}://{url.host}:{url.port or 8083}", token, timeout_s, ca_file)
        arguments["options"] = options
        return [], arguments

    def do_rollback(self, dbapi_connection: DBAPIConnection) -> None:
        """Do nothing: there are no transactions over statements."""

    # reflection

    def _get_default_schema_name(self, connection: Connection) -> str:
        return str(connection.exec_driver_sql("SHOW CURRENT DATABASE").scalar())

    def _get_server_version_info(self, connection: Connection) -> None:
        return None

    def get_schema_names(self, connection: Connection, **kw: object) -> list[str]:
        """Return the databases of the current catalog."""
        return _firsts(connection, "SHOW DATABASES")

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: object) -> list[str]:
        """Return the tables of a database, without views."""
        views = set(self.get_view_names(connection, schema))
        return [name for name in _firsts(connection, f"SHOW TABLES{self._from(schema)}") if name not in views]

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: object) -> list[str]:
        """Return the views of a database."""
        return _firsts(connection, f"SHOW VIEWS{self._from(schema)}")

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **kw: object) -> bool:
        """Return whether there is such a table or view."""
        return table_name in _firsts(connection, f"SHOW TABLES{self._from(schema)}")

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> list[ReflectedColumn]:
        """Return the columns of a table or view.

        Raises:
            NoSuchTableError: there is none.
        """
        columns: list[ReflectedColumn] = []
        for name, kind, nullable, *_ in self._described(connection, table_name, schema):
            column_type = parse_type(str(kind))
            is_nullable = str(nullable).upper() == "TRUE" and column_type.is_nullable
            columns.append(
                {"name": str(name), "type": _type_of(column_type), "nullable": is_nullable, "default": None}
            )
        return columns

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> ReflectedPrimaryKeyConstraint:
        """Return the columns of the primary key."""
        rows = self._described(connection, table_name, schema)
        return {"constrained_columns": [str(row[0]) for row in rows if "PRI" in str(row[3] or "")], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> list[ReflectedForeignKeyConstraint]:
        """Return []: Flink's SQL has none."""
        return []

    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: object
    ) -> list[ReflectedIndex]:
        """Return []: Flink's SQL has none."""
        return []

    def _described(self, connection: Connection, name: str, schema: str | None) -> list[tuple[object, ...]]:
        if not self.has_table(connection, name, schema):
            raise exc.NoSuchTableError(name)
        path = self.identifier_preparer.quote(name)
        if schema:
            path = f"{self.identifier_preparer.quote(schema)}.{path}"
        return [tuple(row) for row in connection.exec_driver_sql(f"DESCRIBE {path}")]

    def _from(self, schema: str | None) -> str:
        return f" FROM {self.identifier_preparer.quote(schema)}" if schema else ""


def _firsts(connection: Connection, statement: str) -> list[str]:
    return [str(row[0]) for row in connection.exec_driver_sql(statement)]


def _type_of(kind: DataType) -> types.TypeEngine[object]:
    """Return SQLAlchemy's type of a column; nested ones have none, their values pass as they are."""
    make = _TYPES.get(kind.root)
    return cast("types.TypeEngine[object]", types.NULLTYPE if make is None else make(kind))


_TYPES: dict[Root, Callable[[DataType], object]] = {
    Root.BOOLEAN: lambda kind: types.BOOLEAN(),
    Root.TINYINT: lambda kind: types.SMALLINT(),
    Root.SMALLINT: lambda kind: types.SMALLINT(),
    Root.INT: lambda kind: types.INTEGER(),
    Root.BIGINT: lambda kind: types.BIGINT(),
    Root.FLOAT: lambda kind: types.FLOAT(),
    Root.DOUBLE: lambda kind: types.DOUBLE(),
    Root.DECIMAL: lambda kind: types.DECIMAL(kind.precision, kind.scale),
    Root.CHAR: lambda kind: types.CHAR(kind.length),
    Root.VARCHAR: lambda kind: types.TEXT() if kind.length == MOST_LENGTH else types.VARCHAR(kind.length),
    Root.BINARY: lambda kind: types.LargeBinary(),
    Root.VARBINARY: lambda kind: types.LargeBinary(),
    Root.DATE: lambda kind: types.DATE(),
    Root.TIME: lambda kind: types.TIME(),
    Root.TIMESTAMP: lambda kind: types.TIMESTAMP(),
    Root.TIMESTAMP_LTZ: lambda kind: types.TIMESTAMP(timezone=True),
    Root.INTERVAL_DAY_TIME: lambda kind: types.Interval(),
}
