"""SELECT with GROUP BY: aggregates over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..errors import SqlError
from ..parsing.program_nodes import OverWindow
from ..parsing.statements import Tree
from ..plan.groups import GroupAggregate
from ..plan.logical import AggregateCall, Attribute, Project, Relation, Schema, TimePart, WindowAggregate, Windowing
from ..plan.typed import Column, Expr, Literal, Place
from ..runtime.aggregates.aggregates import AggregateKind, result_type
from ..types import DataType, DataTypes, Root
from . import json_aggregates, windows
from .expressions import AGGREGATES, ExpressionBinder, call, cast, place_of
from .numbering import numberings_in, parts_of
from .percentiles import percentile
from .scope import Scope

_UNBOUNDED = (
    "group by the bounds of a window, as in SELECT window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE t, "
    "DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"
)


def aggregates_in(tree: Any) -> list[Tree]:
    """Return the calls of aggregate functions in a tree, with their FILTER; none within queries of their own."""
    if not isinstance(tree, exp.Expression):
        return []
    if isinstance(tree, (exp.Subquery, exp.Select, exp.Window, OverWindow)):
        return []
    if _is_aggregate(tree) or (isinstance(tree, exp.Filter) and _is_aggregate(tree.this)):
        return [tree]
    return [found for child in tree.iter_expressions() for found in aggregates_in(child)]


def _is_aggregate(tree: Tree) -> bool:
    return isinstance(tree, exp.Anonymous) and str(tree.name).upper() in AGGREGATES


@dataclass(frozen=True)
class GroupingSet:
    """The keys of one part of GROUP BY.

    Args:
        keys: what stands outside of GROUPING SETS, and one of these.
        absent: what the others have, and this one has not.
        number: a bit for each of both, in their order in GROUP BY, the last one the lowest: 1 where it is absent.
    """

    keys: list[Tree]
    absent: list[Tree]
    number: int = 0


def grouping_sets(group: Tree | None) -> list[GroupingSet]:
    """Return the sets of GROUPING SETS, ROLLUP and CUBE, each of one with each of another; else the one of all keys."""
    if group is None:
        return [GroupingSet([], [])]
    plain: list[Tree] = []
    found: list[list[Tree]] = [[]]
    for one in group.expressions:
        parts = _sets(one)
        if parts is None:
            plain.append(one)
        else:
            found = [[*before, *part] for before in found for part in parts]
    everything = [*plain, *(one for part in found for one in part)]
    distinct = [one for at, one in enumerate(everything) if one not in everything[:at]]
    kept = [[*plain, *part] for part in found]
    return [
        GroupingSet(keys, [one for one in distinct if one not in keys], _bits([one not in keys for one in distinct]))
        for keys in kept
    ]


def _sets(tree: Tree) -> list[list[Tree]] | None:
    """Return the sets that a part of GROUP BY stands for; None: it is an expression."""
    if isinstance(tree, exp.GroupingSets):
        nested = [(_sets(one) or [_members(one)]) for one in tree.expressions]
        return [part for parts in nested for part in parts]
    members = [_members(one) for one in tree.expressions] if isinstance(tree, (exp.Rollup, exp.Cube)) else []
    if isinstance(tree, exp.Rollup):
        return [[one for part in members[:count] for one in part] for count in range(len(members), -1, -1)]
    if isinstance(tree, exp.Cube):
        chosen = range((1 << len(members)) - 1, -1, -1)
        width = len(members)
        return [
            [one for at, part in enumerate(members) if bits >> (width - 1 - at) & 1 for one in part] for bits in chosen
        ]
    return None


def _members(tree: Tree) -> list[Tree]:
    if isinstance(tree, exp.Tuple):
        return list(tree.expressions)
    return [tree.this] if isinstance(tree, exp.Paren) else [tree]


@dataclass(frozen=True)
class GroupedRows:
    """A relation with a row for each group, and the columns that its keys and aggregates have become.

    Args:
        relation: has a row for each group and window.
        keys: expressions over the rows that are grouped -> columns of `relation`.
        calls: aggregates -> columns of `relation`.
        window: the columns of the windows' bounds by their part, where a group window was written.
    """

    relation: Relation
    keys: list[tuple[Expr, int]]
    calls: list[tuple[Any, int]]
    window: dict[TimePart, int]


class GroupedSelect:
    """The groups and aggregates of a SELECT, computed before its list and HAVING.

    Args:
        inner: binds over the rows that are grouped.
        rows: the groups.
        absent: keys of other grouping sets, which are NULL in this one.
        group_id: the number of this grouping set.
        is_window: returns whether a group window is the one of GROUP BY.
    """

    def __init__(self, inner: ExpressionBinder, rows: GroupedRows, absent: list[Expr], group_id: int,
                 is_window: Callable[[Tree], bool]) -> None:  # fmt: skip
        self._inner, self.relation, self._keys, self._calls = inner, rows.relation, rows.keys, rows.calls
        self._window, self._absent, self._group_id, self._is_window = rows.window, absent, group_id, is_window

    @classmethod
    def of(
        cls, inner: ExpressionBinder, relation: Relation, scope: Scope, tree: Tree, grouped: GroupingSet,
        is_batch: bool,
    ) -> GroupedSelect:  # fmt: skip
        """Group the rows of a SELECT by one of its grouping sets.

        Raises:
            SqlError: they are in no window, and the query is not over whole tables.
        """
        group = tree.args.get("group")
        windowing, keys = _keys(inner, relation, scope, grouped.keys, tree.expressions)
        gathered = _Gathered(relation, inner)
        columns = [gathered.column(key) for key in keys]
        aggregates = _aggregates_of(tree)
        calls = [gathered.call(aggregate) for aggregate in aggregates]
        place = place_of(group) if group is not None else place_of(tree)
        is_first = bool(keys) and not calls  # each group comes with its first row
        if (is_batch or is_first) and windowing is None and not _are_windows(relation, keys):
            rows = _of_all_rows(gathered, (keys, columns), (aggregates, calls), place, is_batch)
        else:
            rows = _aggregated(gathered, windowing, (keys, columns), (aggregates, calls), place)
        absent = [inner.bind(key) for key in grouped.absent]

        def is_window(window: Tree) -> bool:
            return windows.group_window(window, scope, relation) == windowing

        return cls(inner, rows, absent, grouped.number, is_window)

    def bind(self, tree: Tree) -> Expr:
        """Return an expression of SELECT or HAVING.

        Raises:
            SqlError: it names a column that is not grouped by.
        """
        return ExpressionBinder(Scope(()), self._known).bind(tree)

    def condition(self, tree: Tree, what: str = "the condition of HAVING") -> Expr:
        """Return a condition on the groups."""
        return ExpressionBinder(Scope(()), self._known).condition(tree, what)

    def number(self, relation: Relation, numbers: Sequence[tuple[Any, int]]) -> None:
        """Go on with a relation that has more columns: what they are, and where."""
        self.relation = relation
        self._calls = [*self._calls, *numbers]

    def _known(self, tree: Tree) -> Expr | None:
        for asked, at in self._calls:
            if tree == asked:
                column = replace(self.relation.column(at), place=place_of(tree))
                name = str((asked.this if isinstance(asked, exp.Filter) else asked).name).upper()
                if name == "SUM0":
                    zero = cast(Literal(DataTypes.INT(False), 0), column.type.not_null())
                    return call("COALESCE", [column, zero], place_of(tree))
                return json_aggregates.bracketed(name, column) if name in json_aggregates.BRACKETS else column
        if isinstance(tree, exp.Anonymous) and (found := self._bound(tree)):
            return found
        if isinstance(tree, exp.Anonymous) and str(tree.name).upper() in ("GROUPING", "GROUPING_ID"):
            return self._grouping_id(tree)
        if isinstance(tree, exp.Anonymous) and str(tree.name).upper() == "GROUP_ID" and not tree.expressions:
            return Literal(DataTypes.BIGINT(False), self._group_id, place=place_of(tree))
        if isinstance(tree, exp.Literal) or aggregates_in(tree) or self._asks_bounds(tree):
            return None
        try:
            bound = self._inner.bind(tree)
        except SqlError:
            if isinstance(tree, exp.Column):
                raise
            return None
        for key, at in self._keys:
            if bound == key:
                return replace(self.relation.column(at), place=place_of(tree))
        if bound in self._absent:
            return Literal(bound.type.nullable(), None, place=place_of(tree))
        if isinstance(tree, exp.Column) and isinstance(bound, Column):
            remedy = "group by it too, or take an aggregate of it, such as MAX"
            raise SqlError(f"column {bound.name!r} is not in GROUP BY", remedy, "", place_of(tree))
        return bound if not any(isinstance(one, Column) for one in bound.walk()) else None

    def _grouping_id(self, tree: Tree) -> Expr:
        """Return a bit for each argument, the last one the lowest: 1 where this grouping set is without it."""
        absent = []
        for one in tree.expressions:
            key = self._inner.bind(one)
            if key not in self._absent and key not in [known for known, _ in self._keys]:
                remedy = "give it expressions of GROUP BY"
                raise SqlError(f"{one.sql()} is not grouped by", remedy, "", place_of(one))
            absent.append(key in self._absent)
        return Literal(DataTypes.BIGINT(False), _bits(absent), place=place_of(tree))

    def _asks_bounds(self, tree: Tree) -> bool:
        return any(
            isinstance(one, exp.Anonymous) and str(one.name).upper().rpartition("_")[0] in ("TUMBLE", "HOP", "SESSION")
            for one in tree.walk()
        )

    def _bound(self, tree: Tree) -> Expr | None:
        """Return a bound of the window, as of TUMBLE_START(ts, size)."""
        name, place = str(tree.name).upper(), place_of(tree)
        kind, _, what = name.rpartition("_")
        part = windows.AUXILIARY.get(what)
        if kind not in ("TUMBLE", "HOP", "SESSION") or part is None:
            return None
        if part not in self._window:
            remedy = f"group by {kind}(ts, ...) with a time attribute of that kind"
            raise SqlError(f"{name} has no window", remedy, "", place)
        is_written = bool(tree.expressions) or place is not None  # methods of Table know their window by its name
        asked = exp.Anonymous(this=kind, expressions=[one.copy() for one in tree.expressions])
        if is_written and not self._is_window(asked):
            raise SqlError(f"{name} of another window than GROUP BY has", "write the same arguments", "", place)
        return replace(self.relation.column(self._window[part]), place=place)


def _bits(truths: Sequence[bool]) -> int:
    """Return a number of a bit for each, the last one the lowest."""
    found = 0
    for one in truths:
        found = found * 2 + one
    return found


class _Gathered:
    """The columns that are grouped and aggregated, computed before."""

    def __init__(self, relation: Relation, inner: ExpressionBinder) -> None:
        self.relation, self._inner = relation, inner
        self.exprs: list[Expr] = []

    def column(self, expr: Expr) -> int:
        """Number of the column with an expression."""
        if expr not in self.exprs:
            self.exprs.append(expr)
        return self.exprs.index(expr)

    def call(self, tree: Tree) -> AggregateCall:
        """Return an aggregate over these columns."""
        filtered = tree.expression.this if isinstance(tree, exp.Filter) else None
        called = tree.this if isinstance(tree, exp.Filter) else tree
        name, arguments = _canonical(str(called.name).upper()), list(called.expressions)
        if name in json_aggregates.BRACKETS:
            return self._json(called, filtered)
        distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = [*arguments[0].expressions, *arguments[1:]]
        if name == "PERCENTILE":
            asked = percentile(self._inner, arguments, distinct, tree)
            at = self._condition(filtered, asked.counts, tree)
            return AggregateCall(name, (self.column(asked.argument),), asked.type, at, distinct, asked.percentages)
        if name == "COUNT" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            arguments = []
        elif not arguments:
            remedy = "write COUNT(*), or give it a column" if name == "COUNT" else "give it a column"
            raise SqlError(f"{name} of nothing", remedy, "", place_of(tree))
        ignores_nulls = bool(arguments) and isinstance(arguments[0], exp.IgnoreNulls)
        if arguments and isinstance(arguments[0], (exp.IgnoreNulls, exp.RespectNulls)):
            if name != "ARRAY_AGG":
                raise SqlError(f"{name} always leaves out NULL", "leave the words out", "", place_of(tree))
            arguments[0] = arguments[0].this
        bound = [self._inner.bind(one) for one in arguments]
        options = tuple(one.value for one in bound[1:] if isinstance(one, Literal))
        bound = bound[:1] if options else bound
        kind = _result_type(name, bound, filtered is not None, place_of(tree))
        at = self._condition(filtered, call("IS NOT NULL", bound, place_of(tree)) if ignores_nulls else None, tree)
        return AggregateCall(name, tuple(map(self.column, bound)), kind, at, distinct, options)

    def _json(self, tree: Tree, filtered: Tree | None) -> AggregateCall:
        """Return the elements of JSON_ARRAYAGG or JSON_OBJECTAGG, joined."""
        text, condition = json_aggregates.element(self._inner, tree)
        at = self._condition(filtered, condition, tree)
        return AggregateCall("LISTAGG", (self.column(text),), DataTypes.STRING(), at)

    def _condition(self, filtered: Tree | None, own: Expr | None, tree: Tree) -> int | None:
        """Number of the column of truth values that says whether rows count: FILTER's, and one of the call itself."""
        asked = None if filtered is None else self._inner.condition(filtered, "the condition of FILTER")
        parts = [one for one in (asked, own) if one is not None]
        if not parts:
            return None
        return self.column(parts[0] if len(parts) == 1 else call("AND", parts, place_of(tree)))

    def projected(self, extra: Sequence[int]) -> tuple[Relation, list[int]]:
        """Return the columns, and those of the relation that are asked for as well: where they are."""
        places = [self.column(self.relation.column(at)) for at in extra]
        schema: list[Attribute] = []
        for at, expr in enumerate(self.exprs):
            below = self.relation.schema[expr.index] if isinstance(expr, Column) else None
            schema.append(below or Attribute(f"$f{at}", expr.type))
        return Project(tuple(schema), self.relation, tuple(self.exprs)), places


