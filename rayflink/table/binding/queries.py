"""Queries as logical plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlglot import exp

from ..errors import SqlError
from ..parsing.grammar import is_table
from ..parsing.hints import HINTED
from ..parsing.program_nodes import BoundTable
from ..parsing.statements import Path, Tree
from ..plan.emission import EmitOptions
from ..plan.logical import (
    Attribute,
    Filter,
    Project,
    Relation,
    Schema,
    Sort,
    TimePart,
    Union,
    Values,
    WindowAggregate,
)
from ..plan.type_rules import common_type
from ..plan.typed import Column, Expr, Function, Literal, Place
from . import joins, laterals, set_operations, windows
from .aggregate_calls import aggregates_in
from .expressions import ExpressionBinder, cast, place_of
from .grouping import GroupedSelect, distinct_in_windows
from .grouping_sets import GroupingSet, grouping_sets
from .numbering import ensure_order, numbered, numberings_in, without_aliases
from .remedies import of_versions
from .scope import Scope
from .state_ttl import hinted_ttl, known_for

Lookup = Callable[[Path, Any, Mapping[str, str]], Relation]
"""The relation of a table or view by the parts of its name, where that stands in the text, and options for this use."""


_MOST_ROWS = 2**61
"""No table has more, and two of it are still a number of 64 bits."""


@dataclass(frozen=True)
class Chosen:
    """The parts of a SELECT: expressions, the condition of QUALIFY, and the row numberings in both."""

    selected: list[Any]
    condition: Tree | None
    numberings: list[Tree]


@dataclass(frozen=True)
class QueryBinder:
    """Binds a query.

    Args:
        lookup: finds tables and views.
        functions: the user's functions by their names in capitals.
        is_batch: the query is over whole tables, which may be sorted.
        emit: when windows show results in addition to their end.
        with_queries: those of WITH, by name.
    """

    lookup: Lookup
    functions: Mapping[str, Function] = field(default_factory=dict)
    is_batch: bool = False
    emit: EmitOptions = EmitOptions()
    with_queries: Mapping[str, Relation] = field(default_factory=dict)

    def bind(self, tree: Tree) -> Relation:
        """Return the plan of a query.

        Raises:
            SqlError: it means nothing, or what is not supported.
        """
        inner = self._with(tree)
        binder = self._BINDERS.get(type(tree))
        if binder is None:
            raise SqlError("this is no query that is supported", "see docs/sql.md", "", place_of(tree))
        return binder(inner, tree)

    def expressions(self, scope: Scope) -> ExpressionBinder:
        """Binds expressions over columns."""
        return ExpressionBinder(scope, functions=self.functions)

    def _with(self, tree: Tree) -> QueryBinder:
        named = tree.args.get("with_")
        inner = self
        known: set[str] = set()
        for one in named.expressions if named is not None else ():
            if one.alias in known:
                problem = f"a second query {one.alias!r} in WITH"
                raise SqlError(problem, "give it another name", "", place_of(one.args["alias"]))
            known.add(one.alias)
            relation = inner.bind(one.this)
            names = [column.name for column in one.args["alias"].columns]
            relation = renamed(relation, names, place_of(one)) if names else relation
            inner = replace(inner, with_queries={**inner.with_queries, one.alias: relation})
        return inner

    # FROM

    def from_clause(self, tree: Tree) -> tuple[Relation, Scope]:
        """Return the tables of FROM, joined.

        Raises:
            SqlError: there is none of the name, or a join means nothing.
        """
        clause = tree.args.get("from_")
        if clause is None:
            return Values((), ((),)), Scope(())
        relation, scope = self.table(clause.this)
        return self._joined(relation, scope, tree)

    def _joined(self, relation: Relation, scope: Scope, tree: Tree) -> tuple[Relation, Scope]:
        """Add the joins that stand behind a table."""
        for join in tree.args.get("joins") or ():
            found = laterals.joined(self.expressions(scope), relation, scope, join)
            relation, scope = joins.joined(self, relation, scope, join) if found is None else found
        return relation, scope

    def table(self, tree: Tree) -> tuple[Relation, Scope]:
        """Return a table of FROM, or several in parentheses.

        Raises:
            SqlError: there is none of the name, or it means nothing.
        """
        if tree.args.get("version") is not None:
            problem = "FOR SYSTEM_TIME AS OF is not supported yet"
            raise SqlError(problem, of_versions(self.is_batch), "", place_of(tree))
        if laterals.is_one(tree):
            return laterals.alone(self.expressions(Scope(())), tree)
        given = tree.args.get("alias")
        if isinstance(tree, exp.Subquery) and is_table(tree.this):
            relation, scope = self.table(tree.this)
            if given is not None:
                if given.columns:
                    relation = renamed(relation, [column.name for column in given.columns], place_of(tree))
                scope = Scope.of(given.name, relation.schema)
            return self._joined(relation, scope, tree)
        relation, alias = self._unnamed_table(tree)
        if given is not None:
            alias = given.name or alias
            if given.columns:
                relation = renamed(relation, [column.name for column in given.columns], place_of(tree))
        return self._joined(relation, Scope.of(alias, relation.schema), tree)

    def _unnamed_table(self, tree: Tree) -> tuple[Relation, str]:
        if isinstance(tree, (exp.Subquery, exp.Paren)):
            return self.bind(tree.this), ""
        if isinstance(tree, exp.Values):
            return self._values(tree), ""
        if isinstance(tree, BoundTable):
            return tree.this, ""
        if not isinstance(tree, exp.Table):
            raise SqlError(
                "this is no table", "give the name of a table, or a query in parentheses", "", place_of(tree)
            )
        if isinstance(tree.this, exp.Anonymous):
            called = windows.table_call(tree.this)
            relation, scope = self.table(called.table.this)
            return windows.window_table(called, relation, scope), called.kind.value.lower()
        path, hinted = tuple(part.name for part in tree.parts), tree.meta.get(HINTED) or {}
        if len(path) == 1 and path[0] in self.with_queries:
            if hinted:
                raise SqlError("OPTIONS of a query of WITH", "write them behind a table", "", place_of(tree))
            return self.with_queries[path[0]], path[0]
        return self.lookup(path, place_of(tree), hinted), path[-1]

    # SELECT

    def _select(self, tree: Tree) -> Relation:
        if not tree.expressions:
            raise SqlError("SELECT of nothing", "write columns or *", "", place_of(tree))
        relation, scope = self.from_clause(tree)
        hinted_ttl(tree, scope)  # its errors are raised whatever state the query keeps
        if where := tree.args.get("where"):
            refused = aggregates_in(where.this)
            if refused:
                remedy = "conditions on aggregates stand in HAVING"
                raise SqlError("an aggregate in WHERE", remedy, "", place_of(refused[0]))
            relation = self._where(relation, scope, where)
        having = tree.args.get("having")
        selected = self._stars(tree.expressions, scope)
        unseen = self._unseen_keys(tree, selected)
        chosen = self._chosen(tree, [*selected, *unseen.values()], scope)
        grouped = tree.args.get("group") is not None or having is not None
        grouped = grouped or any(isinstance(one, Column) is False and aggregates_in(one) for one in selected)
        if grouped:
            sets = grouping_sets(tree.args.get("group"))
            if len(sets) > 1 and chosen.numberings:
                remedy = "number the rows in a query around it"
                raise SqlError("ROW_NUMBER() beside grouping sets", remedy, "", place_of(chosen.numberings[0]))
            parts = [self._group(relation, scope, tree, chosen, one) for one in sets]
            projected = parts[0] if len(parts) == 1 else _union(parts, place_of(tree))
        else:
            relation, known = numbered(relation, chosen.numberings, self.expressions(scope).bind, self.is_batch)
            projected = self._qualified(relation, chosen, self._numbering_binder(scope, relation, known))
        if tree.args.get("distinct") is not None:
            projected = known_for(self._distinct(projected, place_of(tree)), hinted_ttl(tree, scope))
        return self._ordered(projected, tree, list(unseen))

    def _where(self, relation: Relation, scope: Scope, where: Tree) -> Relation:
        parts = joins.conjuncts(where.this)
        asking = [one for one in parts if joins.asks_query(one)]
        binder = self.expressions(scope)
        if not asking:
            condition = binder.condition(where.this, "the condition of WHERE")
            return Filter(relation.schema, relation, condition, place=place_of(where))
        for one in parts:
            if one not in asking:
                condition = binder.condition(one, "the condition of WHERE")
                relation = Filter(relation.schema, relation, condition, place=place_of(one))
        for one in asking:
            relation = joins.kept_by_query(self, relation, scope, one)
        return relation

    def _distinct(self, relation: Relation, place: Place | None) -> Relation:
        """Remove repeated rows, of all rows or within windows."""
        of_windows = {TimePart.WINDOW_START, TimePart.WINDOW_END} <= {one.part for one in relation.schema}
        if of_windows:
            return distinct_in_windows(relation)
        return set_operations.distinct(relation, place, self.is_batch)

    def _group(self, relation: Relation, scope: Scope, tree: Tree, chosen: Chosen, grouped: GroupingSet) -> Relation:
        """Return the rows of one grouping set."""
        group = GroupedSelect.from_select(self.expressions(scope), relation, scope, tree, grouped, self.is_batch)
        found = known_for(self._emitting(group.relation), hinted_ttl(tree, scope))
        having = tree.args.get("having")
        if having is not None:
            found = Filter(found.schema, found, group.condition(having.this), place=place_of(having))
        group.add_numbers(*numbered(found, chosen.numberings, group.bind, self.is_batch))
        return self._qualified(group.relation, chosen, group)

    def _chosen(self, tree: Tree, selected: list[Any], scope: Scope) -> Chosen:
        """Return the parts of SELECT and QUALIFY."""
        qualify, trees = tree.args.get("qualify"), [one for one in selected if not isinstance(one, Column)]
        condition = None
        if qualify is not None:
            condition = without_aliases(qualify.this, trees, [one.name for one in scope.schema])
            if not numberings_in(condition):
                remedy = "QUALIFY rn <= 3 needs ROW_NUMBER() OVER (...) AS rn in SELECT; otherwise write WHERE"
                raise SqlError("QUALIFY without OVER", remedy, "", place_of(qualify))
        return Chosen(selected, condition, [one for part in (*trees, condition) for one in numberings_in(part)])

    def _numbering_binder(self, scope: Scope, relation: Relation, known: list[tuple[Tree, int]]) -> ExpressionBinder:
        def of(tree: Tree) -> Expr | None:
            return next((relation.column(at) for one, at in known if one == tree), None)

        return ExpressionBinder(scope, of, self.functions)

    def _qualified(self, relation: Relation, chosen: Chosen, binder: ExpressionBinder | GroupedSelect) -> Relation:
        """Filter the selected rows by QUALIFY."""
        if chosen.condition is not None:
            condition = binder.condition(chosen.condition, "the condition of QUALIFY")
            relation = Filter(relation.schema, relation, condition, place=place_of(chosen.condition))
        return self._project(relation, chosen.selected, binder.bind)

    def _emitting(self, relation: Relation) -> Relation:
        """Return a window that shows results as often as the options say."""
        if self.is_batch or not isinstance(relation, WindowAggregate):
            return relation
        if relation.windowing is None:
            self.emit.check_table_function(relation.place)
            return relation
        return replace(relation, emission=self.emit.of_window(relation.windowing, relation.place))

    def _stars(self, trees: list[Tree], scope: Scope) -> list[Any]:
        """Expand `*` in the selected trees to columns."""
        found: list[Any] = []
        for tree in trees:
            if isinstance(tree, exp.Star):
                found += scope.columns(None, place_of(tree))
            elif isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
                found += scope.columns(tree.table, place_of(tree))
            else:
                found.append(tree)
        return found

    def _project(self, relation: Relation, selected: list[Any], bind: Callable[[Tree], Expr]) -> Relation:
        exprs: list[Expr] = []
        names: list[str] = []
        for at, one in enumerate(selected):
            if isinstance(one, Column):
                exprs.append(one)
                names.append(one.name)
                continue
            inner = one.this if isinstance(one, exp.Alias) else one
            exprs.append(bind(inner))
            names.append(one.alias if isinstance(one, exp.Alias) else _name_of(inner, at))
        return project(relation, exprs, _distinct(names))

    def _unseen_keys(self, tree: Tree, selected: list[Any]) -> dict[int, Tree]:
        """Return the expressions that ORDER BY needs and SELECT lacks, by the number of the key."""
        order = tree.args.get("order")
        if order is None or not self.is_batch or tree.args.get("distinct") is not None:
            return {}
        names = [one.name if isinstance(one, (Column, exp.Column)) else one.alias for one in selected]
        found: dict[int, Tree] = {}
        for at, key in enumerate(order.expressions):
            is_selected = isinstance(key.this, exp.Column) and len(key.this.parts) == 1 and key.this.name in names
            if not is_selected and not isinstance(key.this, exp.Literal):
                trees = [one for one in selected if not isinstance(one, Column)]
                found[at] = exp.alias_(without_aliases(key.this, trees, ()), f"ORDER${at}")
        return found

    def _ordered(self, relation: Relation, tree: Tree, unseen: Sequence[int] = ()) -> Relation:
        """Sort as asked for; keys numbered in `unseen` are the last columns, which are removed again."""
        order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return relation
        if not self.is_batch and order is not None:
            remedy = "run the query in batch mode: EnvironmentSettings.in_batch_mode(), or leave it out"
            raise SqlError("ORDER BY over a stream that goes on", remedy, "", place_of(order))
        keys: list[tuple[int, bool, bool]] = []
        width = len(relation.schema) - len(unseen)
        for number, one in enumerate(order.expressions if order is not None else ()):
            down = bool(one.args.get("desc"))
            at = (
                width + unseen.index(number) if number in unseen else self._order_key(one.this, relation.schema[:width])
            )
            ensure_order(relation.schema[at].type, place_of(one))
            keys.append((at, down, bool(one.args.get("nulls_first"))))
        count = None if limit is None else self._count(limit)
        first = 0 if offset is None else self._whole(offset.expression)
        made = Sort(relation.schema, relation, tuple(keys), first, count)
        return project(made, [made.column(at) for at in range(width)], made.names[:width]) if unseen else made

    def _order_key(self, tree: Tree, schema: Schema) -> int:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            at = int(tree.this) - 1
            if not 0 <= at < len(schema):
                raise SqlError(f"there is no column {tree.this}", f"there are {len(schema)}", "", place_of(tree))
            return at
        found = self.expressions(Scope.of("", schema)).bind(tree)
        if not isinstance(found, Column):
            raise SqlError("ORDER BY of an expression", "select it with a name, and order by that", "", place_of(tree))
        return found.index

    def _count(self, limit: Tree) -> int:
        """Return the number of rows that LIMIT or FETCH keeps."""
        if isinstance(limit, exp.Limit):
            return self._whole(limit.expression)
        asked = limit.args.get("limit_options")
        if asked is not None and (asked.args.get("percent") or asked.args.get("with_ties")):
            remedy = "write for example FETCH NEXT 10 ROWS ONLY"
            raise SqlError("FETCH keeps a number of rows", remedy, "", place_of(limit))
        count = limit.args.get("count")
        return 1 if count is None else self._whole(count)

    def _whole(self, tree: Tree) -> int:
        if not isinstance(tree, exp.Literal) or tree.is_string or not tree.this.isdecimal():
            raise SqlError("a whole number is wanted", "write for example LIMIT 10", "", place_of(tree))
        return min(int(tree.this), _MOST_ROWS)

    # VALUES, UNION

    def _values(self, tree: Tree) -> Relation:
        binder = self.expressions(Scope(()))
        rows = [
            [binder.bind(one) for one in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in tree.expressions
        ]
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            raise SqlError("rows of different lengths", "give each row as many values", "", place_of(tree))
        kinds = [common_type([row[at].type for row in rows]) for at in range(width)]
        for at, kind in enumerate(kinds):
            if kind is None:
                found = ", ".join(str(row[at].type) for row in rows)
                raise SqlError(f"column {at + 1} has types {found}", "cast them to one type", "", place_of(tree))
        schema = tuple(Attribute(f"EXPR${at}", kind) for at, kind in enumerate(kinds) if kind is not None)
        exprs = [tuple(cast(one, kind) for one, kind in zip(row, kinds, strict=True) if kind) for row in rows]
        if all(isinstance(one, Literal) for row in exprs for one in row):
            return Values(schema, tuple(tuple(one.value for one in row if isinstance(one, Literal)) for row in exprs))
        nothing = Values((), ((),))
        parts = tuple(Project(schema, nothing, row) for row in exprs)
        return parts[0] if len(parts) == 1 else Union(schema, parts)

    def _values_query(self, tree: Tree) -> Relation:
        return self._ordered(self._values(tree), tree)

    def _union(self, tree: Tree) -> Relation:
        place = place_of(tree)
        sides: list[Relation] = []
        for side in (tree.this, tree.expression):
            found = self.bind(side)
            sides += found.sources if isinstance(found, Union) else [found]
        united: Relation = _union(sides, place)
        if tree.args.get("distinct"):
            united = set_operations.distinct(united, place, self.is_batch)
        return self._ordered(united, tree)

    def _nested(self, tree: Tree) -> Relation:
        return self._ordered(self.bind(tree.this), tree)

    def _combined(self, tree: Tree) -> Relation:
        """INTERSECT and EXCEPT of whole tables."""
        word, place = type(tree).__name__.upper(), place_of(tree)
        if not self.is_batch:
            remedy = "run the query in batch mode; or join or filter instead"
            raise SqlError(f"{word} keeps all rows for ever", remedy, "", place)
        if not tree.args.get("distinct"):
            raise SqlError(f"{word} ALL is not supported", f"write {word}, which gives each row once", "", place)
        united = _union([self.bind(tree.this), self.bind(tree.expression)], place, word)
        assert isinstance(united, Union)
        return self._ordered(set_operations.combined(united, word == "INTERSECT", place), tree)

    _BINDERS: ClassVar[dict[type, Callable[[Any, Tree], Relation]]] = {
        exp.Select: _select,
        exp.Values: _values_query,
        exp.Union: _union,
        exp.Subquery: _nested,
        exp.Intersect: _combined,
        exp.Except: _combined,
    }


def project(relation: Relation, exprs: list[Expr], names: list[str]) -> Relation:
    """New columns; one that is a column below keeps its part in time."""
    schema: list[Attribute] = []
    for expr, name in zip(exprs, names, strict=True):
        below = relation.schema[expr.index] if isinstance(expr, Column) else None
        if below is not None:
            schema.append(replace(below, name=name))
        else:
            part = TimePart.PROCTIME if str(expr) == "PROCTIME()" else None
            schema.append(Attribute(name, expr.type, part))
    same = [isinstance(one, Column) and one.index == at for at, one in enumerate(exprs)]
    if all(same) and names == relation.names:
        return relation
    return Project(tuple(schema), relation, tuple(exprs))


def renamed(relation: Relation, names: list[str], place: Any) -> Relation:
    """Return the same columns under other names.

    Raises:
        SqlError: there are more or fewer.
    """
    if len(names) != len(relation.schema):
        problem = f"{len(names)} names for {len(relation.schema)} columns"
        raise SqlError(problem, "name all of them, or none", "", place)
    return project(relation, [relation.column(at) for at in range(len(names))], names)


def as_it_was(relation: Relation, names: Sequence[str], view: str, place: Any) -> Relation:
    """Return the columns that a view had when it was made: `*` stands for those of that time.

    Raises:
        SqlError: one is there no more.
    """
    if not names or relation.names == list(names):
        return relation
    for one in names:
        if one not in relation.names:
            problem = f"view {view!r} has a column {one!r}, which its query does not give any more"
            raise SqlError(problem, "create the view anew", "", place)
    return project(relation, [relation.column(relation.names.index(one)) for one in names], list(names))


def _union(sides: list[Relation], place: Place | None, word: str = "UNION ALL") -> Relation:
    """Return the rows of all, in the types that hold those of each.

    Raises:
        SqlError: they have other columns.
    """
    width = len(sides[0].schema)
    if any(len(one.schema) != width for one in sides):
        counts = " and ".join(str(len(one.schema)) for one in sides)
        raise SqlError(f"{word} of {counts} columns", "select as many columns in each", "", place)
    kinds = [common_type([one.schema[at].type for one in sides]) for at in range(width)]
    for at, kind in enumerate(kinds):
        if kind is None:
            found_kinds = " and ".join(str(one.schema[at].type) for one in sides)
            problem = f"column {sides[0].schema[at].name!r} of {word} has types {found_kinds}"
            raise SqlError(problem, "cast them to one type", "", place)
    schema = tuple(
        Attribute(one.name, kind, _common_part(sides, at), one.windowing)
        for at, (one, kind) in enumerate(zip(sides[0].schema, kinds, strict=True))
        if kind is not None
    )
    return Union(schema, tuple(_cast_to(one, schema) for one in sides))


def _cast_to(relation: Relation, schema: Schema) -> Relation:
    kinds = [one.type for one in relation.schema]
    if all(kind.nullable() == one.type.nullable() for kind, one in zip(kinds, schema, strict=True)):
        return relation
    exprs = [cast(relation.column(at), one.type) for at, one in enumerate(schema)]
    return Project(schema, relation, tuple(exprs))


def _common_part(sides: list[Relation], at: int) -> TimePart | None:
    """Return the part in time that a column has in all inputs; bounds of other windows have none."""
    found = [one.schema[at] for one in sides]
    windows = {None if one.windowing is None else one.windowing.describe_without_time() for one in found}
    parts = {one.part for one in found}
    return found[0].part if len(parts) == len(windows) == 1 else None


def _name_of(tree: Tree, at: int) -> str:
    """Return the name of a selected expression that has no alias."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return str(tree.name) if isinstance(tree, exp.Column) else f"EXPR${at}"


def _distinct(names: list[str]) -> list[str]:
    """Names, of which a second of its kind gets a number."""
    found: list[str] = []
    for name in names:
        number, fresh = 0, name
        while fresh in found:
            fresh, number = f"{name}{number}", number + 1
        found.append(fresh)
    return found
