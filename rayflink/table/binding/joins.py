"""Joins of FROM, and [NOT] IN and [NOT] EXISTS of a query, as relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.joins import Join, JoinKind, joined_schema
from ..plan.logical import Attribute, Filter, Project, Relation
from ..plan.typed import Column, Expr, Literal
from ..types import DataTypes
from .aggregate_calls import aggregates_in
from .expressions import ExpressionBinder, call, place_of
from .outer_columns import OuterValues, is_grouped, is_plain, nested_outer_columns, outer_columns
from .scope import MergedColumn, Nested, Part, Scope
from .versioned_joins import ensure_kind, snapshot_join, time_of_rows, version_of, without_version

_TRUE = Literal(DataTypes.BOOLEAN(False), True)


class Queries(Protocol):
    """Binds tables, queries and expressions."""

    @property
    def is_batch(self) -> bool: ...

    def table(self, tree: Tree) -> tuple[Relation, Scope]: ...

    def from_clause(self, tree: Tree) -> tuple[Relation, Scope]: ...

    def add_values(self, relation: Relation, scope: Scope, tree: Tree) -> tuple[Tree, Relation, Scope]: ...

    def bind(self, tree: Tree) -> Relation: ...

    def expressions(self, scope: Scope) -> ExpressionBinder: ...


def add_join(queries: Queries, relation: Relation, scope: Scope, tree: Tree) -> tuple[Relation, Scope]:
    """Return the tables of FROM so far with one more.

    Raises:
        SqlError: it is no join that is known, or its condition means nothing.
    """
    kind, version = _kind(tree), version_of(tree.this)
    time = 0
    if version is not None:
        ensure_kind(kind, tree)
        time = time_of_rows(queries.expressions(scope), relation, version, queries.is_batch)
    right, beside = queries.table(tree.this if version is None else without_version(tree.this))
    _ensure_names(scope, beside, tree.this)
    both_scopes = _join_scopes(scope, beside if version is None else beside.without_times(), kind)
    place = place_of(tree)
    names = _names_to_merge(scope, beside, tree)
    if names is None:
        on = tree.args.get("on")
        condition = _TRUE if on is None else queries.expressions(both_scopes).condition(on, "the condition of ON")
        join = _join(queries, relation, right, kind, condition, tree)
        return (join if version is None else snapshot_join(join, tree, time)), both_scopes
    pairs = [(scope.find((name,), place)[0], beside.find((name,), place)[0]) for name in names]
    width = len(relation.schema)
    shifted = [(left, _shift(right_key, width)) for left, right_key in pairs]
    condition = _all([call("=", pair, place) for pair in shifted])
    join = _join(queries, relation, right, kind, condition, tree)
    join = join if version is None else snapshot_join(join, tree, time)
    return _merge_pairs(join, both_scopes, names, shifted)


def _join(queries: Queries, left: Relation, right: Relation, kind: JoinKind, condition: Expr, tree: Tree) -> Join:
    schema = joined_schema(left.schema, right.schema, kind)
    return Join(schema, left, right, kind, condition, queries.is_batch, place=place_of(tree))


def _ensure_names(scope: Scope, other: Scope, tree: Tree) -> None:
    """Refuse tables that share a name."""
    is_named = bool(tree.args.get("alias")) or isinstance(tree.this, exp.Identifier)
    known = {part.alias for part in scope.parts}
    twice = [part.alias for part in other.parts if is_named and part.alias and part.alias in known]
    if twice:
        problem = f"two tables of FROM have the name {twice[0]!r}"
        raise SqlError(problem, "give one of them an alias: ... AS b", "", place_of(tree))


def _kind(tree: Tree) -> JoinKind:
    side, kind, method = (str(tree.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if kind in ("SEMI", "ANTI"):
        remedy = f"write WHERE {'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT * FROM ... WHERE ...)"
        raise SqlError(f"{kind} JOIN is not in Flink's SQL", remedy, "", place_of(tree))
    known = ("", "OUTER") if side else ("", "INNER", "CROSS")
    if kind not in known or method not in ("", "NATURAL") or (method and kind == "CROSS"):
        words = " ".join(word for word in (method, side, kind) if word)
        remedy = "write INNER, LEFT, RIGHT, FULL or CROSS JOIN; all but CROSS JOIN may be NATURAL"
        raise SqlError(f"{words} JOIN does not exist", remedy, "", place_of(tree))
    conditions = [name.upper() for name in ("on", "using") if tree.args.get(name)]
    if conditions and (method or kind == "CROSS"):
        problem = f"{method or kind} JOIN does not take {conditions[0]}"
        raise SqlError(problem, "remove one of the two", "", place_of(tree))
    return JoinKind[side] if side else JoinKind.INNER


def _join_scopes(scope: Scope, other: Scope, kind: JoinKind) -> Scope:
    """Return the columns of both; those of a side that may be missing can be null, and are no times any more."""
    left = scope.missing() if kind.keeps_right else scope
    return left.beside(other.missing() if kind.keeps_left else other)


def _names_to_merge(scope: Scope, other: Scope, tree: Tree) -> list[str] | None:
    """Return the columns of USING or NATURAL; None: neither is written."""
    using = tree.args.get("using")
    if using:
        return [column.name for column in using]
    if str(tree.args.get("method") or "").upper() != "NATURAL":
        return None
    names = {column.name for column in other.columns(None, None)}
    return [column.name for column in scope.columns(None, None) if column.name in names]


def _merge_pairs(
    join: Join, scope: Scope, names: Sequence[str], pairs: Sequence[tuple[Expr, Expr]]
) -> tuple[Relation, Scope]:
    """Return the join with one column for each pair of USING: of the side that is there."""
    extra: list[tuple[Attribute, Expr]] = []
    merged: list[MergedColumn] = []
    for name, (left, right) in zip(names, pairs, strict=True):
        assert isinstance(left, Column) and isinstance(right, Column)
        column = right.index if join.kind is JoinKind.RIGHT else left.index
        if join.kind is JoinKind.FULL:
            value = call("COALESCE", [join.column(left.index), join.column(right.index)])
            column = len(join.schema) + len(extra)
            extra.append((Attribute(name, value.type), value))
        merged.append(MergedColumn(name, column, (left.index, right.index)))
    if not extra:
        return join, scope.merge(merged)
    columns = [join.column(index) for index in range(len(join.schema))]
    schema = (
        *join.schema,
        *(replace(attribute, name=f"$using{number}") for number, (attribute, _) in enumerate(extra)),
    )
    relation = Project(schema, join, (*columns, *(value for _, value in extra)))
    hidden = Part("", tuple(attribute for attribute, _ in extra), scope.width)
    return relation, replace(scope, parts=(*scope.parts, hidden)).merge(merged)


def _shift(expr: Expr, offset: int) -> Expr:
    return expr.mapped(lambda part: replace(part, index=part.index + offset) if isinstance(part, Column) else part)


def _all(conditions: Sequence[Expr]) -> Expr:
    conjunction: Expr | None = None
    for condition in conditions:
        conjunction = condition if conjunction is None else call("AND", [conjunction, condition], condition.place)
    return _TRUE if conjunction is None else conjunction


# IN and EXISTS


def conjuncts(tree: Tree) -> list[Tree]:
    """Return the conditions that are joined by AND."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def has_subquery(tree: Tree) -> bool:
    """Return whether a condition is [NOT] IN or [NOT] EXISTS of a query."""
    inner = tree
    while isinstance(inner, (exp.Not, exp.Paren)):
        inner = inner.this
    return isinstance(inner, exp.Exists) or (isinstance(inner, exp.In) and inner.args.get("query") is not None)


