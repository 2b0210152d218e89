"""The statistics that catalogs store, as the planner estimates by them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..catalog.catalog_api import Catalog
from ..catalog.exceptions import CatalogException
from ..catalog.object_names import ObjectPath
from ..connectors.statistics.table_statistics import ColumnStatistics, TableStatistics, as_number

_NAMES = {"low": "min", "high": "max", "distinct": "ndv", "width": "avg_length"}
"""What the planner knows of a column -> its name in `CatalogColumnStatistics`."""


class StoredStatistics:
    """The statistics of a table in a catalog, which are asked for once, when the first plan needs them.

    Args:
        catalog: in which the table is.
        path: of the table there.
    """

    def __init__(self, catalog: Catalog, path: ObjectPath) -> None:
        self._catalog, self._path = catalog, path
        self._read = cache(self._stored)

    def __call__(self) -> TableStatistics | None:
        """Return the statistics; None: the number of rows is not stored."""
        return self._read()

    def _stored(self) -> TableStatistics | None:
        try:
            rows = self._catalog.get_table_statistics(self._path).get_row_count()
            if rows < 0:
                return None
            columns = self._catalog.get_table_column_statistics(self._path).get_column_statistics_data()
        except CatalogException:  # another program dropped the table: whoever reads it reports that
            return None
        known = {name: column_statistics(data, rows) for name, data in columns.items() if isinstance(data, Mapping)}
        return TableStatistics(float(rows), "of the catalog", known)


def column_statistics(data: Mapping[str, object], rows: int) -> ColumnStatistics:
    """Return the statistics of a column of a table with a number of rows.

    >>> print(column_statistics({"ndv": 100, "null_count": 50, "min": 1, "max": 9}, 200))
    min 1, max 9, nulls 0.25, distinct 100
    """
    nulls = as_number(data.get("null_count"))
    values = {name: as_number(data.get(stored)) for name, stored in _NAMES.items()}
    return ColumnStatistics(nulls=None if nulls is None or not rows else nulls / rows, **values)


__all__ = ["StoredStatistics", "column_statistics"]
