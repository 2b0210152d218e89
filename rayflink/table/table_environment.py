"""The entry point of the Table API and SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from rayflink.common.configuration import Configuration
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row
from rayflink.connectors.lookup_cache import LookupCache
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams.stream import DataStream
from rayflink.datastream.streams.stream_builder import StreamBuilder, keep_parallelism
from rayflink.user_types import UserRecord

from .compiled_plan import CompiledPlan, loaded
from .connectors.in_memory import HeldTable
from .connectors.lookups.function_tables import FunctionTable, function_of
from .conversion.arrow_columns import normalize_types, type_of
from .conversion.element_columns import ElementColumns
from .conversion.frame_columns import frame_table, inferred_table
from .conversion.inferred_types import declared_row_type
from .definitions import parts_of
from .dsl.expression_text import tree_of
from .dsl.process_calls import call_of_function
from .environment_settings import EnvironmentSettings
from .errors import SqlError
from .explain_detail import ExplainDetail
from .explaining.plan_drawing import PlanDrawing
from .expression import Expression
from .expressions import col
from .parsing import statements
from .parsing.statement_parser import parse_statement
from .physical.stream_sinks import AsRecord
from .physical.stream_tables import columns_asked, columns_of, definition_of
from .plan.changelog import ChangelogMode
from .plan.logical import ANONYMOUS, Attribute, Scan
from .plan_reference import PlanReference
from .runtime.lookups.lookup_function import LookupFunction
from .schema import Schema, TableDescriptor
from .statement_set import StatementSet
from .statements.legacy_tables import LegacyTables
from .statements.modules import Modules
from .statements.named_tables import NamedTables
from .statements.planning_context import PlanningContext, anonymous_name, check_table
from .statements.query_runner import QueryRunner
from .statements.registered_objects import RegisteredObjects
from .statements.sql_script import ScriptRunner, show
from .statements.statement_runner import StatementRunner
from .statements.taken_along import TakenAlong
from .table import Table, plan_of, select_from, with_program_line
from .table_config import TableConfig
from .table_result import TableResult
from .types import DataType, DataTypes, RowField, stored_type
from .udf import ProcessTableFunction, UserProcess

if TYPE_CHECKING:
    import pyarrow

ElementSchema: TypeAlias = "DataType | Sequence[str | DataType | RowField | tuple[str, DataType]] | str | None"
"""The columns of `from_elements`, as far as the program says them."""


class TableEnvironment(NamedTables, RegisteredObjects, Modules, LegacyTables, TakenAlong):
    """Holds tables by name and runs queries on them.

    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> orders = t_env.from_elements([(1, "tea"), (2, "cake")], ["id", "what"])
    >>> t_env.create_temporary_view("orders", orders)
    >>> list(t_env.execute_sql("SELECT what, id * 10 AS tens FROM orders WHERE id > 1").collect())
    [<Row('cake', 20)>]

    Args:
        env: whose programs the queries become.
        settings: streaming or batch, and options that are set for `env`.

    Raises:
        ConfigError: the mode is AUTOMATIC.
    """

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        configuration = env.get_configuration().add_all(settings.get_configuration())
        self._context = PlanningContext(configuration)
        self._queries = QueryRunner(env, self._context)
        self._sinks = {}

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """Create an environment with the options given from outside, overridden by those given here.

        From outside come those of a file, of the environment and of the command line of `rayflink run`.

        Args:
            environment_settings: or a configuration, whose `execution.runtime-mode` says the mode.

        Raises:
            ConfigError: an option does not parse, or the mode is AUTOMATIC.
        """
        if isinstance(environment_settings, Configuration):
            environment_settings = EnvironmentSettings(environment_settings)
        env = StreamExecutionEnvironment.get_execution_environment(environment_settings.get_configuration())
        return TableEnvironment(env, environment_settings)

    def get_config(self) -> TableConfig:
        """Return the options; what is set holds for queries that are run afterwards."""
        return self._context.config

    # tables

    def from_path(self, path: str) -> Table:
        """Return a table or view of the catalog."""
        return Table(self._queries, self._context.lookup(parts_of(path), None))

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return a table that a descriptor says, without a name.

        Raises:
            SqlError: it does not say what it is.
        """
        path = self._context.anonymous_path(ANONYMOUS)
        check_table(path, descriptor.definition)
        return Table(self._queries, self._context.read(path, descriptor.definition))

    def from_call(
        self, function: str | UserProcess | ProcessTableFunction | type[ProcessTableFunction],
        *arguments: Expression[Any] | object,
    ) -> Table:  # fmt: skip
        """Return the rows that a process table function gives.

        >>> from rayflink.table.udf import udptf
        >>> @udptf(arguments={"most": "INT"}, result_type="ROW<n INT>")
        ... def numbers(ctx, most):
        ...     yield from range(most)
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> list(t_env.from_call(numbers, 2).execute().collect())
        [<Row(0)>, <Row(1)>]

        Args:
            function: its registered name, what `udptf` made, or a ProcessTableFunction or its class.
            arguments: tables, partitions and values, named by `as_argument`, or values in their order.

        Raises:
            SqlError: the arguments are not those that it takes.
            TypeError: it is no function.
        """
        try:
            return Table(self._queries, self._context.bind(call_of_function(function, arguments), ""))
        except SqlError as error:
            raise with_program_line(error) from error

    def sql_query(self, query: str) -> Table:
        """Return the table that a SELECT or VALUES gives.

        Raises:
            SqlError: the query means nothing.
        """
        statement = parse_statement(query)
        if not isinstance(statement, statements.Query):
            raise SqlError("this is no query", "run it with execute_sql", query)
        return Table(self._queries, self._context.bind(statement.tree, query))

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement.

        Raises:
            SqlError: it means nothing, or something of it is not supported.
        """
        return StatementRunner(self._queries, stmt).run(parse_statement(stmt))

    def execute_script(
        self, script: str, on_result: Callable[[TableResult], None] | None = None, origin: str = ""
    ) -> None:
        """Run statements that semicolons divide, one after another; each waits for the job of the one before.

        `SET 'execution.runtime-mode' = 'batch'` changes the mode of the statements behind it, as in Flink's SQL client.

        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.execute_script('''
        ...     SET 'execution.target' = 'local';
        ...     CREATE VIEW numbers AS SELECT * FROM (VALUES (1), (2)) AS t(n);  -- a comment; with a semicolon
        ...     SELECT n * 10 AS tens FROM numbers WHERE n > 1;''')
        OK
        OK
        +----+-------------+
        | op |        tens |
        +----+-------------+
        | +I |          20 |
        +----+-------------+
        1 row in set

        Args:
            script: all statements are read before the first is run.
            on_result: is called with each result; None: it is printed.
            origin: what the script is called in errors, as the path of its file.

        Raises:
            ScriptError: a statement cannot be read or run, or its job fails; with its line and column.
        """

        ScriptRunner(self._queries, script, origin).run(on_result or show)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """Explain how a query or INSERT would be run.

        Args:
            extra_details: further details.
        """
        return StatementRunner(self._queries, stmt).explain(parse_statement(stmt), extra_details)

    def draw_plan(self, stmt: str) -> PlanDrawing:
        """Draw how a query, an INSERT or a STATEMENT SET would be run; notebooks show the picture.

        Raises:
            SqlError: it is another statement, or cannot be run.
        """
        return StatementRunner(self._queries, stmt).drawing(parse_statement(stmt))

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """Return the plan of an INSERT or of a STATEMENT SET, which can be written to a file and run later.

        Raises:
            SqlError: it is another statement, or part of the plan is bound to this program.
        """
        return StatementRunner(self._queries, stmt).compiled(parse_statement(stmt))

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """Read a plan.

        Raises:
            SqlError: there is none, or this version or this environment cannot run it.
        """
        return loaded(self._queries, plan_reference)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Read a plan and run it; see `load_plan`."""
        return self.load_plan(plan_reference).execute()

    def from_elements(
        self, elements: Iterable[UserRecord], schema: ElementSchema = None, verify_schema: bool = True
    ) -> Table:
        """Return a table of rows in memory.

        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> print(t_env.from_elements([("ann", {"tea": 2}), ("bob", {})], ["name"]).get_schema().to_row_data_type())
        ROW<`name` STRING, `_2` MAP<STRING NOT NULL, BIGINT>> NOT NULL

        Args:
            elements: tuples, lists, Rows, dicts, named tuples or objects with attributes, of values; tuples also of
                expressions, as well as `row(...)`. Others are rows of one column.
            schema: a `DataTypes.ROW`, names of the columns, their types, or a text such as "ROW<id BIGINT>"; None: the
                names that the rows have, else `_1`, `_2` and so on. Types that it does not say are those of the values.
            verify_schema: a value of another class than its type takes is an error, also a string that is too long;
                False: what Arrow can convert is converted.

        Raises:
            TypeError: a value is of another type than its column; names the column.
            ValueError: a value is None in a column that is not null, out of range or too long, or a type is not known.
        """

        rows = list(elements)
        if any(isinstance(value, Expression) for row in rows for value in _listed(row)):
            return self._of_expressions(rows, schema)
        row_type = declared_row_type(schema, rows)
        return self._held(ElementColumns(row_type, verify_schema).table(rows), stored_type(row_type).fields)

    def _of_expressions(self, rows: list[UserRecord], schema: ElementSchema) -> Table:
        """Return the rows of VALUES."""
        trees = [exp.Tuple(expressions=_trees(row)) for row in rows]
        plan = self._context.bind(exp.Values(expressions=trees), "")
        table = Table(self._queries, plan)
        if isinstance(schema, (DataType, str)):
            columns = zip(plan.names, declared_row_type(schema, ()).fields, strict=True)
            return table.select(*(col(name).cast(field.type).alias(field.name) for name, field in columns))
        return table.alias(*map(str, schema or [f"f{index}" for index in range(len(plan.names))]))

    def from_arrow(self, table: pyarrow.Table) -> Table:
        """Return a table of columns in memory."""

        columns = normalize_types(table)
        fields = [DataTypes.FIELD(field.name, type_of(field)) for field in columns.schema]
        return self._held(columns, fields)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Return a table of a pandas DataFrame.

        Args:
            schema: names of the columns, their types, or a `DataTypes.ROW`; None: as the DataFrame has them, where a
                dict is a ROW. A MAP of a schema is a dict, too.
            splits_num: taken for PyFlink's sake.

        Raises:
            InvalidTypesError: there are more types than columns, or fewer; or the values of a column have several.
        """

        if schema is None or not isinstance(schema, DataType) and not isinstance(schema[0], DataType):
            table = inferred_table(pdf)
            return self.from_arrow(table if schema is None else table.rename_columns(list(schema)))
        types = None if isinstance(schema, DataType) else [(f"f{index}", kind) for index, kind in enumerate(schema)]
        fields = DataTypes.ROW(types).fields if types is not None else schema.fields
        return self._held(frame_table(pdf, fields), fields)

    def from_polars(self, frame: Any) -> Table:
        """Return a table of a polars DataFrame."""
        return self.from_arrow(frame.to_arrow())

    def from_lookup(
        self, function: Callable[..., object] | LookupFunction, schema: DataType, form: str | None = None,
        cache: LookupCache | None = None, max_retries: int = 3,
    ) -> Table:  # fmt: skip
        """Return a table whose rows a function finds by key, for joins with FOR SYSTEM_TIME AS OF.

        The columns that a join asks for are the keys. A subtask calls the function once for the distinct keys of a
        batch, and again where it raises ConnectionError or TimeoutError; any other exception fails the job.

        >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> columns = [DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("sq", DataTypes.BIGINT())]
        >>> squares = t_env.from_lookup(lambda n: {"sq": n * n}, DataTypes.ROW(columns), form="key")
        >>> t_env.create_temporary_view("squares", squares)
        >>> rows = t_env.execute_sql(
        ...     "SELECT o.n, s.sq FROM (SELECT n, PROCTIME() AS t FROM (VALUES (2), (3)) AS v(n)) AS o "
        ...     "JOIN squares FOR SYSTEM_TIME AS OF o.t AS s ON o.n = s.n"
        ... )
        >>> list(rows.collect())
        [<Row(2, 4)>, <Row(3, 9)>]

        Args:
            function: plain or `async def`. It takes a frame of keys, and returns a frame of rows with all columns; with
                the form "key" it takes one key, as keyword arguments, and returns a dict or Row, a list of them, or
                None. A `LookupFunction` is taken as it is.
            schema: a `DataTypes.ROW` of all columns.
            form: "arrow", "table", "polars", "pandas" or "key"; None: by the annotation of the function's parameter,
                "arrow" without one.
            cache: the limits of rows that are remembered by key; None: each batch asks for its keys.
            max_retries: repetitions of a call.

        Raises:
            ValueError: the form is unknown.
            PlanError: the package of the form is not installed.
        """
        columns = tuple(Attribute(field.name, field.type) for field in schema.fields)
        names = tuple(column.name for column in columns)
        source = FunctionTable(function_of(function, columns, form), names, cache, max_retries)
        return Table(self._queries, Scan(columns, (anonymous_name(),), source))

    def _held(self, table: pyarrow.Table, fields: Sequence[Any]) -> Table:
        schema = tuple(Attribute(field.name, field.type) for field in fields)
        return Table(self._queries, Scan(schema, (anonymous_name(),), HeldTable(table)))

    # the catalog

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool | None = False
    ) -> None:
        """Define a table for this environment.

        Args:
            ignoreIfExists: where there is one of that name, leave it.

        Raises:
            SqlError: there is one of that name, or it does not say what it is.
        """
        self._context.create_table(parts_of(path), descriptor.definition, True, bool(ignoreIfExists))

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool | None = False) -> None:
        """Define a table.

        Args:
            ignoreIfExists: where there is one of that name, leave it.

        Raises:
            SqlError: there is one of that name, or it does not say what it is.
        """
        self._context.create_table(parts_of(path), descriptor.definition, False, bool(ignoreIfExists))

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Name a table.

        Args:
            table_or_data_stream: a `Table`; a `StreamTableEnvironment` takes a stream, too.

        Raises:
            SqlError: there is one of that name, or this is not a table.
        """
        if not isinstance(table_or_data_stream, Table):
            remedy = "give a Table; a stream is one in a StreamTableEnvironment"
            raise SqlError(f"{type(table_or_data_stream).__name__} is no table", remedy)
        self._context.create_view(parts_of(view_path), plan_of(table_or_data_stream), is_temporary=True)

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool | None = False) -> None:
        """Name a table, not for this environment alone.

        Args:
            ignore_if_exists: where there is one of that name, leave it.

        Raises:
            SqlError: there is one of that name.
        """
        self._context.create_view(parts_of(view_path), plan_of(table), False, bool(ignore_if_exists))

    def register_table(self, name: str, table: Table) -> None:
        """Name a table; `create_temporary_view` under its name of old."""
        self.create_temporary_view(name, table)

    # queries

    def create_statement_set(self) -> StatementSet:
        """Return a set of queries that are run as one job."""
        return StatementSet(self._queries)


