"""Change data capture of PostgreSQL: the rows of tables, and then their changes, each once."""

from __future__ import annotations

import re
from dataclasses import replace
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
from rayflink.common.time import Duration
from rayflink.connectors.cdc.change_reader import ChangeReader
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.snapshot_enumeration import SnapshotEnumerator, SnapshotProgress

from .postgres_cdc_preparation import CdcSettings, PostgresDatabase
from .postgres_cdc_tables import CapturedTable, TableChoice
from .postgres_chunks import PostgresTables
from .postgres_session import PostgresError, driver, place_of
from .postgres_values import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow

_SLOT = re.compile(r"[a-z0-9_]{1,63}")


class StartupOptions:
    """The position at which a source of change data capture begins, if it is not restored from a checkpoint.

    Args:
        mode: its name.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode

    @staticmethod
    def initial() -> StartupOptions:
        """Return the default: the rows that are there, and then the changes."""
        return StartupOptions("initial")

    @staticmethod
    def latest() -> StartupOptions:
        """Return to begin with the changes that are committed from now on."""
        return StartupOptions("latest")

    @staticmethod
    def committed() -> StartupOptions:
        """Return to begin with the changes that the replication slot, which must exist, has not confirmed yet."""
        return StartupOptions("committed")

    @staticmethod
    def snapshot() -> StartupOptions:
        """Return to read the rows that are there, and to end."""
        return StartupOptions("snapshot")

    def __repr__(self) -> str:
        return f"StartupOptions.{self.mode}()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StartupOptions) and self.mode == other.mode

    def __hash__(self) -> int:
        return hash(self.mode)


class PostgresCdcSource(Source[Output]):
    """The rows of tables in PostgreSQL and their changes, each exactly once; made by `PostgresCdcSource.builder()`.

    Args:
        settings: of the server's side.
        schema: makes records of changes.
    """

    def __init__(self, settings: CdcSettings, schema: ChangeDeserializationSchema) -> None:
        self._settings, self._schema = settings, schema

    @staticmethod
    def builder() -> PostgresCdcSourceBuilder:
        """Return a builder without settings."""
        return PostgresCdcSourceBuilder()

    def __repr__(self) -> str:
        return f"PostgresCdcSource({place_of(self._settings.dsn)}, slot={self._settings.slot!r})"

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED if self._settings.reads_log else Boundedness.BOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def check(self) -> None:
        PostgresDatabase(self._settings).check()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, PostgresDatabase(self._settings), self._settings.reads_log)

    def restore_enumerator(self, ctx: EnumeratorContext, state: SnapshotProgress[CapturedTable]) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, PostgresDatabase(self._settings), self._settings.reads_log, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return ChangeReader(ctx, PostgresTables(self._settings), self._schema, self._settings.reads_log)


class PostgresCdcSourceBuilder:
    """Collects the settings of a `PostgresCdcSource`; the names are those of Flink CDC.

    Required are `hostname`, `database`, `username`, `slot_name` and `deserializer`.
    """

    def __init__(self) -> None:
        self._address: dict[str, str] = {"port": "5432"}
        self._choice = TableChoice()
        self._slot = ""
        self._publication = ""
        self._schema: ChangeDeserializationSchema | None = None
        self._settings = CdcSettings("", TableChoice(), "", "")

    def hostname(self, hostname: str) -> PostgresCdcSourceBuilder:
        """Set the name or address of the server, or the folder of its socket."""
        self._address["host"] = hostname
        return self

    def port(self, port: int) -> PostgresCdcSourceBuilder:
        """Set the port of the server; the default is 5432."""
        self._address["port"] = str(port)
        return self

    def database(self, database: str) -> PostgresCdcSourceBuilder:
        """Set the database of the tables; a replication slot belongs to one database."""
        self._address["dbname"] = database
        return self

    def schema_list(self, *schemas: str) -> PostgresCdcSourceBuilder:
        """Set the schemas in which tables are looked for; the default is all but those of the system."""
        self._choice = replace(self._choice, schemas=schemas)
        return self

    def table_list(self, *tables: str) -> PostgresCdcSourceBuilder:
        """Set the tables, as `schema.table` or as regular expressions of such names; the default is all."""
        self._choice = replace(self._choice, tables=tables)
        return self

    def username(self, username: str) -> PostgresCdcSourceBuilder:
        """Set the user, who needs REPLICATION, and SELECT on the tables."""
        self._address["user"] = username
        return self

    def password(self, password: str) -> PostgresCdcSourceBuilder:
        """Set the password of the user."""
        self._address["password"] = password
        return self

    def connection_options(self, options: Mapping[str, str]) -> PostgresCdcSourceBuilder:
        """Set further parameters of libpq, such as `sslmode`."""
        self._address.update(options)
        return self

    def slot_name(self, slot_name: str) -> PostgresCdcSourceBuilder:
        """Set the name of the replication slot, one for each job; it is created where it is missing."""
        self._slot = slot_name
        return self

    def publication_name(self, publication_name: str) -> PostgresCdcSourceBuilder:
        """Set the publication, which is created where it is missing; the default is the name of the slot."""
        self._publication = publication_name
        return self

    def decoding_plugin_name(self, plugin: str) -> PostgresCdcSourceBuilder:
        """Set the plugin that decodes the log; only `pgoutput`, which every server has, is supported.

        Raises:
            ValueError: it is another one.
        """
        if plugin != "pgoutput":
            raise ValueError(f"decoding plugin {plugin!r} is not supported; use 'pgoutput', the default")
        return self

    def deserializer(self, schema: ChangeDeserializationSchema) -> PostgresCdcSourceBuilder:
        """Set what makes records of changes, such as `RowChangesDeserializationSchema()`."""
        self._schema = schema
        return self

    def startup_options(self, startup: StartupOptions) -> PostgresCdcSourceBuilder:
        """Set where to begin; the default is `StartupOptions.initial()`."""
        self._settings = replace(self._settings, startup=startup.mode)
        return self

    def split_size(self, rows: int) -> PostgresCdcSourceBuilder:
        """Set about how many rows a chunk of the snapshot has; the default is 8,096.

        Raises:
            ValueError: the number is less than 1.
        """
        if rows < 1:
            raise ValueError(f"split size is {rows}; expected at least 1 row")
        self._settings = replace(self._settings, split_size=rows)
        return self

    def split_key_column(self, column: str) -> PostgresCdcSourceBuilder:
        """Set the column of the primary key that divides tables into chunks; the default is the first one."""
        self._choice = replace(self._choice, chunk_key=column)
        return self

    def heartbeat_interval(self, interval: Duration) -> PostgresCdcSourceBuilder:
        """Set how often the position advances past changes of other tables; the default is 30 s."""
        self._settings = replace(self._settings, heartbeat_ms=interval.to_millis())
        return self

    def connect_max_retries(self, retries: int) -> PostgresCdcSourceBuilder:
        """Set how often a lost connection is opened again before the job fails; the default is 3."""
        self._settings = replace(self._settings, retries=retries)
        return self

    def skip_truncates(self) -> PostgresCdcSourceBuilder:
        """Count TRUNCATE and go on, as if the rows were still there; by default the job fails."""
        self._settings = replace(self._settings, skips_truncates=True)
        return self

    def with_columns(
        self, columns: Mapping[str, pyarrow.DataType], upsert_key: Sequence[str] = ()
    ) -> PostgresCdcSourceBuilder:
        """Set the columns to read, with the types of their values, as SQL declares them.

        Args:
            upsert_key: columns of the primary key: updates come without the row before. Without any they come with it,
                and the replica identity has to be FULL.
        """
        key = tuple(upsert_key)
        self._choice = replace(self._choice, columns=columns, needs_before=not key, upsert_key=key)
        self._settings = replace(self._settings, upserts=bool(key))
        return self

    def build(self) -> PostgresCdcSource[Output]:
        """Return the source.

        Raises:
            ValueError: a setting is missing, or the slot's name is none.
            PostgresError: psycopg is missing, or a parameter is none of libpq.
        """
        required = {
            "hostname": self._address.get("host"), "database": self._address.get("dbname"),
            "username": self._address.get("user"), "slot_name": self._slot, "deserializer": self._schema,
        }  # fmt: skip
        missing = [name for name, value in required.items() if not value]
        if missing:
            raise ValueError(f"{', '.join(missing)} is missing; call {missing[0]}(...) of the builder")
        if not _SLOT.fullmatch(self._slot):
            wanted = "lower case letters, digits and underscores, at most 63"
            raise ValueError(f"slot_name is {self._slot!r}; a replication slot has {wanted}")
        assert self._schema is not None
        settings = replace(
            self._settings, dsn=self._dsn(), slot=self._slot,
            choice=replace(self._choice, needs_log=self._settings.reads_log),
            publication=self._publication or self._slot,
        )  # fmt: skip
        return PostgresCdcSource(settings, self._schema)

    def _dsn(self) -> str:
        psycopg = driver()
        settings = " ".join(f"-c {key}={value}" for key, value in SETTINGS.items())
        own = self._address.get("options", "")
        address = {**self._address, "options": f"{own} {settings}".strip(), "application_name": "rayflink"}
        try:
            return str(psycopg.conninfo.make_conninfo("", **address))
        except psycopg.ProgrammingError as error:
            raise PostgresError(f"connection options: {str(error).strip()}", "use parameters of libpq") from None


__all__ = ["PostgresCdcSource", "PostgresCdcSourceBuilder", "StartupOptions"]
