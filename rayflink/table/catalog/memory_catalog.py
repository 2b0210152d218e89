"""The catalog of an environment that names no other: its objects live as long as the program."""

from __future__ import annotations

from .stored_catalog import ObjectsInMemory, StoredCatalog

__all__ = ["GenericInMemoryCatalog"]


class GenericInMemoryCatalog(StoredCatalog):
    """A catalog in the memory of the program.

    >>> catalog = GenericInMemoryCatalog("scratch")
    >>> catalog.list_databases()
    ['default']

    Args:
        name: of the catalog.
        default_database: its first database.
    """

    def __init__(self, name: str, default_database: str = "default") -> None:
        super().__init__(name, default_database, ObjectsInMemory())
        self.open()
