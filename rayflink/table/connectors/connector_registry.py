"""The connectors by name."""

from __future__ import annotations

from rayflink.datastream.connectors.absent_connectors import instead_in_sql

from ..definitions import Path, TableDefinition
from ..errors import SqlError, nearest
from .cdc.mysql_cdc import MySqlCdc
from .cdc.postgres_cdc import PostgresCdc
from .contract import Connector
from .datagen import Datagen
from .files import Filesystem
from .jdbc.jdbc_tables import Jdbc
from .kafka.kafka_connectors import KafkaConnector, UpsertKafkaConnector
from .lakes.delta_tables import DeltaTables
from .lakes.iceberg_tables import IcebergTables
from .legacy_options import current_options
from .lookups.rest_lookup import RestLookup
from .nexmark import NexmarkConnector
from .print_and_blackhole import Blackhole, Print

_KNOWN: dict[str, Connector] = {
    known.name: known
    for known in (
        Filesystem(),
        PostgresCdc(),
        MySqlCdc(),
        Jdbc(),
        RestLookup(),
        KafkaConnector(),
        UpsertKafkaConnector(),
        DeltaTables(),
        IcebergTables(),
        Datagen(),
        NexmarkConnector(),
        Print(),
        Blackhole(),
    )
}


def connector(path: Path, table: TableDefinition) -> Connector:
    """Return the connector that a table is defined with.

    Raises:
        SqlError: its options do not say, or name nothing that is known.
    """
    if isinstance(table.connected, Connector):  # a stream, say
        return table.connected
    name = current_options(table.options, ".".join(path)).get("connector")
    if name is None:
        remedy = f"write WITH ('connector' = ...), one of {', '.join(_KNOWN)}"
        raise SqlError(f"table {'.'.join(path)} has no option 'connector'", remedy)
    instead = instead_in_sql(name)
    if name not in _KNOWN and instead is not None:
        remedy = f"{instead}; to_data_stream and create_temporary_view of the environment lead to streams and back"
        raise SqlError(f"table {'.'.join(path)} has the connector {name!r}, which is not in rayflink", remedy)
    if name not in _KNOWN:
        problem = f"table {'.'.join(path)} has the connector {name!r}, which does not exist{nearest(name, _KNOWN)}"
        raise SqlError(problem, f"the connectors are {', '.join(_KNOWN)}")
    return _KNOWN[name]
