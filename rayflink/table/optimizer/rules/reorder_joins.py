"""Orders inner joins of three or more whole tables so that the fewest rows are produced on the way.

Where conditions may fail, or give another value each time, and where a table has no statistics, joins run as
they are written.

Source: apache/flink FlinkBushyJoinReorderRule, FlinkJoinReorderProgram.

Example, in batch mode, with `table.optimizer.join-reorder-enabled` = `true`:

    SELECT c.name FROM visits a JOIN visits b ON a.id = b.id JOIN customers c ON b.id = c.id

Without the rule:

    Calc(select=[name])
    +- HashJoin(joinType=[InnerJoin], where=[id0 = id], select=[id0, id, name], isBroadcast=[true],
         build=[right])
       :- Calc(select=[id0])
       :  +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, id0], isBroadcast=[true],
       :       build=[right])
       :     :- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
       :     +- Exchange(distribution=[broadcast])
       :        +- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
       +- Exchange(distribution=[broadcast])
          +- TableSourceScan(table=[[customers]], fields=[id, name])

With the rule:

    Calc(select=[name])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, id0, name], isBroadcast=[true],
         build=[right])
       :- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
       +- Exchange(distribution=[broadcast])
          +- Calc(select=[id, name])
             +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, id0, name], isBroadcast=[true],
                  build=[right])
                :- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
                +- Exchange(distribution=[broadcast])
                   +- TableSourceScan(table=[[customers]], fields=[id, name])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...plan.joins import Join, JoinKind, joined_schema
from ...plan.logical import Filter, Project, Relation
from ...plan.typed import Call, Column, Expr
from ..conditions import always, filtered, is_movable, parts_of
from ..estimates import Estimates
from ..join_keys import Pair, equalities
from ..join_order import Condition, JoinOrder, Order
from ..selectivity import selectivity
from .push_projection_into_scan import columns_of, moved

LEAST = 3
"""Tables of which two can be joined first."""
GAIN = 0.99
"""An order is taken that makes fewer rows than this share of those that the written one makes."""


@dataclass(frozen=True)
class _Tables:
    """The tables of inner joins; columns are numbered over all tables, one after the other.

    Args:
        relations: the tables, as they are written.
        conditions: all of them hold.
        columns: of the result.
        written: the order in which they are written.
    """

    relations: tuple[Relation, ...]
    conditions: tuple[Expr, ...]
    columns: tuple[Expr, ...]
    written: Order

    @property
    def width(self) -> int:
        """Return columns of all tables."""
        return sum(len(relation.schema) for relation in self.relations)


def reorder_joins(plan: Relation, estimates: Estimates, most_bushy: int) -> Relation:
    """Inner joins in batch mode.

    Args:
        estimates: says how many rows a relation gives.
        most_bushy: this many tables are ordered by looking at all orders, more of them step by step.
    """
    tables = _tables(plan) if isinstance(plan, Join) else None
    if tables is None or len(tables.relations) < LEAST:
        inputs = [reorder_joins(below, estimates, most_bushy) for below in plan.inputs]
        same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
        return plan if same else plan.with_inputs(inputs)
    relations = tuple(reorder_joins(relation, estimates, most_bushy) for relation in tables.relations)
    order = _order(replace(tables, relations=relations), estimates, most_bushy)
    if order is None:
        changed = any(new is not old for new, old in zip(relations, tables.relations, strict=True))
        order = tables.written if changed else None
    return plan if order is None else _built(plan, replace(tables, relations=relations), order)


def _tables(relation: Relation) -> _Tables | None:
    """Return the tables that a relation joins; None: it is not an inner join whose order can change."""
    if (
        isinstance(relation, Join)
        and relation.is_whole
        and relation.kind is JoinKind.INNER
        and _is_safe(relation.condition)
    ):
        left, right = (_tables(side) or _alone(side) for side in relation.inputs)
        width = left.width
        places = {index: index + width for index in range(right.width)}
        columns = (*left.columns, *(moved(column, places) for column in right.columns))
        conditions = (*left.conditions, *(moved(condition, places) for condition in right.conditions))
        own = tuple(_over(part, columns) for part in parts_of(relation.condition))
        written = (left.written, _shifted(right.written, len(left.relations)))
        return _Tables((*left.relations, *right.relations), (*conditions, *own), columns, written)
    if isinstance(relation, Filter) and _is_safe(relation.condition) and (below := _tables(relation.input)) is not None:
        own = tuple(_over(part, below.columns) for part in parts_of(relation.condition))
        return replace(below, conditions=(*below.conditions, *own))
    if isinstance(relation, Project) and all(isinstance(expr, Column) for expr in relation.exprs):
        if (below := _tables(relation.input)) is not None:
            return replace(below, columns=tuple(_over(expr, below.columns) for expr in relation.exprs))
    return None


def _alone(relation: Relation) -> _Tables:
    return _Tables((relation,), (), tuple(relation.column(index) for index in range(len(relation.schema))), 0)


def _is_safe(condition: Expr) -> bool:
    return is_movable(condition) and not (isinstance(condition, Call) and condition.may_raise)


def _over(expr: Expr, columns: Sequence[Expr]) -> Expr:
    return expr.mapped(lambda part: columns[part.index] if isinstance(part, Column) else part)


def _shifted(order: Order, by: int) -> Order:
    return order + by if isinstance(order, int) else (_shifted(order[0], by), _shifted(order[1], by))


def _owners(tables: _Tables) -> list[int]:
    """Return the number of each column's table."""
    return [table for table, relation in enumerate(tables.relations) for _ in relation.schema]


