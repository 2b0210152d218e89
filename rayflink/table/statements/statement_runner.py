"""Runs statements of SQL in a `TableEnvironment`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from rayflink.common.configuration import Configuration, shown_value
from rayflink.common.errors import assert_never
from rayflink.common.options import registry as options
from rayflink.common.types import Row

from ..compiled_plan import CompiledPlan, compiled, loaded
from ..definitions import ColumnDefinition, TableDefinition, ViewDefinition
from ..errors import SqlError
from ..explain_detail import ExplainDetail
from ..explaining.plan_drawing import PlanDrawing
from ..parsing import statements
from ..parsing.statement_parser import parse_statement
from ..plan.logical import Attribute, Relation, Sink
from ..plan_reference import PlanReference
from ..table_result import TableResult, done, raw
from ..types import DataTypes
from . import catalog_statements, resolution
from .alter_table import altered
from .create_table_as import merged_columns
from .create_table_like import like
from .describe_statements import describe
from .insert_plan import Insertion, fit_columns, plan_insert, plan_rows
from .modules import Modules
from .planning_context import check_table
from .query_runner import QueryRunner
from .show_statements import show


class StatementRunner:
    """Runs one statement.

    Args:
        queries: runs the queries and INSERTs.
        text: the statement.
    """

    def __init__(self, queries: QueryRunner, text: str) -> None:
        self._queries, self._text = queries, text
        self._context = queries.context
        self._catalogs = queries.context.catalogs

    def run(self, statement: statements.AnyStatement) -> TableResult:
        """Run a statement and return its result.

        Raises:
            SqlError: it cannot be run.
        """
        try:
            return self._run(statement)
        except SqlError as error:
            raise (error if error.text else error.at(self._text, statement.place)) from error

    def _run(self, statement: statements.AnyStatement) -> TableResult:
        match statement:
            case statements.Query():
                return self._query(statement)
            case statements.Insert():
                return self._insert(statement)
            case statements.StatementSetOf():
                return self._inserts(statement)
            case statements.Explain():
                return self._explain(statement)
            case statements.CompilePlan():
                return self._compile(statement)
            case statements.ExecutePlan():
                return self._execute_plan(statement.path)
            case statements.CreateTable():
                return self._create_table(statement)
            case statements.CreateView():
                return self._create_view(statement)
            case statements.AlterView():
                return self._alter_view(statement)
            case (
                statements.CreateCatalog()
                | statements.AlterCatalog()
                | statements.CreateDatabase()
                | statements.AlterDatabase()
                | statements.FunctionOf()
                | statements.AlterPartitions()
                | statements.CreateModel()
                | statements.AlterModel()
            ):
                return catalog_statements.run(self._context, statement)
            case statements.Drop():
                return self._drop(statement)
            case statements.Rename():
                return self._rename(statement)
            case statements.SetOptions():
                return self._set_options(statement)
            case statements.AlterColumns():
                return self._alter_columns(statement)
            case statements.Use():
                return self._use(statement)
            case statements.Show():
                return show(self._context, statement, self._text)
            case statements.Describe():
                return describe(self._context, statement)
            case statements.SetOption():
                return self._set(statement)
            case statements.ResetOption():
                return self._reset(statement)
            case _:
                assert_never(statement)

    def explain(self, statement: statements.AnyStatement, details: Collection[ExplainDetail] = ()) -> str:
        """Explain how a query or INSERT would be run.

        Raises:
            SqlError: it is another statement, or cannot be run.
        """
        try:
            return self._queries.explain(self._plans(statement), details)
        except SqlError as error:
            raise (error if error.text else error.at(self._text, statement.place)) from error

    def drawing(self, statement: statements.AnyStatement) -> PlanDrawing:
        """Return a picture of how a query or INSERT would be run.

        Raises:
            SqlError: it is another statement, or cannot be run.
        """
        try:
            return self._queries.draw(self._plans(statement))
        except SqlError as error:
            raise (error if error.text else error.at(self._text, statement.place)) from error

    def compiled(self, statement: statements.AnyStatement) -> CompiledPlan:
        """Return the plan of an INSERT or of several.

        Raises:
            SqlError: it is another statement, or part of the plan is bound to this program.
        """
        if not isinstance(statement, (statements.Insert, statements.StatementSetOf)):
            problem, remedy = "a plan is compiled of INSERT", "give INSERT INTO, or EXECUTE STATEMENT SET BEGIN ... END"
            raise SqlError(problem, remedy, self._text, statement.place)
        inserts = statement.inserts if isinstance(statement, statements.StatementSetOf) else (statement,)
        try:
            return compiled(self._queries, [self.sink(insert) for insert in inserts])
        except SqlError as error:
            raise (error if error.text else error.at(self._text, statement.place)) from error

    def _compile(self, statement: statements.CompilePlan) -> TableResult:
        """Write a plan to a file; with `executes`, run the one that is there, or that was written."""
        path, recompiles = Path(statement.path), self._context.configuration.get(options.PLAN_FORCE_RECOMPILE)
        if path.exists() and not recompiles and (statement.executes or statement.if_not_exists):
            return self._execute_plan(statement.path) if statement.executes else done()
        plan = self.compiled(statement.compiled)
        plan.write_to_file(path)
        return plan.execute() if statement.executes else done()

    def _execute_plan(self, path: str) -> TableResult:
        return loaded(self._queries, PlanReference.from_file(path)).execute()

    def _plans(self, statement: statements.AnyStatement) -> list[Relation]:
        if isinstance(statement, statements.Query):
            return [self._bound(statement.tree)]
        if isinstance(statement, (statements.Insert, statements.StatementSetOf)):
            inserts = statement.inserts if isinstance(statement, statements.StatementSetOf) else (statement,)
            return [self.sink(insert) for insert in inserts]
        if isinstance(statement, statements.CreateTable) and statement.query is not None:
            return [self._sink_of_new_table(statement)]
        raise SqlError("this cannot be explained", "explain a query or an INSERT", self._text, statement.place)

    def _bound(self, tree: statements.Tree) -> Relation:
        return self._context.bind(tree, self._text)

    # queries

    def _query(self, statement: statements.Query) -> TableResult:
        return self._queries.run(self._bound(statement.tree))

    def _insert(self, statement: statements.Insert) -> TableResult:
        return self._queries.run_inserts([self.sink(statement)])

    def sink(self, statement: statements.AnyStatement) -> Sink:
        """Return the plan of an INSERT.

        Raises:
            SqlError: it is another statement, or cannot be run.
        """
        if not isinstance(statement, statements.Insert):
            raise SqlError("this is no INSERT", "give INSERT INTO a_table SELECT ...", self._text)
        plan = self._bound(statement.query)
        insertion = Insertion(
            statement.target, plan, statement.columns, statement.partition, statement.overwrite, statement.on_conflict
        )
        return plan_insert(self._context, insertion)

    def _inserts(self, statement: statements.StatementSetOf) -> TableResult:
        return self._queries.run_inserts([self.sink(insert) for insert in statement.inserts])

    def _explain(self, statement: statements.Explain) -> TableResult:
        text = self.explain(statement.explained, [ExplainDetail[name] for name in statement.details])
        return raw(text)

    # definitions

    def _create_table(self, statement: statements.CreateTable) -> TableResult:
        if statement.query is not None:
            return self._create_table_as(statement)
        base = None if statement.like is None else self._base(statement.like)
        table = resolution.definition(statement, self._text, [column.name for column in base.columns] if base else ())
        if base is not None and statement.like is not None:
            table = like(table, base, statement.like, self._text)
        path = self._catalogs.path(statement.path)
        self._check(path, table)
        self._catalogs.create(statement.path, table, statement.temporary, statement.if_not_exists, statement.place)
        return done()

    def _create_table_as(self, statement: statements.CreateTable) -> TableResult:
        """Create the table, then insert, as Flink does without atomicity: what fails leaves the table.

        One that is replaced is dropped in between; the query reads it as it was defined.

        Raises:
            SqlError: the table cannot be made, or does not take the rows.
        """
        plan, definition = self._bound_table(statement)
        path = self._catalogs.path(statement.path)
        exists = path[-1] in self._catalogs.names(path[:2])
        if exists and statement.if_not_exists:
            return self._create_table(definition)
        table = resolution.definition(definition, self._text)
        self._check(path, table)
        fit_columns(plan, table, tuple(plan.names), ".".join(path))
        if statement.replaces and (exists or statement.must_exist):
            self._drop_replaced(statement, path)
        self._create_table(definition)
        insertion = Insertion(statement.path, plan, tuple(plan.names))
        return self._queries.run_inserts([plan_insert(self._context, insertion)])

    def _drop_replaced(self, statement: statements.CreateTable, path: tuple[str, str, str]) -> None:
        if self._catalogs.is_temporary(path):
            problem = f"a temporary table or view {path[-1]!r} cannot be replaced"
            raise SqlError(problem, "drop it by DROP TEMPORARY first", self._text, statement.place)
        self._catalogs.drop(statement.path, TableDefinition, False, False, statement.place)

    def _bound_table(self, statement: statements.CreateTable) -> tuple[Relation, statements.CreateTable]:
        """Return the query of CREATE TABLE AS, and CREATE TABLE with the columns that it gives.

        Raises:
            SqlError: the table is temporary, or a column cannot be filled.
        """
        if statement.temporary or statement.like is not None:
            problem = f"CREATE TABLE AS with {'LIKE' if statement.like else 'TEMPORARY'}"
            raise SqlError(problem, "create the table first, then INSERT INTO it", self._text, statement.place)
        plan = self._bound(statement.query)
        columns = merged_columns(statement, plan.schema, self._text)
        return plan, replace(statement, columns=columns, query=None)

    def _sink_of_new_table(self, statement: statements.CreateTable) -> Sink:
        """Return the plan of the INSERT of CREATE TABLE AS, whose table is not created."""
        plan, definition = self._bound_table(statement)
        path = self._catalogs.path(statement.path)
        table = resolution.definition(definition, self._text)
        self._check(path, table)
        return plan_rows(self._context, path, table, Insertion(path, plan, tuple(plan.names)))

    def _check(self, path: tuple[str, str, str], table: TableDefinition) -> None:
        """Bind its computed columns and its watermark, so that errors in them are reported now, with its options."""
        if table.connector is None:  # to be completed by LIKE
            resolution.relation(path, table, None)
        else:
            check_table(path, table)

    def _base(self, like: statements.LikeOf) -> TableDefinition:
        _, base = self._catalogs.find(like.source, like.place)
        if isinstance(base, ViewDefinition):
            raise SqlError("LIKE a view", "name a table", self._text, like.place)
        return base

    def _create_view(self, statement: statements.CreateView) -> TableResult:
        plan = self._query_of(statement)
        if statement.columns and len(statement.columns) != len(plan.schema):
            problem = f"{len(statement.columns)} names for {len(plan.schema)} columns"
            raise SqlError(problem, "name all of them, or none", self._text, statement.place)
        if twice := next((name for name in statement.columns if statement.columns.count(name) > 1), None):
            raise SqlError(f"a second column {twice!r}", "give it another name", self._text, statement.place)
        view = self._view(statement, statement.columns, statement.comment, plan)
        self._catalogs.create(statement.path, view, statement.temporary, statement.if_not_exists, statement.place)
        return done()

    def _query_of(self, statement: statements.CreateView | statements.AlterView) -> Relation:
        """Return the plan of the query of a view; what is wrong in it stands in the statement.

        Raises:
            SqlError: the query means nothing.
        """
        try:
            query = parse_statement(statement.text)
            assert isinstance(query, statements.Query)
            return self._context.bind(query.tree, statement.text)
        except SqlError as error:
            if error.views or error.text != statement.text:
                raise
            raise error.moved(self._text, self._text.rfind(statement.text)) from error

    def _alter_view(self, statement: statements.AlterView) -> TableResult:
        path, view = self._catalogs.find(statement.path, statement.place)
        if not isinstance(view, ViewDefinition):
            raise SqlError(f"{path[-1]} is no view", "name a view", self._text, statement.place)
        plan = self._query_of(statement)
        self._catalogs.replace(path, self._view(statement, (), view.comment, plan))
        return done()

    def _view(
        self,
        statement: statements.CreateView | statements.AlterView,
        columns: tuple[str, ...],
        comment: str | None,
        plan: Relation,
    ) -> ViewDefinition:
        home = self._catalogs.catalog, self._catalogs.database
        names = columns or tuple(plan.names)
        types = tuple(ColumnDefinition(name, field.type) for name, field in zip(names, plan.schema, strict=True))
        selected = tuple(plan.names)
        return ViewDefinition(statement.text, columns, comment, selected=selected, home=home, types=types)

    def _drop(self, statement: statements.Drop) -> TableResult:
        match statement.kind:
            case "DATABASE":
                self._catalogs.drop_database(statement.path, statement.if_exists, statement.cascade, statement.place)
            case "CATALOG" | "FUNCTION" | "MODEL":
                catalog_statements.drop(self._context, statement)
            case _:
                kind = ViewDefinition if statement.kind == "VIEW" else TableDefinition
                self._catalogs.drop(statement.path, kind, statement.temporary, statement.if_exists, statement.place)
        return done()

    def _rename(self, statement: statements.Rename) -> TableResult:
        if statement.if_exists and self._is_absent(statement.path):
            return done()
        path, definition = self._catalogs.find(statement.path, statement.place)
        if statement.kind == "VIEW" and not isinstance(definition, ViewDefinition):
            raise SqlError(f"{path[-1]} is no view", "name a view, or write ALTER TABLE", self._text, statement.place)
        target = self._catalogs.path(statement.to) if len(statement.to) > 1 else (path[0], path[1], statement.to[0])
        self._catalogs.rename(path, target, statement.place)
        return done()

    def _set_options(self, statement: statements.SetOptions) -> TableResult:
        if statement.if_exists and self._is_absent(statement.path):
            return done()
        path, table = self._table(statement.path, statement)
        if "connector" in statement.reset:
            remedy = "write SET ('connector' = ...), or drop the table"
            raise SqlError("RESET of 'connector', without which there is no table", remedy, self._text, statement.place)
        self._catalogs.replace(path, table.with_options(statement.options, statement.reset))
        return done()

    def _alter_columns(self, statement: statements.AlterColumns) -> TableResult:
        if statement.if_exists and self._is_absent(statement.path):
            return done()
        path, table = self._table(statement.path, statement)
        new_table = altered(table, statement, self._text)
        self._check(path, new_table)
        self._catalogs.replace(path, new_table)
        return done()

    def _is_absent(self, parts: statements.Path) -> bool:
        """Return whether there is no table or view of a name."""
        try:
            self._catalogs.find(parts)
        except SqlError:
            return True
        return False

    def _table(
        self, parts: statements.Path, statement: statements.Statement
    ) -> tuple[tuple[str, str, str], TableDefinition]:
        path, definition = self._catalogs.find(parts, statement.place)
        if isinstance(definition, ViewDefinition):
            raise SqlError(f"{path[-1]} is a view", "name a table", self._text, statement.place)
        return path, definition

    def _use(self, statement: statements.Use) -> TableResult:
        if statement.kind == "MODULES":
            Modules().use_modules(*statement.path)
            return done()
        self._catalogs.use(statement.kind, statement.path, statement.place)
        return done()

    # options

    def _set(self, statement: statements.SetOption) -> TableResult:
        config = self._context.config
        if statement.key is None:
            schema = [Attribute("key", DataTypes.STRING()), Attribute("value", DataTypes.STRING())]
            shown = [Row(key, shown_value(key, value)) for key, value in sorted(config.to_dict().items())]
            return TableResult(schema, shown)
        config.set_string(statement.key, statement.value or "")
        _leave_token_with_its_cluster(config, self._context.initial_options)
        return done()

    def _reset(self, statement: statements.ResetOption) -> TableResult:
        config = self._context.config
        initial = self._context.initial_options
        for key in [statement.key] if statement.key is not None else list(config.to_dict()):
            config.remove_config(key)
            if key in initial:
                config.set_string(key, initial[key])
        _leave_token_with_its_cluster(config, initial)
        return done()


def _leave_token_with_its_cluster(config: Configuration, initial: Mapping[str, str]) -> None:
    """Forget the token that the session began with where statements have named another cluster than it had then."""
    values, token = config.to_dict(), options.REST_TOKEN.key
    place = (options.REST_ADDRESS.key, options.REST_PORT.key)
    is_elsewhere = any(values.get(key) != initial.get(key) for key in place)
    if is_elsewhere and token in initial and values.get(token) == initial[token]:
        config.remove_config(token)


__all__ = ["StatementRunner"]
