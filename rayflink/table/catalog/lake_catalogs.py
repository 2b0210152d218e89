"""The tables of Iceberg's catalogs, and of folders with Delta tables, as catalogs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rayflink.common.errors import ConnectorError, InvalidTypesError
from rayflink.connectors.delta.delta_table import DeltaPlace
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, IcebergErrors, NewTable, TableLoader
from rayflink.connectors.lakes.lake_errors import library

from ..conversion.arrow_columns import normalize_types, type_of
from ..definitions import ColumnDefinition, TableDefinition
from .catalog_api import Catalog
from .catalog_objects import CatalogBaseTable, CatalogDatabase
from .exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
)
from .object_names import ObjectPath

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = ["DeltaCatalog", "IcebergCatalog"]

T = TypeVar("T")
_MARK = ".rayflink-database"
"""An empty file in the folder of a database."""


class _LakeCatalog(Catalog):
    """A catalog whose tables are those of a lake."""

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        if not self.database_exists(name):
            self._create_database(name, database)
        elif not ignore_if_exists:
            raise DatabaseAlreadyExistException(self.name, name)

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        if not self.database_exists(name):
            if ignore_if_exists:
                return
            raise DatabaseNotExistException(self.name, name)
        tables = self.list_tables(name)
        if tables and not cascade:
            raise DatabaseNotEmptyException(self.name, name)
        for table in tables:
            self.drop_table(ObjectPath(name, table), False)
        self._drop_database(name)

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        definition = table.definition
        if not isinstance(definition, TableDefinition):
            raise self._cannot("store a view")
        other = definition.connector
        if other is not None and other != self.connector:
            problem = f"catalog {self.name!r} stores tables of the connector {self.connector!r}, and not of {other!r}"
            raise CatalogException(problem, "leave the option 'connector' out, or create it in another catalog")
        if extra := [column.name for column in definition.columns if not column.is_physical]:
            problem = f"a computed or metadata column {extra[0]!r} cannot be stored in catalog {self.name!r}"
            raise CatalogException(problem, "compute it in a view of another catalog")
        if definition.watermark is not None:
            problem = f"a watermark cannot be stored in catalog {self.name!r}"
            raise CatalogException(problem, "declare it in another catalog, in a table LIKE this one")
        if not self.database_exists(table_path.get_database_name()):
            raise DatabaseNotExistException(self.name, table_path.get_database_name())
        if not self.table_exists(table_path):
            self._create_table(table_path, definition)
        elif not ignore_if_exists:
            raise TableAlreadyExistException(self.name, table_path)

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        if self.table_exists(table_path):
            self._drop_table(table_path)
        elif not ignore_if_not_exists:
            raise TableNotExistException(self.name, table_path)

    connector = ""

    def _create_database(self, name: str, database: CatalogDatabase) -> None:
        raise NotImplementedError

    def _drop_database(self, name: str) -> None:
        raise NotImplementedError

    def _create_table(self, path: ObjectPath, table: TableDefinition) -> None:
        raise NotImplementedError

    def _drop_table(self, path: ObjectPath) -> None:
        raise NotImplementedError

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of connectors as those of catalogs."""
        try:
            yield
        except ConnectorError as error:
            raise CatalogException(f"catalog {self.name!r}: {error.problem}", error.remedy) from error
        except InvalidTypesError as error:
            problem = f"catalog {self.name!r} has a table that cannot be read: {error}"
            raise CatalogException(problem, "read it without that column, through another catalog") from error