def _order(tables: _Tables, estimates: Estimates, most_bushy: int) -> Order | None:
    """Return the best order; None: the one that is written."""
    guesses = [estimates.of(relation) for relation in tables.relations]
    if not all(guess.is_known for guess in guesses):
        return None
    conditions = _conditions(tables, estimates)
    choice = JoinOrder([guess.rows for guess in guesses], conditions, most_bushy)
    best = choice.best()
    return best if choice.cost(best) < GAIN * choice.cost(tables.written) else None


def _conditions(tables: _Tables, estimates: Estimates) -> list[Condition]:
    """Conditions of the same tables are one."""
    owners = _owners(tables)
    columns = [column for relation in tables.relations for column in estimates.of(relation).columns]
    conditions: list[Condition] = []
    pairs: dict[tuple[int, int], list[Pair]] = {}
    for part in tables.conditions:
        over = sorted({owners[index] for index in columns_of(part)})
        pair = _pair(part, tables, (over[0], over[1])) if len(over) == 2 else None
        if pair is not None:
            pairs.setdefault((over[0], over[1]), []).append(pair)
        elif over:
            conditions.append(Condition(sum(1 << table for table in over), selectivity(part, columns), False))
    for (first, second), equal in pairs.items():
        left, right = (estimates.of(tables.relations[table]) for table in (first, second))
        conditions.append(Condition(1 << first | 1 << second, estimates.of_pairs(left, right, equal)))
    return conditions


def _pair(part: Expr, tables: _Tables, sides: tuple[int, int]) -> Pair | None:
    """Return an equation between two tables, each side over its columns."""
    left, right = (tables.relations[table] for table in sides)
    firsts = [sum(len(relation.schema) for relation in tables.relations[:table]) for table in sides]
    places = {firsts[0] + index: index for index in range(len(left.schema))}
    places.update({firsts[1] + index: len(left.schema) + index for index in range(len(right.schema))})
    schema = joined_schema(left.schema, right.schema, JoinKind.INNER)
    pairs = equalities(Join(schema, left, right, JoinKind.INNER, moved(part, places))).pairs
    return pairs[0] if pairs else None


def _built(plan: Relation, tables: _Tables, order: Order) -> Relation:
    """Return the joins in an order, with the columns of the plan."""
    owners = _owners(tables)
    constant = [part for part in tables.conditions if not columns_of(part)]
    left = [(part, {owners[index] for index in columns_of(part)}) for part in tables.conditions if columns_of(part)]

    def due(known: set[int]) -> list[Expr]:
        conditions = [part for part, over in left if over <= known]
        left[:] = [(part, over) for part, over in left if not over <= known]
        return conditions

    def build(order: Order) -> tuple[Relation, list[int], set[int]]:
        """Return the relation, the number of each of its columns over all tables, and the tables."""
        if isinstance(order, int):
            columns = [index for index, owner in enumerate(owners) if owner == order]
            places = {index: number for number, index in enumerate(columns)}
            alone = [moved(part, places) for part in due({order})]
            return filtered(tables.relations[order], alone), columns, {order}
        (first, own, known), (second, beside, more) = build(order[0]), build(order[1])
        columns, both = [*own, *beside], known | more
        places = {index: number for number, index in enumerate(columns)}
        condition = always([moved(part, places) for part in due(both)])
        schema = joined_schema(first.schema, second.schema, JoinKind.INNER)
        return Join(schema, first, second, JoinKind.INNER, condition, True, place=plan.place), columns, both

    joins, columns, _ = build(order)
    places = {index: number for number, index in enumerate(columns)}
    exprs = tuple(moved(column, places) for column in tables.columns)
    return Project(plan.schema, filtered(joins, constant), exprs)


__all__ = ["reorder_joins"]
