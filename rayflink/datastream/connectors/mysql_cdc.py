"""Change data capture of MySQL and MariaDB; needs `pip install 'rayflink[mysql]'`."""

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
    from rayflink.connectors.mysql.mysql_cdc_source import MySqlSource as MySqlSource
    from rayflink.connectors.mysql.mysql_cdc_source import MySqlSourceBuilder as MySqlSourceBuilder
    from rayflink.connectors.mysql.mysql_cdc_source import StartupOptions as StartupOptions
    from rayflink.connectors.mysql.mysql_session import MySqlError as MySqlError
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.cdc.deserialization": (
                "ChangeDeserializationSchema JsonDebeziumDeserializationSchema RowChangesDeserializationSchema"
            ),
            "rayflink.connectors.cdc.table_changes": "TableChanges",
            "rayflink.connectors.mysql.mysql_cdc_source": "MySqlSource MySqlSourceBuilder StartupOptions",
            "rayflink.connectors.mysql.mysql_session": "MySqlError",
        },
    )