def _canonical(name: str) -> str:
    """Return the one name of an aggregate function that has several."""
    return {"STDDEV": "STDDEV_SAMP", "VARIANCE": "VAR_SAMP", "SUM0": "SUM"}.get(name, name)


def _result_type(name: str, arguments: list[Expr], is_filtered: bool, place: Place | None) -> DataType:
    """Return the type of an aggregate's result.

    Raises:
        SqlError: it does not take these arguments.
    """
    kinds = [kind.value for kind in AggregateKind]
    if name not in kinds:
        raise SqlError(f"{name} is not supported", f"known are {', '.join(kinds)}", "", place)
    if len(arguments) > 1:
        raise SqlError(f"{name} of {len(arguments)} columns", "give it one", "", place)
    try:
        return result_type(AggregateKind(name), arguments[0].type if arguments else None, is_filtered)
    except InvalidTypesError as error:
        raise SqlError(str(error), "see docs/sql.md", "", place) from error


def _keys(inner: ExpressionBinder, relation: Relation, scope: Scope, trees: list[Tree],
          selected: list[Tree]) -> tuple[Windowing | None, list[Expr]]:  # fmt: skip
    """Return the group window, if one is written, and the expressions that are grouped by."""
    windowing: Windowing | None = None
    keys: list[Expr] = []
    for tree in trees:
        found = windows.group_window(tree, scope, relation)
        if found is not None:
            if windowing is not None:
                raise SqlError("a second window in GROUP BY", "group by one", "", place_of(tree))
            windowing = found
            continue
        if isinstance(tree, exp.Literal) and not tree.is_string and 0 < int(tree.this) <= len(selected):
            tree = selected[int(tree.this) - 1]
            tree = tree.this if isinstance(tree, exp.Alias) else tree
        key = inner.bind(tree)
        if key.type.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW):
            raise SqlError(f"a group by {key.type}", "group by a part of it", "", place_of(tree))
        if key not in keys:
            keys.append(key)
    return windowing, keys


