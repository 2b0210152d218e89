"""A table: the plan of a query, not yet run, and what it is changed to."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rayflink.common.user_code.call_sites import call_site

from .binding.changelog_columns import from_changelog, to_changelog
from .conversion.frame_columns import frame_of_rows
from .dsl import laterals, orders, selecting
from .dsl.expression_text import to_expression, tree_of
from .dsl.process_calls import ProcessCalls
from .dsl.row_functions import of_row
from .errors import SqlError, nearest
from .explain_detail import ExplainDetail
from .explaining.plan_drawing import PlanDrawing
from .expression import Expression
from .parsing.program_nodes import BoundTable, Flattened
from .parsing.statements import Tree
from .plan.logical import Relation, Sort
from .plan.typed import Function
from .resolved_schema import ResolvedSchema
from .table_pipeline import TablePipeline
from .table_result import TableResult
from .table_schema import TableSchema

if TYPE_CHECKING:
    import polars
    import pyarrow

    from .dsl.grouped_tables import (
        AggregatedTable,
        FlatAggregateTable,
        GroupedTable,
        GroupWindowedTable,
        OverWindowedTable,
    )
    from .plan.conflicts import InsertConflictStrategy
    from .schema import TableDescriptor
    from .sinks import CsvTableSink
    from .statements.query_runner import QueryRunner
    from .udf import UserAggregate, UserTable
    from .window import GroupWindow, OverWindow


class Table(ProcessCalls):
    """Rows that a query gives when it is run; made by a `TableEnvironment`. Each method gives another table.

    A column is an attribute, too: `orders.price` is `col("price")`.

    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.expressions import col
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> orders = t_env.from_elements([(1, "tea", 2.5), (2, "cake", 4.0)], ["id", "product", "price"])
    >>> cheap = orders.where(col("price") < 3).select(col("product").upper_case.alias("name"))
    >>> list(cheap.execute().collect())
    [<Row('TEA')>]

    Args:
        queries: runs it; that of its `TableEnvironment`.
        plan: the plan that gives its rows.
    """

    def __init__(self, queries: QueryRunner, plan: Relation) -> None:
        self._queries, self._plan = queries, plan
        self._name = ""
        self._order: tuple[Table, exp.Order, int] | None = None  # of a stream: the rows, their order, those to skip

    def __str__(self) -> str:
        """Return a name for it in queries: `f"SELECT * FROM {table}"`."""
        if not self._name:
            self._name = self._queries.context.name_plan(self._plan)
        return self._name

    def __getattr__(self, name: str) -> Expression[Any]:
        plan = self.__dict__.get("_plan")
        if plan is None or name not in plan.names:
            names = [] if plan is None else plan.names
            problem = f"the table has no column {name!r}{nearest(name, names)}, and Table no such method"
            raise AttributeError(f"{problem}; its columns are {', '.join(names)}")
        return to_expression(selecting.column_tree(name))

    # columns

    def select(self, *fields: Expression[Any] | str) -> Table:
        """Compute columns.

        Raises:
            SqlError: a name is not known, or types do not fit.
        """
        trees = self._expanded(fields)
        return self._made(self._tree(selecting.named(trees)))

    def alias(self, field: str, *fields: str) -> Table:
        """Return the same under other names; the last columns keep theirs where too few are given.

        Raises:
            SqlError: there are more names than columns.
        """
        names = [field, *fields]
        if len(names) > len(self._plan.names):
            problem = f"{len(names)} names for {len(self._plan.names)} columns"
            raise with_program_line(SqlError(problem, f"the columns are {', '.join(self._plan.names)}"))
        new_names = [*names, *self._plan.names[len(names) :]]
        return self._made(self._tree(selecting.renamed(self._plan.names, new_names)))

    def add_columns(self, *fields: Expression[Any]) -> Table:
        """Further columns behind those that are there.

        Raises:
            SqlError: one has the name of another.
        """
        return self._with(fields, replaces=False)

    def add_or_replace_columns(self, *fields: Expression[Any]) -> Table:
        """Further columns; one of the name of another stands in its place."""
        return self._with(fields, replaces=True)

    def _with(self, fields: tuple[Expression[Any], ...], replaces: bool) -> Table:
        trees = selecting.named(self._expanded(fields), len(self._plan.names))
        columns: dict[str, Tree] = {name: selecting.column_tree(name) for name in self._plan.names}
        for tree in trees:
            name = tree.alias_or_name
            if name in columns and not replaces:
                remedy = "give it another name with alias(), or use add_or_replace_columns"
                raise with_program_line(SqlError(f"there is a column {name!r} already", remedy))
            columns[name] = tree
        return self._made(self._tree(list(columns.values())))

    def rename_columns(self, *fields: Expression[Any]) -> Table:
        """Return columns under other names, each given as `col("old").alias("new")`."""
        names = list(self._plan.names)
        for tree in map(tree_of, fields):
            if not isinstance(tree, exp.Alias) or not isinstance(tree.this, exp.Column):
                raise with_program_line(
                    SqlError("rename_columns takes columns with new names", "write col('old').alias('new')")
                )
            names[self._number(tree.this.name)] = tree.alias
        return self._made(self._tree(selecting.renamed(self._plan.names, names)))

    def drop_columns(self, *fields: Expression[Any]) -> Table:
        """Return the same without some columns."""
        dropped = set()
        for tree in self._expanded(fields):
            if not isinstance(tree, exp.Column):
                raise with_program_line(SqlError("drop_columns takes columns", "write col('name')"))
            dropped.add(self._number(tree.name))
        columns = [selecting.column_tree(name) for index, name in enumerate(self._plan.names) if index not in dropped]
        return self._made(self._tree(columns))

    def _number(self, name: str) -> int:
        if name not in self._plan.names:
            problem = f"there is no column {name!r}{nearest(name, self._plan.names)}"
            raise with_program_line(SqlError(problem, f"the columns are {', '.join(self._plan.names)}"))
        return self._plan.names.index(name)

    def map(self, func: Any) -> Table:
        """Apply a scalar function to each row; the fields of its ROW become columns.

        Args:
            func: what `udf` made, which is called with the row; or an expression.
        """

        tree = tree_of(func) if isinstance(func, Expression) else of_row(func, self._plan.names)
        mapped = self._made(self._tree([exp.Alias(this=tree, alias=exp.to_identifier("f0", quoted=True))]))
        fields = mapped._plan.schema[0].type.fields
        if not fields:
            return mapped
        row = to_expression(selecting.column_tree("f0"))
        return mapped.select(*(row.get(field.name).alias(field.name) for field in fields))

    # changes of rows

    def to_changelog(self, *arguments: Expression[Any]) -> Table:
        """Make each change of a row a new row, with its kind as a string in a column before the others.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> list(t_env.from_elements([(1, "tea")], ["id", "what"]).to_changelog().execute().collect())
        [<Row('INSERT', 1, 'tea')>]

        Args:
            arguments: `descriptor("code").as_argument("op")`, the name of the column, else op; `map_("INSERT,
                UPDATE_AFTER", "U", "DELETE", "D").as_argument("op_mapping")`, the strings: rows that do something else
                are left out.

        Raises:
            SqlError: there is a column of that name, or an argument is another.
        """

        return self._changed(lambda: to_changelog(self._plan, map(tree_of, arguments)))

    def from_changelog(self, *arguments: Expression[Any]) -> Table:
        """Apply each row as the change that a string column names, without that column; another string is an error.

        Args:
            arguments: as of `to_changelog`; a mapping is from strings, as "c, r", to one of INSERT, UPDATE_BEFORE,
                UPDATE_AFTER and DELETE.

        Raises:
            SqlError: there is no column of that name, or an argument is another.
        """

        return self._changed(lambda: from_changelog(self._plan, map(tree_of, arguments)))

    def _changed(self, make: Callable[[], Relation]) -> Table:
        try:
            return Table(self._queries, make())
        except SqlError as error:
            raise with_program_line(error) from error

    # rows

    def filter(self, predicate: Expression[bool]) -> Table:
        """Return the rows for which a condition is true.

        Raises:
            SqlError: it is no condition.
        """
        return self._made(self._tree(where=exp.Where(this=tree_of(predicate))))

    where = filter

    def distinct(self) -> Table:
        """Remove repeated rows; in a stream rows come at once, and with the bounds of windows when these end.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local").set("table.exec.state.ttl", "36 h")
        >>> list(t_env.from_elements([("tea",), ("tea",)], ["what"]).distinct().execute().collect())
        [<Row('tea')>]
        """
        return self._made(self._tree(distinct=exp.Distinct()))

    def order_by(self, *fields: Expression[Any] | str) -> Table:
        """Return the rows in order; of a stream only the first ones, as `fetch` or `limit` say behind it."""
        order = orders.order_of(fields)
        result = self._made(self._tree(order=order))
        if not self._queries.context.is_batch:
            result._order = (self, order, 0)
        return result

    def offset(self, offset: int) -> Table:
        """Skip the first rows; in a stream those that come first."""
        if self._order is not None:
            result = Table(self._queries, self._plan)
            result._order = (*self._order[:2], offset)
            return result
        if isinstance(self._plan, Sort) and self._plan.limit is None and not self._plan.offset:
            return Table(self._queries, replace(self._plan, offset=offset))
        return self._made(self._tree(offset=exp.Offset(expression=exp.Literal.number(offset))))

    def fetch(self, fetch: int) -> Table:
        """Return the first rows, `fetch` at most; of a stream those that come first, or are first in the order."""
        if self._order is not None:
            table, order, offset = self._order
            return table._made(orders.limit_rows(table._tree(order=order), fetch, offset))
        if isinstance(self._plan, Sort) and self._plan.limit is None:
            return Table(self._queries, replace(self._plan, limit=fetch))
        return self._made(self._tree(limit=exp.Limit(expression=exp.Literal.number(fetch))))

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """Limit the number of rows, after skipping the first ones."""
        return (self.offset(offset) if offset else self).fetch(fetch)

    # with other tables

    def union_all(self, right: Table) -> Table:
        """Return the rows of both."""
        return self._combined(exp.Union, right, False)

    def union(self, right: Table) -> Table:
        """Return the rows of both, each once."""
        return self._combined(exp.Union, right, True)

    def intersect(self, right: Table) -> Table:
        """Return the rows that are in both, each once."""
        return self._combined(exp.Intersect, right, True)

    def intersect_all(self, right: Table) -> Table:
        """Return the rows that are in both, as often as in both."""
        return self._combined(exp.Intersect, right, False)

    def minus(self, right: Table) -> Table:
        """Return the rows that are not in the other one, each once."""
        return self._combined(exp.Except, right, True)

    def minus_all(self, right: Table) -> Table:
        """Return the rows without those of the other one, each taken as often as it is there."""
        return self._combined(exp.Except, right, False)

    def _combined(self, kind: Any, right: Table, distinct: bool) -> Table:
        return self._made(kind(this=self._tree(), expression=self._other(right)._tree(), distinct=distinct))

    def join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Return the pairs of rows for which a condition is true; names of columns are those of one table alone."""
        return self._joined("", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression[bool] | None = None) -> Table:
        """Return the same, and rows of this table that have no partner."""
        return self._joined("LEFT", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Return the same, and rows of the other table that have no partner."""
        return self._joined("RIGHT", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression[bool]) -> Table:
        """Return the same, and rows of both tables that have no partner."""
        return self._joined("FULL", right, join_predicate)

    def _joined(self, side: str, right: Table, predicate: Expression[bool] | None) -> Table:
        both = [name for name in self._plan.names if name in self._other(right)._plan.names]
        if both:
            remedy = "give one of them another name with alias() or rename_columns()"
            raise with_program_line(SqlError(f"both tables have a column {both[0]!r}", remedy))
        on = exp.Boolean(this=True) if predicate is None else tree_of(predicate)
        join = exp.Join(this=BoundTable(this=right._plan), on=on, side=side or None)
        return self._made(self._tree(joins=[join]))

    def join_lateral(
        self, table_function_call: Expression[Any] | UserTable, join_predicate: Expression[bool] | None = None
    ) -> Table:
        """Join each row with the rows that a table function gives for it.

        Args:
            table_function_call: a call with columns, `.alias(...)` names what it gives; or what `udtf` made, which is
                called with the row.
            join_predicate: only pairs for which it is true.
        """
        return self._with_rows("", table_function_call, join_predicate)

    def left_outer_join_lateral(
        self, table_function_call: Expression[Any] | UserTable, join_predicate: Expression[bool] | None = None
    ) -> Table:
        """Return the same, and rows for which it gives none."""
        return self._with_rows("LEFT", table_function_call, join_predicate)

    def flat_map(self, func: Expression[Any] | UserTable) -> Table:
        """Return the rows that a table function gives for each row, without that row.

        Args:
            func: what `udtf` made, which is called with the row; or a call with columns.
        """
        call, new_names = laterals.called(func, self._plan.names)
        table = self.join_lateral(to_expression(call))
        names = table._plan.names[len(self._plan.names) :]
        temporary = [f"flat map {index}" for index in range(len(names))]
        inner = self.join_lateral(to_expression(laterals.renamed(call, temporary)))
        return inner.select(
            *(
                to_expression(selecting.column_tree(old)).alias(new)
                for old, new in zip(temporary, new_names or names, strict=True)
            )
        )

    def _with_rows(self, side: str, func: Any, predicate: Expression[bool] | None) -> Table:
        call, names = laterals.called(func, self._plan.names)
        on = exp.Boolean(this=True) if predicate is None else tree_of(predicate)
        join = exp.Join(this=laterals.tree(call, names), on=on, side=side or None)
        return self._made(self._tree(joins=[join]))

    # groups and windows

    def group_by(self, *fields: Expression[Any] | str) -> GroupedTable:
        """Return rows of equal values together, for `select` with aggregates."""
        from .dsl.grouped_tables import GroupedTable  # which imports this module

        return GroupedTable(self, fields)

    def aggregate(self, func: Expression[Any] | UserAggregate) -> AggregatedTable:
        """Aggregate all rows by a function whose fields become columns.

        Args:
            func: a call of an aggregate function, `.alias(...)` names its columns; or what `udaf` made, which is
                called with the row.
        """
        return self.group_by().aggregate(func)

    def flat_aggregate(self, func: Expression[Any] | UserAggregate) -> FlatAggregateTable:
        """Return the rows that a table aggregate function gives for all rows.

        Args:
            func: as of `aggregate`; made by `udtaf`.
        """
        return self.group_by().flat_aggregate(func)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Return rows put into windows, for `group_by` with the window's name."""
        from .dsl.grouped_tables import GroupWindowedTable  # which imports this module

        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Return rows with those around them, for `select` with aggregates over a window's name."""
        from .dsl.grouped_tables import OverWindowedTable  # which imports this module

        return OverWindowedTable(self, over_windows)

    # what it is

    def get_schema(self) -> TableSchema:
        """Return names and types of the columns."""
        return TableSchema(self._plan.names, [column.type for column in self._plan.schema])

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns."""

        return ResolvedSchema.physical(self._plan.names, [column.type for column in self._plan.schema])

    def print_schema(self) -> None:
        """Write names and types of the columns to the terminal."""
        print("(")
        print(",\n".join(f"  `{column.name}` {column}" for column in self._plan.schema))
        print(")")

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the plan as it was written and as it is run."""
        return self._queries.explain([self._plan], extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Write the plan to the terminal."""
        print(self.explain(*extra_details))

    def draw_plan(self) -> PlanDrawing:
        """Draw the plan as it is run; notebooks show the picture."""
        return self._queries.draw([self._plan])

    def _repr_html_(self) -> str:
        """Return the columns and first rows in HTML, for notebooks.

        At most `rayflink.display.rows` (20) rows are shown, those that come within `rayflink.display.timeout` (5 s). A
        query that reads a source without an end is not run.
        """
        return self._queries.preview(self._plan).to_html()

    # running

    def execute(self) -> TableResult:
        """Run the query; its rows come while it runs."""
        return self._queries.run(self._plan)

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False,
        conflict_strategy: InsertConflictStrategy | None = None,
    ) -> TablePipeline:  # fmt: skip
        """Return the query with the table that it writes, not yet run.

        Args:
            overwrite: in the place of what is there.
            conflict_strategy: the treatment of several rows with one primary key; None: that without ON CONFLICT.
        """
        from .statements.insert_plan import insert_into  # slow: it loads cloudpickle

        target = table_path_or_descriptor
        return TablePipeline(self._queries, insert_into(
            self._queries.context, target, self._plan, overwrite,
            None if conflict_strategy is None else conflict_strategy.behavior,
        ))  # fmt: skip

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False,
        conflict_strategy: InsertConflictStrategy | None = None,
    ) -> TableResult:  # fmt: skip
        """Run the query and write its rows to a table of the catalog, or one that a descriptor says."""
        return self.insert_into(table_path_or_descriptor, overwrite, conflict_strategy).execute()

    def write_to_sink(self, sink: CsvTableSink) -> None:
        """Let the rows be written by a sink of Flink 1.x, in the job that `execute` of the environment runs.

        Raises:
            SqlError: the sink does not take the rows, or there are files that it is not to overwrite.
        """
        from .statements.legacy_tables import write_to_sink  # which imports this module

        write_to_sink(self._queries, self._plan, sink)

    def to_arrow(self) -> pyarrow.Table:
        """Run the query to its end; all rows as a pyarrow Table.

        Raises:
            SqlError: the query has no end.
        """
        return self._queries.run_to_arrow(self._plan)

    def to_pandas(self) -> Any:
        """Run the query to its end; all rows as a pandas DataFrame: a ROW or MAP is a dict, a FLOAT column float32.

        Raises:
            SqlError: pandas is not installed, or the query has no end.
        """
        if importlib.util.find_spec("pandas") is None:
            raise SqlError(
                "to_pandas() requires pandas, which is not installed", "run `pip install pandas`, or to_arrow()"
            )
        return frame_of_rows(self.to_arrow(), self._plan.schema)

    def to_polars(self) -> polars.DataFrame:
        """Run the query to its end; all rows as a polars DataFrame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    # trees

    def _tree(self, selected: list[Tree] | None = None, **clauses: Any) -> Tree:
        """Return a SELECT from this table."""
        table = exp.From(this=BoundTable(this=self._plan))
        return exp.Select(expressions=selected or [exp.Star()], from_=table, **clauses)

    def _made(self, tree: Tree) -> Table:
        """Return the table that a query is.

        Raises:
            SqlError: the query means nothing; says which line of the program it is.
        """
        try:
            return Table(self._queries, self._queries.context.bind(tree, ""))
        except SqlError as error:
            raise with_program_line(error) from error

    def _expanded(self, fields: Iterable[Any]) -> list[Tree]:
        """Return the trees of expressions, with choices of columns and fields of rows written out."""
        try:
            trees = selecting.expanded(self._plan.names, fields)
        except SqlError as error:
            raise with_program_line(error) from error
        return [column for tree in trees for column in (self._flat(tree) if isinstance(tree, Flattened) else [tree])]

    def _flat(self, tree: Tree) -> list[Tree]:
        row = exp.Alias(this=tree.this, alias=exp.to_identifier("f0", quoted=True))
        fields = self._made(self._tree([row]))._plan.schema[0].type.fields
        return [exp.Dot(this=tree.this, expression=exp.to_identifier(field.name, quoted=True)) for field in fields] or [
            tree.this
        ]

    def _other(self, right: Table) -> Table:
        if not isinstance(right, Table):
            raise with_program_line(SqlError(f"{right!r} is not a table", "give a Table of the same TableEnvironment"))
        if right._queries is not self._queries:
            remedy = "create both in one TableEnvironment"
            raise with_program_line(SqlError("the tables belong to two TableEnvironments", remedy))
        return right


def plan_of(table: Table) -> Relation:
    """Return the logical plan of a table; it is no attribute, for those are columns."""
    return table._plan


def functions_of(table: Table) -> Mapping[str, Function]:
    """Return the functions of the program that made a table, by their names in capitals."""
    return table._queries.context.functions


def with_plan(table: Table, plan: Relation) -> Table:
    """Return a table of the same environment with another plan."""
    return Table(table._queries, plan)


def select_from(table: Table, selected: list[Tree], **clauses: Any) -> Table:
    """Return the table that a SELECT from another gives.

    Args:
        selected: the trees of the select list.
        clauses: further parts of the SELECT, as sqlglot names them, such as `group`.

    Raises:
        SqlError: the query means nothing; with the line of the program.
    """
    return table._made(table._tree(selected, **clauses))


def select_list(table: Table, fields: Iterable[Any]) -> list[Tree]:
    """Return the trees of a select list, each with a name; choices of columns and fields of rows are written out.

    Raises:
        SqlError: a choice names no column; with the line of the program.
    """
    return selecting.named(table._expanded(fields))


def with_program_line(error: SqlError) -> SqlError:
    """Return the error with the line of the program that caused it."""
    return error.of_program(call_site())


__all__ = [
    "Table", "functions_of", "plan_of", "select_from", "select_list", "with_plan", "with_program_line",
]  # fmt: skip
