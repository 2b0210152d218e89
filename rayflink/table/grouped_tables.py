"""Tables whose rows are put together, before it is said what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .dsl.expression_text import tree_of
from .errors import SqlError
from .expression import Expression
from .parsing.program_nodes import OverWindow as OverCall
from .parsing.program_nodes import WindowPart
from .parsing.statements import Tree
from .table import Table, select_from, select_list, with_program_line

if TYPE_CHECKING:
    from .window import GroupWindow, OverWindow


class GroupedTable:
    """Rows of equal values together.

    Args:
        table: of the rows.
        keys: the expressions that are equal.
    """

    def __init__(self, table: Table, keys: Sequence[Expression[Any]]) -> None:
        self._table, self._keys = table, keys

    def select(self, *fields: Expression[Any]) -> Table:
        """Keys, and aggregates of other columns.

        Raises:
            SqlError: a column is neither, or the groups are in no window.
        """
        trees = select_list(self._table, fields)
        return select_from(self._table, trees, group=exp.Group(expressions=[tree_of(key) for key in self._keys]))


class GroupWindowedTable:
    """Rows in windows.

    Args:
        table: of the rows.
        window: the windows.
    """

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table, self._window = table, window

    def group_by(self, *fields: Expression[Any]) -> WindowGroupedTable:
        """Return rows of a window, and of equal values.

        Args:
            fields: the window by its name, and other keys.

        Raises:
            SqlError: the window is not among them.
        """
        trees = [tree_of(tree) for tree in fields]
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

        Raises:
            SqlError: a column is neither.
        """
        try:
            call = self._window.tree()
        except SqlError as error:
            raise with_program_line(error) from error
        trees = [tree.transform(self._part) for tree in select_list(self._table, fields)]
        return select_from(self._table, trees, group=exp.Group(expressions=[*self._keys, call]))

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


__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "WindowGroupedTable"]
