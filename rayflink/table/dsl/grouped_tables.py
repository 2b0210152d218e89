"""Tables whose rows are put together, before it is said what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..errors import SqlError
from ..expression import Expression
from ..parsing.program_nodes import OverWindow as OverCall
from ..parsing.program_nodes import WindowPart
from ..parsing.statements import Tree
from ..table import Table, functions_of, plan_of, select_from, select_list, with_plan, with_program_line
from . import aggregating, count_windows
from .expression_text import column_tree, field_tree, to_expression, tree_of

if TYPE_CHECKING:
    from ..udf import UserAggregate
    from ..window import GroupWindow, OverWindow


class GroupedTable:
    """Rows of equal values together.

    Args:
        table: of the rows.
        keys: the expressions that are equal; strings are names of columns.
    """

    def __init__(self, table: Table, keys: Sequence[Expression[Any] | str]) -> None:
        self._table, self._keys = table, keys

    def select(self, *fields: Expression[Any]) -> Table:
        """Keys, and aggregates of other columns.

        Raises:
            SqlError: a column is neither, or the groups are in no window.
        """
        trees = select_list(self._table, fields)
        return select_from(self._table, trees, group=exp.Group(expressions=[field_tree(key) for key in self._keys]))


    def aggregate(self, func: Expression[Any] | UserAggregate) -> AggregatedTable:
        """Aggregate by a function whose fields become columns behind the keys.

        >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
        >>> from rayflink.table.expressions import col
        >>> from rayflink.table.udf import udaf
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> ends = udaf(lambda n: (n.min(), n.max()), result_type="ROW<low BIGINT, high BIGINT>", func_type="pandas")
        >>> sales = t_env.from_elements([("a", 3), ("b", 4), ("a", 7)], ["shop", "n"])
        >>> by_shop = sales.group_by(col("shop")).aggregate(ends(col("n"))).select(col("shop"), col("low"), col("high"))
        >>> sorted(tuple(row) for row in by_shop.execute().collect())
        [('a', 3, 7), ('b', 4, 4)]

        Args:
            func: a call of an aggregate function, `.alias(...)` names its columns; or what `udaf` made, which is
                called with the row.
        """
        return AggregatedTable(Aggregation(self._table, self._keys, func, gives_rows=False))

    def flat_aggregate(self, func: Expression[Any] | UserAggregate) -> FlatAggregateTable:
        """Return the rows that a table aggregate function gives for each group, behind the keys.

        Args:
            func: as of `aggregate`; made by `udtaf`.
        """
        return FlatAggregateTable(Aggregation(self._table, self._keys, func, gives_rows=True))


class Aggregation:
    """Groups and an aggregate function that gives several columns or rows for each of them.

    Args:
        table: of the rows.
        keys: the expressions that are equal in a group.
        func: an expression, or what `udaf` or `udtaf` made.
        gives_rows: whether rows are wanted.
        window: the windows of the groups.
    """

    def __init__(
        self, table: Table, keys: Sequence[Expression[Any] | str], func: Expression[Any] | UserAggregate,
        gives_rows: bool, window: GroupWindow | None = None,
    ) -> None:  # fmt: skip
        self._table, self._keys, self._window, self._gives_rows = table, select_list(table, keys), window, gives_rows
        time = None if window is None else field_tree(window.time)
        left_out = time.name if isinstance(time, exp.Column) else ""
        columns = [name for name in plan_of(table).names if name != left_out]
        try:
            self._call, self._names = aggregating.called(func, columns, functions_of(table), gives_rows)
        except SqlError as error:
            raise with_program_line(error) from error

    def select(self, fields: Sequence[Expression[Any] | str]) -> Table:
        """Return columns of the groups and of what the function gives."""
        parts = dict.fromkeys(part for field in fields if isinstance(field, Expression)
                              for part in tree_of(field).find_all(WindowPart))  # fmt: skip
        bounds = [self._bound(part) for part in parts]
        try:
            return self._selected(self._columns(bounds), fields)
        except SqlError as error:
            raise with_program_line(error) from error

    def _bound(self, part: Tree) -> Tree:
        if self._window is None or part.this.name != self._window.name:
            names = "there are none" if self._window is None else f"the window is {self._window.name!r}"
            raise with_program_line(SqlError(f"{part.this.name!r} is no window of these groups", names))
        call = exp.Anonymous(this=f"{self._window.kind.value}_{part.args['part']}", expressions=[])
        return exp.Alias(this=call, alias=exp.to_identifier(_bound_name(part), quoted=True))

    def _columns(self, bounds: Sequence[Tree]) -> Table:
        """Return the table of keys, columns of the function, and bounds of the window."""
        result = exp.Alias(this=self._call, alias=exp.to_identifier(aggregating.RESULT, quoted=True))
        keys = [tree.this if isinstance(tree, exp.Alias) else tree for tree in self._keys]
        groups = [*keys, *([] if self._window is None else [self._window.tree()])]
        clauses = {"group": exp.Group(expressions=groups)} if groups else {}
        rows = select_from(self._table, [*self._keys, result, *bounds], **clauses)
        plan, place = plan_of(rows), len(self._keys)
        if self._gives_rows:
            return with_plan(rows, aggregating.unnested(plan, place, self._names))
        others = [column_tree(name) for name in plan.names if name != aggregating.RESULT]
        columns = aggregating.result_columns(plan, place, self._names)
        return select_from(rows, [*others[:place], *columns, *others[place:]])

    def _selected(self, rows: Table, fields: Sequence[Expression[Any] | str]) -> Table:
        trees = [tree.transform(lambda node: column_tree(_bound_name(node)) if isinstance(node, WindowPart) else node)
                 for tree in select_list(rows, fields)]  # fmt: skip
        return select_from(rows, trees)


def _bound_name(part: Tree) -> str:
    """Return the name of the column of a bound of a window."""
    return f"${part.this.name}.{part.args['part']}"


class AggregatedTable:
    """Groups with the columns of an aggregate function, for `select`.

    Args:
        aggregation: the groups, and the function.
    """

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation

    def select(self, *fields: Expression[Any] | str) -> Table:
        """Compute columns of keys and of what the function gives.

        Raises:
            SqlError: a name is not known, or types do not fit.
        """
        return self._aggregation.select(fields)


class FlatAggregateTable(AggregatedTable):
    """Groups with the rows of a table aggregate function, for `select`."""


class GroupWindowedTable:
    """Rows in windows.

    Args:
        table: of the rows.
        window: the windows.
    """

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table, self._window = table, window

    def group_by(self, *fields: Expression[Any] | str) -> WindowGroupedTable:
        """Return rows of a window, and of equal values.

        Args:
            fields: the window by its name, and other keys; strings are names.

        Raises:
            SqlError: the window is not among them.
        """
        trees = [field_tree(tree) for tree in fields]
        name = self._window.name
        keys = [tree for tree in trees if not (isinstance(tree, exp.Column) and tree.name == name)]
        if len(keys) == len(trees):
            remedy = f"write group_by(col({name!r}), ...)"
            raise with_program_line(SqlError(f"group_by leaves out the window {name!r}", remedy))
        return WindowGroupedTable(self._table, self._window, keys)


class WindowGroupedTable:
    """Rows of equal values in windows.

    Args:
        table: of the rows.
        window: the windows.
        keys: the trees of what is equal.
    """

    def __init__(self, table: Table, window: GroupWindow, keys: Sequence[Tree]) -> None:
        self._table, self._window, self._keys = table, window, keys

    def select(self, *fields: Expression[Any]) -> Table:
        """Keys, bounds of the window such as `col("w").start`, and aggregates of other columns.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> from rayflink.table.expressions import call, col, row_interval
        >>> from rayflink.table.window import Tumble
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> sales = t_env.from_elements([("a", 3), ("b", 4), ("a", 7), ("a", 9)], ["shop", "n"])
        >>> sales = sales.add_columns(call("PROCTIME").alias("at"))
        >>> pairs = sales.window(Tumble.over(row_interval(2)).on(col("at")).alias("w"))
        >>> sums = pairs.group_by(col("shop"), col("w")).select(col("shop"), col("n").sum.alias("sum"))
        >>> list(sums.execute().collect())
        [<Row('a', 10)>]

        Raises:
            SqlError: a column is neither.
        """
        if count_windows.is_by_rows(self._window):
            return self._select_by_rows(fields)
        try:
            call = self._window.tree()
        except SqlError as error:
            raise with_program_line(error) from error
        trees = [tree.transform(self._part) for tree in select_list(self._table, fields)]
        return select_from(self._table, trees, group=exp.Group(expressions=[*self._keys, call]))

    def _select_by_rows(self, fields: Sequence[Expression[Any]]) -> Table:
        """Return the query by windows of a number of rows; groups whose last window is not full give no row for it."""
        trees = select_list(self._table, fields)
        try:
            query = count_windows.count_windows(self._window, self._keys, trees, functions_of(self._table))
        except SqlError as error:
            raise with_program_line(error) from error
        rows = select_from(self._table, query.columns)
        return select_from(rows, query.selected, where=exp.Where(this=query.is_over))

    def aggregate(self, func: Expression[Any] | UserAggregate) -> AggregatedTable:
        """Aggregate by a function whose fields become columns.

        Args:
            func: a call of an aggregate function, `.alias(...)` names its columns; or what `udaf` made, which is
                called with the row, but without the time of the windows.
        """
        return AggregatedTable(self._aggregation(func, False))

    def flat_aggregate(self, func: Expression[Any] | UserAggregate) -> FlatAggregateTable:
        """Return the rows that a table aggregate function gives for each group.

        Args:
            func: as of `aggregate`; made by `udtaf`.
        """
        return FlatAggregateTable(self._aggregation(func, True))

    def _aggregation(self, func: Expression[Any] | UserAggregate, gives_rows: bool) -> Aggregation:
        keys = [to_expression(key) for key in self._keys]
        return Aggregation(self._table, keys, func, gives_rows, self._window)

    def _part(self, tree: Tree) -> Tree:
        """Return a bound of the window as the function that SQL has for it."""
        if not isinstance(tree, WindowPart) or tree.this.name != self._window.name:
            return tree
        return exp.Anonymous(this=f"{self._window.kind.value}_{tree.args['part']}", expressions=[])


class OverWindowedTable:
    """Rows with those around them.

    Args:
        table: of the rows.
        windows: over which aggregates may be.
    """

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table, self._windows = table, {window.name: window for window in windows}

    def select(self, *fields: Expression[Any]) -> Table:
        """Columns, and aggregates over a window by its name.

        >>> from rayflink.table import EnvironmentSettings, TableEnvironment
        >>> from rayflink.table.expressions import col
        >>> from rayflink.table.window import Over
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> _ = t_env.get_config().set("execution.target", "local")
        >>> pays = t_env.from_elements([("ann", 1, 5), ("ann", 2, 7)], ["who", "day", "amount"])
        >>> window = Over.partition_by(col("who")).order_by(col("day")).alias("w")
        >>> sums = pays.over_window(window).select(col("day"), col("amount").sum.over(col("w")).alias("so_far"))
        >>> [tuple(row) for row in sums.execute().collect()]
        [(1, 5), (2, 12)]

        Raises:
            SqlError: there is no window of a name, or a stream has no results for it.
        """
        try:
            trees = [tree.transform(self._call) for tree in select_list(self._table, fields)]
        except SqlError as error:
            raise with_program_line(error) from error
        return select_from(self._table, trees)

    def _call(self, tree: Tree) -> Tree:
        """Return an aggregate over a window as SQL has it."""
        if not isinstance(tree, OverCall):
            return tree
        name = tree.args["window"].name
        if name not in self._windows:
            raise SqlError(f"there is no over window {name!r}", f"the windows are {', '.join(self._windows)}")
        return self._windows[name].tree(tree.this)


__all__ = [
    "AggregatedTable", "FlatAggregateTable", "GroupWindowedTable", "GroupedTable", "OverWindowedTable",
    "WindowGroupedTable",
]  # fmt: skip
