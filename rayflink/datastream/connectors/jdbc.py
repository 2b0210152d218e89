"""Statements of JDBC for records, on PostgreSQL; needs `pip install 'rayflink[postgres]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.jdbc.jdbc_options import JdbcConnectionOptions as JdbcConnectionOptions
    from rayflink.connectors.jdbc.jdbc_options import JdbcExecutionOptions as JdbcExecutionOptions
    from rayflink.connectors.jdbc.jdbc_sink import JdbcSink as JdbcSink
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.jdbc.jdbc_options": "JdbcConnectionOptions JdbcExecutionOptions",
            "rayflink.connectors.jdbc.jdbc_sink": "JdbcSink",
        },
    )
