"""Splits DISTINCT aggregates of windows into two steps, so that several subtasks share the rows of one key.

The first aggregates by the key and a bucket of the distinct column's hash: equal values are in one bucket, so what is
distinct in the buckets is distinct in all. The second joins the buckets' results.

Source: apache/flink SplitAggregateRule.

Example, with `table.optimizer.distinct-agg.split.enabled` = `true`:

    SELECT COUNT(DISTINCT id) AS n
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end

Without the rule:

    Calc(select=[EXPR$0 AS n])
    +- GlobalWindowAggregate(window=[TUMBLE(time_col=[ts], size=[1 min])], select=[COUNT(DISTINCT id) AS EXPR$0,
         window_start, window_end, window_time])
       +- Exchange(distribution=[single])
          +- LocalWindowAggregate(window=[TUMBLE(time_col=[ts], size=[1 min])], select=[COUNT(DISTINCT id) AS
               EXPR$0, window_start, window_end, window_time])
             +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])

With the rule:

    Calc(select=[EXPR$0 AS n])
    +- GlobalWindowAggregate(window=[win_start=[window_start], win_end=[window_end]], partialFinalType=[FINAL],
         select=[SUM($p0) AS EXPR$0, window_start, window_end, window_time])
       +- Exchange(distribution=[single])
          +- LocalWindowAggregate(window=[win_start=[window_start], win_end=[window_end]],
               partialFinalType=[FINAL], select=[SUM($p0) AS EXPR$0, window_start, window_end, window_time])
             +- GlobalWindowAggregate(groupBy=[$f2], window=[TUMBLE(time_col=[ts], size=[1 min])],
                  partialFinalType=[PARTIAL], select=[$f2, COUNT(DISTINCT id) AS $p0, window_start, window_end,
                  window_time])
                +- Exchange(distribution=[hash[$f2]])
                   +- LocalWindowAggregate(groupBy=[$f2], window=[TUMBLE(time_col=[ts], size=[1 min])],
                        partialFinalType=[PARTIAL], select=[$f2, COUNT(DISTINCT id) AS $p0, window_start,
                        window_end, window_time])
                      +- Calc(select=[id, ts, HASH_CODE(id) % 1024 AS $f2])
                         +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                            +- TableSourceScan(table=[[orders, project=[id, ts]]], fields=[id, ts])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...functions.hash_code import has_hash
from ...plan.aggregate_call import AggregateCall
from ...plan.logical import (
    Attribute,
    PartialFinal,
    Project,
    Relation,
    WindowAggregate,
    Windowing,
    WindowKind,
)
from ...plan.typed import Call, Expr, Literal, named
from ...types import MOST_DIGITS, DataType, DataTypes, Root

_COUNTED = DataTypes.BIGINT(False)
_EXACT_DIGITS = 27
"""Sums of decimals of more digits may be NULL in one bucket that are not in all."""


_SELECTING = ("MIN", "MAX")
"""To which it makes no difference how often a value is there."""


def split_distinct(plan: Relation, buckets: int) -> Relation:
    """Window aggregates of event time with DISTINCT of one column.

    Args:
        buckets: into how many the values of the column are divided; 0: nothing is split.
    """
    if not buckets:
        return plan
    return plan.mapped(
        lambda relation: _split(relation, buckets) if isinstance(relation, WindowAggregate) else relation
    )


def _split(aggregate: WindowAggregate, buckets: int) -> Relation:
    windowing = _windowing_of(aggregate)
    if aggregate.emission is not None or not windowing.is_event_time or windowing.kind is WindowKind.SESSION:
        return aggregate
    calls = [replace(call, distinct=call.distinct and call.name not in _SELECTING) for call in aggregate.calls]
    columns = {call.arguments[0] for call in calls if call.distinct}
    if len(columns) != 1 or aggregate.partial_final is not PartialFinal.NONE:
        return aggregate
    (column,) = columns
    types = [aggregate.input.schema[call.arguments[0]].type if call.arguments else None for call in calls]
    if column in aggregate.grouping or not has_hash(aggregate.input.schema[column].type):
        return aggregate
    if not all(_is_splittable(call, kind) for call, kind in zip(calls, types, strict=True)):
        return aggregate
    return _Split(aggregate, calls, _with_bucket(aggregate.input, column, buckets)).whole()


def _windowing_of(aggregate: WindowAggregate) -> Windowing:
    """Return the windows of an aggregate, or those in which its rows are already."""
    windowing = aggregate.windowing
    if windowing is None:
        assert aggregate.bounds is not None
        windowing = aggregate.input.schema[aggregate.bounds[0]].windowing
    assert windowing is not None
    return windowing


def _is_splittable(call: AggregateCall, kind: DataType | None) -> bool:
    """Return whether results of parts of the rows combine to that of all rows."""
    if call.name in ("SUM", "AVG"):
        return kind is not None and (kind.root is not Root.DECIMAL or kind.precision <= _EXACT_DIGITS)
    return call.name == "COUNT" or call.name in _SELECTING


def _with_bucket(relation: Relation, column: int, buckets: int) -> Relation:
    """Return the relation with the bucket as its last column."""
    number = DataTypes.INT(False)
    code = Call(number, named("HASH_CODE"), (relation.column(column),))
    bucket = Call(number, named("MOD"), (code, Literal(number, buckets)))
    exprs = (*(relation.column(index) for index in range(len(relation.schema))), bucket)
    name = f"$f{len(relation.schema)}"
    return Project((*relation.schema, Attribute(name, number)), relation, exprs)


class _Split:
    """Both steps of an aggregate.

    Args:
        aggregate: what is split.
        calls: its calls.
        relation: its rows, with the bucket behind their columns.
    """

    def __init__(self, aggregate: WindowAggregate, calls: Sequence[AggregateCall], relation: Relation) -> None:
        self._aggregate, self._relation = aggregate, relation
        self._keys = len(aggregate.grouping)
        self._partial: list[AggregateCall] = []
        self._final: list[AggregateCall] = []
        self._made_of = [self._parts(call) for call in calls]
        """The numbers of the final calls for each call."""

    def _parts(self, call: AggregateCall) -> tuple[int, ...]:
        if call.name == "COUNT":
            return (self._summed(call, _COUNTED),)
        if call.name in _SELECTING:
            return (self._joined(call, call),)
        argument = self._relation.schema[call.arguments[0]].type
        wide = _summed_as(argument, call.type)
        added = replace(call, name="SUM", type=wide)
        if call.name == "SUM":
            return (self._summed(added, call.type),)
        return self._summed(added, wide), self._summed(replace(call, name="COUNT", type=_COUNTED), _COUNTED)

    def _summed(self, partial: AggregateCall, kind: DataType) -> int:
        return self._joined(partial, AggregateCall("SUM", (), kind))

    def _joined(self, partial: AggregateCall, final: AggregateCall) -> int:
        """Return the number of a call that joins what a call gives in each bucket."""
        if partial not in self._partial:
            self._partial.append(partial)
        column = self._keys + 1 + self._partial.index(partial)
        final = replace(final, arguments=(column,), filter=None, distinct=False)
        if final not in self._final:
            self._final.append(final)
        return self._final.index(final)

    def whole(self) -> Relation:
        """Return a relation with the rows and columns of the aggregate."""
        aggregate, bucket = self._aggregate, len(self._relation.schema) - 1
        keys, bounds = aggregate.schema[: self._keys], aggregate.schema[-3:]
        counted = tuple(Attribute(f"$p{index}", call.type) for index, call in enumerate(self._partial))
        schema = (*keys, self._relation.schema[bucket], *counted, *bounds)
        partial = replace(
            aggregate, input=self._relation, schema=schema, grouping=(*aggregate.grouping, bucket),
            calls=tuple(self._partial), partial_final=PartialFinal.PARTIAL,
        )  # fmt: skip
        start = len(schema) - 3
        final = replace(
            aggregate, input=partial, schema=(*keys, *self._results(), *bounds), grouping=tuple(range(self._keys)),
            calls=tuple(self._final), windowing=None, bounds=(start, start + 1), partial_final=PartialFinal.FINAL,
        )  # fmt: skip
        if final.schema == aggregate.schema:
            return final
        first = self._keys + len(self._final)
        grouping, last = range(self._keys), range(first, first + 3)
        values = [
            self._value(final, parts, call.type) for parts, call in zip(self._made_of, aggregate.calls, strict=True)
        ]
        return Project(aggregate.schema, final, (*map(final.column, grouping), *values, *map(final.column, last)))

    def _results(self) -> list[Attribute]:
        """Return columns of the final calls: those of the whole where they are these."""
        if self._made_of == [(index,) for index in range(len(self._final))]:
            return list(self._aggregate.schema[self._keys : -3])
        return [Attribute(f"$r{index}", call.type) for index, call in enumerate(self._final)]

    def _value(self, final: Relation, parts: tuple[int, ...], kind: DataType) -> Expr:
        """Return the value of a call from its final calls; an average of no values is NULL."""
        total, *counts = (final.column(self._keys + index) for index in parts)
        if not counts:
            return total
        count = counts[0]
        wide = total.type if total.type.root is not Root.DECIMAL else kind
        value: Expr = Call(wide, named("/"), (total, count))
        if kind.is_nullable:
            none = Call(DataTypes.BOOLEAN(False), named("="), (count, Literal(_COUNTED, 0)))
            value = Call(wide, named("IF"), (none, Literal(wide, None), value))
        return value if value.type == kind else Call(kind, named("CAST"), (value,))


def _summed_as(argument: DataType, result: DataType) -> DataType:
    """Return the type in which sums of parts are exact, or as exact as that of all."""
    if argument.root is Root.DECIMAL:
        return DataTypes.DECIMAL(MOST_DIGITS, argument.scale).as_nullable(result.is_nullable)
    wide = DataTypes.DOUBLE() if argument.is_approximate else DataTypes.BIGINT()
    return wide.as_nullable(result.is_nullable)


__all__ = ["split_distinct"]
