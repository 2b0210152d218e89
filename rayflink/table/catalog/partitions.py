"""Partitions of tables, as catalogs store them."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.errors import InvalidTypesError

from .described import Described

__all__ = ["CatalogPartition", "CatalogPartitionSpec"]


class CatalogPartitionSpec:
    """Key columns of a partition and their values.

    >>> CatalogPartitionSpec({"day": "2026-11-01"}).get_partition_spec()
    {'day': '2026-11-01'}

    Args:
        partition_spec: column -> value as text; some of the key columns describe all partitions with these values.
    """

    def __init__(self, partition_spec: Mapping[str, str]) -> None:
        if not isinstance(partition_spec, Mapping):
            raise InvalidTypesError(f"a partition of {partition_spec!r}", "give a dict of column names and values")
        self._values = dict(partition_spec)

    def get_partition_spec(self) -> dict[str, str]:
        """Return column -> value."""
        return dict(self._values)

    def contains(self, other: CatalogPartitionSpec) -> bool:
        """Return whether all columns of another one have the same values here."""
        return other._values.items() <= self._values.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogPartitionSpec) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __str__(self) -> str:
        return f"CatalogPartitionSpec({self._values})"

    __repr__ = __str__


class CatalogPartition(Described):
    """A partition as a catalog stores it; made by `CatalogPartition.create_instance`."""

    @staticmethod
    def create_instance(properties: dict[str, str], comment: str | None = None) -> CatalogPartition:
        """Return a partition with properties, and a comment if it has one."""
        return CatalogPartition(properties, comment)
