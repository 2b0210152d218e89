"""The catalogs, functions and models of an environment, by name."""

from __future__ import annotations

from ..catalog.catalog_api import Catalog
from ..catalog.catalog_objects import CatalogDescriptor
from ..definitions import parts_of
from ..model_descriptor import ModelDescriptor
from ..udf import as_user_function
from . import model_statements
from .planning_context import PlanningContext
from .show_statements import function_names


class RegisteredObjects:
    """The catalogs and functions that a `TableEnvironment` knows by name."""

    _context: PlanningContext

    # catalogs

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Open a catalog by its options, which are stored in the environment's catalog store.

        Args:
            catalog_name: of the catalog.
            catalog_descriptor: its options, with 'type' among them: generic_in_memory, sql, jdbc, iceberg or delta.

        Raises:
            CatalogAlreadyExistException: there is one of that name.
            CatalogException: an option is missing or wrong, or the catalog cannot be reached.
        """
        options, comment = catalog_descriptor.get_options(), catalog_descriptor.get_comment()
        self._context.catalogs.create_catalog(CatalogDescriptor(catalog_name, options, comment))

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Add a catalog, whose tables queries then read as `catalog.database.table`.

        Raises:
            CatalogAlreadyExistException: there is one of that name.
        """
        self._context.catalogs.register(catalog_name, catalog)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """Return a catalog; None: there is none of that name.

        Raises:
            CatalogException: its options are stored, and it cannot be opened by them.
        """
        return self._context.catalogs.catalog_named(catalog_name)

    # models

    def create_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Store a model in its catalog; queries predict by `ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(columns))`.

        Args:
            model_path: its name, with database and catalog before it where they are not the current ones.
            model_descriptor: made by `ModelDescriptor.for_provider`.
            ignore_if_exists: where there is one of that name, leave it.

        Raises:
            CatalogException: there is one of that name.
            SqlError: its options are wrong.
        """
        model_statements.check(model_path, model_descriptor.model)
        self._context.models.create(parts_of(model_path), model_descriptor.model, False, bool(ignore_if_exists))

    def create_temporary_model(
        self, model_path: str, model_descriptor: ModelDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Define a model for this environment, in the place of a stored one of the name.

        Args:
            model_path: as of `create_model`, and so are the others.
            model_descriptor: made by `ModelDescriptor.for_provider`.
            ignore_if_exists: where there is a temporary one of that name, leave it.

        Raises:
            CatalogException: there is a temporary one of that name.
            SqlError: its options are wrong.
        """
        model_statements.check(model_path, model_descriptor.model)
        self._context.models.create(parts_of(model_path), model_descriptor.model, True, bool(ignore_if_exists))

    def drop_model(self, model_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Remove a model from its catalog; whether there was one.

        Raises:
            CatalogException: there is none and that is not to be ignored, or a temporary one hides it.
        """
        return self._context.models.drop(parts_of(model_path), False, bool(ignore_if_not_exists))

    def drop_temporary_model(self, model_path: str) -> bool:
        """Forget a temporary model; whether there was one."""
        return self._context.models.drop(parts_of(model_path), True, True)

    def list_models(self) -> list[str]:
        """Return the names of the models of the current database."""
        return self._context.models.names()

    def list_temporary_models(self) -> list[str]:
        """Return the names of the temporary models of the current database."""
        return self._context.models.temporary_names()

    # functions

    def create_temporary_function(self, path: str, function: object) -> None:
        """Make a function known to queries of a database, in the place of a temporary one of the name.

        A built-in function of the name comes before it; `create_temporary_system_function` replaces that.

        Args:
            path: its name, with database and catalog before it where they are not the current ones; case does not
                count.
            function: what `udf`, `udtf`, `udaf`, `udtaf` or `udptf` makes, a ScalarFunction, an AggregateFunction that
                says its result type, a ProcessTableFunction that says what it takes and gives, or a function with an
                annotation of its result.

        Raises:
            InvalidTypesError: its result has no type.
        """
        parts = parts_of(path)
        declared = as_user_function(function).registered(parts[-1].upper())
        self._context.functions.drop_temporary(parts)
        self._context.functions.create_temporary(parts, declared)

    def create_temporary_system_function(self, name: str, function: object) -> None:
        """Make a function known to queries in all catalogs, also in the place of a built-in one of the name.

        Args:
            name: one name; case does not count.
            function: as of `create_temporary_function`.

        Raises:
            InvalidTypesError: its result has no type.
        """
        declared = as_user_function(function).registered(name.upper())
        self._context.functions.drop_system(name)
        self._context.functions.create_system(name, declared)

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a temporary function of a database; whether there was one."""
        return self._context.functions.drop_temporary(parts_of(path))

    def drop_temporary_system_function(self, name: str) -> bool:
        """Forget a temporary system function; whether there was one."""
        return self._context.functions.drop_system(name)

    def drop_function(self, path: str) -> bool:
        """Remove a function from its catalog; whether there was one.

        Raises:
            CatalogException: a temporary function hides it.
        """
        return self._context.functions.drop(parts_of(path), True)

    def list_functions(self) -> list[str]:
        """Return names of all functions: those of SQL, of the program and of the current database."""
        return function_names(self._context)

    def list_user_defined_functions(self) -> list[str]:
        """Return names of the functions of the program and of the current database."""
        return self._context.functions.names()


__all__ = ["RegisteredObjects"]
