"""The functions that queries of an environment know by name, beside those of SQL."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rayflink.common.errors import InvalidTypesError

from ..definitions import Path
from ..errors import SqlError
from ..plan.typed import Function
from ..udf import as_user_function
from .catalog_api import Catalog
from .catalog_objects import CatalogFunction
from .exceptions import (
    CatalogException,
    CatalogNotExistException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
)
from .named_objects import Catalogs
from .object_names import ObjectPath

__all__ = ["NamedFunctions"]


@dataclass(frozen=True)
class FunctionFacts:
    """A function of a program or of a catalog, and how it is defined.

    Args:
        stored: what its catalog stores; None: it is temporary.
    """

    function: Function
    is_system: bool
    is_temporary: bool
    stored: CatalogFunction | None = None


class NamedFunctions(Mapping[str, Function]):
    """Functions by their names in capitals, found in Flink's order.

    A temporary system function comes before one of SQL, that before a temporary function of the current database, and
    that before one which the catalog stores.

    Args:
        catalogs: which store functions, and say which database is the current one.
        is_built_in: says whether SQL has a function of a name, in capitals.
    """

    def __init__(self, catalogs: Catalogs, is_built_in: Callable[[str], bool]) -> None:
        self._catalogs, self._is_built_in = catalogs, is_built_in
        self._system: dict[str, Function] = {}
        self._temporary: dict[Path, Function] = {}
        self._declared: dict[tuple[Path, str], Function] = {}
        """(Path, class name) -> the function that was imported."""

    def __getitem__(self, name: str) -> Function:
        if name in self._system:
            return self._system[name]
        if self._is_built_in(name):
            raise KeyError(name)
        return self.function((name,))

    def function(self, parts: tuple[str, ...]) -> Function:
        """Return a function of a database.

        Args:
            parts: its name, with database and catalog before it where they are not the current ones.

        Raises:
            KeyError: there is none of the name.
            SqlError: it cannot be imported, or has no type.
        """
        path = self._path(parts)
        if path in self._temporary:
            return self._temporary[path]
        catalog = self._catalogs.catalog_named(path[0])
        if catalog is None:
            raise KeyError(path[2])
        try:
            stored = catalog.get_function(ObjectPath(*path[1:]))
        except (FunctionNotExistException, DatabaseNotExistException):
            raise KeyError(path[2]) from None
        key = path, stored.get_class_name()
        if key not in self._declared:
            self._declared[key] = imported(path[2], stored)
        return self._declared[key]

    def reference(self, function: Function) -> tuple[tuple[str, ...], str] | None:
        """Return the name by which `referenced` finds a function, and its class if a catalog stores it; None: no name.

        The name of a temporary system function has one part, that of any other three.
        """
        for name, system in self._system.items():
            if system == function:
                return (name,), ""
        for path, temporary in self._temporary.items():
            if temporary == function:
                return path, ""
        for (path, class_name), stored in self._declared.items():
            if stored == function:
                return path, class_name
        return None

    def referenced(self, parts: tuple[str, ...]) -> Function:
        """Return the function that `reference` named, also in another program that defines it.

        Raises:
            KeyError: there is none of the name.
            SqlError: it cannot be imported, or has no type.
        """
        return self._system[parts[0]] if len(parts) == 1 else self.function(parts)

    def described(self, parts: tuple[str, ...]) -> FunctionFacts:
        """Return what is known of a function that is not SQL's.

        Raises:
            KeyError: there is none of the name.
            SqlError: it cannot be imported, or has no type.
        """
        name = parts[-1].upper()
        if len(parts) == 1 and name in self._system:
            return FunctionFacts(self._system[name], True, True)
        function, path = self.function(parts), self._path(parts)
        if path in self._temporary:
            return FunctionFacts(function, False, True)
        stored = self._catalog(path[0]).get_function(ObjectPath(*path[1:]))
        return FunctionFacts(function, False, False, stored)

    def __iter__(self) -> Iterator[str]:
        names = {*self._system, *self._of_current_database()}
        return iter(sorted(name for name in names if name in self._system or not self._is_built_in(name)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    # definitions

    def create_system(self, name: str, function: Function | CatalogFunction, ignore: bool = False) -> None:
        """Define a temporary function for all catalogs, also in the place of one of SQL.

        Raises:
            CatalogException: there is one of the name, and `ignore` is not set.
            SqlError: it cannot be imported, or has no type.
        """
        name = name.upper()
        if name in self._system:
            if ignore:
                return
            raise CatalogException(f"there is a temporary system function {name} already", "drop it first")
        self._system[name] = _declared(name, function)

    def create_temporary(
        self, parts: tuple[str, ...], function: Function | CatalogFunction, ignore: bool = False
    ) -> None:
        """Define a temporary function of a database.

        Raises:
            CatalogException: there is one of the name, and `ignore` is not set.
            SqlError: it cannot be imported, or has no type.
        """
        path = self._path(parts)
        if path in self._temporary:
            if ignore:
                return
            raise CatalogException(f"there is a temporary function {path[2]} already", "drop it first")
        self._temporary[path] = _declared(path[2], function)

    def create(self, parts: tuple[str, ...], function: CatalogFunction, ignore: bool = False) -> None:
        """Store a function in a catalog, after a check that it can be imported.

        Raises:
            CatalogException: there is one of the name and `ignore` is not set, or the catalog cannot store it.
            SqlError: it cannot be imported, or has no type.
        """
        path = self._path(parts)
        imported(path[2], function)
        if path in self._temporary and not ignore:
            raise FunctionAlreadyExistException(path[0], ".".join(path[1:]))
        self._catalog(path[0]).create_function(ObjectPath(*path[1:]), function, ignore)

    def alter(self, parts: tuple[str, ...], function: CatalogFunction, temporary: bool, ignore: bool) -> None:
        """Replace a function that a catalog stores, or a temporary one.

        Raises:
            CatalogException: there is none of the name and `ignore` is not set, or the catalog cannot change it.
            SqlError: it cannot be imported, or has no type.
        """
        path = self._path(parts)
        declared = imported(path[2], function)
        if not temporary:
            self._catalog(path[0]).alter_function(ObjectPath(*path[1:]), function, ignore)
        elif path in self._temporary:
            self._temporary[path] = declared
        elif not ignore:
            raise FunctionNotExistException(path[0], ".".join(path[1:]))

    def drop_system(self, name: str) -> bool:
        """Forget a temporary system function; whether there was one."""
        return self._system.pop(name.upper(), None) is not None

    def drop_temporary(self, parts: tuple[str, ...]) -> bool:
        """Forget a temporary function; whether there was one."""
        return self._temporary.pop(self._path(parts), None) is not None

    def drop(self, parts: tuple[str, ...], ignore: bool) -> bool:
        """Remove a function from its catalog; whether there was one.

        Raises:
            CatalogException: there is none and `ignore` is not set, or a temporary one hides it.
        """
        path = self._path(parts)
        catalog = self._catalog(path[0])
        is_there = catalog.function_exists(ObjectPath(*path[1:]))
        if path in self._temporary:
            problem = f"there is a temporary function {path[2]}"
            raise CatalogException(problem, "drop it first with DROP TEMPORARY FUNCTION")
        catalog.drop_function(ObjectPath(*path[1:]), ignore)
        return is_there

    def names(self, database_path: tuple[str, str] | None = None) -> list[str]:
        """Return the names of the functions that are not SQL's, in small letters and in order.

        Args:
            database_path: catalog and database; None: the current ones, with temporary system functions.

        Raises:
            CatalogException: there is no such database.
        """
        if database_path is None:
            return sorted({name.lower() for name in (*self._system, *self._of_current_database())})
        temporary = {path[2] for path in self._temporary if path[:2] == database_path}
        stored = self._catalog(database_path[0]).list_functions(database_path[1])
        return sorted({name.lower() for name in (*temporary, *stored)})

    def _of_current_database(self) -> set[str]:
        home = self._catalogs.catalog, self._catalogs.database
        names = {path[2] for path in self._temporary if path[:2] == home}
        catalog = self._catalogs.catalog_named(home[0])
        try:
            stored = [] if catalog is None else catalog.list_functions(home[1])
        except CatalogException:  # a database that was dropped by another program
            stored = []
        return names | {name.upper() for name in stored}

    def _path(self, parts: tuple[str, ...]) -> Path:
        catalog, database, name = self._catalogs.path(parts)
        return catalog, database, name.upper()

    def _catalog(self, name: str) -> Catalog:
        catalog = self._catalogs.catalog_named(name)
        if catalog is None:
            raise CatalogNotExistException(name)
        return catalog


def imported(name: str, stored: CatalogFunction) -> Function:
    """Return a function that a catalog stores.

    Raises:
        SqlError: it is not in Python, cannot be imported, or is no function with a type.
    """
    class_name = stored.get_class_name()
    module_name, _, attribute = class_name.rpartition(".")
    if stored.get_function_language() != "PYTHON" or not module_name:
        problem = f"function {name} is {class_name!r}, in {stored.get_function_language().capitalize()}"
        raise SqlError(problem, "name a function in Python as 'package.module.name'")
    try:
        value = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # a module may raise anything when it is imported
        problem = f"function {name}: {class_name!r} cannot be imported ({type(error).__name__}: {error})"
        raise SqlError(problem, "correct its name, and put its module on the path of Python") from error
    try:
        return as_user_function(value).registered(name)
    except InvalidTypesError as error:
        raise SqlError(f"function {name}: {class_name!r} cannot be used: {error}", "decorate it with udf") from error


def _declared(name: str, function: Function | CatalogFunction) -> Function:
    return imported(name, function) if isinstance(function, CatalogFunction) else function
