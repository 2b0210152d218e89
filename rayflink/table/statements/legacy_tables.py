"""The calls of Flink 1.x by which tables of objects are named, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..definitions import parts_of
from ..errors import SqlError
from ..sinks import CsvTableSink, TableSink
from ..sources import TableSource
from ..table import Table, plan_of
from .insert_plan import insert_into

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment

    from ..plan.logical import Relation
    from ..table_environment import StreamTableEnvironment, TableEnvironment
    from .query_runner import QueryRunner


class LegacyTables:
    """Methods that Flink 2 removed: tables from source and sink objects, and jobs by `execute()`."""

    _queries: QueryRunner
    _sinks: dict[tuple[str, str, str], TableSink]

    @staticmethod
    def get_table_environment(stream_execution_environment: StreamExecutionEnvironment) -> StreamTableEnvironment:
        """Return an environment for a stream program; `StreamTableEnvironment.create` does it now."""
        from ..table_environment import StreamTableEnvironment  # which imports this module

        return StreamTableEnvironment.create(stream_execution_environment)

    def scan(self, *table_path: str) -> Table:
        """Return a table or view of the catalog; `from_path` with the parts of the name one by one.

        Raises:
            SqlError: there is none.
        """
        quoted = ".".join(f"`{name.replace('`', '``')}`" for name in table_path)
        return self._self().from_path(quoted)

    def register_function(self, name: str, function: object) -> None:
        """Make a function known to queries; `create_temporary_system_function` does it now.

        Raises:
            InvalidTypesError: its result has no type.
        """
        self._self().create_temporary_system_function(name, function)

    def register_table_source(self, name: str, table_source: TableSource) -> None:
        """Name a source as a temporary table; `create_temporary_table` with a descriptor does it now.

        Raises:
            SqlError: there is a table of that name.
        """
        self._self().create_temporary_table(name, table_source.descriptor)

    def from_table_source(self, table_source: TableSource) -> Table:
        """Return the table of a source, without a name."""
        return self._self().from_descriptor(table_source.descriptor)

    def register_table_sink(self, name: str, table_sink: TableSink) -> None:
        """Name a sink as a temporary table, which INSERT INTO and `insert_into` write.

        Raises:
            SqlError: there is a table of that name.
        """
        self._self().create_temporary_table(name, table_sink.descriptor)
        self._sinks[self._queries.context.catalogs.path(parts_of(name))] = table_sink

    def insert_into(self, target_path: str, table: Table) -> None:
        """Let the rows of a table be written to a table of the catalog, by the job that `execute` runs.

        Raises:
            SqlError: the table is not there, or does not take the rows.
        """
        sink = self._sinks.get(self._queries.context.catalogs.path(parts_of(target_path)))
        overwrites = sink is not None and sink.overwrites()
        self._attach(target_path, table, overwrites)

    def execute(self, job_name: str | None = None) -> Any:
        """Run what `insert_into` and `write_to_sink` have asked for as one job, and wait for its end.

        Raises:
            PlanError: nothing was asked for.
            JobFailed: the job failed.
        """
        return self._queries.env.execute(job_name)

    def _attach(self, target: str, table: Table, overwrites: bool) -> None:
        queries = self._queries
        queries.add_inserts([insert_into(queries.context, target, plan_of(table), overwrites)])

    def _self(self) -> TableEnvironment:
        return cast("TableEnvironment", self)


def write_to_sink(queries: QueryRunner, plan: Relation, sink: CsvTableSink) -> None:
    """Let the rows of a plan be written by a sink of Flink 1.x, in the program that `execute` runs.

    Raises:
        SqlError: the sink does not take the rows, or there are files that it is not to overwrite.
    """
    if not isinstance(sink, CsvTableSink):
        remedy = "give a CsvTableSink, or write it by insert_into(TableDescriptor)"
        raise SqlError(f"{type(sink).__name__} is not a table sink", remedy)
    queries.add_inserts([insert_into(queries.context, sink.descriptor, plan, sink.overwrites())])


__all__ = ["LegacyTables", "write_to_sink"]
