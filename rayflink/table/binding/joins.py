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
from .scope import Merged, Nested, Part, Scope

_TRUE = Literal(DataTypes.BOOLEAN(False), True)


class Queries(Protocol):
    """Binds tables, queries and expressions."""

    @property
    def is_batch(self) -> bool: ...

    def table(self, tree: Tree) -> tuple[Relation, Scope]: ...

    def from_clause(self, tree: Tree) -> tuple[Relation, Scope]: ...

    def bind(self, tree: Tree) -> Relation: ...

    def expressions(self, scope: Scope) -> ExpressionBinder: ...


def joined(queries: Queries, relation: Relation, scope: Scope, tree: Tree) -> tuple[Relation, Scope]:
    """Return the tables of FROM so far with one more.

    Raises:
        SqlError: it is no join that is known, or its condition means nothing.
    """
    kind = _kind(tree)
    right, beside = queries.table(tree.this)
    _ensure_names(scope, beside, tree.this)
    both = _beside(scope, beside, kind)
    place = place_of(tree)
    names = _merged_names(scope, beside, tree)
    if names is None:
        on = tree.args.get("on")
        condition = _TRUE if on is None else queries.expressions(both).condition(on, "the condition of ON")
        schema = joined_schema(relation.schema, right.schema, kind)
        return Join(schema, relation, right, kind, condition, queries.is_batch, place=place), both
    pairs = [(scope.find((name,), place)[0], beside.find((name,), place)[0]) for name in names]
    width = len(relation.schema)
    shifted = [(left, _shifted(one, width)) for left, one in pairs]
    condition = _all([call("=", pair, place) for pair in shifted])
    schema = joined_schema(relation.schema, right.schema, kind)
    made = Join(schema, relation, right, kind, condition, queries.is_batch, place=place)
    return _merged(made, both, names, shifted)


def _ensure_names(scope: Scope, other: Scope, tree: Tree) -> None:
    """Refuse tables that share a name."""
    is_named = bool(tree.args.get("alias")) or isinstance(tree.this, exp.Identifier)
    known = {part.alias for part in scope.parts}
    twice = [part.alias for part in other.parts if is_named and part.alias and part.alias in known]
    if twice:
        problem = f"two tables of FROM are called {twice[0]!r}"
        raise SqlError(problem, "give one another name: ... AS b", "", place_of(tree))


