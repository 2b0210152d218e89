"""A catalog that stores what it is given, wherever its objects are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from .catalog_api import Catalog
from .catalog_objects import CatalogBaseTable, CatalogDatabase, CatalogFunction, CatalogModel
from .exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
    ModelAlreadyExistException,
    ModelNotExistException,
    PartitionAlreadyExistsException,
    PartitionNotExistException,
    PartitionSpecInvalidException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)
from .object_names import ObjectPath
from .partitions import CatalogPartition, CatalogPartitionSpec
from .stored_definitions import StoredObject
from .table_statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = ["ObjectStore", "StoredCatalog"]

T = TypeVar("T", CatalogBaseTable, CatalogFunction, CatalogModel, CatalogTableStatistics, CatalogColumnStatistics)
Statistics = CatalogTableStatistics | CatalogColumnStatistics

DATABASE, TABLE, FUNCTION, MODEL, PARTITION = "database", "table", "function", "model", "partition"
TABLE_STATISTICS, COLUMN_STATISTICS = "table_statistics", "column_statistics"


class ObjectStore(Protocol):
    """Objects by kind, database and name. The name of a database itself is stored under the name ""."""

    def load(self, kind: str, database: str, name: str) -> StoredObject | None:
        """Return an object; None: there is none."""
        ...

    def add(self, kind: str, database: str, name: str, value: StoredObject) -> bool:
        """Store an object that is new; False: there is one, which stays."""
        ...

    def replace(self, kind: str, database: str, name: str, value: StoredObject) -> None:
        """Store an object in the place of another, if there is one."""
        ...

    def remove(self, kind: str, database: str, name: str) -> bool:
        """Remove an object; False: there is none."""
        ...

    def names(self, kind: str, database: str, prefix: str = "") -> list[str]:
        """Return the names of the objects of a kind in a database that begin so, in order."""
        ...

    def databases(self) -> list[str]:
        """Return the names of the databases, in order."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context in which all is done, or nothing."""
        ...


