"""The select list of a program: expanded column choices, and names for unnamed expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import exp

from ..binding.aggregate_calls import aggregates_in
from ..errors import SqlError, nearest
from ..parsing.program_nodes import Applied, ColumnChoice, ColumnRange, WindowPart
from ..parsing.statements import Tree
from .expression_text import column_tree, field_tree

__all__ = ["column_tree", "expanded", "named", "renamed"]


def expanded(names: Sequence[str], fields: Iterable[Any]) -> list[Tree]:
    """Return the trees of expressions, each choice of columns as these columns.

    Args:
        names: the columns there are.

    Raises:
        SqlError: a choice names a column that is not there.
    """
    columns: list[Tree] = []
    for field in fields:
        columns += _columns(names, field_tree(field))
    return columns


def _columns(names: Sequence[str], tree: Tree) -> list[Tree]:
    if isinstance(tree, exp.Star):
        return [column_tree(name) for name in names]
    if isinstance(tree, ColumnRange):
        return [column_tree(name) for name in names[_place(names, tree.this) : _place(names, tree.expression) + 1]]
    if isinstance(tree, ColumnChoice):
        chosen = [column for item in tree.expressions for column in _columns(names, item)]
        if not tree.args.get("inverted"):
            return chosen
        without = [column.name for column in chosen]
        return [column_tree(name) for name in names if name not in without]
    if tree.find(ColumnChoice, ColumnRange) is None:
        return [tree]
    return [tree.transform(lambda column: _with_columns(names, column))]


def _with_columns(names: Sequence[str], call: Tree) -> Tree:
    """Return a call whose arguments are the columns that are chosen."""
    arguments = call.args.get("expressions") or []
    if not isinstance(call, ColumnChoice) and any(isinstance(item, (ColumnChoice, ColumnRange)) for item in arguments):
        call.set("expressions", [item for argument in arguments for item in _columns(names, argument)])
    return call


def _place(names: Sequence[str], column: str | int) -> int:
    if isinstance(column, int):
        if not 1 <= column <= len(names):
            raise SqlError(f"there is no column {column}", f"columns are numbered 1 to {len(names)}")
        return column - 1
    if column not in names:
        raise SqlError(f"there is no column {column!r}{nearest(column, names)}", f"the columns are {', '.join(names)}")
    return list(names).index(column)


def named(trees: Sequence[Tree], first: int = 0) -> list[Tree]:
    """Name the trees as Flink's Table API does: EXPR$0 for an aggregate or bound of a window, else _c0.

    Args:
        first: number of the first one.
    """
    properties: list[Any] = []
    for tree in trees:
        for node in tree.find_all(exp.Anonymous, Applied, WindowPart, bfs=False):
            if (isinstance(node, WindowPart) or aggregates_in(node) == [node]) and node not in properties:
                properties.append(node)
    items = []
    for position, tree in enumerate(trees):
        if isinstance(tree, (exp.Alias, exp.Column, exp.Star)):
            items.append(tree)
            continue
        name = f"EXPR${properties.index(tree)}" if tree in properties else _field_name(tree) or f"_c{first + position}"
        items.append(exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True)))
    return items


def _field_name(tree: Tree) -> str:
    """Return the name of a field of a column: `column$field`."""
    if not isinstance(tree, exp.Dot):
        return ""
    above = tree.this.name if isinstance(tree.this, exp.Column) else _field_name(tree.this)
    return f"{above}${tree.expression.name}" if above else ""


def renamed(names: Sequence[str], new_names: Sequence[str]) -> list[Tree]:
    """Return all columns under other names."""
    return [
        column_tree(old) if old == new else exp.Alias(this=column_tree(old), alias=exp.to_identifier(new, quoted=True))
        for old, new in zip(names, new_names, strict=True)
    ]
