"""The place of an Iceberg table: a catalog, the name of the table in it, and the table's files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from ..lakes.data_file_writing import LocalDataFile, local_path
from ..lakes.lake_errors import LakeError, lake_error, library

if TYPE_CHECKING:
    import pyarrow
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_S3_OPTIONS = {
    "s3.access-key": "s3.access-key-id",
    "s3.secret-key": "s3.secret-access-key",
    "s3.endpoint.region": "s3.region",
}
_PATH_STYLE = "s3.path.style.access"
CATALOG_TYPES = ("rest", "sql", "hive", "glue", "dynamodb", "in-memory", "bigquery")


@dataclass(frozen=True)
class CatalogLoader:
    """A catalog of Iceberg tables; a value that can be pickled.

    Args:
        name: of the catalog.
        properties: for pyiceberg: type, uri, warehouse, credentials and so on.

    >>> CatalogLoader.sql("lake", {"uri": "sqlite:////data/catalog.db", "warehouse": "/data/tables"}).name
    'lake'
    """

    name: str
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def rest(name: str, properties: Mapping[str, str]) -> CatalogLoader:
        """Return a catalog that is reached by Iceberg's REST protocol.

        Args:
            properties: `uri`, `warehouse`, `credential` or `token`, and options of the object store.
        """
        return CatalogLoader.custom(name, {**properties, "type": "rest"})

    @staticmethod
    def hive(name: str, properties: Mapping[str, str]) -> CatalogLoader:
        """Return a catalog in a Hive metastore; needs `pip install 'pyiceberg[hive]'`."""
        return CatalogLoader.custom(name, {**properties, "type": "hive"})

    @staticmethod
    def sql(name: str, properties: Mapping[str, str]) -> CatalogLoader:
        """Return a catalog in a database.

        Args:
            properties: `uri` such as `sqlite:////data/catalog.db`, and `warehouse`, the folder of new tables.
        """
        return CatalogLoader.custom(name, {**properties, "type": "sql"})

    @staticmethod
    def custom(name: str, properties: Mapping[str, str]) -> CatalogLoader:
        """Return a catalog of any type that pyiceberg knows.

        Args:
            properties: `type` is one of rest, sql, hive, glue, dynamodb, in-memory and bigquery. The `s3.` options of
                rayflink may be among them.

        Raises:
            LakeError: the type is unknown.
        """
        kind = properties.get("type")
        if kind is not None and kind not in CATALOG_TYPES:
            remedy = f"use one of {', '.join(CATALOG_TYPES)}"
            if kind == "hadoop":
                remedy = "pyiceberg has none, as their commits are not safe on object stores; use rest or sql"
            raise LakeError(f"the catalog {name!r} is of type {kind!r}", remedy)
        settings = dict(properties)
        style = settings.pop(_PATH_STYLE, None)
        renamed = {_S3_OPTIONS.get(key, key): value for key, value in settings.items()}
        if style is not None:
            renamed["s3.force-virtual-addressing"] = str(style.lower() == "false").lower()
        if renamed.get("s3.endpoint"):
            renamed.setdefault("s3.region", "us-east-1")
        return CatalogLoader(name, tuple(sorted(renamed.items())))

    def load(self) -> Catalog:
        """Return the catalog.

        Raises:
            LakeError: it cannot be reached.
        """
        module = library("pyiceberg.catalog", "iceberg")
        with IcebergErrors(f"the catalog {self.name!r}", "opened"):
            return module.load_catalog(self.name, **dict(self.properties))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class NewTable:
    """The columns and partitions of a table that may have to be created.

    Args:
        schema: names and types.
        partitions: (transform, column), as in ("day", "ts") and ("bucket[16]", "id").
        properties: of the table.
    """

    schema: pyarrow.Schema
    partitions: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TableLoader:
    """A table in a catalog; a value that can be pickled.

    Args:
        catalog: see `CatalogLoader`.
        identifier: `database.table`.
    """

    catalog: CatalogLoader
    identifier: str

    @staticmethod
    def from_catalog(catalog_loader: CatalogLoader, identifier: str) -> TableLoader:
        """Return a table of a catalog.

        Args:
            identifier: `database.table`.

        Raises:
            LakeError: it names no database and table.
        """
        if not all(identifier.split(".")) or "." not in identifier:
            raise LakeError(f"the Iceberg table {identifier!r} has no database", "write it as database.table")
        return TableLoader(catalog_loader, identifier)

    def load(self) -> Table:
        """Return the table as it is now.

        Raises:
            LakeError: there is none, or the catalog cannot be reached.
        """
        errors = library("pyiceberg.exceptions", "iceberg")
        catalog = self.catalog.load()
        try:
            with self.errors("read"):
                return catalog.load_table(self.identifier)
        except LakeError as error:
            if isinstance(error.__context__, (errors.NoSuchTableError, errors.NoSuchNamespaceError)):
                raise LakeError(f"{self} does not exist", "correct its name, or create it first") from None
            raise

    def load_or_create(self, new: NewTable | None) -> Table:
        """Return the table, created before if it does not exist.

        Raises:
            LakeError: it cannot be created, or must exist.
        """
        catalog = self.catalog.load()
        with self.errors("found"):
            exists = catalog.table_exists(self.identifier)
        if exists or new is None:
            return self.load()
        errors = library("pyiceberg.exceptions", "iceberg")
        transforms = library("pyiceberg.transforms", "iceberg")
        with self.errors("created"):
            try:
                catalog.create_namespace_if_not_exists(self.identifier.rpartition(".")[0])
                properties = dict(new.properties)
                with catalog.create_table_transaction(self.identifier, new.schema, properties=properties) as creating:
                    if new.partitions:
                        with creating.update_spec() as spec:
                            for transform, column in new.partitions:
                                spec.add_field(column, transforms.parse_transform(transform))
            except errors.TableAlreadyExistsError:
                pass  # another subtask was first
        return self.load()

    def errors(self, action: str) -> IcebergErrors:
        """Return a context that raises the library's errors as `LakeError`, without secrets."""
        return IcebergErrors(str(self), action)

    def __str__(self) -> str:
        return f"the Iceberg table {self.identifier} of the catalog {self.catalog.name!r}"


