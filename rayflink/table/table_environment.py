"""The entry point of the Table API and SQL."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams import DataStream
from rayflink.graph.boundedness import endless_source

from . import resolution
from .binding.expressions import cast
from .binding.queries import QueryBinder, project, renamed
from .catalog import Catalogs
from .changelog import ChangelogModes
from .connectors.contract import Connected, TableSink
from .connectors.held import HeldTable
from .connectors.known import connector
from .definitions import ColumnDefinition, Path, TableDefinition, ViewDefinition
from .emission import EmitOptions
from .environment_settings import EnvironmentSettings
from .errors import SqlError
from .explain_detail import ExplainDetail
from .inserts import Insertion, constants, partition_values, with_partition
from .logical import Attribute, Relation, Sink
from .logical import Schema as Attributes
from .materialized import materialized
from .parsing import statements as said
from .parsing.statement_parser import parse_statement
from .physical import PhysicalPlanner, PlannerSettings
from .rules import optimized, share_scans
from .schema import Schema, TableDescriptor
from .statement_runner import StatementRunner
from .table import Table
from .table_result import TableResult
from .type_rules import widens
from .typed import Column, Expr, Function, Place, Session
from .types import DataType, DataTypes
from .udf import TableFunction, UserFunction, udf, udtf
from .user_functions import UserDefinedFunction

if TYPE_CHECKING:
    import pyarrow


class TableEnvironment:
    """Holds tables by name and runs queries on them.

    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> orders = t_env.from_elements([(1, "tea"), (2, "cake")], ["id", "what"])
    >>> t_env.create_temporary_view("orders", orders)
    >>> list(t_env.execute_sql("SELECT what, id * 10 AS tens FROM orders WHERE id > 1").collect())
    [Row('cake', 20)]

    Args:
        env: whose programs the queries become.
        settings: streaming or batch.
    """

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self._env, self._settings = env, settings
        self._catalogs = Catalogs()
        self._functions: dict[str, Function] = {}
        self._given = dict(env.get_configuration().to_dict())
        """The options at the beginning, to which RESET goes back."""

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment of its own.

        Args:
            environment_settings: or a configuration, which is that of a streaming environment.
        """
        if isinstance(environment_settings, Configuration):
            environment_settings = EnvironmentSettings(True, environment_settings)
        env = StreamExecutionEnvironment(environment_settings.get_configuration())
        return TableEnvironment(env, environment_settings)

    def get_config(self) -> Configuration:
        """The options; what is set holds for queries that are run afterwards."""
        return self._env.get_configuration()

    # tables

    def from_path(self, path: str) -> Table:
        """A table or view of the catalog."""
        return Table(self, self._lookup(tuple(path.split(".")), None))

    def sql_query(self, query: str) -> Table:
        """The table that a SELECT or VALUES gives.

        Raises:
            SqlError: the query means nothing.
        """
        found = parse_statement(query)
        if not isinstance(found, said.Query):
            raise SqlError("this is no query", "run it with execute_sql", query)
        return Table(self, self._bound(found.tree, query))

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement.

        Raises:
            SqlError: it means nothing, or something of it is not supported.
        """
        return StatementRunner(self, self._catalogs, stmt).run(parse_statement(stmt))

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """How a query or INSERT would be run.

        Args:
            extra_details: what to tell besides.
        """
        return StatementRunner(self, self._catalogs, stmt).explained(parse_statement(stmt), extra_details)

    def from_elements(self, elements: Iterable[Any], schema: Any = None) -> Table:
        """A table of rows in memory.

        Args:
            elements: tuples, Rows or dicts.
            schema: names of the columns, or a `DataTypes.ROW`; None: names f0, f1, ... or those of the rows.
        """
        from rayflink.common.arrow_rows import rows_to_arrow

        rows = list(elements)
        if isinstance(schema, DataType):
            import pyarrow

            wanted = pyarrow.schema([field.type.to_arrow_field(field.name) for field in schema.fields])
            return self._held(pyarrow.Table.from_batches([rows_to_arrow(rows, wanted)]), schema.fields)
        import pyarrow

        names = None if schema is None else list(schema)
        return self.from_arrow(pyarrow.Table.from_batches([rows_to_arrow(rows, names=names)]))

    def from_arrow(self, table: pyarrow.Table) -> Table:
        """A table of columns in memory."""
        from .arrow_columns import normalized, type_of

        found = normalized(table)
        fields = [DataTypes.FIELD(field.name, type_of(field)) for field in found.schema]
        return self._held(found, fields)

    def from_pandas(self, pdf: Any, schema: Any = None) -> Table:
        """A table of a pandas DataFrame.

        Args:
            schema: names of the columns; None: those of the DataFrame.
        """
        import pyarrow

        found = pyarrow.Table.from_pandas(pdf, preserve_index=False)
        return self.from_arrow(found if schema is None else found.rename_columns(list(schema)))

    def from_polars(self, frame: Any) -> Table:
        """A table of a polars DataFrame."""
        return self.from_arrow(frame.to_arrow())

    def _held(self, table: pyarrow.Table, fields: Sequence[Any]) -> Table:
        from .logical import Scan

        schema = tuple(Attribute(field.name, field.type) for field in fields)
        return Table(self, Scan(schema, (f"Unregistered_{os.urandom(4).hex()}",), HeldTable(table)))

    # the catalog

    def create_temporary_table(self, path: str, descriptor: TableDescriptor) -> None:
        """Define a table for this environment.

        Raises:
            SqlError: there is one of that name, or it does not say what it is.
        """
        self._define(path, descriptor, True)

    def create_table(self, path: str, descriptor: TableDescriptor) -> None:
        """Define a table.

        Raises:
            SqlError: there is one of that name, or it does not say what it is.
        """
        self._define(path, descriptor, False)

    def _define(self, path: str, descriptor: TableDescriptor, temporary: bool) -> None:
        parts = tuple(path.split("."))
        full = self._catalogs.path(parts)
        connector(full, descriptor.definition).parsed(".".join(full), descriptor.definition.options)
        resolution.relation(full, descriptor.definition, None)
        self._catalogs.create(parts, descriptor.definition, temporary)

    def create_temporary_view(self, view_path: str, table: Table) -> None:
        """Name a table.

        Raises:
            SqlError: there is one of that name.
        """
        made = ViewDefinition("", tuple(table._plan.names), relation=table._plan)
        self._catalogs.create(tuple(view_path.split(".")), made, temporary=True)

    create_view = create_temporary_view
    register_table = create_temporary_view

    def drop_temporary_view(self, view_path: str) -> bool:
        """Forget a view; whether there was one."""
        return self._catalogs.drop(tuple(view_path.split(".")), ViewDefinition, True, True)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Forget a temporary table; whether there was one."""
        return self._catalogs.drop(tuple(table_path.split(".")), TableDefinition, True, True)

    def list_tables(self) -> list[str]:
        """Names of the tables and views of the current database."""
        return self._catalogs.names()

    def list_views(self) -> list[str]:
        """Names of the views of the current database."""
        return self._catalogs.names(wanted=lambda one: isinstance(one, ViewDefinition))

    def list_databases(self) -> list[str]:
        """Names of the databases of the current catalog."""
        return self._catalogs.databases()

    def list_catalogs(self) -> list[str]:
        """Names of the catalogs."""
        return self._catalogs.catalogs()

    def get_current_catalog(self) -> str:
        """Name of the current catalog."""
        return self._catalogs.catalog

    def get_current_database(self) -> str:
        """Name of the current database."""
        return self._catalogs.database

    def use_database(self, database_name: str) -> None:
        """Look names up in another database from now on."""
        self._catalogs.use("DATABASE", (database_name,), None)

    def use_catalog(self, catalog_name: str) -> None:
        """Look names up in another catalog from now on."""
        self._catalogs.use("CATALOG", (catalog_name,), None)

    # functions

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Make a function known to queries under a name.

        Args:
            path: its name; case does not count.
            function: what `udf` or `udtf` makes, a ScalarFunction, or a function with an annotation of its result.

        Raises:
            InvalidTypesError: its result has no type.
        """
        if isinstance(function, type) and issubclass(function, UserDefinedFunction):
            function = function()
        made = function
        if not isinstance(function, UserFunction):
            made = udtf(function) if isinstance(function, TableFunction) else udf(function)
        name = path.rpartition(".")[2].upper()
        self._functions[name] = made.registered(name)

    create_temporary_system_function = create_temporary_function

    def drop_temporary_function(self, path: str) -> bool:
        """Forget a function; whether there was one."""
        return self._functions.pop(path.rpartition(".")[2].upper(), None) is not None

    drop_temporary_system_function = drop_temporary_function

    def list_user_defined_functions(self) -> list[str]:
        """Names of the functions of one's own."""
        return sorted(name.lower() for name in self._functions)

    # queries

    @property
    def _is_batch(self) -> bool:
        return not self._settings.is_streaming_mode()

    def _session(self) -> Session:
        given = self._env.get_configuration().get(options.LOCAL_TIME_ZONE)
        return Session(_system_zone() if given == "default" else given)

    def _bound(self, tree: said.Tree, text: str) -> Relation:
        try:
            emit = EmitOptions.of(self._env.get_configuration())
            return QueryBinder(self._lookup, self._functions, self._is_batch, emit).bind(tree)
        except SqlError as error:
            raise (error if error.text else error.at(text)) from error

    def _lookup(self, parts: tuple[str, ...], place: Place | None) -> Relation:
        path, found = self._catalogs.find(parts, place)
        if isinstance(found, ViewDefinition):
            if found.relation is not None:
                plan: Relation = found.relation
                return plan
            query = parse_statement(found.text)
            assert isinstance(query, said.Query)
            plan = self._bound(query.tree, found.text)
            return renamed(plan, list(found.columns), place) if found.columns else plan
        return self._relation(path, found)

    def _relation(self, path: Path, table: TableDefinition) -> Relation:
        source = connector(path, table).source(self._connected(path, table, reads=True))
        return resolution.relation(path, table, source)

    def _connected(self, path: Path, table: TableDefinition, reads: bool) -> Connected:
        options, formats = connector(path, table).parsed(".".join(path), table.options)
        wanted = [one for one in table.columns if (one.computed is None if reads else one.is_written)]
        schema = tuple(Attribute(one.name, one.type) for one in wanted if one.type is not None)
        metadata = {at: one.metadata for at, one in enumerate(wanted) if one.metadata is not None}
        found = connector(path, table)
        if metadata and not found.metadata_keys.issuperset(metadata.values()):
            known = ", ".join(sorted(found.metadata_keys)) or "none"
            problem = f"{'.'.join(path)} has a METADATA column, which connector {found.name!r} does not know"
            raise SqlError(problem, f"it knows {known}")
        return Connected(".".join(path), schema, options, formats, table.partition_keys, metadata)

    # running

    def _planner(self) -> PhysicalPlanner:
        return PhysicalPlanner(self._env, self._session(), self._planner_settings())

    def _planner_settings(self) -> PlannerSettings:
        get = self._env.get_configuration().get
        two_phase = get(options.AGG_PHASE_STRATEGY) is not options.AggPhaseStrategy.ONE_PHASE
        return PlannerSettings(two_phase, get(options.REUSE_SUB_PLAN), get(options.REUSE_SOURCE))

    def _drawn(self, plan: Relation) -> TableResult:
        """Run a query; its rows come while it runs."""
        with self._env.apart():
            stream = self._planner().stream(self._optimized([plan])[0])
            rows = stream.execute_and_collect(self._name("collect"))
        assert not isinstance(rows, list)
        return TableResult(plan.schema, _Values(rows), None, not self._is_batch)

    def _whole(self, plan: Relation) -> pyarrow.Table:
        """Run a query to its end.

        Raises:
            SqlError: it has none.
        """
        import pyarrow

        from rayflink.common.arrow_rows import rows_to_arrow

        from .connectors.files import arrow_schema

        schema = arrow_schema(plan.schema)
        with self._env.apart():
            stream = self._planner().stream(self._optimized([plan])[0])
            endless = endless_source([stream._transformation])
            if endless is not None:
                remedy = "write its rows to a table with INSERT INTO, or draw them with execute().collect()"
                raise SqlError(f"the query reads {endless.name!r}, which has no end", remedy)
            rows = materialized(stream.execute_and_collect(self._name("collect")))
        if not rows:
            return schema.empty_table()
        return pyarrow.Table.from_batches([rows_to_arrow(rows, schema)])

    def _insert(self, insertions: Sequence[Insertion], text: str = "") -> TableResult:
        """Run queries as one job that writes their rows."""
        sinks = [self._sink(one) for one in insertions]
        targets = [".".join(one.path) for one in sinks]
        with self._env.apart():
            planner = self._planner()
            for plan in self._optimized(sinks):
                assert isinstance(plan, Sink)
                planner.write(plan)
            job = self._env.execute_async(self._name(f"insert-into_{'_'.join(targets)}"))
        schema = [Attribute(name, DataTypes.BIGINT(False)) for name in targets]
        return TableResult(schema, [Row(*(-1 for _ in targets))], job)

    def _sink(self, insertion: Insertion) -> Sink:
        """The plan of an INSERT.

        Raises:
            SqlError: the table does not take the rows.
        """
        path, table = self._target(insertion.path)
        name = ".".join(path)
        sink = connector(path, table).sink(self._connected(path, table, reads=False))
        values = partition_values(table, name, insertion.partition)
        plan, columns = with_partition(insertion.plan, table, insertion.columns, values)
        if insertion.overwrites:
            sink = self._overwriting(sink, name, values)
        return Sink((), _fitted(plan, table, columns, name), path, sink, place=plan.place)

    def _overwriting(self, sink: TableSink, name: str, partition: Mapping[str, Expr]) -> TableSink:
        """A sink whose rows take the place of those that are there.

        Raises:
            SqlError: it cannot, or the rows never end.
        """
        if not self._is_batch:
            remedy = "write INSERT INTO, or run it in batch mode: EnvironmentSettings.in_batch_mode()"
            raise SqlError("INSERT OVERWRITE in streaming mode", remedy)
        found = sink.overwriting(constants(partition))
        if found is None:
            raise SqlError(f"{name} does not take INSERT OVERWRITE", "write INSERT INTO, or take 'filesystem'")
        return found

    def _optimized(self, plans: Sequence[Relation]) -> list[Relation]:
        """The plans as they are run.

        Raises:
            SqlError: a step does not take the changes that another gives.
        """
        found = [optimized(plan, self._session(), self._is_batch) for plan in plans]
        settings = self._planner_settings()
        if settings.reuse_plans and settings.reuse_sources:
            found = share_scans(found)
        ChangelogModes(found)
        return found

    def _target(self, parts: tuple[str, ...]) -> tuple[Path, TableDefinition]:
        path, table = self._catalogs.find(parts)
        if isinstance(table, ViewDefinition):
            raise SqlError(f"{'.'.join(parts)} is a view", "insert into a table")
        return path, table

    def _explained(self, plans: Sequence[Relation], details: Collection[ExplainDetail] = ()) -> str:
        from .explain import explained
        from .steps import ShownPlan

        run, settings = self._optimized(plans), self._planner_settings()
        with self._env.apart():
            planner = self._planner()
            for plan in run:
                if isinstance(plan, Sink):
                    planner.write(plan)
                else:
                    self._env.add(planner.stream(plan)._transformation)
            shown = ShownPlan(settings.two_phase, settings.reuses)
            return explained(plans, run, shown, details, self._env.get_execution_plan)

    def _name(self, default: str) -> str:
        return self._env.get_configuration().get_string("pipeline.name", None) or default