class StreamTableEnvironment(TableEnvironment):
    """A `TableEnvironment` whose tables and streams become one another."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Create an environment on a stream program's; without one on its own, as `TableEnvironment.create` does.

        Args:
            stream_execution_environment: its options hold for queries, also its runtime mode.
            environment_settings: options that are set for it; None: none are.

        Raises:
            ConfigError: the mode is AUTOMATIC.
        """
        settings = environment_settings or EnvironmentSettings()
        known = stream_execution_environment
        env = known or StreamExecutionEnvironment.get_execution_environment(settings.get_configuration())
        return StreamTableEnvironment(env, settings)

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """Return the records of a stream as a table; a record that is no insertion fails the job.

        Args:
            data_stream: of Rows, tuples, dicts or columns, or of single values of a declared type, such as
                `Types.INT()`, which are the column f0.
            fields_or_schema: a `Schema`: types of columns, and columns that are computed; `column_by_metadata("at",
                DataTypes.TIMESTAMP_LTZ(3), "rowtime")` is the records' event time, a watermark "SOURCE_WATERMARK()"
                that of the stream. Or columns by name or in order: `col("a")`, `col("b").alias("c")`,
                `col("at").rowtime` for the records' event time, `col("now").proctime`. Nothing: the columns of the
                type that the stream declares; rows of a table have those of the table, with its time attribute.

        Raises:
            InvalidTypesError: nothing says which columns there are.
            SqlError: there are fewer columns than asked for.
        """

        trees = [tree_of(field) for field in fields_or_schema if isinstance(field, Expression)]
        schema = next((argument for argument in fields_or_schema if isinstance(argument, Schema)), Schema())
        if not trees:
            return self._of_stream(data_stream, schema, ChangelogMode.insert_only())
        schema, selected = columns_asked(trees, [column.name for column in columns_of(data_stream)])
        return select_from(self._of_stream(data_stream, schema, ChangelogMode.insert_only()), selected)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """Return the records of a stream as changes of a table's rows: each `Row` does what its kind says.

        Args:
            data_stream: of Rows; others insert.
            schema: as of `from_data_stream`.
            changelog_mode: the kinds there are; None: all. `ChangelogMode.upsert()` wants a primary key.

        Raises:
            InvalidTypesError: nothing says which columns there are.
            SqlError: rows replace others of their key, and there is no key.
        """
        return self._of_stream(data_stream, schema or Schema(), changelog_mode or ChangelogMode.all())

    def _of_stream(self, stream: DataStream, schema: Schema, mode: ChangelogMode) -> Table:
        plan = self._context.read(self._context.anonymous_path(), definition_of(stream, schema, mode))
        table, names = Table(self._queries, plan), [column.name for column in schema.columns]
        if not any(column.is_physical for column in schema.columns) or names == plan.names:
            return table
        return table.select(*map(col, names))

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Name a table or a stream.

        Args:
            fields_or_schema: of a stream, see `from_data_stream`.

        Raises:
            SqlError: there is one of that name.
        """
        table = table_or_data_stream
        if isinstance(table, DataStream):
            table = self.from_data_stream(table, *fields_or_schema)
        super().create_temporary_view(view_path, table)

    def to_data_stream(self, table: Table) -> DataStream[Row]:
        """Return the rows of a table as a stream of `Row`s, with the event time of its time attribute.

        The stream knows the types of the columns, so that `from_data_stream` of it is the same table.

        Raises:
            SqlError: rows of the table change later, or it has several time attributes.
        """
        return self._queries.add_stream(plan_of(table))

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream[Row]:
        """Return the changes of a table's rows as a stream of `Row`s, whose kinds say what they do.

        Args:
            target_schema: columns of the records, in the order of the table's, which are cast to their types;
                `column_by_metadata("rowtime", "TIMESTAMP_LTZ(3)")` becomes the event time of records and is no field of
                them: alone it stands for the table's last column.
            changelog_mode: the kinds that are wanted; None: all. Without UPDATE_BEFORE a row that is taken back and
                may not be replaced is deleted.

        Raises:
            SqlError: the table gives other kinds, or rows that the schema does not take.
        """
        mode = changelog_mode or ChangelogMode.all()
        return self._queries.add_changelog_stream(plan_of(table), target_schema, mode)

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Return the rows as records of a declared type, by the positions of fields; prefer `to_data_stream`.

        Raises:
            SqlError: rows of the table change later.
            InvalidTypesError: the type has not as many fields as the table.
        """
        return self._records(self.to_data_stream(table), table, type_info, False)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream[tuple[bool, Any]]:
        """Pairs of whether a row comes (True) or is taken back (False), and the row as a record of a declared type.

        Raises:
            InvalidTypesError: the type has not as many fields as the table.
        """
        return self._records(self.to_changelog_stream(table), table, type_info, True)

    def _records(self, stream: DataStream, table: Table, record: TypeInformation, is_flagged: bool) -> DataStream:
        as_record = AsRecord(record, [field.type for field in plan_of(table).schema], is_flagged)
        records = stream.map(as_record, Types.TUPLE([Types.BOOLEAN(), record]) if is_flagged else record)
        if is_flagged:
            keep_parallelism(records, StreamBuilder(stream))
        return records


def _trees(row: UserRecord) -> list[exp.Expression]:
    """Return the trees of a row's values; `row(...)` is one of its arguments."""
    if isinstance(row, Expression) and isinstance(tree := tree_of(row), exp.Anonymous) and tree.name == "ROW":
        fields: list[exp.Expression] = tree.expressions
        return fields
    return [tree_of(value) for value in _listed(row)]


def _listed(row: Any) -> Iterable[Any]:
    """Return the values of a row."""
    if isinstance(row, dict):
        return list(row.values())
    return row if isinstance(row, (tuple, list, Row)) else (row,)


__all__ = ["StreamTableEnvironment", "TableEnvironment"]
