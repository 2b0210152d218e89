"""The tables, views, databases and catalogs of an environment, by name."""

from __future__ import annotations

from collections.abc import Callable

from ..catalog.catalog_objects import Definition
from ..definitions import TableDefinition, ViewDefinition, parts_of
from .planning_context import PlanningContext


class NamedTables:
    """The tables that a `TableEnvironment` knows by name."""

    _context: PlanningContext

    def drop_view(self, view_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Forget a view that is not temporary; whether there was one.

        Raises:
            SqlError: there is none, and that is not to be ignored.
        """
        return self._context.catalogs.drop(parts_of(view_path), ViewDefinition, False, bool(ignore_if_not_exists))

    def drop_table(self, table_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Forget a table that is not temporary; whether there was one.

        Raises:
            SqlError: there is none, and that is not to be ignored.
        """
        return self._context.catalogs.drop(parts_of(table_path), TableDefinition, False, bool(ignore_if_not_exists))

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a view; whether there was one."""
        return self._context.catalogs.drop(parts_of(view_path), ViewDefinition, True, True)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forget a temporary table; whether there was one."""
        return self._context.catalogs.drop(parts_of(table_path), TableDefinition, True, True)

    def list_tables(self) -> list[str]:
        """Return names of the tables and views of the current database."""
        return self._context.catalogs.names()

    def list_materialized_tables(self) -> list[str]:
        """Return no names: tables that a query refreshes by itself are not supported, so that there is none."""
        return []

    def list_views(self) -> list[str]:
        """Return names of the views of the current database."""
        return self._context.catalogs.names(is_wanted=lambda definition: isinstance(definition, ViewDefinition))

    def list_temporary_tables(self) -> list[str]:
        """Return names of the temporary tables and views of the current database."""
        return self._temporary_ones(lambda definition: True)

    def list_temporary_views(self) -> list[str]:
        """Return names of the temporary views of the current database."""
        return self._temporary_ones(lambda definition: isinstance(definition, ViewDefinition))

    def _temporary_ones(self, wanted: Callable[[Definition], bool]) -> list[str]:
        catalogs = self._context.catalogs
        entries = (catalogs.find((name,)) for name in catalogs.names())
        return [path[2] for path, definition in entries if catalogs.is_temporary(path) and wanted(definition)]

    def list_databases(self) -> list[str]:
        """Return names of the databases of the current catalog."""
        return self._context.catalogs.databases()

    def list_catalogs(self) -> list[str]:
        """Return names of the catalogs."""
        return self._context.catalogs.catalogs()

    def get_current_catalog(self) -> str:
        """Name of the current catalog."""
        return self._context.catalogs.catalog

    def get_current_database(self) -> str:
        """Name of the current database."""
        return self._context.catalogs.database

    def use_database(self, database_name: str) -> None:
        """Look names up in another database from now on."""
        self._context.catalogs.use("DATABASE", (database_name,), None)

    def use_catalog(self, catalog_name: str) -> None:
        """Look names up in another catalog from now on."""
        self._context.catalogs.use("CATALOG", (catalog_name,), None)


__all__ = ["NamedTables"]
