"""ROW_NUMBER() OVER in SELECT and QUALIFY: numbers of rows, computed before what is selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ..errors import SqlError
from ..parsing.program_nodes import Applied
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Project, Relation, Schema, TimePart
from ..plan.ranks import Rank
from ..plan.typed import Column, Expr, Place
from ..types import DataType, DataTypes, Root
from .expressions import place_of

_USAGE = "write ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC)"


def numberings_in(tree: Any) -> list[Tree]:
    """Return the calls with OVER in a tree; none within queries of their own."""
    if not isinstance(tree, exp.Expression) or isinstance(tree, (exp.Subquery, exp.Select)):
        return []
    if isinstance(tree, exp.Window):
        return [tree]
    return [numbering for child in tree.iter_expressions() for numbering in numberings_in(child)]


def parts_of(numbering: Tree) -> list[Tree]:
    """Return the expressions by which rows are divided and ordered, and the arguments of the function."""
    order = numbering.args.get("order")
    order_keys = [key.this for key in order.expressions] if order is not None else []
    function, conditions = numbering.this, []
    if isinstance(function, exp.Filter):
        function, conditions = function.this, [function.expression.this]
    arguments = list(function.expressions) if isinstance(function, (exp.Anonymous, Applied)) else []
    return [*(numbering.args.get("partition_by") or ()), *order_keys, *arguments, *conditions]


def add_row_numbers(
    relation: Relation, numberings: Sequence[Tree], bind: Callable[[Tree], Expr], is_whole: bool
) -> tuple[Relation, list[tuple[Tree, int]]]:
    """Return the relation with more columns behind its own, and of each of the calls which column is its number.

    Args:
        bind: binds expressions over the columns of `relation`.
        is_whole: its rows are those of whole tables.
    Raises:
        SqlError: it is no numbering of rows, or not by values that have an order.
    """
    numbers: list[tuple[Tree, int]] = []
    for tree in numberings:
        if tree not in [numbering for numbering, _ in numbers]:
            relation = _rank(relation, tree, bind, is_whole)
            numbers.append((tree, len(relation.schema) - 1))
    return relation, numbers


def _rank(relation: Relation, tree: Tree, bind: Callable[[Tree], Expr], is_whole: bool) -> Rank:
    place = place_of(tree)
    if tree.this.expressions or tree.args.get("spec") is not None or tree.args.get("alias") is not None:
        what = "arguments" if tree.this.expressions else "a frame" if tree.args.get("spec") else "a named window"
        raise SqlError(f"ROW_NUMBER() does not take {what}", _USAGE, "", place)
    order = tree.args.get("order")
    if order is None:
        raise SqlError("ROW_NUMBER() has no ORDER BY", f"{_USAGE}: ORDER BY decides which row is the first", "", place)
    exprs = [bind(key) for key in [*(tree.args.get("partition_by") or ()), *(key.this for key in order.expressions)]]
    relation, columns = with_columns(relation, exprs)
    partition_count = len(exprs) - len(order.expressions)
    keys = []
    for key, column in zip(order.expressions, columns[partition_count:], strict=True):
        ensure_order(relation.schema[column].type, place_of(key) or place)
        keys.append((column, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))))
    number = Attribute(fresh_name("ROW_NUMBER", relation.schema), DataTypes.BIGINT(False))
    partition = tuple(dict.fromkeys(columns[:partition_count]))
    for key, column in zip(tree.args.get("partition_by") or (), columns, strict=False):
        ensure_key(relation.schema[column].type, place_of(key) or place)
    return Rank((*relation.schema, number), relation, partition, tuple(keys), is_whole=is_whole, place=place)


def first_in_order(relation: Relation, keys: Sequence[tuple[int, bool, bool]], offset: int, limit: int) -> Relation:
    """Return the first rows of a stream in an order, which change; their numbers are the last column.

    Args:
        keys: (number of a column, descending, nulls first) each.
        offset: rows to leave out first.
        limit: rows to give at most.
    """
    number = Attribute(fresh_name("ROW_NUMBER", relation.schema), DataTypes.BIGINT(False))
    return Rank((*relation.schema, number), relation, (), tuple(keys), offset + 1, offset + limit)


def ensure_key(kind: DataType, place: Place | None) -> None:
    """Check that rows can be divided by values of a type.

    Raises:
        SqlError: they cannot.
    """
    if kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW):
        raise SqlError(
            f"PARTITION BY has a key of type {kind}", "partition by a part of it, or by another column", "", place
        )


def ensure_order(kind: DataType, place: Place | None) -> None:
    """Check that values of a type can be ordered.

    Raises:
        SqlError: they cannot.
    """
    if kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW):
        remedy = "order by a part of it, or by another column"
        raise SqlError(f"values of type {kind} have no order", remedy, "", place)


def with_columns(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[int]]:
    """Return the relation with those of the expressions as columns that are none yet, and where each stands."""
    computed = [expr for expr in exprs if not isinstance(expr, Column)]
    if not computed:
        return relation, [expr.index for expr in exprs if isinstance(expr, Column)]
    width = len(relation.schema)
    fresh: list[Attribute] = []
    for index, expr in enumerate(computed):
        part = TimePart.PROCTIME if str(expr) == "PROCTIME()" else None
        fresh.append(Attribute(fresh_name(f"OVER${index}", (*relation.schema, *fresh)), expr.type, part))
    columns_below = [relation.column(index) for index in range(width)]
    indexes = iter(range(width, width + len(computed)))
    columns = [expr.index if isinstance(expr, Column) else next(indexes) for expr in exprs]
    return Project((*relation.schema, *fresh), relation, (*columns_below, *computed)), columns


def fresh_name(name: str, schema: Schema) -> str:
    """Return a name that no column has, with a number where need be."""
    names = {column.name for column in schema}
    number, free_name = 0, f"{name}"
    while free_name in names:
        free_name, number = f"{name}${number}", number + 1
    return free_name


def expand_aliases(condition: Tree, selected: Sequence[Tree], known: Sequence[str]) -> Tree:
    """Return a condition of QUALIFY, in which the names of selected expressions stand for these; columns come first."""
    expressions = {
        item.alias: item.this for item in selected if isinstance(item, exp.Alias) and item.alias not in known
    }

    def change(node: Tree) -> Tree:
        if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name in expressions:
            return exp.Paren(this=expressions[node.name].copy())
        return node

    return condition.transform(change)


__all__ = [
    "add_row_numbers", "ensure_key", "ensure_order", "expand_aliases", "fresh_name", "numberings_in", "parts_of",
    "with_columns",
]  # fmt: skip