class StoredCatalog(Catalog):
    """A catalog with the semantics of Flink's GenericInMemoryCatalog over an `ObjectStore`.

    Args:
        name: of the catalog.
        default_database: created if it does not exist.
        store: of the objects.
    """

    def __init__(self, name: str, default_database: str, store: ObjectStore) -> None:
        super().__init__(name, default_database)
        self._store = store

    def open(self) -> None:
        self._store.add(DATABASE, self._default_database, "", CatalogDatabase())

    # databases

    def list_databases(self) -> list[str]:
        return self._store.databases()

    def get_database(self, database_name: str) -> CatalogDatabase:
        database = self._store.load(DATABASE, database_name, "")
        if not isinstance(database, CatalogDatabase):
            raise DatabaseNotExistException(self.name, database_name)
        return database.copy()

    def database_exists(self, database_name: str) -> bool:
        return self._store.load(DATABASE, database_name, "") is not None

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        if not self._store.add(DATABASE, name, "", database.copy()) and not ignore_if_exists:
            raise DatabaseAlreadyExistException(self.name, name)

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        with self._store.transaction():
            if not self.database_exists(name):
                if ignore_if_exists:
                    return
                raise DatabaseNotExistException(self.name, name)
            kinds = (TABLE, FUNCTION, MODEL, PARTITION, TABLE_STATISTICS, COLUMN_STATISTICS)
            objects = [(kind, child) for kind in kinds for child in self._store.names(kind, name)]
            if objects and not cascade:
                raise DatabaseNotEmptyException(self.name, name)
            for kind, child in objects:
                self._store.remove(kind, name, child)
            self._store.remove(DATABASE, name, "")

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        with self._store.transaction():
            if self.database_exists(name):
                self._store.replace(DATABASE, name, "", new_database.copy())
            elif not ignore_if_not_exists:
                raise DatabaseNotExistException(self.name, name)

    # tables and views

    def list_tables(self, database_name: str) -> list[str]:
        self._check_database(database_name)
        return self._store.names(TABLE, database_name)

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        table = self._copy(CatalogBaseTable, TABLE, table_path)
        if table is None:
            raise TableNotExistException(self.name, table_path)
        return table

    def table_exists(self, table_path: ObjectPath) -> bool:
        return self._load(TABLE, table_path) is not None

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        with self._store.transaction():
            if self._remove(TABLE, table_path):
                self._remove_parts(table_path)
            elif not ignore_if_not_exists:
                raise TableNotExistException(self.name, table_path)

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        new_path = ObjectPath(table_path.database_name, new_table_name)
        with self._store.transaction():
            table = self._load(TABLE, table_path)
            if table is None:
                if ignore_if_not_exists:
                    return
                raise TableNotExistException(self.name, table_path)
            if not self._add(TABLE, new_path, table):
                raise TableAlreadyExistException(self.name, new_path)
            for kind in (PARTITION, TABLE_STATISTICS, COLUMN_STATISTICS):
                for name in self._part_names(kind, table_path):
                    value = self._store.load(kind, table_path.database_name, name)
                    moved = new_table_name + name[len(table_path.object_name) :]
                    if value is not None:
                        self._store.add(kind, table_path.database_name, moved, value)
            self._remove(TABLE, table_path)
            self._remove_parts(table_path)

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        self._check_database(table_path.database_name)
        if not self._add(TABLE, table_path, table.copy()) and not ignore_if_exists:
            raise TableAlreadyExistException(self.name, table_path)

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        with self._store.transaction():
            table = self._copy(CatalogBaseTable, TABLE, table_path)
            if table is None:
                if ignore_if_not_exists:
                    return
                raise TableNotExistException(self.name, table_path)
            if table.is_view is not new_table.is_view:
                problem = (
                    f"{table_path} is a {table.get_table_kind().lower()}, "
                    f"and would become a {new_table.get_table_kind().lower()}"
                )
                raise CatalogException(problem, "drop it, and create it again")
            self._store.replace(TABLE, table_path.database_name, table_path.object_name, new_table.copy())

    # partitions

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        keys = self._partition_keys(table_path)
        wanted = partition_spec or CatalogPartitionSpec({})
        if not set(wanted.get_partition_spec()) <= set(keys):
            raise PartitionSpecInvalidException(self.name, table_path, wanted)
        names = self._part_names(PARTITION, table_path)
        specs = [CatalogPartitionSpec(json.loads(name[len(table_path.object_name) + 1 :])) for name in names]
        return [spec for spec in specs if spec.contains(wanted)]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        name = _part_name(table_path, partition_spec)
        partition = self._store.load(PARTITION, table_path.database_name, name)
        if not isinstance(partition, CatalogPartition):
            raise PartitionNotExistException(self.name, table_path, partition_spec)
        return partition.copy()

    def create_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:  # fmt: skip
        with self._store.transaction():
            if set(partition_spec.get_partition_spec()) != set(self._partition_keys(table_path)):
                raise PartitionSpecInvalidException(self.name, table_path, partition_spec)
            name = _part_name(table_path, partition_spec)
            is_new = self._store.add(PARTITION, table_path.database_name, name, partition.copy())
            if not is_new and not ignore_if_exists:
                raise PartitionAlreadyExistsException(self.name, table_path, partition_spec)

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        name = _part_name(table_path, partition_spec)
        with self._store.transaction():
            if not self._store.remove(PARTITION, table_path.database_name, name):
                if ignore_if_not_exists:
                    return
                raise PartitionNotExistException(self.name, table_path, partition_spec)
            for kind in (TABLE_STATISTICS, COLUMN_STATISTICS):
                self._store.remove(kind, table_path.database_name, name)

    def alter_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        with self._store.transaction():
            if self.partition_exists(table_path, partition_spec):
                name = _part_name(table_path, partition_spec)
                self._store.replace(PARTITION, table_path.database_name, name, new_partition.copy())
            elif not ignore_if_not_exists:
                raise PartitionNotExistException(self.name, table_path, partition_spec)

    # functions and models

    def list_functions(self, database_name: str) -> list[str]:
        self._check_database(database_name)
        return self._store.names(FUNCTION, database_name)

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        function = self._copy(CatalogFunction, FUNCTION, _folded(function_path))
        if function is None:
            raise FunctionNotExistException(self.name, function_path)
        return function

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        self._check_database(function_path.database_name)
        if not self._add(FUNCTION, _folded(function_path), function.copy()) and not ignore_if_exists:
            raise FunctionAlreadyExistException(self.name, function_path)

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        path = _folded(function_path)
        with self._store.transaction():
            if self._load(FUNCTION, path) is not None:
                self._store.replace(FUNCTION, path.database_name, path.object_name, new_function.copy())
            elif not ignore_if_not_exists:
                raise FunctionNotExistException(self.name, function_path)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        if not self._remove(FUNCTION, _folded(function_path)) and not ignore_if_not_exists:
            raise FunctionNotExistException(self.name, function_path)

    def list_models(self, database_name: str) -> list[str]:
        self._check_database(database_name)
        return self._store.names(MODEL, database_name)

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        model = self._copy(CatalogModel, MODEL, model_path)
        if model is None:
            raise ModelNotExistException(self.name, model_path)
        return model

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        if not self._remove(MODEL, model_path) and not ignore_if_not_exists:
            raise ModelNotExistException(self.name, model_path)

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        new_path = ObjectPath(model_path.database_name, new_model_name)
        with self._store.transaction():
            model = self._load(MODEL, model_path)
            if model is None:
                if ignore_if_not_exists:
                    return
                raise ModelNotExistException(self.name, model_path)
            if not self._add(MODEL, new_path, model):
                raise ModelAlreadyExistException(self.name, new_path)
            self._remove(MODEL, model_path)

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool) -> None:
        self._check_database(model_path.database_name)
        if not self._add(MODEL, model_path, model.copy()) and not ignore_if_exists:
            raise ModelAlreadyExistException(self.name, model_path)

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool) -> None:
        with self._store.transaction():
            if self._load(MODEL, model_path) is not None:
                self._store.replace(MODEL, model_path.database_name, model_path.object_name, new_model.copy())
            elif not ignore_if_not_exists:
                raise ModelNotExistException(self.name, model_path)

    # statistics

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        self.get_table(table_path)
        return self._copy(CatalogTableStatistics, TABLE_STATISTICS, table_path) or CatalogTableStatistics()

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        self.get_table(table_path)
        return self._copy(CatalogColumnStatistics, COLUMN_STATISTICS, table_path) or CatalogColumnStatistics()

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        stored = self._part_statistics(TABLE_STATISTICS, table_path, partition_spec)
        return stored.copy() if isinstance(stored, CatalogTableStatistics) else CatalogTableStatistics()

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        stored = self._part_statistics(COLUMN_STATISTICS, table_path, partition_spec)
        return stored.copy() if isinstance(stored, CatalogColumnStatistics) else CatalogColumnStatistics()

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        self._store_of_table(TABLE_STATISTICS, table_path, table_statistics, ignore_if_not_exists)

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        self._store_of_table(COLUMN_STATISTICS, table_path, column_statistics, ignore_if_not_exists)

    def alter_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics, ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        part = table_path, partition_spec
        self._store_of_part(TABLE_STATISTICS, part, partition_statistics, ignore_if_not_exists)

    def alter_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        part = table_path, partition_spec
        self._store_of_part(COLUMN_STATISTICS, part, column_statistics, ignore_if_not_exists)

    def _store_of_table(
        self, kind: str, path: ObjectPath, statistics: Statistics, ignore_if_not_exists: bool
    ) -> None:
        with self._store.transaction():
            if self.table_exists(path):
                self._remove(kind, path)
                self._add(kind, path, statistics.copy())
            elif not ignore_if_not_exists:
                raise TableNotExistException(self.name, path)

    def _store_of_part(
        self, kind: str, part: tuple[ObjectPath, CatalogPartitionSpec], statistics: Statistics,
        ignore_if_not_exists: bool,
    ) -> None:  # fmt: skip
        with self._store.transaction():
            if self.partition_exists(*part):
                name = _part_name(*part)
                self._store.remove(kind, part[0].database_name, name)
                self._store.add(kind, part[0].database_name, name, statistics.copy())
            elif not ignore_if_not_exists:
                raise PartitionNotExistException(self.name, *part)

    def _part_statistics(
        self, kind: str, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> StoredObject | None:
        self.get_partition(table_path, partition_spec)
        return self._store.load(kind, table_path.database_name, _part_name(table_path, partition_spec))

    # objects

    def _check_database(self, name: str) -> None:
        if not self.database_exists(name):
            raise DatabaseNotExistException(self.name, name)

    def _load(self, kind: str, path: ObjectPath) -> StoredObject | None:
        return self._store.load(kind, path.database_name, path.object_name)

    def _copy(self, kind_type: type[T], kind: str, path: ObjectPath) -> T | None:
        """Return a copy of an object of a kind; None: there is none."""
        stored = self._load(kind, path)
        if stored is None:
            return None
        copy = stored.copy()
        assert isinstance(copy, kind_type), f"{path} is a {type(copy).__name__}"
        return copy

    def _add(self, kind: str, path: ObjectPath, value: StoredObject) -> bool:
        return self._store.add(kind, path.database_name, path.object_name, value)

    def _remove(self, kind: str, path: ObjectPath) -> bool:
        return self._store.remove(kind, path.database_name, path.object_name)

    def _partition_keys(self, path: ObjectPath) -> list[str]:
        keys = self.get_table(path).get_partition_keys()
        if not keys:
            raise TableNotPartitionedException(self.name, path)
        return keys

    def _part_names(self, kind: str, path: ObjectPath) -> list[str]:
        return self._store.names(kind, path.database_name, f"{path.object_name}\n")

    def _remove_parts(self, path: ObjectPath) -> None:
        """Remove the partitions of a table, and all statistics of it."""
        for kind in (PARTITION, TABLE_STATISTICS, COLUMN_STATISTICS):
            for name in [path.object_name, *self._part_names(kind, path)]:
                self._store.remove(kind, path.database_name, name)


class ObjectsInMemory:
    """An `ObjectStore` in a dict, for one thread."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], StoredObject] = {}

    def load(self, kind: str, database: str, name: str) -> StoredObject | None:
        """Return an object; None: there is none."""
        return self._values.get((kind, database, name))

    def add(self, kind: str, database: str, name: str, value: StoredObject) -> bool:
        """Store an object that is new; False: there is one, which stays."""
        return self._values.setdefault((kind, database, name), value) is value

    def replace(self, kind: str, database: str, name: str, value: StoredObject) -> None:
        """Store an object in the place of another, if there is one."""
        if (kind, database, name) in self._values:
            self._values[kind, database, name] = value

    def remove(self, kind: str, database: str, name: str) -> bool:
        """Remove an object; False: there is none."""
        return self._values.pop((kind, database, name), None) is not None

    def names(self, kind: str, database: str, prefix: str = "") -> list[str]:
        """Return the names of the objects of a kind in a database that begin so, in order."""
        keys = [key[2] for key in self._values if key[:2] == (kind, database)]
        return sorted(name for name in keys if name.startswith(prefix))

    def databases(self) -> list[str]:
        """Return the names of the databases, in order."""
        return sorted(key[1] for key in self._values if key[0] == DATABASE)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all, or nothing."""
        before = dict(self._values)
        try:
            yield
        except BaseException:
            self._values = before
            raise


def _part_name(path: ObjectPath, spec: CatalogPartitionSpec) -> str:
    """Return the name under which a partition, or its statistics, are stored."""
    return f"{path.object_name}\n{json.dumps(spec.get_partition_spec(), sort_keys=True)}"


def _folded(path: ObjectPath) -> ObjectPath:
    """Return the path of a function, whose case does not count."""
    return ObjectPath(path.database_name, path.object_name.lower())
