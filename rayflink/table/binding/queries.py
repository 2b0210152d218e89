"""Queries as logical plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlglot import exp

from ..errors import SqlError
from ..parsing.grammar import is_table
from ..parsing.hints import HINTED
from ..parsing.match_clauses import MatchClause
from ..parsing.program_nodes import BoundTable, awaits_limit
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
from ..plan.ranks import ENDLESS_ORDER, is_by_time
from ..plan.type_rules import common_type
from ..plan.typed import Column, Expr, Function, Literal, Place
from . import changelog_columns, joins, laterals, model_calls, process_tables, scalar_queries, set_operations, windows
from .aggregate_calls import aggregates_in
from .expressions import ExpressionBinder, cast, place_of
from .grouping import GroupedSelect, distinct_in_windows
from .grouping_sets import GroupingSet, grouping_sets
from .hints.lookup_hints import check_lookup_hints
from .hints.multi_join_hints import with_multi_joins
from .hints.state_ttl import hinted_ttl, with_side_ttls, with_ttl
from .match_recognize import match_recognize
from .numbering import ensure_order, expand_aliases, first_in_order, numberings_in
from .over import add_over_columns, named_windows
from .scope import Scope
from .user_aggregates import with_user_aggregates
from .versioned_joins import misplaced_version, tables_with_versions

Lookup = Callable[[Path, Any, Mapping[str, str]], Relation]
"""The relation of a table or view by the parts of its name, where that stands in the text, and options for this use."""


_MOST_ROWS = 2**61
"""No table has more, and two of it are still a number of 64 bits."""


@dataclass(frozen=True)
class SelectParts:
    """The parts of a SELECT: expressions, the condition of QUALIFY, the calls with OVER in both, and named windows."""

    selected: list[Any]
    condition: Tree | None
    numberings: list[Tree]
    windows: Mapping[str, Tree]


@dataclass(frozen=True)
class QueryBinder:
    """Binds a query.

    Args:
        lookup: finds tables and views.
        functions: the user's functions by their names in capitals.
        is_batch: the query is over whole tables, which may be sorted.
        emit: when windows show results in addition to their end.
        with_queries: those of WITH, by name.
        models: finds models.
    """

    lookup: Lookup
    functions: Mapping[str, Function] = field(default_factory=dict)
    is_batch: bool = False
    emit: EmitOptions = EmitOptions()
    with_queries: Mapping[str, Relation] = field(default_factory=dict)
    models: model_calls.Models = model_calls.no_models

    def bind(self, tree: Tree) -> Relation:
        """Return the plan of a query.

        Raises:
            SqlError: it means nothing, or what is not supported.
        """
        inner = self._with(tree)
        binder = self._BINDERS.get(type(tree))
        if binder is None:
            raise SqlError("this kind of query is not supported", "see docs/sql.md", "", place_of(tree))
        return binder(inner, tree)

    def expressions(self, scope: Scope) -> ExpressionBinder:
        """Binds expressions over columns."""
        return ExpressionBinder(scope, functions=self.functions)

    def _with(self, tree: Tree) -> QueryBinder:
        named = tree.args.get("with_")
        inner = self
        aliases: set[str] = set()
        for query in named.expressions if named is not None else ():
            if query.alias in aliases:
                problem = f"WITH has two queries named {query.alias!r}"
                raise SqlError(problem, "give it another name", "", place_of(query.args["alias"]))
            aliases.add(query.alias)
            relation = inner.bind(query.this)
            names = [column.name for column in query.args["alias"].columns]
            relation = rename_columns(relation, names, place_of(query)) if names else relation
            inner = replace(inner, with_queries={**inner.with_queries, query.alias: relation})
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
        return self._add_joins(relation, scope, tree)

    def add_values(self, relation: Relation, scope: Scope, tree: Tree) -> tuple[Tree, Relation, Scope]:
        """Return a SELECT with columns in place of queries as values, the rows with these columns, and all columns."""
        return scalar_queries.add_values(self, relation, scope, tree)

    def _add_joins(self, relation: Relation, scope: Scope, tree: Tree) -> tuple[Relation, Scope]:
        """Add the joins that stand behind a table."""
        for join in tree.args.get("joins") or ():
            is_call = self._is_call_of_tables(join.this)
            lateral = None if is_call else laterals.add_lateral(self.expressions(scope), relation, scope, join)
            relation, scope = joins.add_join(self, relation, scope, join) if lateral is None else lateral
        return relation, scope

    def _is_call_of_tables(self, tree: Tree) -> bool:
        """Return whether a part of FROM is a call of a function of tables, other than a window's."""
        is_changelog = changelog_columns.is_changelog_call(tree)
        return is_changelog or process_tables.process_function(tree, self.functions) is not None

    def table(self, tree: Tree) -> tuple[Relation, Scope]:
        """Return a table of FROM, or several in parentheses.

        Raises:
            SqlError: there is none of the name, or it means nothing.
        """
        if tree.args.get("version") is not None:
            raise misplaced_version(tree)
        if isinstance(tree, BoundTable) and tree.args.get("scope") is not None:
            return tree.this, tree.args["scope"]
        if laterals.is_lateral(tree) and not self._is_call_of_tables(tree):
            return laterals.bind_lateral(self.expressions(Scope(())), tree)
        alias_clause = tree.args.get("alias")
        if isinstance(tree, exp.Subquery) and is_table(tree.this):
            relation, scope = self.table(tree.this)
            if isinstance(alias_clause, MatchClause):
                relation = match_recognize(relation, scope, alias_clause, self.functions, self.is_batch)
            if alias_clause is not None:
                if alias_clause.columns:
                    relation = rename_columns(
                        relation, [column.name for column in alias_clause.columns], place_of(tree)
                    )
                scope = Scope.of(alias_clause.name, relation.schema)
            return self._add_joins(relation, scope, tree)
        relation, alias = self._unnamed_table(tree)
        if isinstance(alias_clause, MatchClause):
            scope = Scope.of(alias, relation.schema)
            relation, alias = match_recognize(relation, scope, alias_clause, self.functions, self.is_batch), ""
        if alias_clause is not None:
            alias = alias_clause.name or alias
            relation = _rename_by(alias_clause, relation, tree)
        return self._add_joins(relation, Scope.of(alias, relation.schema), tree)

    def _unnamed_table(self, tree: Tree) -> tuple[Relation, str]:
        if isinstance(tree, (exp.Subquery, exp.Paren)):
            return self.bind(tree.this), ""
        if isinstance(tree, exp.Values):
            return self._values(tree), ""
        if isinstance(tree, BoundTable):
            return tree.this, ""
        if not isinstance(tree, exp.Table):
            raise SqlError(
                "this is not a table", "give the name of a table, or a query in parentheses", "", place_of(tree)
            )
        process = process_tables.process_function(tree, self.functions)
        if process is not None:
            return process_tables.bind_process(self, tree.this, process), process.name.lower()
        if changelog_columns.is_changelog_call(tree):
            return changelog_columns.bind_changelog_call(self, tree.this), str(tree.this.name).lower()
        if model_calls.is_prediction(tree.this):
            return model_calls.bind_prediction(self, tree.this, self.models), "ml_predict"
        if isinstance(tree.this, exp.Anonymous):
            call = windows.table_call(tree.this)
            relation, scope = self.table(call.table.this)
            return windows.window_table(call, relation, scope), call.kind.value.lower()
        path, hints = tuple(part.name for part in tree.parts), tree.meta.get(HINTED) or {}
        if len(path) == 1 and path[0] in self.with_queries:
            if hints:
                raise SqlError(
                    "the hint OPTIONS is on a query of WITH", "write them behind a table", "", place_of(tree)
                )
            return self.with_queries[path[0]], path[0]
        return self.lookup(path, place_of(tree), hints), path[-1]

    # SELECT

    def _select(self, tree: Tree) -> Relation:
        if not tree.expressions:
            raise SqlError("SELECT has no columns", "write columns or *", "", place_of(tree))
        tree = with_user_aggregates(tree, self.functions)
        relation, scope = self.from_clause(tree)
        hinted_ttl(tree, scope)  # its errors are raised whatever state the query keeps
        relation = with_multi_joins(with_side_ttls(relation, tree, scope), tree, scope)
        check_lookup_hints(tree, scope, tables_with_versions(tree))
        from_scope = scope
        tree, relation, scope = self.add_values(relation, scope, tree)
        if where := tree.args.get("where"):
            aggregates = aggregates_in(where.this)
            if aggregates:
                remedy = "write conditions on aggregates in HAVING"
                raise SqlError("WHERE has an aggregate", remedy, "", place_of(aggregates[0]))
            relation = self._where(relation, scope, where)
        having = tree.args.get("having")
        selected = self._stars(tree.expressions, from_scope)
        unseen = self._hidden_order_keys(tree, selected)
        parts = self._select_parts(tree, [*selected, *unseen.values()], scope)
        has_clause = tree.args.get("group") is not None or having is not None
        if has_clause or any(aggregates_in(item) for item in selected if not isinstance(item, Column)):
            sets = grouping_sets(tree.args.get("group"))
            if len(sets) > 1 and parts.numberings:
                remedy = "number the rows in an outer query"
                raise SqlError(
                    "ROW_NUMBER() with grouping sets is not supported", remedy, "", place_of(parts.numberings[0])
                )
            results = [self._group(relation, scope, tree, parts, grouping_set) for grouping_set in sets]
            projected = results[0] if len(results) == 1 else _union(results, place_of(tree))
        else:
            relation, numbers = self._add_over(relation, parts, self.expressions(scope))
            projected = self._qualify(relation, parts, self._numbering_binder(scope, relation, numbers))
        if tree.args.get("distinct") is not None:
            projected = with_ttl(self._distinct(projected, place_of(tree)), hinted_ttl(tree, scope))
        return self._sort(projected, tree, list(unseen))

    def _where(self, relation: Relation, scope: Scope, where: Tree) -> Relation:
        conjuncts = joins.conjuncts(where.this)
        with_query = [conjunct for conjunct in conjuncts if joins.has_subquery(conjunct)]
        binder = self.expressions(scope)
        if not with_query:
            condition = binder.condition(where.this, "the condition of WHERE")
            return Filter(relation.schema, relation, condition, place=place_of(where))
        for conjunct in conjuncts:
            if conjunct not in with_query:
                condition = binder.condition(conjunct, "the condition of WHERE")
                relation = Filter(relation.schema, relation, condition, place=place_of(conjunct))
        for conjunct in with_query:
            relation = joins.filter_by_query(self, relation, scope, conjunct)
        return relation

    def _distinct(self, relation: Relation, place: Place | None) -> Relation:
        """Remove repeated rows, of all rows or within windows."""
        has_bounds = {TimePart.WINDOW_START, TimePart.WINDOW_END} <= {attribute.part for attribute in relation.schema}
        if has_bounds:
            return distinct_in_windows(relation)
        return set_operations.distinct(relation, place, self.is_batch)

    def _group(
        self, relation: Relation, scope: Scope, tree: Tree, parts: SelectParts, grouping_set: GroupingSet
    ) -> Relation:
        """Return the rows of one grouping set."""
        group = GroupedSelect.from_select(self.expressions(scope), relation, scope, tree, grouping_set, self.is_batch)
        rows = with_ttl(self._with_emission(group.relation), hinted_ttl(tree, scope))
        having = tree.args.get("having")
        if having is not None:
            rows = Filter(rows.schema, rows, group.condition(having.this), place=place_of(having))
        group.add_numbers(*self._add_over(rows, parts, group.expressions))
        return self._qualify(group.relation, parts, group)

    def _select_parts(self, tree: Tree, selected: list[Any], scope: Scope) -> SelectParts:
        """Return the parts of SELECT and QUALIFY."""
        qualify, trees = tree.args.get("qualify"), [item for item in selected if not isinstance(item, Column)]
        condition = None
        if qualify is not None:
            condition = expand_aliases(qualify.this, trees, [column.name for column in scope.schema])
            if not numberings_in(condition):
                remedy = "QUALIFY rn <= 3 needs ROW_NUMBER() OVER (...) AS rn in SELECT; otherwise write WHERE"
                raise SqlError("QUALIFY has no function with OVER", remedy, "", place_of(qualify))
        calls = [call for part in (*trees, condition) for call in numberings_in(part)]
        return SelectParts(selected, condition, calls, named_windows(tree))

    def _add_over(
        self, relation: Relation, parts: SelectParts, binder: ExpressionBinder
    ) -> tuple[Relation, list[tuple[Tree, int]]]:  # fmt: skip
        """Return the relation with a column for each call with OVER, and which is of which."""
        return add_over_columns(relation, parts.numberings, parts.windows, binder, self.is_batch)

    def _numbering_binder(self, scope: Scope, relation: Relation, numbers: list[tuple[Tree, int]]) -> ExpressionBinder:
        def column_of_number(tree: Tree) -> Expr | None:
            return next((relation.column(column) for numbering, column in numbers if numbering == tree), None)

        return ExpressionBinder(scope, column_of_number, self.functions)

    def _qualify(self, relation: Relation, parts: SelectParts, binder: ExpressionBinder | GroupedSelect) -> Relation:
        """Filter the selected rows by QUALIFY."""
        if parts.condition is not None:
            condition = binder.condition(parts.condition, "the condition of QUALIFY")
            relation = Filter(relation.schema, relation, condition, place=place_of(parts.condition))
        return self._project(relation, parts.selected, binder.bind)

    def _with_emission(self, relation: Relation) -> Relation:
        """Return a window that shows results as often as the options say."""
        if self.is_batch or not isinstance(relation, WindowAggregate):
            return relation
        if relation.windowing is None:
            self.emit.check_table_function(relation.place)
            return relation
        return replace(relation, emission=self.emit.of_window(relation.windowing, relation.place))

    def _stars(self, trees: list[Tree], scope: Scope) -> list[Any]:
        """Expand `*` in the selected trees to columns."""
        expanded: list[Any] = []
        for tree in trees:
            if isinstance(tree, exp.Star):
                expanded += scope.columns(None, place_of(tree))
            elif isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
                expanded += scope.columns(tree.table, place_of(tree))
            else:
                expanded.append(tree)
        return expanded

    def _project(self, relation: Relation, selected: list[Any], bind: Callable[[Tree], Expr]) -> Relation:
        exprs: list[Expr] = []
        names: list[str] = []
        for position, item in enumerate(selected):
            if isinstance(item, Column):
                exprs.append(item)
                names.append(item.name)
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            exprs.append(bind(inner))
            names.append(item.alias if isinstance(item, exp.Alias) else _name_of(inner, position))
        return project(relation, exprs, _distinct(names))

    def _hidden_order_keys(self, tree: Tree, selected: list[Any]) -> dict[int, Tree]:
        """Return the expressions that ORDER BY needs and SELECT lacks, by the number of the key."""
        order = tree.args.get("order")
        if order is None or tree.args.get("distinct") is not None:
            return {}
        names = [item.name if isinstance(item, (Column, exp.Column)) else item.alias for item in selected]
        hidden: dict[int, Tree] = {}
        for position, key in enumerate(order.expressions):
            is_selected = isinstance(key.this, exp.Column) and len(key.this.parts) == 1 and key.this.name in names
            if not is_selected and not isinstance(key.this, exp.Literal):
                trees = [item for item in selected if not isinstance(item, Column)]
                hidden[position] = exp.alias_(expand_aliases(key.this, trees, ()), f"ORDER${position}")
        return hidden

    def _sort(self, relation: Relation, tree: Tree, unseen: Sequence[int] = ()) -> Relation:
        """Sort as asked for; keys numbered in `unseen` are the last columns, which are removed again."""
        order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return relation
        keys: list[tuple[int, bool, bool]] = []
        width = len(relation.schema) - len(unseen)
        for number, key_tree in enumerate(order.expressions if order is not None else ()):
            is_descending = bool(key_tree.args.get("desc"))
            if number in unseen:
                column = width + unseen.index(number)
            else:
                column = self._order_key(key_tree.this, relation.schema[:width])
            ensure_order(relation.schema[column].type, place_of(key_tree))
            keys.append((column, is_descending, bool(key_tree.args.get("nulls_first"))))
        count = None if limit is None else self._count(limit)
        first = 0 if offset is None else self._whole(offset.expression)
        if self.is_batch or not keys or count is None:
            rows = Sort(relation.schema, relation, tuple(keys), first, count)
            if not (self.is_batch or order is None or awaits_limit(order) or is_by_time(rows)):
                raise SqlError(*ENDLESS_ORDER, "", place_of(order))
            ordered: Relation = rows
        elif count:
            ordered = first_in_order(relation, keys, first, count)
        else:
            ordered = Sort(relation.schema, relation, (), 0, 0)
        if not unseen and len(ordered.schema) == width:
            return ordered
        return project(ordered, [ordered.column(index) for index in range(width)], ordered.names[:width])

    def _order_key(self, tree: Tree, schema: Schema) -> int:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            column = int(tree.this) - 1
            if not 0 <= column < len(schema):
                raise SqlError(
                    f"there is no column {tree.this}", f"the query has {len(schema)} columns", "", place_of(tree)
                )
            return column
        expr = self.expressions(Scope.of("", schema)).bind(tree)
        if not isinstance(expr, Column):
            raise SqlError(
                "ORDER BY has an expression", "select it under an alias, and order by the alias", "", place_of(tree)
            )
        return expr.index

    def _count(self, limit: Tree) -> int:
        """Return the number of rows that LIMIT or FETCH keeps."""
        if isinstance(limit, exp.Limit):
            return self._whole(limit.expression)
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            remedy = "write for example FETCH NEXT 10 ROWS ONLY"
            raise SqlError("FETCH takes a number of rows, without PERCENT and WITH TIES", remedy, "", place_of(limit))
        count = limit.args.get("count")
        return 1 if count is None else self._whole(count)

    def _whole(self, tree: Tree) -> int:
        if not isinstance(tree, exp.Literal) or tree.is_string or not tree.this.isdecimal():
            raise SqlError(f"{tree.sql()} is not a whole number", "write for example LIMIT 10", "", place_of(tree))
        return min(int(tree.this), _MOST_ROWS)

    # VALUES, UNION

    def _values(self, tree: Tree) -> Relation:
        binder = self.expressions(Scope(()))
        rows = [
            [binder.bind(value) for value in (row.expressions if isinstance(row, exp.Tuple) else [row])]
            for row in tree.expressions
        ]
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            raise SqlError(
                "VALUES has rows of different lengths", "give each row the same number of values", "", place_of(tree)
            )
        kinds = [common_type([row[column].type for row in rows]) for column in range(width)]
        for column, kind in enumerate(kinds):
            if kind is None:
                types = ", ".join(str(row[column].type) for row in rows)
                raise SqlError(
                    f"column {column + 1} of VALUES has types {types}", "cast them to one type", "", place_of(tree)
                )
        schema = tuple(Attribute(f"EXPR${column}", kind) for column, kind in enumerate(kinds) if kind is not None)
        exprs = [tuple(cast(value, kind) for value, kind in zip(row, kinds, strict=True) if kind) for row in rows]
        if all(isinstance(value, Literal) for row in exprs for value in row):
            literals = (tuple(value.value for value in row if isinstance(value, Literal)) for row in exprs)
            return Values(schema, tuple(literals))
        nothing = Values((), ((),))
        parts = tuple(Project(schema, nothing, row) for row in exprs)
        return parts[0] if len(parts) == 1 else Union(schema, parts)

    def _values_query(self, tree: Tree) -> Relation:
        return self._sort(self._values(tree), tree)

    def _union(self, tree: Tree) -> Relation:
        place = place_of(tree)
        sides: list[Relation] = []
        for side in (tree.this, tree.expression):
            relation = self.bind(side)
            sides += relation.sources if isinstance(relation, Union) else [relation]
        united: Relation = _union(sides, place)
        if tree.args.get("distinct"):
            united = set_operations.distinct(united, place, self.is_batch)
        return self._sort(united, tree)

    def _subquery_in_parentheses(self, tree: Tree) -> Relation:
        return self._sort(self.bind(tree.this), tree)

    def _intersect_or_except(self, tree: Tree) -> Relation:
        """INTERSECT and EXCEPT."""
        word, place, is_all = type(tree).__name__.upper(), place_of(tree), not tree.args.get("distinct")
        united = _union([self.bind(tree.this), self.bind(tree.expression)], place, word)
        assert isinstance(united, Union)
        rows = set_operations.intersect_or_except(united, word == "INTERSECT", is_all, place, self.is_batch)
        return self._sort(rows, tree)

    _BINDERS: ClassVar[dict[type, Callable[[Any, Tree], Relation]]] = {
        exp.Select: _select,
        exp.Values: _values_query,
        exp.Union: _union,
        exp.Subquery: _subquery_in_parentheses,
        exp.Intersect: _intersect_or_except,
        exp.Except: _intersect_or_except,
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
    same = [isinstance(expr, Column) and expr.index == index for index, expr in enumerate(exprs)]
    if all(same) and names == relation.names:
        return relation
    return Project(tuple(schema), relation, tuple(exprs))


def _rename_by(alias: Tree, relation: Relation, tree: Tree) -> Relation:
    """Return a table of FROM under the column names of its alias, if that lists some."""
    if not alias.columns:
        return relation
    return rename_columns(relation, [column.name for column in alias.columns], place_of(tree))


def rename_columns(relation: Relation, names: list[str], place: Any) -> Relation:
    """Return the same columns under other names.

    Raises:
        SqlError: there are more or fewer.
    """
    if len(names) != len(relation.schema):
        problem = f"{len(names)} names for {len(relation.schema)} columns"
        raise SqlError(problem, "name all of them, or none", "", place)
    return project(relation, [relation.column(index) for index in range(len(names))], names)


def restore_view_columns(relation: Relation, names: Sequence[str], view: str, place: Any) -> Relation:
    """Return the columns that a view had when it was made: `*` stands for those of that time.

    Raises:
        SqlError: one is there no more.
    """
    if not names or relation.names == list(names):
        return relation
    for name in names:
        if name not in relation.names:
            problem = f"view {view!r} has a column {name!r}, which its query no longer returns"
            raise SqlError(problem, "create the view again", "", place)
    return project(relation, [relation.column(relation.names.index(name)) for name in names], list(names))


def _union(sides: list[Relation], place: Place | None, word: str = "UNION ALL") -> Relation:
    """Return the rows of all, in the types that hold those of each.

    Raises:
        SqlError: they have other columns.
    """
    width = len(sides[0].schema)
    if any(len(side.schema) != width for side in sides):
        counts = " and ".join(str(len(side.schema)) for side in sides)
        raise SqlError(
            f"{word} combines queries of {counts} columns", "select the same number of columns in each", "", place
        )
    kinds = [common_type([side.schema[index].type for side in sides]) for index in range(width)]
    for index, kind in enumerate(kinds):
        if kind is None:
            found_kinds = " and ".join(str(side.schema[index].type) for side in sides)
            problem = f"column {sides[0].schema[index].name!r} of {word} has types {found_kinds}"
            raise SqlError(problem, "cast them to one type", "", place)
    schema = tuple(
        Attribute(first.name, kind, _common_part(sides, index), first.windowing)
        for index, (first, kind) in enumerate(zip(sides[0].schema, kinds, strict=True))
        if kind is not None
    )
    return Union(schema, tuple(_cast_to(side, schema) for side in sides))


def _cast_to(relation: Relation, schema: Schema) -> Relation:
    kinds = [attribute.type for attribute in relation.schema]
    if all(kind.nullable() == attribute.type.nullable() for kind, attribute in zip(kinds, schema, strict=True)):
        return relation
    exprs = [cast(relation.column(index), attribute.type) for index, attribute in enumerate(schema)]
    return Project(schema, relation, tuple(exprs))


def _common_part(sides: list[Relation], column: int) -> TimePart | None:
    """Return the part in time that a column has in all inputs; bounds of other windows have none."""
    attributes = [side.schema[column] for side in sides]
    windows = {
        None if attribute.windowing is None else attribute.windowing.describe_without_time() for attribute in attributes
    }
    parts = {attribute.part for attribute in attributes}
    return attributes[0].part if len(parts) == len(windows) == 1 else None


def _name_of(tree: Tree, position: int) -> str:
    """Return the name of a selected expression that has no alias."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return str(tree.name) if isinstance(tree, exp.Column) else f"EXPR${position}"


def _distinct(names: list[str]) -> list[str]:
    """Names, of which a second of its kind gets a number."""
    distinct_names: list[str] = []
    for name in names:
        number, fresh = 0, name
        while fresh in distinct_names:
            fresh, number = f"{name}{number}", number + 1
        distinct_names.append(fresh)
    return distinct_names
