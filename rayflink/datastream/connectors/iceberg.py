"""Iceberg tables as sinks and sources; needs `pip install 'rayflink[iceberg]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.iceberg.iceberg_plan import StreamingStartingStrategy as StreamingStartingStrategy
    from rayflink.connectors.iceberg.iceberg_sink import IcebergSink as IcebergSink
    from rayflink.connectors.iceberg.iceberg_sink import IcebergSinkBuilder as IcebergSinkBuilder
    from rayflink.connectors.iceberg.iceberg_source import IcebergSource as IcebergSource
    from rayflink.connectors.iceberg.iceberg_source import IcebergSourceBuilder as IcebergSourceBuilder
    from rayflink.connectors.iceberg.iceberg_table import CatalogLoader as CatalogLoader
    from rayflink.connectors.iceberg.iceberg_table import TableLoader as TableLoader
    from rayflink.connectors.lakes.lake_errors import LakeError as LakeError
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.iceberg.iceberg_plan": "StreamingStartingStrategy",
            "rayflink.connectors.iceberg.iceberg_sink": "IcebergSink IcebergSinkBuilder",
            "rayflink.connectors.iceberg.iceberg_source": "IcebergSource IcebergSourceBuilder",
            "rayflink.connectors.iceberg.iceberg_table": "CatalogLoader TableLoader",
            "rayflink.connectors.lakes.lake_errors": "LakeError",
        },
    )
