"""Statistics of tables and columns, as catalogs store them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["CatalogColumnStatistics", "CatalogTableStatistics"]


@dataclass(frozen=True)
class CatalogTableStatistics:
    """Rows and bytes of a table or of a partition of it.

    >>> CatalogTableStatistics(row_count=1000, field_count=1, total_size=1 << 20, raw_data_size=1 << 22).get_row_count()
    1000

    Args:
        row_count: number of rows; -1: unknown, as with the others.
        field_count: number of files, which PyFlink calls so.
        total_size: bytes on disk.
        raw_data_size: bytes before compression.
        properties: further ones.
    """

    row_count: int = -1
    field_count: int = -1
    total_size: int = -1
    raw_data_size: int = -1
    properties: Mapping[str, str] | None = None

    def get_row_count(self) -> int:
        """Return the number of rows; -1: unknown."""
        return self.row_count

    def get_field_count(self) -> int:
        """Return the number of files; -1: unknown."""
        return self.field_count

    def get_total_size(self) -> int:
        """Return the bytes on disk; -1: unknown."""
        return self.total_size

    def get_raw_data_size(self) -> int:
        """Return the bytes before compression; -1: unknown."""
        return self.raw_data_size

    def get_properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self.properties or {})

    def copy(self) -> CatalogTableStatistics:
        """Return a copy."""
        return replace(self, properties=self.get_properties())


@dataclass(frozen=True)
class CatalogColumnStatistics:
    """Statistics of columns.

    Args:
        column_statistics_data: column -> its statistics, such as {"ndv": 100, "null_count": 0, "min": 1, "max": 9}.
        properties: further ones.
    """

    column_statistics_data: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] | None = None

    def get_column_statistics_data(self) -> dict[str, Any]:
        """Return column -> its statistics."""
        return dict(self.column_statistics_data)

    def get_properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self.properties or {})

    def copy(self) -> CatalogColumnStatistics:
        """Return a copy."""
        return CatalogColumnStatistics(self.get_column_statistics_data(), self.get_properties())
