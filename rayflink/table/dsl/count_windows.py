"""Windows of a number of rows: aggregates over the last rows at each row that completes a window.

A window of n rows is over at a row whose number in its group says so, and its rows are the n ones up to that row. So a
query by such windows is one OVER rows, of which the rows that complete a window are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from ..binding.aggregate_calls import aggregates_in
from ..binding.user_aggregates import with_user_aggregates
from ..errors import SqlError
from ..parsing.program_nodes import RowInterval, WindowPart
from ..parsing.statements import Tree
from ..plan.typed import Function
from ..window import GroupWindow, OverWindow
from .expression_text import column_tree, to_expression, tree_of

_NUMBER = "$number"


class CountWindows(NamedTuple):
    """A query by windows of a number of rows, as two queries.

    Args:
        columns: of the query below: keys, aggregates over the last rows, and the number of the row.
        is_over: the condition for the rows that complete a window.
        selected: what is selected of those.
    """

    columns: list[Tree]
    is_over: Tree
    selected: list[Tree]


def is_by_rows(window: GroupWindow) -> bool:
    """Return whether windows have a number of rows."""
    return isinstance(tree_of(window.lengths[-1]), RowInterval)


def count_windows(
    window: GroupWindow, keys: Sequence[Tree], fields: Sequence[Tree], functions: Mapping[str, Function]
) -> CountWindows:  # fmt: skip
    """Return the query by windows of a number of rows.

    Args:
        window: the windows.
        keys: what is equal in a group.
        fields: the select list, each with a name.
        functions: the user's functions by their names in capitals.

    Raises:
        SqlError: a bound of the windows is selected, or a column that is no key, or a length is not a number of rows.
    """
    size, slide = _lengths(window)
    time = tree_of(window.time)
    partition = tuple(map(to_expression, keys))
    over = OverWindow(partition, to_expression(time), to_expression(RowInterval(this=size - 1)))
    fields = [with_user_aggregates(field, functions) for field in fields]
    aggregates: list[Tree] = []
    for field in fields:
        if part := field.find(WindowPart):
            problem = f"{part.this.name}.{str(part.args['part']).lower()}: a window of rows has no bounds in time"
            raise SqlError(problem, "leave it out, or take windows by time")
        aggregates += [call for call in aggregates_in(field) if call not in aggregates]
    columns = [_named(key, f"$key{number}") for number, key in enumerate(keys)]
    columns += [_named(over.tree(call), f"$aggregate{number}") for number, call in enumerate(aggregates)]
    columns.append(_named(_row_number(over), _NUMBER))

    def above(node: Tree) -> Tree:
        """Return the column below for a key or an aggregate."""
        for name, parts in (("key", keys), ("aggregate", aggregates)):
            if node in parts:
                return column_tree(f"${name}{list(parts).index(node)}")
        return node

    values = [field.this if isinstance(field, exp.Alias) else field for field in fields]
    selected = [_named(value.transform(above), field.alias_or_name)
                for value, field in zip(values, fields, strict=True)]  # fmt: skip
    known = {column.alias for column in columns}
    for column in (column for tree in selected for column in tree.find_all(exp.Column) if column.name not in known):
        remedy = "add it to group_by, or use an aggregate of it, such as .max"
        raise SqlError(f"column {column.name!r} is not in group_by", remedy)
    return CountWindows(columns, _is_over(size, slide), selected)


def _lengths(window: GroupWindow) -> tuple[int, int]:
    """Return the number of rows in a window, and from one to the next."""
    lengths = [tree_of(length) for length in window.lengths]
    rows = [int(length.this) for length in lengths if isinstance(length, RowInterval)]
    if len(rows) < len(lengths) or min(rows) < 1:
        remedy = "give row_interval(2) for each length, with at least one row"
        raise SqlError("a window of rows has a length that is none", remedy)
    return rows[-1], rows[0] if len(rows) > 1 else rows[-1]


def _row_number(over: OverWindow) -> Tree:
    window = over.tree(exp.Anonymous(this="ROW_NUMBER", expressions=[]))
    window.set("spec", None)
    return window


def _is_over(size: int, slide: int) -> Tree:
    """Return the condition that a row is the last one of a window."""
    number = column_tree(_NUMBER)
    behind = exp.Sub(this=number.copy(), expression=exp.Literal.number(size))
    rest = exp.Mod(this=exp.Paren(this=behind), expression=exp.Literal.number(slide))
    is_full = exp.GTE(this=number, expression=exp.Literal.number(size))
    return exp.And(this=is_full, expression=exp.EQ(this=rest, expression=exp.Literal.number(0)))


def _named(tree: Tree, name: str) -> Tree:
    return exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))


__all__ = ["CountWindows", "count_windows", "is_by_rows"]