def _bounds_of(schema: Schema) -> tuple[int | None, int | None]:
    start = next((at for at, one in enumerate(schema) if one.part is TimePart.WINDOW_START), None)
    end = next((at for at, one in enumerate(schema) if one.part is TimePart.WINDOW_END), None)
    return start, end


def _bound_attributes(schema: Schema, start: int) -> tuple[Attribute, ...]:
    windowing = schema[start].windowing
    assert windowing is not None
    stamp = DataTypes.TIMESTAMP(3, False)
    time = Attribute("window_time", stamp, TimePart.WINDOW_TIME if windowing.is_event_time else TimePart.PROCTIME)
    return windows.bounds(windowing, time)


def _aggregates_of(tree: Tree) -> list[Any]:
    """Return the aggregates in the list, HAVING, QUALIFY and ORDER BY of a SELECT, each once."""
    conditions = [clause.this for name in ("having", "qualify") if (clause := tree.args.get(name))]
    order = tree.args.get("order")
    ordered = [] if order is None else [key.this for key in order.expressions]
    aggregates: list[Any] = []
    for expression in [*tree.expressions, *conditions, *ordered]:
        numbered = [part for numbering in numberings_in(expression) for part in parts_of(numbering)]
        for aggregate in [found for part in (expression, *numbered) for found in aggregates_in(part)]:
            if aggregate not in aggregates:
                aggregates.append(aggregate)
    return aggregates


