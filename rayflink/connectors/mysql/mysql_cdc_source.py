"""Change data capture of MySQL and MariaDB: the rows of tables, and then their changes, each once."""

from __future__ import annotations

import random
import re
import zoneinfo
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.type_variables import Output
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.time import Duration
from rayflink.connectors.cdc.change_reader import ChangeReader
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.snapshot_enumeration import SnapshotEnumerator, SnapshotProgress

from .binlog_positions import GtidSet
from .mysql_cdc_preparation import MySqlDatabase, MySqlSettings
from .mysql_cdc_tables import CapturedTable
from .mysql_chunks import MySqlTables
from .mysql_session import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow


@dataclass(frozen=True)
class StartupOptions:
    """The place where a source of change data capture begins, if it is not restored from a checkpoint.

    Args:
        mode: its name.
        file, offset: a place in the log.
        gtids: transactions that are not wanted.
        moment_ms: epoch milliseconds.
    """

    mode: str
    file: str = ""
    offset: int = 4
    gtids: str = ""
    moment_ms: int = 0

    @staticmethod
    def initial() -> StartupOptions:
        """Return the default: the rows that are there, and then the changes."""
        return StartupOptions("initial")

    @staticmethod
    def snapshot() -> StartupOptions:
        """Return to read the rows that are there, and to end."""
        return StartupOptions("snapshot")

    @staticmethod
    def latest() -> StartupOptions:
        """Return to begin with the changes that are committed from now on."""
        return StartupOptions("latest")

    @staticmethod
    def earliest() -> StartupOptions:
        """Return to begin with the oldest changes that the server still has."""
        return StartupOptions("earliest")

    @staticmethod
    def specific_offset(file_or_gtids: str, offset: int = 4) -> StartupOptions:
        """Return to begin at a place of the log, or with what a set of GTIDs lacks.

        Args:
            file_or_gtids: a file such as `binlog.000003`, or a set such as `0-1-100` or `uuid:1-5`.
            offset: in the file, between two transactions.

        Raises:
            ValueError: it is neither.
        """
        if re.fullmatch(r"[^,:\s]+\.\d+", file_or_gtids):
            return StartupOptions("specific", file=file_or_gtids, offset=offset)
        return StartupOptions("specific", gtids=str(GtidSet(file_or_gtids)))

    @staticmethod
    def timestamp(moment_ms: int) -> StartupOptions:
        """Return to begin with the changes that were committed at a time or later.

        Args:
            moment_ms: epoch milliseconds; the log has seconds.
        """
        return StartupOptions("timestamp", moment_ms=moment_ms)


class MySqlSource(Source[Output]):
    """The rows of tables in MySQL or MariaDB and their changes, each exactly once; made by `MySqlSource.builder()`.

    Args:
        settings: of the server's side.
        schema: makes records of changes.
        most_subtasks: how many server ids it has.
    """

    def __init__(
        self, settings: MySqlSettings, schema: ChangeDeserializationSchema, most_subtasks: int | None = None
    ) -> None:
        self._settings, self._schema, self._most_subtasks = settings, schema, most_subtasks

    @staticmethod
    def builder() -> MySqlSourceBuilder:
        """Return a builder without settings."""
        return MySqlSourceBuilder()

    def __repr__(self) -> str:
        return f"MySqlSource({self._settings.address}, server_id={self._settings.server_id})"

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED if self._settings.reads_log else Boundedness.BOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def check(self) -> None:
        MySqlDatabase(self._settings).check()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, MySqlDatabase(self._settings), self._settings.reads_log)

    def restore_enumerator(self, ctx: EnumeratorContext, state: SnapshotProgress[CapturedTable]) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, MySqlDatabase(self._settings), self._settings.reads_log, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        if self._most_subtasks is not None and ctx.parallelism > self._most_subtasks and self._settings.reads_log:
            first = self._settings.server_id
            problem = f"server_id has {self._most_subtasks} numbers, and the source has {ctx.parallelism} subtasks"
            raise ValueError(f"{problem}; set a range such as '{first}-{first + ctx.parallelism - 1}'")
        tables = MySqlTables(self._settings, ctx.subtask, ctx.metrics or MetricGroup())
        return ChangeReader(ctx, tables, self._schema, self._settings.reads_log)