def _kind(tree: Tree) -> JoinKind:
    side, kind, method = (str(tree.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    if kind in ("SEMI", "ANTI"):
        remedy = f"write WHERE {'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT * FROM ... WHERE ...)"
        raise SqlError(f"{kind} JOIN is no SQL of Flink", remedy, "", place_of(tree))
    known = ("", "OUTER") if side else ("", "INNER", "CROSS")
    if kind not in known or method not in ("", "NATURAL") or (method and kind == "CROSS"):
        words = " ".join(one for one in (method, side, kind) if one)
        remedy = "write INNER, LEFT, RIGHT, FULL or CROSS JOIN, of which all but the last may be NATURAL"
        raise SqlError(f"{words} JOIN is not known", remedy, "", place_of(tree))
    conditions = [name.upper() for name in ("on", "using") if tree.args.get(name)]
    if conditions and (method or kind == "CROSS"):
        problem = f"{method or kind} JOIN with {conditions[0]}"
        raise SqlError(problem, "leave one of them out", "", place_of(tree))
    return JoinKind[side] if side else JoinKind.INNER


def _beside(scope: Scope, other: Scope, kind: JoinKind) -> Scope:
    """Return the columns of both; those of a side that may be missing can be null, and are no times any more."""
    left = scope.missing() if kind.keeps_right else scope
    return left.beside(other.missing() if kind.keeps_left else other)


def _merged_names(scope: Scope, other: Scope, tree: Tree) -> list[str] | None:
    """Return the columns of USING or NATURAL; None: neither is written."""
    using = tree.args.get("using")
    if using:
        return [one.name for one in using]
    if str(tree.args.get("method") or "").upper() != "NATURAL":
        return None
    known = {one.name for one in other.columns(None, None)}
    return [one.name for one in scope.columns(None, None) if one.name in known]


def _merged(
    made: Join, both: Scope, names: Sequence[str], pairs: Sequence[tuple[Expr, Expr]]
) -> tuple[Relation, Scope]:
    """Return the join with one column for each pair of USING: of the side that is there."""
    extra: list[tuple[Attribute, Expr]] = []
    merged: list[Merged] = []
    for name, (left, right) in zip(names, pairs, strict=True):
        assert isinstance(left, Column) and isinstance(right, Column)
        at = right.index if made.kind is JoinKind.RIGHT else left.index
        if made.kind is JoinKind.FULL:
            value = call("COALESCE", [made.column(left.index), made.column(right.index)])
            at = len(made.schema) + len(extra)
            extra.append((Attribute(name, value.type), value))
        merged.append(Merged(name, at, (left.index, right.index)))
    if not extra:
        return made, both.merging(merged)
    columns = [made.column(at) for at in range(len(made.schema))]
    schema = (*made.schema, *(replace(one, name=f"$using{at}") for at, (one, _) in enumerate(extra)))
    relation = Project(schema, made, (*columns, *(value for _, value in extra)))
    hidden = Part("", tuple(one for one, _ in extra), both.width)
    return relation, replace(both, parts=(*both.parts, hidden)).merging(merged)


def _shifted(expr: Expr, by: int) -> Expr:
    return expr.mapped(lambda one: replace(one, index=one.index + by) if isinstance(one, Column) else one)


def _all(conditions: Sequence[Expr]) -> Expr:
    found: Expr | None = None
    for one in conditions:
        found = one if found is None else call("AND", [found, one], one.place)
    return _TRUE if found is None else found


# IN and EXISTS


def conjuncts(tree: Tree) -> list[Tree]:
    """Return the conditions that are joined by AND."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def asks_query(tree: Tree) -> bool:
    """Return whether a condition is [NOT] IN or [NOT] EXISTS of a query."""
    inner = tree
    while isinstance(inner, (exp.Not, exp.Paren)):
        inner = inner.this
    return isinstance(inner, exp.Exists) or (isinstance(inner, exp.In) and inner.args.get("query") is not None)


def kept_by_query(queries: Queries, relation: Relation, scope: Scope, tree: Tree) -> Relation:
    """Return the rows for which a condition with a query holds: those that match a row of it, or none.

    Raises:
        SqlError: the query means nothing here.
    """
    kind, place = JoinKind.SEMI, place_of(tree)
    if not relation.schema:  # without FROM: a join needs a column
        one = Attribute("$row", DataTypes.BOOLEAN(False))
        row = Project((one,), relation, (_TRUE,))
        return Project((), kept_by_query(queries, row, Scope.of("", (one,)), tree), ())
    inner = tree
    while isinstance(inner, (exp.Not, exp.Paren)):
        if isinstance(inner, exp.Not):
            kind = JoinKind.ANTI if kind is JoinKind.SEMI else JoinKind.SEMI
        inner = inner.this
    asked = inner.args["query"] if isinstance(inner, exp.In) else inner
    if isinstance(asked, (exp.Exists, exp.Subquery)):
        asked = asked.this
    found = _asked(queries, scope, asked)
    conditions = list(found.conditions)
    if isinstance(inner, exp.In):
        left = inner.this.expressions if isinstance(inner.this, exp.Tuple) else [inner.this]
        given = [queries.expressions(scope).bind(one) for one in left]
        if len(given) != len(found.values):
            problem = f"IN compares {len(given)} values with {len(found.values)} columns"
            raise SqlError(problem, "select as many columns in the query", "", place)
        equal = _all([call("=", pair, place) for pair in zip(given, found.values, strict=True)])
        if kind is JoinKind.ANTI and equal.type.is_nullable:  # one that is not known to differ counts, too
            equal = call("IS NOT FALSE", [equal], place)
        conditions.append(equal)
    return Join(relation.schema, relation, found.relation, kind, _all(conditions), queries.is_batch, place=place)


@dataclass(frozen=True)
class _Asked:
    """A query of a condition.

    Args:
        relation: its rows.
        values: what it selects, over the columns outside, then those of its rows.
        conditions: of the query, over the same.
    """

    relation: Relation
    values: Sequence[Expr]
    conditions: Sequence[Expr]


def _asked(queries: Queries, scope: Scope, tree: Tree) -> _Asked:
    plain = ("expressions", "from_", "joins", "where")
    if (
        not isinstance(tree, exp.Select)
        or any(part is not None and name not in plain for name, part in tree.args.items())
        or any(map(aggregates_in, tree.expressions))
    ):
        whole = queries.bind(tree)
        values = [_shifted(whole.column(at), scope.width) for at in range(len(whole.schema))]
        return _Asked(whole, values, ())
    relation, inner = queries.from_clause(tree)
    both = queries.expressions(Nested(scope.parts, scope.merged, inner))
    conditions: list[Expr] = []
    where = tree.args.get("where")
    for one in conjuncts(where.this) if where is not None else ():
        bound = both.condition(one, "the condition of WHERE")
        if all(column >= scope.width for column in _columns(bound)):
            own = _shifted(bound, -scope.width)
            relation = Filter(relation.schema, relation, own, place=place_of(one))
        else:
            conditions.append(bound)
    return _Asked(relation, _selected(tree.expressions, scope, inner, both.bind), conditions)


def _selected(trees: Sequence[Tree], scope: Scope, inner: Scope, bind: Callable[[Tree], Expr]) -> list[Expr]:
    found: list[Expr] = []
    for one in trees:
        if isinstance(one, exp.Star):
            found += [_shifted(column, scope.width) for column in inner.columns(None, None)]
        elif isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
            found += [_shifted(column, scope.width) for column in inner.columns(one.table, place_of(one))]
        else:
            found.append(bind(one.this if isinstance(one, exp.Alias) else one))
    return found


def _columns(expr: Expr) -> list[int]:
    return [one.index for one in expr.walk() if isinstance(one, Column)]


__all__: list[Any] = ["Queries", "asks_query", "conjuncts", "joined", "kept_by_query"]
