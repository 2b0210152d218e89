"""Queries as values, such as price > (SELECT AVG(price) FROM t): each is joined, and its column stands in its place.

A query that compares its columns with those outside by = is grouped by its own columns, and joined by them. One that
uses columns outside in another way is run for the distinct values of these, see `outer_columns`. A query that does not
aggregate may return one row at most, which is checked where the query runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import SqlError
from ..functions.row_counts import SINGLE_VALUE
from ..parsing.program_nodes import Applied, BoundTable
from ..parsing.statements import Tree
from ..plan.joins import Join, JoinKind, joined_schema
from ..plan.logical import Attribute, Project, Relation
from ..plan.typed import Expr, Literal
from ..types import DataTypes
from .aggregate_calls import aggregates_in
from .expressions import call, place_of
from .joins import Queries, conjuncts
from .outer_columns import OuterValues, equality, is_plain, outer_columns
from .scope import Scope

_TRUE = Literal(DataTypes.BOOLEAN(False), True)


def queries_in(tree: object) -> list[Tree]:
    """Return the queries that stand for values in a tree, but not those of IN, EXISTS, ANY and ALL."""
    if isinstance(tree, exp.Subquery):
        return [tree]
    if not isinstance(tree, exp.Expression) or isinstance(tree, (exp.Select, exp.Exists, exp.Any, exp.All)):
        return []
    if isinstance(tree, exp.In) and tree.args.get("query") is not None:
        return queries_in(tree.this)
    return [query for child in tree.iter_expressions() for query in queries_in(child)]


def add_values(queries: Queries, relation: Relation, scope: Scope, tree: Tree) -> tuple[Tree, Relation, Scope]:
    """Return a SELECT with columns in place of queries, the rows of its FROM with these columns, and all columns.

    Args:
        relation: the rows of FROM.
        scope: their columns; those of queries come behind them.

    Raises:
        SqlError: a query has several columns, or means nothing.
    """
    clauses = [clause for name in ("where", "having", "qualify") if (clause := tree.args.get(name)) is not None]
    if not any(map(queries_in, [*tree.expressions, *clauses])):
        return tree, relation, scope
    is_grouped = any(tree.args.get(name) for name in ("group", "having")) or any(map(aggregates_in, tree.expressions))
    tree = tree.copy()
    if not scope.width:  # without FROM: a join needs a column
        row = Attribute("$row", DataTypes.BOOLEAN(False))
        relation, scope = Project((row,), relation, (_TRUE,)), Scope.of("", (row,))
    values = _Values(queries, relation, scope)
    for name in ("where", "having", "qualify"):
        for query in queries_in(tree.args.get(name)):
            is_of_group = is_grouped and name != "where" and not _is_in_aggregate(query)
            query.replace(values.of(query, is_of_group))
    for item in list(tree.expressions):
        for query in queries_in(item):
            query.replace(values.of(query, is_grouped and not _is_in_aggregate(query)))
    return tree, values.relation, values.scope


def _is_in_aggregate(query: Tree) -> bool:
    """Return whether a query is an argument of an aggregate, or in its FILTER, and has a value for each row."""
    above = query.parent
    while above is not None and not isinstance(above, exp.Select):
        if aggregates_in(above) == [above]:
            return True
        above = above.parent
    return False


@dataclass(frozen=True)
class _Value:
    """A query that gives one row for each row outside.

    Args:
        query: the query, with the columns of `keys`.
        keys: expressions outside that are equal to these.
        value: the value, over the columns of the query and those outside.
        nulls_match: whether NULL in a key is equal to NULL.
        first_key: the column of the first key.
    """

    query: Tree
    keys: list[Tree]
    value: Tree
    nulls_match: bool = False
    first_key: int = 0


class _Values:
    """Joins the rows of FROM with queries.

    Args:
        queries: binds them.
        relation: the rows of FROM.
        scope: their columns.
    """

    def __init__(self, queries: Queries, relation: Relation, scope: Scope) -> None:
        self._queries, self._outside, self._rows = queries, scope, relation
        self.relation, self.scope = relation, scope
        self._known: list[tuple[Tree, _Value]] = []

    def of(self, tree: Tree, is_grouped: bool) -> Tree:
        """Return the value of a query.

        Args:
            is_grouped: it stands where rows are grouped, and has one value for all of them.
        """
        place = place_of(tree)
        value = next((value for query, value in self._known if query == tree.this), None)
        if value is None:
            alias = f"$query{len(self._known)}"
            value = self._value(tree, alias)
            self._known.append((tree.this, value))
            self._join(value, alias, tree)
        if is_grouped and value.keys:
            problem = "a query as a value is compared with columns outside, whose rows are grouped"
            raise SqlError(problem, "join the tables, and group them in an outer query", "", place)
        return _greatest(value.value) if is_grouped else value.value.copy()

    def _join(self, value: _Value, alias: str, tree: Tree) -> None:
        right, place, width = self._queries.bind(value.query), place_of(tree), len(self.relation.schema)
        condition: Expr = _TRUE
        schema = joined_schema(self.relation.schema, right.schema, JoinKind.LEFT)
        binder = self._queries.expressions(self._outside)
        for number, key in enumerate(value.keys):
            column = replace(right.column(value.first_key + number), index=width + value.first_key + number)
            outer = binder.bind(key)
            equal = call(equality(outer) if value.nulls_match else "=", [outer, column], place)
            condition = equal if condition is _TRUE else call("AND", [condition, equal], place)
        is_batch = self._queries.is_batch
        self.relation = Join(schema, self.relation, right, JoinKind.LEFT, condition, is_batch, place=place)
        self.scope = self.scope.beside(Scope.of(alias, right.schema).missing())

    def _value(self, tree: Tree, alias: str) -> _Value:
        query = tree.this
        while isinstance(query, (exp.Subquery, exp.Paren)):
            query = query.this
        if not is_plain(query) or query.args.get("from_") is None or len(query.expressions) != 1:
            return self._of_any(query, alias, tree)
        [selected] = query.expressions
        selected = selected.this if isinstance(selected, exp.Alias) else selected
        if isinstance(selected, exp.Star) or (isinstance(selected, exp.Column) and isinstance(selected.this, exp.Star)):
            return self._of_any(query, alias, tree)
        conditions = self._conditions(query, selected)
        if conditions is None:
            return self._for_outer_values(query, selected, alias)
        inside, keys = conditions
        columns, value = _aggregated(selected, alias)
        grouping = [own for own, _ in keys]
        items = [*(exp.alias_(own.copy(), f"$k{number}") for number, own in enumerate(grouping)), *columns]
        select = exp.Select(expressions=items, from_=query.args["from_"].copy())
        select.set("joins", [join.copy() for join in query.args.get("joins") or ()])
        if inside:
            select.set("where", exp.Where(this=exp.and_(*(condition.copy() for condition in inside), copy=False)))
        if grouping:
            select.set("group", exp.Group(expressions=[own.copy() for own in grouping]))
        return _Value(select, [outer for _, outer in keys], value)

    def _of_any(self, query: Tree, alias: str, tree: Tree) -> _Value:
        """Return the value of a query that does not look at columns outside."""
        rows = self._queries.bind(query)
        if len(rows.schema) != 1:
            problem = f"a query as a value returns {len(rows.schema)} columns"
            raise SqlError(problem, "select one column", "", place_of(tree))
        name = "$c"
        single = Project((replace(rows.schema[0], name=name, part=None, windowing=None),), rows, (rows.column(0),))
        columns, value = _aggregated(exp.column(exp.to_identifier(name, quoted=True)), alias)
        select = exp.Select(expressions=columns, from_=exp.From(this=BoundTable(this=single)))
        return _Value(select, [], value)

    def _for_outer_values(self, query: Tree, selected: Tree, alias: str) -> _Value:
        """Return the value of a query for the distinct values of the columns outside that it uses."""
        own, scope = self._queries.from_clause(query)
        outer = OuterValues.of(outer_columns(self._queries, query, self._outside), self._outside)
        is_batch = self._queries.is_batch
        rows, all_columns = outer.join(own, scope, self._rows, self._outside, is_batch, place_of(query))
        columns, value = _aggregated(selected, alias)
        plain = exp.Select(expressions=columns, where=query.args.get("where"))
        select = outer.grouped(plain, rows, all_columns)
        keys = [tree.copy() for tree in outer.trees]
        return _Value(select, keys, value, True, len(columns))

    def _conditions(self, query: Tree, selected: Tree) -> tuple[list[Tree], list[tuple[Tree, Tree]]] | None:
        """Return the conditions of a query on its own columns, and which of its values are equal to values outside.

        None: it uses columns outside in another way.
        """
        columns = outer_columns(self._queries, query, self._outside)
        if not columns:
            where = query.args.get("where")
            return ([] if where is None else conjuncts(where.this)), []
        _, own_scope = self._queries.from_clause(query)
        if any(column.find_ancestor(exp.Where) is None for column in columns) and (
            not aggregates_in(selected) or any(map(_is_in_aggregate, columns))
        ):
            return None
        inside: list[Tree] = []
        keys: list[tuple[Tree, Tree]] = []
        known = {id(column) for column in columns}
        for condition in conjuncts(query.args["where"].this) if query.args.get("where") is not None else ():
            if not any(id(node) in known for node in condition.walk()):
                inside.append(condition)
                continue
            sides = [(condition.this, condition.expression), (condition.expression, condition.this)]
            pairs = [(own, outer) for own, outer in sides if isinstance(condition, exp.EQ)
                     and self._is_bound(own, own_scope) and self._is_bound(outer, self._outside)]  # fmt: skip
            if not pairs:
                return None
            keys.append(pairs[0])
        return inside, keys

    def _is_bound(self, tree: Tree, scope: Scope) -> bool:
        try:
            self._queries.expressions(scope).bind(tree)
        except SqlError:
            return False
        return True


def _aggregated(selected: Tree, alias: str) -> tuple[list[Tree], Tree]:
    """Return the aggregates of a query, and its value over their columns."""
    aggregates = aggregates_in(selected)
    if not aggregates:
        first = exp.Anonymous(this="FIRST_VALUE", expressions=[selected.copy()])
        count = exp.Anonymous(this="COUNT", expressions=[exp.Star()])
        columns = [exp.alias_(first, "$v0", quoted=True), exp.alias_(count, "$v1", quoted=True)]
        names = [_column(alias, number) for number in range(2)]
        return columns, Applied(this=SINGLE_VALUE, expressions=names)
    holder = exp.Paren(this=selected.copy())
    columns = []
    for number, aggregate in enumerate(aggregates_in(holder)):
        columns.append(exp.alias_(aggregate.copy(), f"$v{number}", quoted=True))
        function = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
        column = _column(alias, number)
        if str(function.name).upper() == "COUNT":  # of no rows it is 0
            column = exp.Anonymous(this="COALESCE", expressions=[column, exp.Literal.number(0)])
        aggregate.replace(column)
    return columns, holder


def _column(alias: str, number: int) -> Tree:
    quoted = [exp.to_identifier(name, quoted=True) for name in (f"$v{number}", alias)]
    return exp.Column(this=quoted[0], table=quoted[1])


def _greatest(value: Tree) -> Tree:
    """Return a value that is the same for all rows, as an aggregate of rows that are grouped."""
    holder = exp.Paren(this=value.copy())
    for column in list(holder.find_all(exp.Column)):
        if str(column.table).startswith("$query"):
            column.replace(exp.Anonymous(this="MAX", expressions=[column.copy()]))
    return holder


__all__ = ["add_values", "queries_in"]