def filter_by_query(queries: Queries, relation: Relation, scope: Scope, tree: Tree) -> Relation:
    """Return the rows for which a condition with a query holds: those that match a row of it, or none.

    Raises:
        SqlError: the query means nothing here.
    """
    kind, place = JoinKind.SEMI, place_of(tree)
    if not relation.schema:  # without FROM: a join needs a column
        row_column = Attribute("$row", DataTypes.BOOLEAN(False))
        row = Project((row_column,), relation, (_TRUE,))
        return Project((), filter_by_query(queries, row, Scope.of("", (row_column,)), tree), ())
    inner = tree
    while isinstance(inner, (exp.Not, exp.Paren)):
        if isinstance(inner, exp.Not):
            kind = JoinKind.ANTI if kind is JoinKind.SEMI else JoinKind.SEMI
        inner = inner.this
    query = inner.args["query"] if isinstance(inner, exp.In) else inner
    if isinstance(query, (exp.Exists, exp.Subquery)):
        query = query.this
    subquery = _subquery(queries, relation, scope, query)
    conditions = list(subquery.conditions)
    if isinstance(inner, exp.In):
        left = inner.this.expressions if isinstance(inner.this, exp.Tuple) else [inner.this]
        operands = [queries.expressions(scope).bind(operand) for operand in left]
        if len(operands) != len(subquery.values):
            problem = f"IN compares {len(operands)} values with {len(subquery.values)} columns"
            raise SqlError(problem, "select the same number of columns in the query", "", place)
        equal = _all([call("=", pair, place) for pair in zip(operands, subquery.values, strict=True)])
        if kind is JoinKind.ANTI and equal.type.is_nullable:  # one that is not known to differ counts, too
            equal = call("IS NOT FALSE", [equal], place)
        conditions.append(equal)
    return Join(relation.schema, relation, subquery.relation, kind, _all(conditions), queries.is_batch, place=place)


