"""PostgreSQL as a sink, as a bounded source, and to look rows up in; needs `pip install 'rayflink[postgres]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.exports import lazy_exports

if TYPE_CHECKING:
    from rayflink.connectors.lookup_cache import LookupCache as LookupCache
    from rayflink.connectors.postgres.postgres_lookup import PostgresLookup as PostgresLookup
    from rayflink.connectors.postgres.postgres_sink import PostgresError as PostgresError
    from rayflink.connectors.postgres.postgres_sink import PostgresSink as PostgresSink
    from rayflink.connectors.postgres.postgres_source import PostgresSource as PostgresSource
    from rayflink.connectors.postgres.postgres_source import PostgresSourceBuilder as PostgresSourceBuilder
    from rayflink.connectors.postgres.postgres_staged import StagedRows as StagedRows
    from rayflink.connectors.postgres.postgres_staged import discard_staged_rows as discard_staged_rows
    from rayflink.connectors.postgres.postgres_staged import drop_staging_tables as drop_staging_tables
    from rayflink.connectors.postgres.postgres_staged import staged_rows as staged_rows
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "rayflink.connectors.lookup_cache": "LookupCache",
            "rayflink.connectors.postgres.postgres_lookup": "PostgresLookup",
            "rayflink.connectors.postgres.postgres_sink": "PostgresError PostgresSink",
            "rayflink.connectors.postgres.postgres_source": "PostgresSource PostgresSourceBuilder",
            "rayflink.connectors.postgres.postgres_staged": (
                "StagedRows discard_staged_rows drop_staging_tables staged_rows"
            ),
        },
    )
