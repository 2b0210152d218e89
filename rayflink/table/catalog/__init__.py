"""Catalogs: where tables, views, functions, models and their statistics have their names.

- `object_names`: names of objects in a catalog and across catalogs.
- `catalog_objects`, `partitions`, `table_statistics`: what a catalog stores.
- `catalog_api`: the class `Catalog`, from which a catalog of a program's own is derived; `exceptions`: its errors.
- `memory_catalog`, `sql_catalog`, `jdbc_catalog`, `lake_catalogs`: catalogs in memory, in a database of rayflink's
  own, and over the tables of PostgreSQL, Iceberg and Delta. `catalog_types` opens them by CREATE CATALOG.
- `stored_definitions`: definitions as JSON; `catalog_stores`: where the definitions of catalogs themselves are stored.
- `named_objects`: the catalogs of one environment, its temporary objects and the current database; `named_functions`:
  the functions that queries of the environment know.

Definitions of tables enter and leave. How a table is read and written does not belong here, but in `connectors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.table.catalog.catalog_api import Catalog as Catalog
    from rayflink.table.catalog.catalog_objects import CatalogBaseTable as CatalogBaseTable
    from rayflink.table.catalog.catalog_objects import CatalogDatabase as CatalogDatabase
    from rayflink.table.catalog.catalog_objects import CatalogDescriptor as CatalogDescriptor
    from rayflink.table.catalog.catalog_objects import CatalogFunction as CatalogFunction
    from rayflink.table.catalog.catalog_objects import CatalogModel as CatalogModel
    from rayflink.table.catalog.catalog_objects import Procedure as Procedure
    from rayflink.table.catalog.jdbc_catalog import JdbcCatalog as JdbcCatalog
    from rayflink.table.catalog.lake_catalogs import DeltaCatalog as DeltaCatalog
    from rayflink.table.catalog.lake_catalogs import IcebergCatalog as IcebergCatalog
    from rayflink.table.catalog.memory_catalog import GenericInMemoryCatalog as GenericInMemoryCatalog
    from rayflink.table.catalog.object_names import ObjectIdentifier as ObjectIdentifier
    from rayflink.table.catalog.object_names import ObjectPath as ObjectPath
    from rayflink.table.catalog.partitions import CatalogPartition as CatalogPartition
    from rayflink.table.catalog.partitions import CatalogPartitionSpec as CatalogPartitionSpec
    from rayflink.table.catalog.sql_catalog import SqlCatalog as SqlCatalog
    from rayflink.table.catalog.table_statistics import CatalogColumnStatistics as CatalogColumnStatistics
    from rayflink.table.catalog.table_statistics import CatalogTableStatistics as CatalogTableStatistics
    from rayflink.table.resolved_schema import Column as Column
    from rayflink.table.resolved_schema import ComputedColumn as ComputedColumn
    from rayflink.table.resolved_schema import Constraint as Constraint
    from rayflink.table.resolved_schema import MetadataColumn as MetadataColumn
    from rayflink.table.resolved_schema import PhysicalColumn as PhysicalColumn
    from rayflink.table.resolved_schema import ResolvedSchema as ResolvedSchema
    from rayflink.table.resolved_schema import UniqueConstraint as UniqueConstraint
    from rayflink.table.resolved_schema import WatermarkSpec as WatermarkSpec
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.table.catalog.catalog_api": "Catalog",
            "rayflink.table.catalog.catalog_objects": (
                "CatalogBaseTable CatalogDatabase CatalogDescriptor CatalogFunction CatalogModel Procedure"
            ),
            "rayflink.table.catalog.jdbc_catalog": "JdbcCatalog",
            "rayflink.table.catalog.lake_catalogs": "DeltaCatalog IcebergCatalog",
            "rayflink.table.catalog.memory_catalog": "GenericInMemoryCatalog",
            "rayflink.table.catalog.object_names": "ObjectIdentifier ObjectPath",
            "rayflink.table.catalog.partitions": "CatalogPartition CatalogPartitionSpec",
            "rayflink.table.catalog.sql_catalog": "SqlCatalog",
            "rayflink.table.catalog.table_statistics": "CatalogColumnStatistics CatalogTableStatistics",
            "rayflink.table.resolved_schema": (
                "Column ComputedColumn Constraint MetadataColumn PhysicalColumn ResolvedSchema UniqueConstraint "
                "WatermarkSpec"
            ),
        },
    )