class IcebergErrors:
    """A context that raises the library's errors as `LakeError`, without secrets.

    Args:
        what: the subject of the message.
        action: what cannot be done with it, such as "read".
    """

    def __init__(self, what: str, action: str) -> None:
        self._what, self._action = what, action

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, LakeError):
            remedy = "look at the options of the catalog and the object store, and at the permissions"
            raise lake_error(self._what, self._action, error, remedy) from None


def new_data_file(table: Table, location: str) -> IO[bytes]:
    """Create a file of a table; in a folder its bytes are on the disk when it is closed."""
    if local := local_path(location):
        return LocalDataFile(os.path.abspath(local))  # type: ignore[return-value]  # has what Arrow calls
    return table.io.new_output(location).create()  # type: ignore[return-value]


def open_data_file(table: Table, location: str) -> pyarrow.NativeFile:
    """Open a file of a table for reads at any place.

    Raises:
        FileNotFoundError: it is gone.
    """
    import pyarrow

    if local := local_path(location):
        return pyarrow.OSFile(local)
    opened: object = table.io.new_input(location).open(seekable=True)
    return opened if isinstance(opened, pyarrow.NativeFile) else pyarrow.PythonFile(opened, mode="r")


def parsed_partitions(text: str, columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the partition fields that a string names.

    Raises:
        LakeError: a field is malformed, or names no column.

    >>> parsed_partitions("day(ts), bucket(16, id), room", ["ts", "id", "room"])
    (('day', 'ts'), ('bucket[16]', 'id'), ('identity', 'room'))
    """
    import re

    fields = []
    for part in re.findall(r"[^,()]+(?:\([^)]*\))?", text):
        match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(?:(\d+)\s*,\s*)?(\w+)\s*\))?\s*", part)
        if match is None:
            raise LakeError(
                f"the partition field {part.strip()!r} is malformed", "write day(ts), bucket(16, id) or room"
            )
        name, width, inner = match.groups()
        column, transform = (
            (name, "identity") if inner is None else (inner, name.rstrip("s") if width is None else name)
        )
        if column not in columns:
            raise LakeError(f"there is no column {column!r} to partition by", f"the columns are {', '.join(columns)}")
        kinds = ("bucket", "truncate") if width is not None else ("identity", "year", "month", "day", "hour", "void")
        if transform not in kinds:
            raise LakeError(f"the partition transform {part.strip()!r} is unknown", f"use one of {', '.join(kinds)}")
        fields.append((transform if width is None else f"{transform}[{width}]", column))
    return tuple(fields)


__all__ = ["CatalogLoader", "IcebergErrors", "NewTable", "TableLoader", "new_data_file", "open_data_file",
           "parsed_partitions"]  # fmt: skip
