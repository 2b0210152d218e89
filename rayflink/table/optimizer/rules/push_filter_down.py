"""Pushes filters toward the sources, each condition as far as its meaning stays the same.

Example:

    SELECT id FROM (SELECT id FROM visits UNION ALL SELECT id FROM customers) WHERE id > 5

Without the rule:

    Calc(select=[id], where=[id > 5])
    +- Union(all=[true], union=[id])
       :- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
       +- TableSourceScan(table=[[customers, project=[id]]], fields=[id])

With the rule:

    Union(all=[true], union=[id])
    :- Calc(select=[id], where=[id > 5])
    :  +- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
    +- Calc(select=[id], where=[id > 5])
       +- TableSourceScan(table=[[customers, project=[id]]], fields=[id])
"""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.common.errors import assert_never

from ...plan.groups import GroupAggregate
from ...plan.joins import Join, KeyedJoin
from ...plan.logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowKind,
    WindowTable,
)
from ...plan.lookup_joins import LookupJoin
from ...plan.matching import MatchRecognize
from ...plan.multi_joins import MultiJoin
from ...plan.op_columns import FromChangelog, ToChangelog
from ...plan.over import OverAggregate
from ...plan.plan_nodes import node_of
from ...plan.process_tables import ProcessTable
from ...plan.ranks import Rank
from ...plan.typed import Column, Expr
from ...plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize
from ..conditions import filtered, is_movable, parts_of, reads_only
from .merge_projections_and_filters import inlined, is_cheap
from .push_projection_into_scan import columns_of


def push_filter_down(plan: Relation) -> Relation:
    """Push filters through projections, unions, windows, collections, aggregates of groups, and sorts without a limit.

    They stay above watermarks, which are generated from all rows of a table.
    """
    return plan.mapped(lambda node: _placed(node.input, parts_of(node.condition)) if isinstance(node, Filter) else node)


def _placed(relation: Relation, conditions: Sequence[Expr]) -> Relation:
    """Return the rows of a relation for which the conditions are true."""
    if isinstance(relation, Filter):
        return _placed(relation.input, [*parts_of(relation.condition), *conditions])
    lower, here = _divided(relation, conditions)
    if not lower:
        return filtered(relation, here)
    inputs = [_placed(below, _over(relation, below, lower)) for below in relation.inputs]
    return filtered(relation.with_inputs(inputs), here)


def _divided(relation: Relation, conditions: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
    """Return the conditions that mean the same below a relation, and the others."""
    lower = [condition for condition in conditions if is_movable(condition) and _may_pass(relation, condition)]
    return lower, [condition for condition in conditions if all(condition is not other for other in lower)]


def _may_pass(relation: Relation, condition: Expr) -> bool:
    """Return whether a condition on the rows of a relation may be checked on the rows of its inputs instead."""
    node = node_of(relation)
    match node:
        case Project():
            return is_cheap((condition,), node.exprs)
        case WindowTable() if node.windowing.kind is WindowKind.SESSION:
            return reads_only(condition, node.windowing.partition)  # which sessions there are depends on all their rows
        case WindowTable():
            return all(index < len(node.input.schema) for index in columns_of(condition))
        case WindowAggregate() | GroupAggregate():
            return reads_only(condition, range(len(node.grouping)))
        case LookupJoin():
            return reads_only(condition, range(node.width))
        case Unnest():
            return reads_only(condition, range(len(node.row_columns)))
        case Rank() | OverAggregate():
            return reads_only(condition, node.partition)
        case MatchRecognize():
            columns = enumerate(node.row_columns)
            return reads_only(condition, [index for index, below in columns if below in node.partition])
        case Sort():
            return node.limit is None and not node.offset
        case Union():
            return True
        case Join() | KeyedJoin() | MultiJoin():
            return False  # see push_filter_through_join
        case (
            Filter() | Scan() | Values() | WatermarkAssigner() | ToChangelog() | FromChangelog()
            | ChangelogNormalize() | UpsertMaterialize() | NumberCopies() | ProcessTable() | Sink()
        ):  # fmt: skip
            return False
        case _:
            assert_never(node)


def _over(relation: Relation, below: Relation, conditions: Sequence[Expr]) -> list[Expr]:
    """Return the conditions over the columns of an input."""
    if isinstance(relation, Project):
        return [inlined(condition, relation.exprs) for condition in conditions]
    places: Sequence[int] = range(len(relation.schema))
    if isinstance(relation, WindowAggregate | GroupAggregate):
        places = relation.grouping
    elif isinstance(relation, Unnest):
        places = relation.row_columns
    elif isinstance(relation, MatchRecognize):
        places = relation.row_columns

    def moved(part: Expr) -> Expr:
        return below.column(places[part.index]) if isinstance(part, Column) else part

    return [condition.mapped(moved) for condition in conditions]