def distinct_in_windows(relation: Relation) -> Relation:
    """Remove repeated rows within windows whose bounds are among the columns."""
    start, end = _bounds_of(relation.schema)
    assert start is not None and end is not None
    others = [index for index in range(len(relation.schema)) if index not in (start, end)]
    schema = (*(relation.schema[index] for index in others), *_bound_attributes(relation.schema, start))
    aggregate = WindowAggregate(schema, relation, tuple(others), (), None, (start, end))
    order = [
        others.index(index) if index in others else len(others) + (index == end)
        for index in range(len(relation.schema))
    ]
    return Project(relation.schema, aggregate, tuple(aggregate.column(index) for index in order))


def _aggregated(gathered: _Gathered, windowing: Windowing | None,
                grouped: tuple[list[Expr], list[int]], aggregates: tuple[list[Any], list[AggregateCall]],
                place: Place | None) -> GroupedRows:  # fmt: skip
    (keys, columns), (asked, calls) = grouped, aggregates
    relation = gathered.relation
    if windowing is not None:
        made, [time] = gathered.projected([windowing.time])
        moved = replace(windowing, time=time)
        bounds = windows.bounds(moved, relation.schema[windowing.time])
        aggregate = WindowAggregate(
            _schema(made, columns, calls, bounds), made, tuple(columns), tuple(calls), moved, place=place
        )
        first = len(columns) + len(calls)
        parts = {one.part: first + at for at, one in enumerate(bounds) if one.part is not None}
        taken = list(zip(keys, range(len(columns)), strict=True))
        counted = [(one, len(columns) + at) for at, one in enumerate(asked)]
        return GroupedRows(aggregate, taken, counted, parts)
    found = [at for at, key in enumerate(keys) if isinstance(key, Column)]
    parts_of = {relation.schema[keys[at].index].part: at for at in found}  # type: ignore[attr-defined]
    if not _are_windows(relation, keys):
        what = "GROUP BY" if keys else "an aggregate of all rows"
        remedy = f"it is not supported yet; {_UNBOUNDED}; or run the query in batch mode"
        raise SqlError(f"{what} without a window keeps state for ever", remedy, "", place)
    edges = [parts_of[TimePart.WINDOW_START], parts_of[TimePart.WINDOW_END]]
    others = [at for at in range(len(keys)) if relation_part(relation, keys[at]) not in _BOUNDS]
    made, _ = gathered.projected([])
    start = columns[edges[0]]
    edge_columns = _bound_attributes(made.schema, start)
    group = [columns[at] for at in others]
    schema = _schema(made, group, calls, edge_columns)
    aggregate = WindowAggregate(schema, made, tuple(group), tuple(calls), None, (start, columns[edges[1]]), place=place)
    first = len(group) + len(calls)
    taken = [(keys[at], number) for number, at in enumerate(others)]
    for key in keys:
        part = relation_part(relation, key)
        if part in _BOUNDS:
            taken.append((key, first + _BOUNDS.index(part)))
    counted = [(one, len(group) + at) for at, one in enumerate(asked)]
    return GroupedRows(aggregate, taken, counted, {})