class StreamTableEnvironment(TableEnvironment):
    """A `TableEnvironment` whose tables and streams become one another."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """On a stream program's environment."""
        settings = environment_settings or EnvironmentSettings.in_streaming_mode()
        env = stream_execution_environment or StreamExecutionEnvironment(settings.get_configuration())
        return StreamTableEnvironment(env, settings)

    def from_data_stream(self, data_stream: DataStream, schema: Schema | None = None) -> Table:
        """The records of a stream as a table.

        Args:
            data_stream: of Rows, tuples, dicts or columns.
            schema: its columns; None: those of the type that the stream declares. `column_by_metadata("at",
                DataTypes.TIMESTAMP_LTZ(3), "rowtime")` is the records' event time; a watermark "SOURCE_WATERMARK()" is
                that of the stream.

        Raises:
            InvalidTypesError: neither says which columns there are.
        """
        from .streams import StreamConnector, columns_of

        given = schema or Schema()
        columns = given.columns if any(one.is_physical for one in given.columns) else ()
        if not columns:
            columns = (*columns_of(data_stream), *given.columns)
        connected = StreamConnector(data_stream)
        table = TableDefinition(columns, given.watermark, given.key, connected=connected)
        path = ("default_catalog", "default_database", f"Unregistered_{os.urandom(4).hex()}")
        return Table(self, self._relation(path, table))

    def create_temporary_view(self, view_path: str, table: Table | DataStream, schema: Schema | None = None) -> None:
        """Name a table or a stream.

        Raises:
            SqlError: there is one of that name.
        """
        found = self.from_data_stream(table, schema) if isinstance(table, DataStream) else table
        super().create_temporary_view(view_path, found)

    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of a table as a stream of `Row`s, with the event time of its time attribute."""
        from .streams import to_data_stream

        return to_data_stream(self._planner(), self._optimized([table._plan])[0])


class _Values:
    """Rows without the names of their fields; drawn once, and can be closed."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __iter__(self) -> _Values:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        return Row.of_kind(row.get_row_kind(), *row._values)

    def __enter__(self) -> _Values:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job, where it has not ended."""
        self._rows.close()


def _fitted(plan: Relation, table: TableDefinition, columns: tuple[str, ...] | None, name: str) -> Relation:
    """The query's columns as those of the table to write.

    Raises:
        SqlError: there are more or fewer, or one is of another type.
    """
    written = [one for one in table.columns if one.is_written]
    names = list(columns) if columns is not None else [one.name for one in written]
    resolution.checked_columns(names, [one.name for one in written], None, "")
    if len(names) != len(plan.schema):
        problem = f"the query gives {len(plan.schema)} columns, and {name} takes {len(names)}"
        remedy = f"it gives {_told(plan.schema)}; wanted is {', '.join(names)}"
        raise SqlError(problem, remedy, "", plan.place)
    exprs = []
    for one in written:
        assert one.type is not None
        if one.name not in names:
            exprs.append(_absent(one, name))
            continue
        at = names.index(one.name)
        found = plan.schema[at]
        if not widens(found.type, one.type):
            problem = f"column {one.name!r} of {name} is of type {one.type}, the query gives {found.type}"
            raise SqlError(problem, f"write CAST(... AS {one.type.nullable()}) in the query", "", plan.place)
        column = Column(found.type, at, found.name)
        exprs.append(cast(column, one.type.as_nullable(found.type.is_nullable)))
    return project(plan, exprs, [one.name for one in written])


def _absent(column: ColumnDefinition, name: str) -> Any:
    from .typed import Literal

    assert column.type is not None
    if not column.type.is_nullable:
        problem = f"the query gives nothing for column {column.name!r} of {name}, which is {column.type}"
        raise SqlError(problem, "name it in the INSERT, and select a value for it")
    return Literal(column.type, None)


def _told(schema: Attributes) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)


def _system_zone() -> str:
    """The zone of this machine by its name."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    try:
        _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"


__all__ = ["StreamTableEnvironment", "TableEnvironment"]
