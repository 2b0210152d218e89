"""The class that catalogs derive from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .exceptions import (
    CatalogException,
    DatabaseNotExistException,
    FunctionNotExistException,
    ModelNotExistException,
    PartitionNotExistException,
    ProcedureNotExistException,
    TableNotExistException,
)
from .object_names import ObjectPath
from .table_statistics import CatalogColumnStatistics, CatalogTableStatistics

if TYPE_CHECKING:
    from .catalog_objects import CatalogBaseTable, CatalogDatabase, CatalogFunction, CatalogModel, Procedure
    from .partitions import CatalogPartition, CatalogPartitionSpec

__all__ = ["Catalog"]


class Catalog:
    """Databases with tables, views, functions and models in them, by name.

    A catalog of a program's own overrides `list_databases`, `get_database`, `list_tables` and `get_table`, and those
    of the other methods that it can do; the others find nothing, or raise CatalogException. Register it with
    `TableEnvironment.register_catalog`.

    >>> class Reports(Catalog):
    ...     def list_databases(self):
    ...         return ["default"]
    ...     def get_database(self, database_name):
    ...         return CatalogDatabase.create_instance({})
    ...     def list_tables(self, database_name):
    ...         return ["sales"]
    ...     def get_table(self, table_path):
    ...         if table_path.get_object_name() != "sales":
    ...             raise TableNotExistException(self.name, table_path)
    ...         schema = Schema.new_builder().column("n", "INT").build()
    ...         options = {"connector": "datagen", "number-of-rows": "3", "fields.n.kind": "sequence",
    ...                    "fields.n.start": "1", "fields.n.end": "3"}
    ...         return CatalogBaseTable.create_table(schema, [], options)
    >>> from rayflink.table import EnvironmentSettings, Schema, TableEnvironment
    >>> from rayflink.table.catalog import CatalogBaseTable, CatalogDatabase
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.register_catalog("reports", Reports())
    >>> sorted(row[0] for row in t_env.execute_sql("SELECT n FROM reports.`default`.sales").collect())
    [1, 2, 3]

    Args:
        name: under which it is registered; "": it gets its name when it is.
        default_database: which is the current one after USE CATALOG.
    """

    def __init__(self, name: str = "", default_database: str = "default") -> None:
        self.name, self._default_database = name, default_database

    # subclasses need not call __init__
    name = ""
    _default_database = "default"

    def open(self) -> None:
        """Connect to where the objects are stored; called once, before all others."""

    def close(self) -> None:
        """Close connections; called when the catalog is dropped."""

    def get_default_database(self) -> str:
        """Return the database that is the current one after USE CATALOG."""
        return self._default_database

    # databases

    def list_databases(self) -> list[str]:
        """Return the names of the databases.

        Raises:
            CatalogException: they cannot be read.
        """
        raise self._cannot("list databases")

    def get_database(self, database_name: str) -> CatalogDatabase:
        """Return a database.

        Raises:
            DatabaseNotExistException: there is none of the name.
            CatalogException: it cannot be read.
        """
        raise self._cannot("describe a database")

    def database_exists(self, database_name: str) -> bool:
        """Return whether there is a database of a name."""
        try:
            self.get_database(database_name)
        except DatabaseNotExistException:
            return False
        return True

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Create a database.

        Raises:
            DatabaseAlreadyExistException: there is one of the name, and `ignore_if_exists` is not set.
            CatalogException: it cannot be created.
        """
        raise self._cannot("create a database")

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        """Drop a database.

        Args:
            ignore_if_exists: do nothing where there is none (the name is PyFlink's).
            cascade: drop the objects in it, too.

        Raises:
            DatabaseNotExistException: there is none of the name, and `ignore_if_exists` is not set.
            DatabaseNotEmptyException: it has objects, and `cascade` is not set.
            CatalogException: it cannot be dropped.
        """
        raise self._cannot("drop a database")

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replace what is stored of a database.

        Raises:
            DatabaseNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
            CatalogException: it cannot be changed.
        """
        raise self._cannot("change a database")

    # tables and views

    def list_tables(self, database_name: str) -> list[str]:
        """Return the names of the tables and views of a database.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        raise self._cannot("list tables")

    def list_views(self, database_name: str) -> list[str]:
        """Return the names of the views of a database.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        names = self.list_tables(database_name)
        return [name for name in names if self.get_table(ObjectPath(database_name, name)).is_view]

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """Return the names of the materialized tables of a database: there are none.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        self.get_database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """Return a table or view.

        Raises:
            TableNotExistException: there is none of the name.
            CatalogException: it cannot be read.
        """
        raise self._cannot("describe a table")

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Return whether there is a table or view of a name."""
        try:
            self.get_table(table_path)
        except (TableNotExistException, DatabaseNotExistException):
            return False
        return True

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a table or view, its partitions and its statistics.

        Raises:
            TableNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
            CatalogException: it cannot be dropped.
        """
        raise self._cannot("drop a table")

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Give a table or view another name in its database.

        Raises:
            TableNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
            TableAlreadyExistException: there is one of the new name.
            CatalogException: it cannot be renamed.
        """
        raise self._cannot("rename a table")

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Create a table or view.

        Raises:
            DatabaseNotExistException: there is no such database.
            TableAlreadyExistException: there is one of the name, and `ignore_if_exists` is not set.
            CatalogException: it cannot be created.
        """
        raise self._cannot("create a table")

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Replace a table by a table, or a view by a view.

        Raises:
            TableNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
            CatalogException: one is a table and the other a view, or it cannot be changed.
        """
        raise self._cannot("change a table")

    # partitions

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """Return the partitions of a table.

        Args:
            table_path: the table.
            partition_spec: values that they must have; None: all.

        Raises:
            TableNotExistException: there is no such table.
            TableNotPartitionedException: it has no partitions.
            PartitionSpecInvalidException: `partition_spec` has other columns.
        """
        raise self._cannot("list partitions")

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """Return a partition.

        Raises:
            PartitionNotExistException: there is none.
        """
        raise PartitionNotExistException(self.name, table_path, partition_spec)

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Return whether a table has a partition."""
        try:
            self.get_partition(table_path, partition_spec)
        except PartitionNotExistException:
            return False
        return True

    def create_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:  # fmt: skip
        """Create a partition.

        Raises:
            TableNotExistException: there is no such table.
            TableNotPartitionedException: it has no partitions.
            PartitionSpecInvalidException: `partition_spec` has other columns.
            PartitionAlreadyExistsException: there is one, and `ignore_if_exists` is not set.
        """
        raise self._cannot("create a partition")

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Drop a partition.

        Raises:
            PartitionNotExistException: there is none, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("drop a partition")

    def alter_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        """Replace what is stored of a partition.

        Raises:
            PartitionNotExistException: there is none, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("change a partition")

    # functions and procedures

    def list_functions(self, database_name: str) -> list[str]:
        """Return the names of the functions of a database.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        self.get_database(database_name)
        return []

    def list_procedures(self, database_name: str) -> list[str]:
        """Return the names of the procedures of a database.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        self.get_database(database_name)
        return []

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """Return a function; case does not count.

        Raises:
            FunctionNotExistException: there is none of the name.
        """
        raise FunctionNotExistException(self.name, function_path)

    def get_procedure(self, procedure_path: ObjectPath) -> Procedure:
        """Return a procedure.

        Raises:
            ProcedureNotExistException: there is none of the name.
        """
        raise ProcedureNotExistException(self.name, procedure_path)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Return whether there is a function of a name."""
        try:
            self.get_function(function_path)
        except FunctionNotExistException:
            return False
        return True

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Create a function.

        Raises:
            DatabaseNotExistException: there is no such database.
            FunctionAlreadyExistException: there is one of the name, and `ignore_if_exists` is not set.
        """
        raise self._cannot("create a function")

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replace a function.

        Raises:
            FunctionNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("change a function")

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a function.

        Raises:
            FunctionNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("drop a function")

    # models

    def list_models(self, database_name: str) -> list[str]:
        """Return the names of the models of a database.

        Raises:
            DatabaseNotExistException: there is no such database.
        """
        self.get_database(database_name)
        return []

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        """Return a model.

        Raises:
            ModelNotExistException: there is none of the name.
        """
        raise ModelNotExistException(self.name, model_path)

    def model_exists(self, model_path: ObjectPath) -> bool:
        """Return whether there is a model of a name."""
        try:
            self.get_model(model_path)
        except ModelNotExistException:
            return False
        return True

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Drop a model.

        Raises:
            ModelNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("drop a model")

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        """Give a model another name in its database.

        Raises:
            ModelNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
            ModelAlreadyExistException: there is one of the new name.
        """
        raise self._cannot("rename a model")

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool) -> None:
        """Create a model.

        Raises:
            DatabaseNotExistException: there is no such database.
            ModelAlreadyExistException: there is one of the name, and `ignore_if_exists` is not set.
        """
        raise self._cannot("create a model")

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool) -> None:
        """Replace a model.

        Raises:
            ModelNotExistException: there is none of the name, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("change a model")

    # statistics

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """Return the statistics of a table; those that are not known are -1.

        Raises:
            TableNotExistException: there is no such table.
        """
        self.get_table(table_path)
        return CatalogTableStatistics()

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """Return the statistics of the columns of a table.

        Raises:
            TableNotExistException: there is no such table.
        """
        self.get_table(table_path)
        return CatalogColumnStatistics()

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """Return the statistics of a partition; those that are not known are -1.

        Raises:
            PartitionNotExistException: there is none.
        """
        self.get_partition(table_path, partition_spec)
        return CatalogTableStatistics()

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """Return the statistics of several partitions.

        Raises:
            PartitionNotExistException: there is one that does not exist.
        """
        return [self.get_partition_statistics(table_path, partition_spec) for partition_spec in partition_specs]

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """Return the statistics of the columns of a partition.

        Raises:
            PartitionNotExistException: there is none.
        """
        self.get_partition(table_path, partition_spec)
        return CatalogColumnStatistics()

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """Return the statistics of the columns of several partitions.

        Raises:
            PartitionNotExistException: there is one that does not exist.
        """
        return [self.get_partition_column_statistics(table_path, partition_spec) for partition_spec in partition_specs]

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Store the statistics of a table.

        Raises:
            TableNotExistException: there is no such table, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("store statistics")

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Store the statistics of the columns of a table.

        Raises:
            TableNotExistException: there is no such table, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("store statistics")

    def alter_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics, ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        """Store the statistics of a partition.

        Raises:
            PartitionNotExistException: there is none, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("store statistics")

    def alter_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        """Store the statistics of the columns of a partition.

        Raises:
            PartitionNotExistException: there is none, and `ignore_if_not_exists` is not set.
        """
        raise self._cannot("store statistics")

    def _cannot(self, what: str) -> CatalogException:
        kind = type(self).__name__
        return CatalogException(f"catalog {self.name!r}, a {kind}, cannot {what}", "do it where its objects are kept")
