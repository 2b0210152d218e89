"""Names of objects: in a catalog (`ObjectPath`), and across catalogs (`ObjectIdentifier`)."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.errors import InvalidTypesError

from ..definitions import Path, quoted

__all__ = ["ObjectIdentifier", "ObjectPath"]


@dataclass(frozen=True, order=True)
class ObjectPath:
    """The name of a table, view, function or model in a catalog: its database, and its own name.

    >>> path = ObjectPath("shop", "orders")
    >>> str(path), path == ObjectPath.from_string("shop.orders")
    ('shop.orders', True)

    Raises:
        InvalidTypesError: one of the names is empty.
    """

    database_name: str
    object_name: str

    def __post_init__(self) -> None:
        if not self.database_name or not self.object_name:
            problem = f"the path ({self.database_name!r}, {self.object_name!r}) lacks a name"
            raise InvalidTypesError(problem, "give the name of a database and the name of an object")

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """Return the path that "database.object" names.

        Raises:
            InvalidTypesError: it has fewer or more than two parts.
        """
        parts = full_name.split(".")
        if len(parts) != 2:
            raise InvalidTypesError(f"{full_name!r} has {len(parts)} parts", "write it as 'database.object'")
        return ObjectPath(*parts)

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name in the database."""
        return self.object_name

    def get_full_name(self) -> str:
        """Return both, with a point between them."""
        return f"{self.database_name}.{self.object_name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Return -1 where this path is sorted before the other one, 0 where they are equal, and else 1."""
        return (self > other) - (self < other)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class ObjectIdentifier:
    """The full name of an object: catalog, database and its own name; made by `ObjectIdentifier.of`.

    >>> print(ObjectIdentifier.of("lake", "shop", "orders"))
    `lake`.`shop`.`orders`
    """

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """Return the name of an object in a database of a catalog.

        Raises:
            InvalidTypesError: one of the names is None.
        """
        names = catalog_name, database_name, object_name
        if None in names:
            raise InvalidTypesError(f"an identifier of {names}", "give catalog, database and object a name each")
        return ObjectIdentifier(*names)

    def get_catalog_name(self) -> str:
        """Return the name of the catalog."""
        return self.catalog_name

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name in the database."""
        return self.object_name

    def to_object_path(self) -> ObjectPath:
        """Return the name inside the catalog."""
        return ObjectPath(self.database_name, self.object_name)

    def to_list(self) -> list[str]:
        """Return the three names."""
        return list(self.parts)

    @property
    def parts(self) -> Path:
        """Return the three names as the planner has them."""
        return self.catalog_name, self.database_name, self.object_name

    def as_serializable_string(self) -> str:
        """Return the full name as SQL writes it."""
        return ".".join(map(quoted, self.parts))

    def as_summary_string(self) -> str:
        """Return the three names with points between them, for people."""
        return ".".join(self.parts)

    def __str__(self) -> str:
        return self.as_serializable_string()
