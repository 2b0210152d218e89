"""Tables, views and databases by name, kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .definitions import Path, TableDefinition, ViewDefinition
from .errors import SqlError, nearest
from .plan.typed import Place
from .resolved_schema import Column, ResolvedSchema

DEFAULT_CATALOG, DEFAULT_DATABASE = "default_catalog", "default_database"
Definition = TableDefinition | ViewDefinition


@dataclass
class Database:
    """Tables and views by name."""

    objects: dict[str, Definition] = field(default_factory=dict)
    comment: str | None = None


class Catalogs:
    """All that can be named, and which catalog and database names are looked up in.

    Temporary objects come before others of the same name, as in Flink.

    Args:
        catalog: name of the first catalog.
        database: name of its first database.
    """

    def __init__(self, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE) -> None:
        self._catalogs: dict[str, dict[str, Database]] = {catalog: {database: Database()}}
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

    def find(self, parts: tuple[str, ...], place: Place | None = None) -> tuple[Path, Definition]:
        """Return the definition of a table or view.

        Raises:
            SqlError: there is none of that name.
        """
        path = self.path(parts)
        definition = self._temporary.get(path) or self._database(path[:2], place).objects.get(path[2])
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
            SqlError: there is one of that name, and `ignore` is not set.
        """
        path = self.path(parts)
        database = self._database(path[:2], place)
        there = path in self._temporary if temporary else path[2] in database.objects
        if there:
            if ignore:
                return path
            existing = self._temporary[path] if temporary else database.objects[path[2]]
            what = f"{'temporary ' if temporary else ''}{'view' if isinstance(existing, ViewDefinition) else 'table'}"
            remedy = "drop it first, or write IF NOT EXISTS"
            raise SqlError(f"there is a {what} {'.'.join(parts)!r} already", remedy, "", place)
        if temporary:
            self._temporary[path] = definition
        else:
            database.objects[path[2]] = definition
        return path

    def replace(self, path: Path, definition: Definition) -> None:
        """Define what is defined in another way."""
        if path in self._temporary:
            self._temporary[path] = definition
        else:
            self._database(path[:2], None).objects[path[2]] = definition

    def drop(self, parts: tuple[str, ...], kind: type, temporary: bool, ignore: bool,
             place: Place | None = None) -> bool:  # fmt: skip
        """Forget a table or view; whether there was one.

        Raises:
            SqlError: there is none, and `ignore` is not set.
        """
        path = self.path(parts)
        objects: dict[str, Definition] = {} if path[0] not in self._catalogs else self._objects(path)
        what = "view" if kind is ViewDefinition else "table"
        if isinstance(self._temporary.get(path), kind):
            if not temporary and path[2] in objects:
                problem = f"there is a temporary {what} {'.'.join(parts)!r} that hides the other"
                raise SqlError(problem, f"DROP TEMPORARY {what.upper()} first", "", place)
            del self._temporary[path]
            return True
        if not temporary and isinstance(objects.get(path[2]), kind):
            del objects[path[2]]
            return True
        if ignore:
            return False
        if definition := self._temporary.get(path) if temporary else self._temporary.get(path) or objects.get(path[2]):
            other = "VIEW" if isinstance(definition, ViewDefinition) else "TABLE"
            problem = f"{'.'.join(parts)!r} is a {other.lower()}, not a {what}"
            raise SqlError(problem, f"write DROP {'TEMPORARY ' if path in self._temporary else ''}{other}", "", place)
        names = self.names(path[:2], lambda candidate: isinstance(candidate, kind))
        problem = (
            f"there is no {'temporary ' if temporary else ''}{what} {'.'.join(parts)!r}{nearest(parts[-1], names)}"
        )
        raise SqlError(problem, "write IF EXISTS where it may be absent", "", place)

    def _objects(self, path: Path) -> dict[str, Definition]:
        database = self._catalogs[path[0]].get(path[1])
        return {} if database is None else database.objects

    def names(
        self,
        database_path: tuple[str, str] | None = None,
        is_wanted: Callable[[Definition], bool] = lambda definition: True,
    ) -> list[str]:
        """Return names of tables and views of a database, in order.

        Raises:
            SqlError: there is no such database.
        """
        catalog, database = database_path or (self.catalog, self.database)
        there = self._database((catalog, database), None).objects
        known = {name for name, definition in there.items() if is_wanted(definition)}
        known |= {
            path[2]
            for path, definition in self._temporary.items()
            if path[:2] == (catalog, database) and is_wanted(definition)
        }
        return sorted(known)

    def is_temporary(self, path: Path) -> bool:
        """Return whether what the name means is a temporary object."""
        return path in self._temporary

    # databases

    def databases(self, catalog: str | None = None) -> list[str]:
        """Return names of the databases of a catalog.

        Raises:
            SqlError: there is no such catalog.
        """
        return sorted(self._known_catalog(catalog or self.catalog, None))

    def catalogs(self) -> list[str]:
        """Return names of the catalogs."""
        return sorted(self._catalogs)

    def create_catalog(self, name: str, ignore: bool = False) -> None:
        """Make a catalog in memory, with the database "default"."""
        if name in self._catalogs and not ignore:
            raise SqlError(f"there is a catalog {name!r} already", "give it another name")
        self._catalogs.setdefault(name, {"default": Database()})

    def create_database(self, parts: tuple[str, ...], comment: str | None, ignore: bool, place: Place | None) -> None:
        """Make a database.

        Raises:
            SqlError: there is one of that name, or no such catalog.
        """
        catalog, name = self._database_path(parts)
        databases = self._known_catalog(catalog, place)
        if name in databases and not ignore:
            raise SqlError(f"there is a database {name!r} already", "write IF NOT EXISTS", "", place)
        databases.setdefault(name, Database(comment=comment))

    def drop_database(self, parts: tuple[str, ...], ignore: bool, cascade: bool, place: Place | None) -> None:
        """Forget a database.

        Raises:
            SqlError: there is none, or it holds tables and `cascade` is not set.
        """
        catalog, name = self._database_path(parts)
        databases = self._known_catalog(catalog, place)
        if name not in databases:
            if ignore:
                return
            problem = f"there is no database {name!r}{nearest(name, databases)}"
            raise SqlError(problem, f"the databases are {', '.join(databases)}", "", place)
        if databases[name].objects and not cascade:
            objects = ", ".join(databases[name].objects)
            raise SqlError(
                f"database {name!r} is not empty: it has {objects}", "drop them first, or write CASCADE", "", place
            )
        if (catalog, name) == (self.catalog, self.database):
            raise SqlError(f"database {name!r} is the current one", "USE another one first", "", place)
        del databases[name]

    def use(self, kind: str, parts: tuple[str, ...], place: Place | None) -> None:
        """Look names up in another catalog or database from now on.

        Raises:
            SqlError: there is none.
        """
        if kind == "CATALOG":
            databases = self._known_catalog(parts[0], place)
            self.catalog, self.database = parts[0], next(iter(databases))
            return
        path = self._database_path(parts)
        self._database(path, place)
        self.catalog, self.database = path

    def _database_path(self, parts: tuple[str, ...]) -> tuple[str, str]:
        return (self.catalog, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    def _known_catalog(self, name: str, place: Place | None) -> dict[str, Database]:
        if name not in self._catalogs:
            problem = f"there is no catalog {name!r}{nearest(name, self._catalogs)}"
            raise SqlError(problem, f"the catalogs are {', '.join(self._catalogs)}", "", place)
        return self._catalogs[name]

    def _database(self, path: tuple[str, str], place: Place | None) -> Database:
        databases = self._known_catalog(path[0], place)
        if path[1] not in databases:
            problem = f"there is no database {path[1]!r} in catalog {path[0]!r}{nearest(path[1], databases)}"
            raise SqlError(problem, f"the databases are {', '.join(databases)}", "", place)
        return databases[path[1]]


__all__ = ["Catalogs", "Column", "ResolvedSchema"]
