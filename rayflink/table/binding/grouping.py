"""SELECT with GROUP BY: groups of whole tables and of windows, and expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.aggregate_call import AggregateCall
from ..plan.groups import GroupAggregate
from ..plan.logical import Attribute, Project, Relation, Schema, TimePart, WindowAggregate, Windowing
from ..plan.typed import Column, Expr, Literal, Place
from ..types import DataTypes, Root
from . import json_aggregates, windows
from .aggregate_calls import AggregateInput, aggregates_in, aggregates_of_select
from .expressions import ExpressionBinder, call, cast, place_of
from .grouping_sets import GroupingSet, bits_of
from .scope import Scope

_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_BOUNDS = (TimePart.WINDOW_START, TimePart.WINDOW_END, TimePart.WINDOW_TIME)


@dataclass(frozen=True)
class GroupedRows:
    """A relation with a row for each group, and the columns of its keys and aggregates.

    Args:
        relation: has a row for each group and window.
        keys: expressions over the input rows, each with its column in `relation`.
        calls: aggregates, each with its column in `relation`.
        bounds: the columns of the window's bounds by their part in time, where a group window was written.
    """

    relation: Relation
    keys: list[tuple[Expr, int]]
    calls: list[tuple[Tree, int]]
    bounds: dict[TimePart, int]


class GroupedSelect:
    """The groups and aggregates of a SELECT, over which its list, HAVING and QUALIFY are bound.

    Args:
        binder: binds over the input rows.
        rows: the groups.
        absent: keys of other grouping sets, which are NULL in this one.
        group_id: the number of this grouping set.
        is_window: returns whether a group window is the one of GROUP BY.
    """

    def __init__(self, binder: ExpressionBinder, rows: GroupedRows, absent: list[Expr], group_id: int,
                 is_window: Callable[[Tree], bool]) -> None:  # fmt: skip
        self._binder, self.relation, self._keys, self._calls = binder, rows.relation, rows.keys, rows.calls
        self._bounds, self._absent, self._group_id, self._is_window = rows.bounds, absent, group_id, is_window

    @classmethod
    def from_select(
        cls, binder: ExpressionBinder, relation: Relation, scope: Scope, tree: Tree, grouping_set: GroupingSet,
        is_batch: bool,
    ) -> GroupedSelect:  # fmt: skip
        """Group the rows of a SELECT by one of its grouping sets.

        Raises:
            SqlError: an aggregate or a key is wrong.
        """
        windowing, keys = _keys(binder, relation, scope, grouping_set.keys, tree.expressions)
        group_by = tree.args.get("group")
        grouping = _Grouping.over(
            AggregateInput(relation, binder),
            keys,
            aggregates_of_select(tree),
            place_of(tree if group_by is None else group_by),
        )
        if windowing is not None:
            rows = _group_by_window(grouping, windowing)
        elif grouping.has_window_bounds:
            rows = _group_by_bounds(grouping)
        else:
            rows = _group_without_window(grouping, is_batch)
        absent = [binder.bind(key) for key in grouping_set.absent]

        def is_window(window: Tree) -> bool:
            return windows.group_window(window, scope, relation) == windowing

        return cls(binder, rows, absent, grouping_set.number, is_window)

    def bind(self, tree: Tree) -> Expr:
        """Return an expression of SELECT or HAVING.

        Raises:
            SqlError: it names a column that is not in GROUP BY.
        """
        return self.expressions.bind(tree)

    @property
    def expressions(self) -> ExpressionBinder:
        """Return a binder of expressions over the groups."""
        return ExpressionBinder(Scope(()), self._bind_over_groups, self._binder.functions)

    def condition(self, tree: Tree, what: str = "the condition of HAVING") -> Expr:
        """Return a condition on the groups."""
        return self.expressions.condition(tree, what)

    def add_numbers(self, relation: Relation, numbers: Sequence[tuple[Tree, int]]) -> None:
        """Replace the relation by one with further columns of row numbers.

        Args:
            numbers: calls of ROW_NUMBER() OVER, each with its column.
        """
        self.relation = relation
        self._calls = [*self._calls, *numbers]

    def _bind_over_groups(self, tree: Tree) -> Expr | None:
        """Return an expression over the groups; None: the tree is bound by its parts."""
        for aggregate, index in self._calls:
            if tree == aggregate:
                return self._aggregate(aggregate, index, place_of(tree))
        if isinstance(tree, exp.Anonymous):
            auxiliary = self._auxiliary(tree)
            if auxiliary is not None:
                return auxiliary
        if isinstance(tree, exp.Literal) or aggregates_in(tree) or _has_window_function(tree):
            return None
        try:
            bound = self._binder.bind(tree)
        except SqlError:
            if isinstance(tree, exp.Column):
                raise
            return None
        return self._key(tree, bound)

    def _aggregate(self, aggregate: Tree, index: int, place: Place | None) -> Expr:
        """Return the result of an aggregate, from its column."""
        column = replace(self.relation.column(index), place=place)
        function = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
        name = str(function.name).upper()
        if name == "SUM0":
            zero = cast(Literal(DataTypes.INT(False), 0), column.type.not_null())
            return call("COALESCE", [column, zero], place)
        return json_aggregates.add_brackets(name, column) if name in json_aggregates.BRACKETS else column

    def _auxiliary(self, tree: Tree) -> Expr | None:
        """Return the result of a function of the group itself, such as TUMBLE_START or GROUPING; None: another one."""
        bound = self._window_bound(tree)
        if bound is not None:
            return bound
        name = str(tree.name).upper()
        if name in ("GROUPING", "GROUPING_ID"):
            return self._grouping_id(tree)
        if name == "GROUP_ID" and not tree.expressions:
            return Literal(DataTypes.BIGINT(False), self._group_id, place=place_of(tree))
        return None

    def _key(self, tree: Tree, bound: Expr) -> Expr | None:
        """Return a key of the group or a constant; None: the tree is bound by its parts.

        Args:
            bound: the tree, bound over the input rows.
        """
        for key, index in self._keys:
            if bound == key:
                return replace(self.relation.column(index), place=place_of(tree))
        if bound in self._absent:
            return Literal(bound.type.nullable(), None, place=place_of(tree))
        if isinstance(tree, exp.Column) and isinstance(bound, Column):
            remedy = "add it to GROUP BY, or use an aggregate of it, such as MAX"
            raise SqlError(f"column {bound.name!r} is not in GROUP BY", remedy, "", place_of(tree))
        return bound if not any(isinstance(part, Column) for part in bound.walk()) else None

    def _grouping_id(self, tree: Tree) -> Expr:
        """Return a bit for each argument, the last in the lowest bit: 1 where this grouping set is without it."""
        keys = [key for key, _ in self._keys]
        is_absent = []
        for argument in tree.expressions:
            key = self._binder.bind(argument)
            if key not in self._absent and key not in keys:
                remedy = "pass expressions of GROUP BY"
                raise SqlError(f"{argument.sql()} is not in GROUP BY", remedy, "", place_of(argument))
            is_absent.append(key in self._absent)
        return Literal(DataTypes.BIGINT(False), bits_of(is_absent), place=place_of(tree))

    def _window_bound(self, tree: Tree) -> Expr | None:
        """Return a bound of the group window, as of TUMBLE_START(ts, size); None: it is another function."""
        name, place = str(tree.name).upper(), place_of(tree)
        kind, _, suffix = name.rpartition("_")
        part = windows.AUXILIARY.get(suffix)
        if kind not in _WINDOWS or part is None:
            return None
        if part not in self._bounds:
            remedy = f"group by {kind}(ts, ...) with a time attribute of that kind"
            raise SqlError(f"{name} is used without such a window in GROUP BY", remedy, "", place)
        is_in_sql = bool(tree.expressions) or place is not None  # methods of Table name their window instead
        window = exp.Anonymous(this=kind, expressions=[argument.copy() for argument in tree.expressions])
        if is_in_sql and not self._is_window(window):
            problem = f"{name} has other arguments than the window of GROUP BY"
            raise SqlError(problem, "write the same arguments", "", place)
        return replace(self.relation.column(self._bounds[part]), place=place)


def _has_window_function(tree: Tree) -> bool:
    """Return whether an expression calls an auxiliary function of a group window, such as TUMBLE_START."""
    return any(
        isinstance(node, exp.Anonymous) and str(node.name).upper().rpartition("_")[0] in _WINDOWS
        for node in tree.walk()
    )


def _keys(binder: ExpressionBinder, relation: Relation, scope: Scope, trees: list[Tree],
          selected: list[Tree]) -> tuple[Windowing | None, list[Expr]]:  # fmt: skip
    """Return the group window, if one is written, and the other keys."""
    windowing: Windowing | None = None
    keys: list[Expr] = []
    for tree in trees:
        group_window = windows.group_window(tree, scope, relation)
        if group_window is not None:
            if windowing is not None:
                raise SqlError("GROUP BY has a second window", "group by one window", "", place_of(tree))
            windowing = group_window
            continue
        if isinstance(tree, exp.Literal) and not tree.is_string and 0 < int(tree.this) <= len(selected):
            tree = selected[int(tree.this) - 1]
            tree = tree.this if isinstance(tree, exp.Alias) else tree
        key = binder.bind(tree)
        if key.type.root in (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW):
            raise SqlError(f"GROUP BY has a key of type {key.type}", "group by a part of it", "", place_of(tree))
        if key not in keys:
            keys.append(key)
    return windowing, keys


@dataclass(frozen=True)
class _Grouping:
    """The keys and aggregates of a SELECT, over the columns of their input.

    Args:
        input: the columns that keys and aggregates read.
        keys: the expressions of GROUP BY but for a group window.
        key_columns: the column of each key in the input.
        aggregates: the aggregates as they are written.
        calls: the same, over columns of the input.
        place: where GROUP BY, else the SELECT, stands.
    """

    input: AggregateInput
    keys: list[Expr]
    key_columns: list[int]
    aggregates: list[Tree]
    calls: list[AggregateCall]
    place: Place | None

    @classmethod
    def over(cls, input: AggregateInput, keys: list[Expr], aggregates: list[Tree], place: Place | None) -> _Grouping:
        """Return keys and aggregates whose columns are added to the input."""
        key_columns = [input.column(key) for key in keys]
        return cls(input, keys, key_columns, aggregates, [input.call(aggregate) for aggregate in aggregates], place)

    @property
    def relation(self) -> Relation:
        """Return the relation with the input rows."""
        return self.input.relation

    @property
    def has_window_bounds(self) -> bool:
        """Return whether the start and the end of a window are among the keys."""
        return {TimePart.WINDOW_START, TimePart.WINDOW_END} <= {_part(self.relation, key) for key in self.keys}

    def numbered_aggregates(self, first: int) -> list[tuple[Tree, int]]:
        """Return each aggregate with its column, where they stand side by side from a column on."""
        return [(aggregate, first + number) for number, aggregate in enumerate(self.aggregates)]


def _group_by_window(grouping: _Grouping, windowing: Windowing) -> GroupedRows:
    """Return the groups of a window such as TUMBLE(ts, size) in GROUP BY."""
    columns, calls = grouping.key_columns, grouping.calls
    projected, [time] = grouping.input.project([windowing.time])
    windowing_above = replace(windowing, time=time)
    bounds = windows.bounds(windowing_above, grouping.relation.schema[windowing.time])
    schema = _schema(projected, columns, calls, bounds)
    aggregate = WindowAggregate(schema, projected, tuple(columns), tuple(calls), windowing_above, place=grouping.place)
    first_bound = len(columns) + len(calls)
    bound_columns = {bound.part: first_bound + number for number, bound in enumerate(bounds) if bound.part is not None}
    keys = list(zip(grouping.keys, range(len(columns)), strict=True))
    return GroupedRows(aggregate, keys, grouping.numbered_aggregates(len(columns)), bound_columns)


def _group_by_bounds(grouping: _Grouping) -> GroupedRows:
    """Return the groups of a windowing table function, whose bounds are among the keys."""
    columns, calls = grouping.key_columns, grouping.calls
    parts = [_part(grouping.relation, key) for key in grouping.keys]
    bound_columns = {part: column for part, column in zip(parts, columns, strict=True) if part is not None}
    start, end = bound_columns[TimePart.WINDOW_START], bound_columns[TimePart.WINDOW_END]
    projected, _ = grouping.input.project([])
    group = [column for part, column in zip(parts, columns, strict=True) if part not in _BOUNDS]
    schema = _schema(projected, group, calls, _bound_attributes(projected.schema, start))
    aggregate = WindowAggregate(schema, projected, tuple(group), tuple(calls), None, (start, end), place=grouping.place)
    keys_with_parts = list(zip(grouping.keys, parts, strict=True))
    plain_keys = [key for key, part in keys_with_parts if part not in _BOUNDS]
    keys = [(key, number) for number, key in enumerate(plain_keys)]
    first_bound = len(group) + len(calls)
    keys += [(key, first_bound + _BOUNDS.index(part)) for key, part in keys_with_parts if part in _BOUNDS]
    return GroupedRows(aggregate, keys, grouping.numbered_aggregates(len(group)), {})


def _group_without_window(grouping: _Grouping, is_whole: bool) -> GroupedRows:
    """Return the groups of all rows.

    Args:
        is_whole: the rows are those of whole tables.
    """
    keys, calls = grouping.keys, grouping.calls
    if not grouping.input.exprs:  # COUNT(*) alone: rows are counted by a column
        grouping.input.column(Literal(DataTypes.INT(False), 1))
    if not keys:  # there may be no row
        calls = [call if call.name == "COUNT" else replace(call, type=call.type.nullable()) for call in calls]
    if not keys and not calls:  # a row needs a column
        calls = [AggregateCall("COUNT", (), DataTypes.BIGINT(False))]
    projected, _ = grouping.input.project([])
    columns = grouping.key_columns
    schema = _schema(projected, columns, calls, ())
    aggregate = GroupAggregate(schema, projected, tuple(columns), tuple(calls), is_whole, place=grouping.place)
    numbered_keys = list(zip(keys, range(len(keys)), strict=True))
    return GroupedRows(aggregate, numbered_keys, grouping.numbered_aggregates(len(keys)), {})


def _part(relation: Relation, key: Expr) -> TimePart | None:
    """Return the part that a key has in time."""
    return relation.schema[key.index].part if isinstance(key, Column) else None


def _schema(input: Relation, group: Sequence[int], calls: Sequence[AggregateCall],
            bounds: Sequence[Attribute]) -> Schema:  # fmt: skip
    """Return the columns of an aggregate: keys, results, then the bounds of the window."""
    keys = [replace(input.schema[index], part=None, windowing=None) for index in group]
    results = [Attribute(f"EXPR${number}", call.type) for number, call in enumerate(calls)]
    return (*keys, *results, *bounds)


def _bound_attributes(schema: Schema, start: int) -> tuple[Attribute, ...]:
    """Return the columns of the bounds of the windows to which a column is the start."""
    windowing = schema[start].windowing
    assert windowing is not None
    stamp = DataTypes.TIMESTAMP(3, False)
    time = Attribute("window_time", stamp, TimePart.WINDOW_TIME if windowing.is_event_time else TimePart.PROCTIME)
    return windows.bounds(windowing, time)


def distinct_in_windows(relation: Relation) -> Relation:
    """Remove repeated rows within windows whose bounds are among the columns."""
    columns = {attribute.part: index for index, attribute in reversed(list(enumerate(relation.schema)))}
    start, end = columns[TimePart.WINDOW_START], columns[TimePart.WINDOW_END]
    indexes = range(len(relation.schema))
    others = [index for index in indexes if index not in (start, end)]
    schema = (*(relation.schema[index] for index in others), *_bound_attributes(relation.schema, start))
    aggregate = WindowAggregate(schema, relation, tuple(others), (), None, (start, end))
    order = [others.index(index) if index in others else len(others) + (index == end) for index in indexes]
    return Project(relation.schema, aggregate, tuple(aggregate.column(index) for index in order))


__all__ = ["GroupedRows", "GroupedSelect", "distinct_in_windows"]
