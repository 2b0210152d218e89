"""The models that an environment knows by name: temporary ones, and those that catalogs store."""

from __future__ import annotations

from collections.abc import Callable

from ..definitions import Path
from .catalog_api import Catalog
from .catalog_objects import CatalogModel
from .exceptions import CatalogException, CatalogNotExistException, ModelAlreadyExistException, ModelNotExistException
from .named_objects import Catalogs
from .object_names import ObjectPath

__all__ = ["NamedModels"]


class NamedModels:
    """Models by name; a temporary one comes before one that a catalog stores.

    Args:
        catalogs: which store models, and say which database is the current one.
    """

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._temporary: dict[Path, CatalogModel] = {}

    def find(self, parts: tuple[str, ...]) -> tuple[Path, CatalogModel]:
        """Return the full name of a model, and the model.

        Raises:
            CatalogException: there is none of the name.
        """
        path = self._catalogs.path(parts)
        temporary = self._temporary.get(path)
        return path, self._catalog(path).get_model(ObjectPath(*path[1:])) if temporary is None else temporary

    def create(self, parts: tuple[str, ...], model: CatalogModel, temporary: bool, ignore: bool) -> None:
        """Define a model.

        Raises:
            CatalogException: there is one of the name and `ignore` is not set, or the catalog cannot store it.
        """
        path = self._catalogs.path(parts)
        if not temporary:
            self._catalog(path).create_model(ObjectPath(*path[1:]), model, ignore)
        elif path not in self._temporary:
            self._temporary[path] = model
        elif not ignore:
            raise ModelAlreadyExistException(path[0], ObjectPath(*path[1:]))

    def alter(self, parts: tuple[str, ...], change: Callable[[CatalogModel], CatalogModel], ignore: bool) -> None:
        """Replace a model by a change of it.

        Raises:
            CatalogException: there is none of the name and `ignore` is not set, or the catalog cannot change it.
        """
        try:
            path, model = self.find(parts)
        except ModelNotExistException:
            if ignore:
                return
            raise
        if path in self._temporary:
            self._temporary[path] = change(model)
        else:
            self._catalog(path).alter_model(ObjectPath(*path[1:]), change(model), ignore)

    def rename(self, parts: tuple[str, ...], new_name: str, ignore: bool) -> None:
        """Give a model another name in its database.

        Raises:
            CatalogException: there is none of the name and `ignore` is not set, or one of the new name.
        """
        path = self._catalogs.path(parts)
        new_path = path[0], path[1], new_name
        if path not in self._temporary:
            self._catalog(path).rename_model(ObjectPath(*path[1:]), new_name, ignore)
        elif new_path in self._temporary:
            raise ModelAlreadyExistException(path[0], ObjectPath(*new_path[1:]))
        else:
            self._temporary[new_path] = self._temporary.pop(path)

    def drop(self, parts: tuple[str, ...], temporary: bool, ignore: bool) -> bool:
        """Forget a model; whether there was one.

        Raises:
            CatalogException: there is none and `ignore` is not set, or a temporary one hides it.
        """
        path = self._catalogs.path(parts)
        name = ObjectPath(*path[1:])
        if temporary:
            if self._temporary.pop(path, None) is not None:
                return True
            if not ignore:
                raise ModelNotExistException(path[0], name)
            return False
        if path in self._temporary:
            problem = f"there is a temporary model {path[2]!r} that hides the other"
            raise CatalogException(problem, "DROP TEMPORARY MODEL first")
        catalog = self._catalog(path)
        is_there = catalog.model_exists(name)
        catalog.drop_model(name, ignore)
        return is_there

    def names(self, database_path: tuple[str, str] | None = None) -> list[str]:
        """Return the names of the models of a database, in order; None: of the current one.

        Raises:
            CatalogException: there is no such database.
        """
        catalog, database = database_path or (self._catalogs.catalog, self._catalogs.database)
        stored = self._catalog((catalog, database, "")).list_models(database)
        return sorted({*stored, *self.temporary_names((catalog, database))})

    def temporary_names(self, database_path: tuple[str, str] | None = None) -> list[str]:
        """Return the names of the temporary models of a database, in order; None: of the current one."""
        home = database_path or (self._catalogs.catalog, self._catalogs.database)
        return sorted(path[2] for path in self._temporary if path[:2] == home)

    def _catalog(self, path: Path) -> Catalog:
        catalog = self._catalogs.catalog_named(path[0])
        if catalog is None:
            raise CatalogNotExistException(path[0])
        return catalog