class MySqlSourceBuilder:
    """Collects the settings of a `MySqlSource`; the names are those of Flink CDC.

    Required are `hostname`, `username` and `deserializer`.
    """

    def __init__(self) -> None:
        self._settings = MySqlSettings(Address())
        self._schema: ChangeDeserializationSchema | None = None
        self._server_id = ""

    def hostname(self, hostname: str) -> MySqlSourceBuilder:
        """Set the name or address of the server."""
        self._address(host=hostname)
        return self

    def port(self, port: int) -> MySqlSourceBuilder:
        """Set the port of the server; the default is 3306."""
        self._address(port=port)
        return self

    def username(self, username: str) -> MySqlSourceBuilder:
        """Set the user, who needs SELECT, REPLICATION SLAVE and REPLICATION CLIENT."""
        self._address(user=username)
        return self

    def password(self, password: str) -> MySqlSourceBuilder:
        """Set the password of the user."""
        self._address(password=password)
        return self

    def connection_options(self, options: Mapping[str, object]) -> MySqlSourceBuilder:
        """Set further arguments of `pymysql.connect`, such as `ssl_ca`."""
        self._address(options=dict(options))
        return self

    def database_list(self, *databases: str) -> MySqlSourceBuilder:
        """Set the databases, or regular expressions of their names; the default is all but the server's own."""
        self._choose(databases=databases)
        return self

    def table_list(self, *tables: str) -> MySqlSourceBuilder:
        """Set the tables, as `database.table` or as regular expressions of such names; the default is all."""
        self._choose(tables=tables)
        return self

    def server_id(self, server_id: str) -> MySqlSourceBuilder:
        """Set the number as which the server knows the reader, or a range such as `5401-5404`, one for each subtask.

        No other reader of the log may have it. The default is a random one.

        Raises:
            ValueError: it is neither.
        """
        matched = re.fullmatch(r"(\d+)(?:-(\d+))?", server_id.replace(" ", ""))
        if matched is None or not 0 < int(matched[1]) <= int(matched[2] or matched[1]) < 2**32:
            raise ValueError(f"server_id is {server_id!r}; expected a number such as '5401' or a range '5401-5404'")
        self._server_id = matched[0]
        return self

    def server_time_zone(self, zone: str) -> MySqlSourceBuilder:
        """Set the time zone in which `timestamp` columns are read that are declared without one; the default is UTC.

        Raises:
            ValueError: there is no such zone.
        """
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"server_time_zone is {zone!r}; expected a name such as 'Europe/Berlin'") from error
        self._choose(zone=zone)
        return self

    def deserializer(self, schema: ChangeDeserializationSchema) -> MySqlSourceBuilder:
        """Set what makes records of changes, such as `RowChangesDeserializationSchema()`."""
        self._schema = schema
        return self

    def startup_options(self, startup: StartupOptions) -> MySqlSourceBuilder:
        """Set where to begin; the default is `StartupOptions.initial()`."""
        self._settings = replace(
            self._settings, startup=startup.mode, start_file=startup.file, start_offset=startup.offset,
            start_gtids=startup.gtids, start_ms=startup.moment_ms,
        )  # fmt: skip
        return self

    def split_size(self, rows: int) -> MySqlSourceBuilder:
        """Set about how many rows a chunk of the snapshot has; the default is 8,096.

        Raises:
            ValueError: the number is less than 1.
        """
        if rows < 1:
            raise ValueError(f"split size is {rows}; expected at least 1 row")
        self._settings = replace(self._settings, split_size=rows)
        return self

    def chunk_key_column(self, column: str) -> MySqlSourceBuilder:
        """Set the column of the primary key that divides tables into chunks; the default is the first one."""
        self._choose(chunk_key=column)
        return self

    def heartbeat_interval(self, interval: Duration) -> MySqlSourceBuilder:
        """Set how often the position advances past changes of other tables, at least; the default is 30 s."""
        self._settings = replace(self._settings, heartbeat_ms=interval.to_millis())
        return self

    def connect_max_retries(self, retries: int) -> MySqlSourceBuilder:
        """Set how often a lost connection is opened again before the job fails; the default is 3."""
        self._settings = replace(self._settings, retries=retries)
        return self

    def skip_truncates(self) -> MySqlSourceBuilder:
        """Count TRUNCATE and go on, as if the rows were still there; by default the job fails."""
        self._settings = replace(self._settings, skips_truncates=True)
        return self

    def with_columns(self, columns: Mapping[str, pyarrow.DataType], upserts: bool) -> MySqlSourceBuilder:
        """Set the columns to read, with the types of their values, as SQL declares them.

        Args:
            upserts: updates come without the row before.
        """
        self._choose(columns=columns)
        self._settings = replace(self._settings, upserts=upserts)
        return self

    def build(self) -> MySqlSource[Output]:
        """Return the source.

        Raises:
            ValueError: a setting is missing.
        """
        address = self._settings.address
        required = {
            "hostname": address.host or address.options.get("unix_socket"), "username": address.user,
            "deserializer": self._schema,
        }  # fmt: skip
        missing = [name for name, value in required.items() if not value]
        if missing:
            raise ValueError(f"{', '.join(missing)} is missing; call {missing[0]}(...) of the builder")
        assert self._schema is not None
        if not self._server_id:
            first = random.SystemRandom().randrange(1 << 20, 1 << 31)
            return MySqlSource(replace(self._settings, server_id=first), self._schema)
        first_text, _, last = self._server_id.partition("-")
        ids = range(int(first_text), int(last or first_text) + 1)
        return MySqlSource(replace(self._settings, server_id=ids[0]), self._schema, len(ids))

    def _address(self, **changes: object) -> None:
        address = replace(self._settings.address, **changes)  # type: ignore[arg-type]  # of the methods above
        self._settings = replace(self._settings, address=address)

    def _choose(self, **changes: object) -> None:
        choice = replace(self._settings.choice, **changes)  # type: ignore[arg-type]  # of the methods above
        self._settings = replace(self._settings, choice=choice)


__all__ = ["MySqlSource", "MySqlSourceBuilder", "StartupOptions"]
