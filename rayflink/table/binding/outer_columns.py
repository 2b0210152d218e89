"""Queries within queries that compare with columns further out: the values of these are joined to the rows between.

    SELECT id FROM t WHERE EXISTS (
      SELECT * FROM u WHERE u.k = t.k AND NOT EXISTS (SELECT * FROM v WHERE v.n = u.n AND v.p = t.p))

The innermost query needs t.p, which the rows of u lack. So these are joined with the distinct values that t has:

    SELECT id FROM t WHERE EXISTS (
      SELECT * FROM (SELECT u.*, k0, p0 FROM u JOIN (SELECT DISTINCT k AS k0, p AS p0 FROM t) ON u.k = k0) AS u
      WHERE NOT EXISTS (SELECT * FROM v WHERE v.n = u.n AND v.p = u.p0)
        AND u.k0 IS NOT DISTINCT FROM t.k AND u.p0 IS NOT DISTINCT FROM t.p)

Source: Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ..parsing.program_nodes import BoundTable
from ..plan.joins import Join, JoinKind, joined_schema
from ..plan.logical import Project, Relation
from ..plan.typed import Column, Expr, Literal
from ..types import DataTypes
from . import set_operations
from .expressions import call, place_of
from .scope import MergedColumn, Part, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..parsing.statements import Tree
    from ..plan.typed import Place

PLAIN_CLAUSES = ("expressions", "from_", "joins", "where")
GROUPED_CLAUSES = (*PLAIN_CLAUSES, "group", "having")
_TRUE = Literal(DataTypes.BOOLEAN(False), True)


class Tables(Protocol):
    """Binds the tables of FROM."""

    @property
    def is_batch(self) -> bool: ...

    def from_clause(self, tree: Tree) -> tuple[Relation, Scope]: ...


def is_plain(tree: Tree, clauses: Sequence[str] = PLAIN_CLAUSES) -> bool:
    """Return whether a query is a SELECT with FROM and WHERE alone, or with some clauses."""
    return isinstance(tree, exp.Select) and all(
        part is None or part is False or part == [] or name in clauses for name, part in tree.args.items()
    )


def is_grouped(tree: Tree) -> bool:
    """Return whether a query is a SELECT with GROUP BY of plain keys, which has no row without a group."""
    group = tree.args.get("group")
    keys = {name for name, part in group.args.items() if part} if group is not None else set()
    return is_plain(tree, GROUPED_CLAUSES) and keys == {"expressions"}


def outer_columns(tables: Tables, query: Tree, outside: Scope) -> list[Tree]:
    """Return the columns of a query outside its FROM, and of queries within these clauses, that are columns outside.

    Args:
        outside: the columns around the query.
    """
    return [column for column in _missing_columns(tables, query) if outside.has(_names(column))]


def nested_outer_columns(tables: Tables, query: Tree, outside: Scope) -> list[Tree]:
    """Return those of `outer_columns` that are in queries within the query."""
    return [
        column
        for column in outer_columns(tables, query, outside)
        if column.find_ancestor(exp.Select) is not query
    ]


def _missing_columns(tables: Tables, query: Tree) -> list[Tree]:
    """Return the columns that are not of the tables of a query, or of one around them within it."""
    while isinstance(query, (exp.Subquery, exp.Paren, exp.Exists)):
        query = query.this
    if not is_plain(query) and not is_grouped(query):
        return []
    _, own = tables.from_clause(query)
    clauses = (query.args.get(name) for name in ("where", "group", "having"))
    columns: list[Tree] = []
    for clause in (*query.expressions, *(clause for clause in clauses if clause is not None)):
        for node in _columns_and_queries(clause):
            if not isinstance(node, exp.Column):
                columns += _missing_columns(tables, node)
            elif not isinstance(node.this, exp.Star):
                columns.append(node)
    return [column for column in columns if not own.has(_names(column))]


def _columns_and_queries(tree: Tree) -> Iterator[Tree]:
    """Yield the columns and the queries of a tree, but none within these."""
    if isinstance(tree, (exp.Column, exp.Select, exp.Subquery, exp.SetOperation)):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from _columns_and_queries(child)


def _names(column: Tree) -> tuple[str, ...]:
    return tuple(part.name for part in column.parts)


@dataclass(frozen=True)
class OuterValues:
    """Columns outside of a query.

    Args:
        trees: a tree for each, as it is written in the query.
        columns: over the rows outside.
    """

    trees: tuple[Tree, ...]
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, trees: Sequence[Tree], outside: Scope) -> OuterValues:
        """Return the distinct columns outside that trees name.

        Raises:
            SqlError: a name is ambiguous.
        """
        known: dict[int, tuple[Tree, Column]] = {}
        for tree in trees:
            column, _ = outside.find(_names(tree), place_of(tree))
            assert isinstance(column, Column)
            known.setdefault(column.index, (_without_fields(tree, outside), column))
        ordered = [known[index] for index in sorted(known)]
        return cls(tuple(tree for tree, _ in ordered), tuple(column for _, column in ordered))

    def join(
        self, own: Relation, scope: Scope, outer: Relation, outside: Scope, is_batch: bool, place: Place | None
    ) -> tuple[Relation, Scope]:  # fmt: skip
        """Return rows with the distinct values of the columns, which stand behind their own, and all columns.

        Args:
            own: the rows, with the columns of `scope`.
            outer: the rows outside, with the columns of `outside`.
        """
        attributes = tuple(
            replace(outer.schema[column.index], type=column.type, part=None, windowing=None) for column in self.columns
        )
        chosen = Project(attributes, outer, tuple(outer.column(column.index) for column in self.columns))
        values = set_operations.distinct(chosen, place, is_batch)
        schema = joined_schema(own.schema, values.schema, JoinKind.INNER)
        joined = Join(schema, own, values, JoinKind.INNER, _TRUE, is_batch, place=place)
        return joined, scope.beside(_part_of(outside, [column.index for column in self.columns]).further())

    def grouped(self, query: Tree, rows: Relation, scope: Scope) -> Tree:
        """Return a query with GROUP BY over rows with the values, which are keys and its last columns.

        Args:
            rows: with the columns of `scope`, as `join` returns them.
        """
        keys = [tree.copy() for tree in self.trees]
        items = [*query.expressions, *(exp.alias_(key.copy(), f"$o{number}") for number, key in enumerate(keys))]
        select = exp.Select(
            expressions=[item.copy() for item in items], from_=exp.From(this=BoundTable(this=rows, scope=scope))
        )
        for name in ("where", "having"):
            if query.args.get(name) is not None:
                select.set(name, query.args[name].copy())
        group = query.args.get("group")
        own = [] if group is None else [key.copy() for key in group.expressions]
        select.set("group", exp.Group(expressions=[*own, *keys]))
        return select

    def matches(self, first: int, outer: Relation, place: Place | None) -> list[Expr]:
        """Return the conditions that these are the values of a row outside.

        Args:
            first: the number of the first value, over the columns outside, then those of the joined rows.
        """
        return [
            call(equality(column), [outer.column(column.index), replace(column, index=first + number)], place)
            for number, column in enumerate(self.columns)
        ]


def equality(value: Expr) -> str:
    """Return the function by which a value is equal to itself."""
    return "IS NOT DISTINCT FROM" if value.type.is_nullable else "="


def _without_fields(tree: Tree, outside: Scope) -> Tree:
    """Return a column without the names of fields behind it."""
    _, fields = outside.find(_names(tree), place_of(tree))
    parts = [part.copy() for part in tree.parts[: len(tree.parts) - len(fields)]]
    return exp.column(*reversed(parts)) if fields else tree


def _part_of(scope: Scope, columns: Sequence[int]) -> Scope:
    """Return some columns of a scope, in this order, as columns from 0 on."""
    places = {column: place for place, column in enumerate(columns)}
    parts: list[Part] = []
    for part in scope.parts:
        chosen = [index for index in range(len(part.schema)) if part.first + index in places]
        if chosen:
            schema = tuple(replace(part.schema[index], part=None, windowing=None) for index in chosen)
            parts.append(replace(part, schema=schema, first=places[part.first + chosen[0]]))
    merged = (
        MergedColumn(pair.name, places[pair.column], tuple(places[index] for index in pair.hidden if index in places))
        for pair in scope.merged
        if pair.column in places
    )
    return Scope(tuple(parts), tuple(merged))


__all__ = ["OuterValues", "equality", "is_grouped", "is_plain", "nested_outer_columns", "outer_columns"]