@dataclass(frozen=True)
class _Subquery:
    """A query of a condition.

    Args:
        relation: its rows.
        values: what it selects, over the columns outside, then those of its rows.
        conditions: of the query, over the same.
    """

    relation: Relation
    values: Sequence[Expr]
    conditions: Sequence[Expr]


def _subquery(queries: Queries, outer: Relation, scope: Scope, tree: Tree) -> _Subquery:
    tree = _with_repetitions(tree)
    if is_grouped(tree) and (used := outer_columns(queries, tree, scope)):
        return _grouped_subquery(queries, outer, scope, tree, OuterValues.of(used, scope))
    if not is_plain(tree) or any(map(aggregates_in, tree.expressions)):
        whole_query = queries.bind(tree)
        values = [_shift(whole_query.column(index), scope.width) for index in range(len(whole_query.schema))]
        return _Subquery(whole_query, values, ())
    relation, own_columns = queries.from_clause(tree)
    inner = own_columns
    conditions: list[Expr] = []
    if nested_outer_columns(queries, tree, scope):
        outer_values, place = OuterValues.of(outer_columns(queries, tree, scope), scope), place_of(tree)
        conditions = outer_values.matches(scope.width + own_columns.width, outer, place)
        relation, inner = outer_values.join(relation, own_columns, outer, scope, queries.is_batch, place)
    tree, relation, inner = queries.add_values(relation, inner, tree)
    binder = queries.expressions(Nested(scope.parts, scope.merged, inner))
    where = tree.args.get("where")
    for conjunct in conjuncts(where.this) if where is not None else ():
        if has_subquery(conjunct):
            relation = filter_by_query(queries, relation, inner, conjunct)
            continue
        bound = binder.condition(conjunct, "the condition of WHERE")
        if all(column >= scope.width for column in _columns(bound)):
            own = _shift(bound, -scope.width)
            relation = Filter(relation.schema, relation, own, place=place_of(conjunct))
        else:
            conditions.append(bound)
    return _Subquery(relation, _bind_selected(tree.expressions, scope, own_columns, binder.bind), conditions)


def _with_repetitions(tree: Tree) -> Tree:
    """Return a query without DISTINCT, since a row matches one as well as several equal ones."""
    distinct = tree.args.get("distinct") if isinstance(tree, exp.Select) else None
    if distinct is None or distinct.args.get("on") is not None or tree.args.get("limit") or tree.args.get("offset"):
        return tree
    tree = tree.copy()
    tree.set("distinct", None)
    return tree


def _grouped_subquery(queries: Queries, outer: Relation, scope: Scope, tree: Tree, values: OuterValues) -> _Subquery:
    """Return a query with GROUP BY that uses columns outside: its groups are those of each of their values."""
    place = place_of(tree)
    own, own_scope = queries.from_clause(tree)
    rows, columns = values.join(own, own_scope, outer, scope, queries.is_batch, place)
    relation = queries.bind(values.grouped(tree, rows, columns))
    width = len(relation.schema) - len(values.columns)
    selected = [_shift(relation.column(index), scope.width) for index in range(width)]
    return _Subquery(relation, selected, values.matches(scope.width + width, outer, place))


def _bind_selected(trees: Sequence[Tree], scope: Scope, inner: Scope, bind: Callable[[Tree], Expr]) -> list[Expr]:
    exprs: list[Expr] = []
    for item in trees:
        if isinstance(item, exp.Star):
            exprs += [_shift(column, scope.width) for column in inner.columns(None, None)]
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            exprs += [_shift(column, scope.width) for column in inner.columns(item.table, place_of(item))]
        else:
            exprs.append(bind(item.this if isinstance(item, exp.Alias) else item))
    return exprs


def _columns(expr: Expr) -> list[int]:
    return [part.index for part in expr.walk() if isinstance(part, Column)]


__all__: list[Any] = ["Queries", "has_subquery", "conjuncts", "add_join", "filter_by_query"]