def _are_windows(relation: Relation, keys: Sequence[Expr]) -> bool:
    """Return whether both bounds of a window are grouped by."""
    return {TimePart.WINDOW_START, TimePart.WINDOW_END} <= {relation_part(relation, key) for key in keys}


def _of_all_rows(gathered: _Gathered, grouped: tuple[list[Expr], list[int]],
                 aggregates: tuple[list[Any], list[AggregateCall]], place: Place | None,
                 is_whole: bool) -> GroupedRows:  # fmt: skip
    (keys, columns), (asked, calls) = grouped, aggregates
    if not gathered.exprs:  # COUNT(*) alone: rows are counted by a column
        gathered.column(Literal(DataTypes.INT(False), 1))
    if not keys:  # there may be no row
        calls = [one if one.name == "COUNT" else replace(one, type=one.type.nullable()) for one in calls]
    if is_whole and not keys and not calls:  # a row needs a column
        calls = [AggregateCall("COUNT", (), DataTypes.BIGINT(False))]
    made, _ = gathered.projected([])
    schema = _schema(made, columns, calls, ())
    found = GroupAggregate(schema, made, tuple(columns), tuple(calls), is_whole, place=place)
    taken = list(zip(keys, range(len(keys)), strict=True))
    return GroupedRows(found, taken, [(one, len(keys) + at) for at, one in enumerate(asked)], {})


_BOUNDS = (TimePart.WINDOW_START, TimePart.WINDOW_END, TimePart.WINDOW_TIME)


def relation_part(relation: Relation, key: Expr) -> TimePart | None:
    """Return the part that a key has in time."""
    return relation.schema[key.index].part if isinstance(key, Column) else None


def _schema(made: Relation, group: Sequence[int], calls: Sequence[AggregateCall],
            bounds: Sequence[Attribute]) -> Schema:  # fmt: skip
    kept = [replace(made.schema[at], part=None, windowing=None) for at in group]
    results = [Attribute(f"EXPR${at}", call.type) for at, call in enumerate(calls)]
    return (*kept, *results, *bounds)
