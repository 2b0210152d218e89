"""Assigns windows inside the aggregate that groups by them, so that no row is repeated for each of its windows.

Source: apache/flink PullUpWindowTableFunctionIntoWindowAggregateRule.

Example:

    SELECT window_end, COUNT(*) AS n
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end

Without the rule:

    Calc(select=[window_end, EXPR$0 AS n])
    +- GlobalWindowAggregate(window=[win_start=[window_start], win_end=[window_end]], select=[COUNT(*) AS
         EXPR$0, window_start, window_end, window_time])
       +- Exchange(distribution=[single])
          +- LocalWindowAggregate(window=[win_start=[window_start], win_end=[window_end]], select=[COUNT(*) AS
               EXPR$0, window_start, window_end, window_time])
             +- Calc(select=[window_start, window_end])
                +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
                   +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                      +- TableSourceScan(table=[[orders, project=[ts]]], fields=[ts])

With the rule:

    Calc(select=[window_end, EXPR$0 AS n])
    +- GlobalWindowAggregate(window=[TUMBLE(time_col=[ts], size=[1 min])], select=[COUNT(*) AS EXPR$0,
         window_start, window_end, window_time])
       +- Exchange(distribution=[single])
          +- LocalWindowAggregate(window=[TUMBLE(time_col=[ts], size=[1 min])], select=[COUNT(*) AS EXPR$0,
               window_start, window_end, window_time])
             +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                +- TableSourceScan(table=[[orders, project=[ts]]], fields=[ts])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Filter, Project, Relation, WindowAggregate, WindowKind, WindowTable
from ...plan.typed import Column, Expr
from .push_projection_into_scan import columns_of, moved_call, used_by


def window_into_aggregate(plan: Relation) -> Relation:
    """Merge WindowTable into a WindowAggregate above it, through a Project and Filter that do not read the bounds."""
    return plan.mapped(_pulled)


def _pulled(relation: Relation) -> Relation:
    if not isinstance(relation, WindowAggregate) or relation.bounds is None:
        return relation
    steps: list[Relation] = []
    below = relation.input
    while isinstance(below, (Project, Filter)):
        steps.append(below)
        below = below.input
    if not isinstance(below, WindowTable):
        return relation
    lower = _Lower(below)
    for step in reversed(steps):
        if isinstance(step, Filter):
            if not lower.has(step.condition) or not _keeps_sessions(below, step.condition, lower):
                return relation
            lower.filter(step)
        elif isinstance(step, Project):
            lower.project(step)
    used = [index for call in relation.calls for index in used_by(call)]
    if any(index not in lower.places for index in (*relation.grouping, *used)):
        return relation
    grouping = tuple(lower.places[index] for index in relation.grouping)
    is_session = below.windowing.kind is WindowKind.SESSION
    if is_session and set(lower.partition) != set(grouping):  # sessions have other keys than the groups
        return relation
    windowing = replace(below.windowing, time=lower.time, partition=tuple(lower.partition))
    calls = tuple(moved_call(call, lower.places) for call in relation.calls)
    return replace(relation, input=lower.relation, grouping=grouping, calls=calls, windowing=windowing, bounds=None)


def _keeps_sessions(windows: WindowTable, condition: Expr, lower: _Lower) -> bool:
    """Return whether a filter leaves the windows as they are: sessions depend on all rows of their key."""
    if windows.windowing.kind is not WindowKind.SESSION:
        return True
    return all(lower.places[index] in lower.partition for index in columns_of(condition))


class _Lower:
    """The same steps below the windows.

    Args:
        windows: what is left out.
    """

    def __init__(self, windows: WindowTable) -> None:
        self.relation: Relation = windows.input
        self.time = windows.windowing.time
        """Where the time attribute stands."""
        self.partition = list(windows.windowing.partition)
        """Where the columns stand by which sessions are distinguished; -1 for one that is not there any more."""
        self.places = {index: index for index in range(len(windows.input.schema))}
        """Number of a column of the steps above -> its number here; the bounds of windows have none."""

    def has(self, expr: Expr) -> bool:
        """Return whether an expression reads no bound of a window."""
        return all(index in self.places for index in columns_of(expr))

    def over(self, expr: Expr) -> Expr:
        """Return the expression on the columns here."""

        def change(part: Expr) -> Expr:
            return self.relation.column(self.places[part.index]) if isinstance(part, Column) else part

        return expr.mapped(change)

    def filter(self, step: Filter) -> None:
        """Put a filter here."""
        condition = self.over(step.condition)
        self.relation = Filter(self.relation.schema, self.relation, condition, place=step.place)

    def project(self, step: Project) -> None:
        """Put what a projection computes without the bounds here, with the time attribute."""
        indexes = [index for index, expr in enumerate(step.exprs) if self.has(expr)]
        exprs = [self.over(step.exprs[index]) for index in indexes]
        schema = [step.schema[index] for index in indexes]
        time = next((n for n, expr in enumerate(exprs) if isinstance(expr, Column) and expr.index == self.time), None)
        if time is None:
            exprs.append(self.relation.column(self.time))
            schema.append(self.relation.schema[self.time])
            time = len(exprs) - 1
        else:
            schema[time] = replace(self.relation.schema[self.time], name=schema[time].name)
        self.partition = [_place_of(index, exprs) for index in self.partition]
        self.relation, self.time = Project(tuple(schema), self.relation, tuple(exprs)), time
        self.places = {index: number for number, index in enumerate(indexes)}


def _place_of(column: int, exprs: list[Expr]) -> int:
    return next((n for n, expr in enumerate(exprs) if isinstance(expr, Column) and expr.index == column), -1)