class IcebergCatalog(_LakeCatalog):
    """The namespaces and tables of an Iceberg catalog, read and written by the connector `iceberg`.

    In SQL: `CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'rest', 'uri' = 'http://host:8181')`.
    A nested namespace is a database with points in its name.

    Args:
        name: of the catalog.
        properties: `catalog-type` (rest, sql, hive, glue, ...), `uri`, `warehouse`, and whatever else pyiceberg takes.
        default_database: a namespace, created if it does not exist.

    Raises:
        CatalogException: pyiceberg is missing, or the catalog cannot be reached.
    """

    connector = "iceberg"

    def __init__(self, name: str, properties: Mapping[str, str], default_database: str = "default") -> None:
        super().__init__(name, default_database)
        settings = dict(properties)
        self._kind = settings.pop("catalog-type", "rest")
        self._properties = settings
        with self._errors():
            self._loader = CatalogLoader.custom(name, {**settings, "type": self._kind})
            self._catalog = self._loader.load()
        self._run("created", lambda: self._catalog.create_namespace_if_not_exists(default_database))

    def list_databases(self) -> list[str]:
        namespaces = self._run("listed", self._catalog.list_namespaces)
        return sorted(".".join(namespace) for namespace in namespaces)

    def get_database(self, database_name: str) -> CatalogDatabase:
        properties = self._run(
            "read", lambda: self._catalog.load_namespace_properties(database_name),
            {"NoSuchNamespaceError": DatabaseNotExistException(self.name, database_name)},
        )  # fmt: skip
        comment = properties.get("comment")
        return CatalogDatabase({key: str(value) for key, value in properties.items() if key != "comment"}, comment)

    def list_tables(self, database_name: str) -> list[str]:
        tables = self._run(
            "listed", lambda: self._catalog.list_tables(database_name),
            {"NoSuchNamespaceError": DatabaseNotExistException(self.name, database_name)},
        )  # fmt: skip
        return sorted(table[-1] for table in tables)

    def list_views(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        missing = TableNotExistException(self.name, table_path)
        table = self._run(
            "read", lambda: self._catalog.load_table(table_path.get_full_name()),
            {"NoSuchTableError": missing, "NoSuchNamespaceError": missing},
        )  # fmt: skip
        schema = table.schema()
        names = {field.field_id: field.name for field in schema.fields}
        identities = [
            names[field.source_id] for field in table.spec().fields if str(field.transform) == "identity"
        ]
        options = {
            "connector": "iceberg", "catalog-name": self.name, "catalog-type": self._kind,
            "catalog-database": table_path.get_database_name(), "catalog-table": table_path.get_object_name(),
        }  # fmt: skip
        for key, value in self._properties.items():
            is_own = key in ("uri", "warehouse") or key.startswith(("s3.", "gcs.", "adls."))
            options[key if is_own else f"catalog.{key}"] = value
        with self._errors():
            columns = _columns(schema.as_arrow(), {field.name: field.doc for field in schema.fields})
        keys = tuple(names[number] for number in schema.identifier_field_ids)
        comment = table.properties.get("comment")
        return CatalogBaseTable(TableDefinition(columns, None, keys, tuple(identities), options, comment))

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        new_path = ObjectPath(table_path.get_database_name(), new_table_name)
        if not self.table_exists(table_path):
            if ignore_if_not_exists:
                return
            raise TableNotExistException(self.name, table_path)
        names = table_path.get_full_name(), new_path.get_full_name()
        self._run(
            "renamed", lambda: self._catalog.rename_table(*names),
            {"TableAlreadyExistsError": TableAlreadyExistException(self.name, new_path)},
        )  # fmt: skip

    def _create_database(self, name: str, database: CatalogDatabase) -> None:
        comment = database.get_comment()
        properties = {**database.get_properties(), **({"comment": comment} if comment else {})}
        self._run("created", lambda: self._catalog.create_namespace(name, properties))

    def _drop_database(self, name: str) -> None:
        self._run("dropped", lambda: self._catalog.drop_namespace(name))

    def _create_table(self, path: ObjectPath, table: TableDefinition) -> None:
        properties = {key.removeprefix("table."): value for key, value in table.options.items() if key != "connector"}
        if table.comment:
            properties["comment"] = table.comment
        schema = _arrow_schema(table)
        partitions = tuple(("identity", key) for key in table.partition_keys)
        loader = TableLoader.from_catalog(self._loader, path.get_full_name())
        with self._errors():
            loader.load_or_create(NewTable(schema, partitions, tuple(sorted(properties.items()))))

    def _drop_table(self, path: ObjectPath) -> None:
        self._run("dropped", lambda: self._catalog.drop_table(path.get_full_name()))

    def _run(
        self, action: str, call: Callable[[], T], known: Mapping[str, CatalogException] | None = None
    ) -> T:
        """Return what the library returns.

        Args:
            action: for the message.
            known: name of an error of pyiceberg -> what it means here.

        Raises:
            CatalogException: the library raised an error.
        """
        try:
            with IcebergErrors(f"the catalog {self.name!r}", action):
                return call()
        except ConnectorError as error:
            cause = type(error.__context__).__name__
            if known and cause in known:
                raise known[cause] from None
            raise CatalogException(f"catalog {self.name!r}: {error.problem}", error.remedy) from error


class DeltaCatalog(_LakeCatalog):
    """A folder, or a prefix of an object store, in which each folder is a database with Delta tables.

    In SQL: `CREATE CATALOG lake WITH ('type' = 'delta', 'warehouse' = '/data/lake')`. Tables are read and written by
    the connector `delta`.

    Args:
        name: of the catalog.
        warehouse: a folder, or a URL such as s3://bucket/lake.
        default_database: created if it does not exist.
        options: of the object store: `s3.`..., `storage.`...

    Raises:
        CatalogException: the folder cannot be read.
    """

    connector = "delta"

    def __init__(
        self, name: str, warehouse: str, default_database: str = "default", options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, default_database)
        self._options = dict(options or {})
        with self._errors():
            self._place = DeltaPlace.at(warehouse, self._storage_options())
        self._create_database(default_database, CatalogDatabase())

    def list_databases(self) -> list[str]:
        return self._folders("")

    def get_database(self, database_name: str) -> CatalogDatabase:
        if database_name not in self._folders(""):
            raise DatabaseNotExistException(self.name, database_name)
        return CatalogDatabase()

    def list_tables(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        names = self._folders(database_name)
        return [name for name in names if "_delta_log" in self._folders(f"{database_name}/{name}")]

    def list_views(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return []

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        place = self._table_place(table_path)
        with self._errors():
            if not place.exists():
                raise TableNotExistException(self.name, table_path)
            table = place.open()
            arrow = library("pyarrow", "delta")
            columns = _columns(arrow.schema(table.schema()), {})
            metadata = table.metadata()
        options = {"connector": "delta", "table-path": place.path, **self._options}
        keys = tuple(metadata.partition_columns)
        return CatalogBaseTable(TableDefinition(columns, None, (), keys, options, metadata.description or None))

    def _create_database(self, name: str, database: CatalogDatabase) -> None:
        with self._files() as files:
            files.create_dir(name, recursive=True)
            with files.open_output_stream(f"{name}/{_MARK}"):  # object stores have no empty folders
                pass

    def _drop_database(self, name: str) -> None:
        with self._files() as files:
            files.delete_dir(name)

    def _create_table(self, path: ObjectPath, table: TableDefinition) -> None:
        with self._errors():
            self._table_place(path).create(_arrow_schema(table), list(table.partition_keys), table.comment)

    def _drop_table(self, path: ObjectPath) -> None:
        with self._files() as files:
            files.delete_dir(f"{path.get_database_name()}/{path.get_object_name()}")

    def _storage_options(self) -> dict[str, str]:
        return {key.removeprefix("storage."): value for key, value in self._options.items()}

    def _table_place(self, path: ObjectPath) -> DeltaPlace:
        address = f"{self._place.path}/{path.get_database_name()}/{path.get_object_name()}"
        return DeltaPlace.at(address, self._storage_options())

    def _folders(self, below: str) -> list[str]:
        module = library("pyarrow.fs", "delta")
        with self._files() as files:
            entries = files.get_file_info(module.FileSelector(below, allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.type == module.FileType.Directory)

    @contextmanager
    def _files(self) -> Iterator[pyarrow.fs.FileSystem]:
        """Return the files of the warehouse."""
        with self._errors(), self._place.errors("listed"):
            yield self._place.filesystem()


def _columns(schema: pyarrow.Schema, comments: Mapping[str, str | None]) -> tuple[ColumnDefinition, ...]:
    """Return the columns of a table of a lake."""
    plain = normalize_types(schema.empty_table()).schema
    return tuple(ColumnDefinition(field.name, type_of(field), comment=comments.get(field.name)) for field in plain)


def _arrow_schema(table: TableDefinition) -> pyarrow.Schema:
    """Return the columns as a lake stores them: times with at most microseconds."""
    import pyarrow

    fields = [column.type.to_arrow_field(column.name) for column in table.columns if column.type is not None]
    return pyarrow.schema([field.with_type(_stored(field.type)) for field in fields])


def _stored(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    if pyarrow.types.is_timestamp(kind):
        return pyarrow.timestamp("us", kind.tz)
    return pyarrow.time64("us") if pyarrow.types.is_time(kind) else kind

