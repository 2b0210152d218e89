"""ROW_NUMBER() OVER in SELECT and QUALIFY: numbers of rows, computed before what is selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.logical import Attribute, Project, Relation
from ..plan.ranks import Rank
from ..plan.typed import Column, Expr, Place
from ..types import DataType, DataTypes, Root
from .expressions import place_of
from .remedies import of_over

_USAGE = "write ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC)"


def numberings_in(tree: Any) -> list[Tree]:
    """Return the calls with OVER in a tree; none within queries of their own."""
    if not isinstance(tree, exp.Expression) or isinstance(tree, (exp.Subquery, exp.Select)):
        return []
    if isinstance(tree, exp.Window):
        return [tree]
    return [found for child in tree.iter_expressions() for found in numberings_in(child)]


def parts_of(numbering: Tree) -> list[Tree]:
    """Return the expressions by which rows are divided and ordered."""
    order = numbering.args.get("order")
    ordered = [one.this for one in order.expressions] if order is not None else []
    return [*(numbering.args.get("partition_by") or ()), *ordered]


def numbered(
    relation: Relation, numberings: Sequence[Tree], bind: Callable[[Tree], Expr], is_whole: bool
) -> tuple[Relation, list[tuple[Tree, int]]]:
    """Return the relation with more columns behind its own, and of each of the calls which column is its number.

    Args:
        bind: binds expressions over the columns of `relation`.
        is_whole: its rows are those of whole tables.
    Raises:
        SqlError: it is no numbering of rows, or not by values that have an order.
    """
    found: list[tuple[Tree, int]] = []
    for tree in numberings:
        if tree not in [known for known, _ in found]:
            relation = _ranked(relation, tree, bind, is_whole)
            found.append((tree, len(relation.schema) - 1))
    return relation, found


def _ranked(relation: Relation, tree: Tree, bind: Callable[[Tree], Expr], is_whole: bool) -> Rank:
    place = place_of(tree)
    name = str(tree.this.name).upper() if isinstance(tree.this, exp.Anonymous) else tree.this.sql()
    if name != "ROW_NUMBER":
        raise SqlError(f"{name} with OVER is not supported", of_over(name, is_whole), "", place)
    if tree.this.expressions or tree.args.get("spec") is not None or tree.args.get("alias") is not None:
        what = "arguments" if tree.this.expressions else "a frame" if tree.args.get("spec") else "a named window"
        raise SqlError(f"ROW_NUMBER() with {what}", _USAGE, "", place)
    order = tree.args.get("order")
    if order is None:
        raise SqlError("ROW_NUMBER() without ORDER BY", f"{_USAGE}: it says which row is the first", "", place)
    exprs = [bind(one) for one in parts_of(tree)]
    relation, columns = _with_columns(relation, exprs)
    divided = len(exprs) - len(order.expressions)
    keys = []
    for one, at in zip(order.expressions, columns[divided:], strict=True):
        ensure_order(relation.schema[at].type, place_of(one) or place)
        keys.append((at, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
    number = Attribute(_fresh("ROW_NUMBER", relation), DataTypes.BIGINT(False))
    partition = tuple(dict.fromkeys(columns[:divided]))
    for one, at in zip(tree.args.get("partition_by") or (), columns, strict=False):
        _ensure_key(relation.schema[at].type, place_of(one) or place)
    return Rank((*relation.schema, number), relation, partition, tuple(keys), is_whole=is_whole, place=place)


def _ensure_key(kind: DataType, place: Place | None) -> None:
    if kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW):
        raise SqlError(f"rows divided by {kind}", "divide them by a part of it, or by another column", "", place)


def ensure_order(kind: DataType, place: Place | None) -> None:
    """Check that values of a type can be ordered.

    Raises:
        SqlError: they cannot.
    """
    if kind.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW):
        remedy = "order by a part of it, or by another column"
        raise SqlError(f"values of type {kind} have no order", remedy, "", place)


def _with_columns(relation: Relation, exprs: Sequence[Expr]) -> tuple[Relation, list[int]]:
    """Return the relation with those of the expressions as columns that are none yet, and where each stands."""
    computed = [one for one in exprs if not isinstance(one, Column)]
    if not computed:
        return relation, [one.index for one in exprs if isinstance(one, Column)]
    width = len(relation.schema)
    fresh = [Attribute(_fresh(f"OVER${at}", relation), one.type) for at, one in enumerate(computed)]
    kept = [relation.column(at) for at in range(width)]
    places = iter(range(width, width + len(computed)))
    columns = [one.index if isinstance(one, Column) else next(places) for one in exprs]
    return Project((*relation.schema, *fresh), relation, (*kept, *computed)), columns


def _fresh(name: str, relation: Relation) -> str:
    """Return a name that no column has, with a number where need be."""
    number, found = 0, f"{name}"
    while found in relation.names:
        found, number = f"{name}${number}", number + 1
    return found


def without_aliases(condition: Tree, selected: Sequence[Tree], known: Sequence[str]) -> Tree:
    """Return a condition of QUALIFY, in which the names of selected expressions stand for these; columns come first."""
    named = {one.alias: one.this for one in selected if isinstance(one, exp.Alias) and one.alias not in known}

    def change(node: Tree) -> Tree:
        if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name in named:
            return exp.Paren(this=named[node.name].copy())
        return node

    return condition.transform(change)


__all__ = ["ensure_order", "numbered", "numberings_in", "parts_of", "without_aliases"]
