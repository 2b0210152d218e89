"""The catalogs of an environment, its temporary tables and views, and the current catalog and database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..definitions import Path, ViewDefinition
from ..errors import SqlError, nearest
from ..plan.typed import Place
from .catalog_api import Catalog
from .catalog_objects import CatalogBaseTable, CatalogDatabase, CatalogDescriptor, Definition
from .catalog_stores import CatalogsInMemory, CatalogStore
from .catalog_types import open_catalog
from .exceptions import (
    CatalogAlreadyExistException,
    CatalogException,
    CatalogNotExistException,
    DatabaseNotExistException,
    TableNotExistException,
)
from .memory_catalog import GenericInMemoryCatalog
from .object_names import ObjectPath

__all__ = ["Catalogs"]

DEFAULT_CATALOG, DEFAULT_DATABASE = "default_catalog", "default_database"


class Catalogs:
    """All that can be named, and which catalog and database names are looked up in.

    Temporary objects come before others of the same name, as in Flink.

    Args:
        catalog: name of the first catalog, which is in memory.
        database: name of its first database.
        store: where the definitions of catalogs are stored.
    """

    def __init__(
        self, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE, store: CatalogStore | None = None
    ) -> None:
        self._opened: dict[str, Catalog] = {catalog: GenericInMemoryCatalog(catalog, database)}
        self._store = CatalogsInMemory() if store is None else store
        self._temporary: dict[Path, Definition] = {}
        self.catalog, self.database = catalog, database

    def path(self, parts: tuple[str, ...]) -> Path:
        """Return the full name of what one to three parts name.

        Raises:
            SqlError: there are more.
        """
        if len(parts) == 1:
            return self.catalog, self.database, parts[0]
        if len(parts) == 2:
            return self.catalog, parts[0], parts[1]
        if len(parts) == 3:
            return parts[0], parts[1], parts[2]
        raise SqlError(f"{'.'.join(parts)} has {len(parts)} parts", "write catalog.database.table at most")

    def short_name(self, path: Path) -> str:
        """Return a path for people: without catalog and database where they are the current ones."""
        return path[-1] if path[:2] == (self.catalog, self.database) else ".".join(path)

    @contextmanager
    def inside(self, home: tuple[str, str]) -> Iterator[None]:
        """Read short names as in another database."""
        here = self.catalog, self.database
        self.catalog, self.database = home
        try:
            yield
        finally:
            self.catalog, self.database = here

    # tables and views

    def find(self, parts: tuple[str, ...], place: Place | None = None) -> tuple[Path, Definition]:
        """Return the definition of a table or view.

        Raises:
            SqlError: there is none of that name.
        """
        path = self.path(parts)
        definition = self._temporary.get(path) or self._stored(path, place)
        if definition is None:
            names = self.names(path[:2])
            problem = f"there is no table or view {'.'.join(parts)!r}{nearest(parts[-1], names)}"
            remedy = f"the tables and views are {', '.join(names)}" if names else "create it first with CREATE TABLE"
            raise SqlError(problem, remedy, "", place)
        return path, definition

    def create(self, parts: tuple[str, ...], definition: Definition, temporary: bool, ignore: bool = False,
               place: Place | None = None) -> Path:  # fmt: skip
        """Define a table or view.

        Raises:
            SqlError: there is one of that name, and `ignore` is not set; or the catalog cannot store it.
        """
        path = self.path(parts)
        existing = self._temporary.get(path) if temporary else self._stored(path, place)
        if existing is not None:
            if ignore:
                return path
            what = f"{'temporary ' if temporary else ''}{'view' if isinstance(existing, ViewDefinition) else 'table'}"
            remedy = "drop it first, or write IF NOT EXISTS"
            raise SqlError(f"there is a {what} {'.'.join(parts)!r} already", remedy, "", place)
        if temporary:
            self._check_database(path[:2], place)
            self._temporary[path] = definition
        else:
            with _as_sql_errors(place):
                self._known_catalog(path[0], place).create_table(
                    ObjectPath(*path[1:]), CatalogBaseTable(definition), ignore
                )
        return path

    def replace(self, path: Path, definition: Definition) -> None:
        """Define what is defined in another way.

        Raises:
            SqlError: the catalog cannot change it.
        """
        if path in self._temporary:
            self._temporary[path] = definition
            return
        with _as_sql_errors(None):
            catalog = self._known_catalog(path[0], None)
            catalog.alter_table(ObjectPath(*path[1:]), CatalogBaseTable(definition), False)

    def rename(self, path: Path, new_path: Path, place: Place | None) -> None:
        """Give a table or view another name in its database; in the catalog, with partitions and statistics.

        Raises:
            SqlError: there is one of the new name, it is in another database, or the catalog cannot rename.
        """
        if path in self._temporary:
            if new_path in self._temporary:
                remedy = "drop it first, or give another name"
                raise SqlError(f"there is a temporary table or view {new_path[2]!r} already", remedy, "", place)
            self._temporary[new_path] = self._temporary.pop(path)
            return
        if new_path[:2] != path[:2]:
            problem = f"{'.'.join(path)} would move to {'.'.join(new_path[:2])}"
            raise SqlError(problem, "rename it inside its database, or create it anew", "", place)
        if self._stored(new_path, place) is not None:
            problem = f"there is a table or view {new_path[2]!r} already"
            raise SqlError(problem, "drop it first, or give another name", "", place)
        with _as_sql_errors(place):
            self._known_catalog(path[0], place).rename_table(ObjectPath(*path[1:]), new_path[2], False)

    def drop(self, parts: tuple[str, ...], kind: type, temporary: bool, ignore: bool,
             place: Place | None = None) -> bool:  # fmt: skip
        """Forget a table or view; whether there was one.

        Raises:
            SqlError: there is none, and `ignore` is not set.
        """
        path = self.path(parts)
        stored = None if path[0] not in self.catalogs() else self._stored_if_database(path)
        what = "view" if kind is ViewDefinition else "table"
        if isinstance(self._temporary.get(path), kind):
            if not temporary and stored is not None:
                problem = f"there is a temporary {what} {'.'.join(parts)!r} that hides the other"
                raise SqlError(problem, f"DROP TEMPORARY {what.upper()} first", "", place)
            del self._temporary[path]
            return True
        if not temporary and isinstance(stored, kind):
            with _as_sql_errors(place):
                self._known_catalog(path[0], place).drop_table(ObjectPath(*path[1:]), ignore)
            return True
        if ignore:
            return False
        if definition := self._temporary.get(path) if temporary else self._temporary.get(path) or stored:
            other = "VIEW" if isinstance(definition, ViewDefinition) else "TABLE"
            problem = f"{'.'.join(parts)!r} is a {other.lower()}, not a {what}"
            raise SqlError(problem, f"write DROP {'TEMPORARY ' if path in self._temporary else ''}{other}", "", place)
        names = self.names(path[:2], lambda candidate: isinstance(candidate, kind))
        problem = (
            f"there is no {'temporary ' if temporary else ''}{what} {'.'.join(parts)!r}{nearest(parts[-1], names)}"
        )
        raise SqlError(problem, "write IF EXISTS where it may be absent", "", place)

    def names(
        self,
        database_path: tuple[str, str] | None = None,
        is_wanted: Callable[[Definition], bool] | None = None,
    ) -> list[str]:
        """Return names of tables and views of a database, in order.

        Raises:
            SqlError: there is no such database.
        """
        catalog_name, database = database_path or (self.catalog, self.database)
        catalog = self._known_catalog(catalog_name, None)
        self._check_database((catalog_name, database), None)
        with _as_sql_errors(None):
            known = set(catalog.list_tables(database))
            if is_wanted is not None:
                paths = {name: ObjectPath(database, name) for name in known}
                known = {name for name, path in paths.items() if is_wanted(catalog.get_table(path).definition)}
        known |= {
            path[2]
            for path, definition in self._temporary.items()
            if path[:2] == (catalog_name, database) and (is_wanted is None or is_wanted(definition))
        }
        return sorted(known)

    def is_temporary(self, path: Path) -> bool:
        """Return whether what the name means is a temporary object."""
        return path in self._temporary

    def _stored(self, path: Path, place: Place | None) -> Definition | None:
        """Return what a catalog has under a name; None: nothing.

        Raises:
            SqlError: there is no such catalog or database, or it cannot be read.
        """
        catalog = self._known_catalog(path[0], place)
        with _as_sql_errors(place):
            try:
                definition = catalog.get_table(ObjectPath(*path[1:])).definition
            except (TableNotExistException, DatabaseNotExistException):
                self._check_database(path[:2], place)
                return None
        if isinstance(definition, ViewDefinition) and definition.home == ("", ""):
            return definition.with_home(path[:2])
        return definition

    def _stored_if_database(self, path: Path) -> Definition | None:
        is_there = self._known_catalog(path[0], None).database_exists(path[1])
        return self._stored(path, None) if is_there else None

    # databases

    def databases(self, catalog: str | None = None) -> list[str]:
        """Return names of the databases of a catalog, in order.

        Raises:
            SqlError: there is no such catalog, or it cannot be read.
        """
        with _as_sql_errors(None):
            return sorted(self._known_catalog(catalog or self.catalog, None).list_databases())

    def create_database(
        self, parts: tuple[str, ...], database: CatalogDatabase, ignore: bool, place: Place | None
    ) -> None:
        """Make a database.

        Raises:
            SqlError: there is one of that name, or no such catalog.
        """
        catalog_name, name = self._database_path(parts)
        catalog = self._known_catalog(catalog_name, place)
        with _as_sql_errors(place):
            if catalog.database_exists(name) and not ignore:
                raise SqlError(f"there is a database {name!r} already", "write IF NOT EXISTS", "", place)
            catalog.create_database(name, database, ignore)

    def alter_database(
        self, parts: tuple[str, ...], change: Callable[[CatalogDatabase], CatalogDatabase], place: Place | None
    ) -> None:
        """Replace what is stored of a database.

        Raises:
            SqlError: there is none of that name, or the catalog cannot change it.
        """
        catalog_name, name = self._database_path(parts)
        with _as_sql_errors(place):
            catalog = self._known_catalog(catalog_name, place)
            catalog.alter_database(name, change(self.stored_database(parts, place)), False)

    def stored_database(self, parts: tuple[str, ...], place: Place | None) -> CatalogDatabase:
        """Return what is stored of a database.

        Raises:
            SqlError: there is none of that name.
        """
        path = self._database_path(parts)
        self._check_database(path, place)
        with _as_sql_errors(place):
            return self._known_catalog(path[0], place).get_database(path[1])

    def drop_database(self, parts: tuple[str, ...], ignore: bool, cascade: bool, place: Place | None) -> None:
        """Forget a database.

        Raises:
            SqlError: there is none, or it holds tables and `cascade` is not set.
        """
        catalog_name, name = self._database_path(parts)
        catalog = self._known_catalog(catalog_name, place)
        if ignore and name not in self.databases(catalog_name):
            return
        self._check_database((catalog_name, name), place)
        with _as_sql_errors(place):
            objects = catalog.list_tables(name)
            if objects and not cascade:
                problem = f"database {name!r} is not empty: it has {', '.join(objects)}"
                raise SqlError(problem, "drop them first, or write CASCADE", "", place)
            if (catalog_name, name) == (self.catalog, self.database):
                raise SqlError(f"database {name!r} is the current one", "USE another one first", "", place)
            catalog.drop_database(name, ignore, cascade)

    def use(self, kind: str, parts: tuple[str, ...], place: Place | None) -> None:
        """Look names up in another catalog or database from now on.

        Raises:
            SqlError: there is none.
        """
        if kind == "CATALOG":
            catalog = self._known_catalog(parts[0], place)
            self.catalog, self.database = parts[0], catalog.get_default_database()
            return
        path = self._database_path(parts)
        self._check_database(path, place)
        self.catalog, self.database = path

    def _database_path(self, parts: tuple[str, ...]) -> tuple[str, str]:
        return (self.catalog, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    def _check_database(self, path: tuple[str, str], place: Place | None) -> None:
        with _as_sql_errors(place):
            if self._known_catalog(path[0], place).database_exists(path[1]):
                return
        databases = self.databases(path[0])
        problem = f"there is no database {path[1]!r} in catalog {path[0]!r}{nearest(path[1], databases)}"
        raise SqlError(problem, f"the databases are {', '.join(databases)}", "", place)

    # catalogs

    def catalogs(self) -> list[str]:
        """Return names of the catalogs, in order."""
        return sorted({*self._opened, *self._store.names()})

    def register(self, name: str, catalog: Catalog) -> None:
        """Add a catalog that exists.

        Raises:
            CatalogAlreadyExistException: there is one of that name.
        """
        if name in self.catalogs():
            raise CatalogAlreadyExistException(name)
        catalog.name = catalog.name or name
        catalog.open()
        self._opened[name] = catalog

    def create_catalog(self, descriptor: CatalogDescriptor, ignore: bool = False) -> None:
        """Open a catalog by its options, and store them.

        Raises:
            CatalogAlreadyExistException: there is one of that name, and `ignore` is not set.
            CatalogException: its options are wrong, or it cannot be reached.
        """
        name = descriptor.get_catalog_name()
        if name in self.catalogs():
            if ignore:
                return
            raise CatalogAlreadyExistException(name)
        catalog = open_catalog(name, descriptor.get_options())
        self._store.save(descriptor)
        self._opened[name] = catalog

    def alter_catalog(self, name: str, change: Callable[[CatalogDescriptor], CatalogDescriptor]) -> None:
        """Store other options of a catalog, and open it anew by them.

        Raises:
            CatalogNotExistException: there is none of that name that was created by options.
            CatalogException: its options are wrong, or it cannot be reached.
        """
        new_descriptor = change(self.descriptor(name))
        catalog = open_catalog(name, new_descriptor.get_options())
        self._store.save(new_descriptor)
        before = self._opened.get(name)
        self._opened[name] = catalog
        if before is not None:
            before.close()

    def drop_catalog(self, name: str, ignore: bool) -> None:
        """Close a catalog and forget it; its objects stay where they are stored.

        Raises:
            CatalogNotExistException: there is none of that name, and `ignore` is not set.
            CatalogException: it is the current one.
        """
        if name not in self.catalogs():
            if ignore:
                return
            raise CatalogNotExistException(name)
        if name == self.catalog:
            raise CatalogException(f"catalog {name!r} is the current one", "USE CATALOG another one first")
        self._store.remove(name)
        catalog = self._opened.pop(name, None)
        self._temporary = {path: entry for path, entry in self._temporary.items() if path[0] != name}
        if catalog is not None:
            catalog.close()

    def descriptor(self, name: str) -> CatalogDescriptor:
        """Return the options by which a catalog was created.

        Raises:
            CatalogNotExistException: there is none of that name.
            CatalogException: it was registered as it is, without options.
        """
        if descriptor := self._store.load(name):
            return descriptor
        if name not in self.catalogs():
            raise CatalogNotExistException(name)
        if isinstance(self._opened[name], GenericInMemoryCatalog):
            return CatalogDescriptor(name, {"type": "generic_in_memory"})
        raise CatalogException(f"catalog {name!r} was registered as an object", "create it with options")

    def catalog_named(self, name: str) -> Catalog | None:
        """Return a catalog; None: there is none of that name.

        Raises:
            CatalogException: its options are stored, and it cannot be opened by them.
        """
        if name not in self._opened:
            descriptor = self._store.load(name)
            if descriptor is None:
                return None
            self._opened[name] = open_catalog(name, descriptor.get_options())
        return self._opened[name]

    def _known_catalog(self, name: str, place: Place | None) -> Catalog:
        with _as_sql_errors(place):
            catalog = self.catalog_named(name)
        if catalog is None:
            problem = f"there is no catalog {name!r}{nearest(name, self.catalogs())}"
            raise SqlError(problem, f"the catalogs are {', '.join(self.catalogs())}", "", place)
        return catalog


@contextmanager
def _as_sql_errors(place: Place | None) -> Iterator[None]:
    """Raise errors of catalogs as errors of the statement."""
    try:
        yield
    except CatalogException as error:
        raise SqlError(error.problem, error.remedy, "", place) from error
