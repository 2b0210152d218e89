"""Change data capture of PostgreSQL; needs `pip install 'rayflink[postgres]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema as ChangeDeserializationSchema
    from rayflink.connectors.cdc.deserialization import (
        JsonDebeziumDeserializationSchema as JsonDebeziumDeserializationSchema,
    )
    from rayflink.connectors.cdc.deserialization import (
        RowChangesDeserializationSchema as RowChangesDeserializationSchema,
    )
    from rayflink.connectors.cdc.table_changes import TableChanges as TableChanges
    from rayflink.connectors.postgres.postgres_cdc_source import PostgresCdcSource as PostgresCdcSource
    from rayflink.connectors.postgres.postgres_cdc_source import PostgresCdcSourceBuilder as PostgresCdcSourceBuilder
    from rayflink.connectors.postgres.postgres_cdc_source import StartupOptions as StartupOptions
    from rayflink.connectors.postgres.postgres_session import PostgresError as PostgresError
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.cdc.deserialization": (
                "ChangeDeserializationSchema JsonDebeziumDeserializationSchema RowChangesDeserializationSchema"
            ),
            "rayflink.connectors.cdc.table_changes": "TableChanges",
            "rayflink.connectors.postgres.postgres_cdc_source": (
                "PostgresCdcSource PostgresCdcSourceBuilder StartupOptions"
            ),
            "rayflink.connectors.postgres.postgres_session": "PostgresError",
        },
    )
