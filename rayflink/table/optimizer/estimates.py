"""Guesses of how many rows a relation gives, and what is known of their columns.

Where a table has no statistics, neither have the relations over it: no choice is then made by their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from rayflink.common.errors import assert_never

from ..connectors.statistics.table_statistics import ColumnStatistics, TableStatistics
from ..plan.groups import GroupAggregate
from ..plan.joins import Join, JoinKind, KeyedJoin
from ..plan.logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Schema,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from ..plan.lookup_joins import LookupJoin
from ..plan.matching import MatchRecognize
from ..plan.multi_joins import MultiJoin
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.over import OverAggregate
from ..plan.plan_nodes import node_of
from ..plan.process_tables import ProcessTable
from ..plan.ranks import Rank
from ..plan.typed import Column, Expr
from ..plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize
from ..types import INTEGERS, DataType
from .conditions import parts_of
from .join_keys import Pair, equalities
from .selectivity import EQUAL, narrowed, selectivity

UNKNOWN_ROWS = 1e8
"""Estimated rows of a table without statistics; the guess is Flink's."""
NOTHING = ColumnStatistics()
FEWER = 10
"""Estimated rows of a group, and of a value of a column, without statistics."""


@dataclass(frozen=True)
class Estimate:
    """A guess.

    Args:
        rows: how many.
        columns: what is known of each.
        is_known: whether all tables below have a known number of rows.
    """

    rows: float
    columns: tuple[ColumnStatistics, ...]
    is_known: bool = True

    def distinct(self, index: int) -> float:
        """Return the estimated number of values of a column."""
        known = self.columns[index].distinct
        return max(1.0, min(self.rows, self.rows / FEWER if known is None else known))


class Estimates:
    """Estimates of the relations of a program; each is computed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Relation, Estimate]] = {}
        self._statistics: dict[int, tuple[Scan, TableStatistics | None]] = {}

    def of(self, plan: Relation) -> Estimate:
        """Return a guess for a relation."""
        entry = self._known.get(id(plan))
        if entry is None:
            entry = self._known[id(plan)] = plan, self._estimate(plan)
        return entry[1]

    def bytes(self, plan: Relation) -> float:
        """Return the estimated size of all rows."""
        estimate = self.of(plan)
        return estimate.rows * width(plan.schema, estimate.columns)

    def of_pairs(self, left: Estimate, right: Estimate, pairs: Sequence[Pair]) -> float:
        """Return the share of pairs of rows with these equal values; a key of several columns counts as one value."""
        if not pairs:
            return 1.0
        share = prod(self._of_pair(left, right, pair) for pair in pairs)
        return max(share, 1 / max(1.0, left.rows, right.rows)) if len(pairs) > 1 else share

    def statistics_of(self, scan: Scan) -> TableStatistics | None:
        """Return the statistics that its catalog has of a table, else those of its source; None: it has none."""
        entry = self._statistics.get(id(scan))
        if entry is None:
            stored = None if scan.stored_statistics is None else scan.stored_statistics()
            entry = self._statistics[id(scan)] = scan, scan.source.statistics() if stored is None else stored
        return entry[1]

    @staticmethod
    def _of_pair(left: Estimate, right: Estimate, pair: Pair) -> float:
        sides = ((left, pair.left), (right, pair.right))
        most = max(estimate.distinct(expr.index) if isinstance(expr, Column) else max(1.0, estimate.rows / FEWER)
                   for estimate, expr in sides)  # fmt: skip
        nulls = [estimate.columns[expr.index].nulls or 0.0 for estimate, expr in sides if isinstance(expr, Column)]
        return prod((1 - share for share in nulls), start=1.0) / most

    # relations

    def _estimate(self, plan: Relation) -> Estimate:
        node = node_of(plan)
        match node:
            case Scan():
                return self._scan(node)
            case Values():
                return self._values(node)
            case Filter():
                return self._filter(node)
            case Project():
                return self._project(node)
            case WindowTable():
                return self._window_table(node)
            case WindowAggregate() | GroupAggregate():
                return self._aggregate(node)
            case Union():
                return self._union(node)
            case Sort():
                return self._sort(node)
            case Rank():
                return self._rank(node)
            case MatchRecognize():
                return self._match(node)
            case OverAggregate():
                return self._over(node)
            case Unnest():
                return self._unnest(node)
            case LookupJoin():
                return self._lookup_join(node)
            case Join():
                return self._written_join(node)
            case KeyedJoin():
                return self._keyed_join(node)
            case MultiJoin():
                return self.of(node.cascade())
            case ProcessTable():
                return self._process(node)
            case WatermarkAssigner() | ToChangelog() | FromChangelog() | Sink():
                return self._as_below(node)
            case ChangelogNormalize() | UpsertMaterialize():
                return self._as_below(node)
            case NumberCopies():
                below = self._as_below(node)
                return replace(below, columns=(*below.columns, NOTHING))
            case _:
                assert_never(node)

    def _scan(self, plan: Scan) -> Estimate:
        statistics = self.statistics_of(plan)
        if statistics is None:
            return Estimate(UNKNOWN_ROWS, tuple(NOTHING for _ in plan.schema), False)
        columns = (_with_distinct(statistics.columns.get(column.name, NOTHING), column.type) for column in plan.schema)
        return Estimate(statistics.rows, tuple(columns))

    def _values(self, plan: Values) -> Estimate:
        columns = [ColumnStatistics(distinct=float(len({repr(row[index]) for row in plan.rows})))
                   for index in range(len(plan.schema))]  # fmt: skip
        return Estimate(float(len(plan.rows)), tuple(columns))

    def _filter(self, plan: Filter) -> Estimate:
        below = self.of(plan.input)
        rows = below.rows * selectivity(plan.condition, below.columns)
        return replace(below, rows=rows, columns=tuple(narrowed(plan.condition, below.columns)))

    def _project(self, plan: Project) -> Estimate:
        below = self.of(plan.input)
        columns = (below.columns[expr.index] if isinstance(expr, Column) else NOTHING for expr in plan.exprs)
        return replace(below, columns=tuple(columns))

    def _window_table(self, plan: WindowTable) -> Estimate:
        below, windowing = self.of(plan.input), plan.windowing
        times = windowing.size_ms / windowing.slide_ms if windowing.slide_ms else 1
        return replace(below, rows=below.rows * times, columns=_wider(below.columns, plan))

    def _aggregate(self, plan: GroupAggregate | WindowAggregate) -> Estimate:
        below = self.of(plan.input)
        keys = tuple(below.columns[index] for index in plan.grouping)
        return replace(below, rows=self.groups(plan), columns=_wider(keys, plan))

    def _lookup_join(self, plan: LookupJoin) -> Estimate:
        below = self.of(plan.input)
        return replace(below, columns=_wider(below.columns, plan))

    def _match(self, plan: MatchRecognize) -> Estimate:
        below = self.of(plan.input)
        columns = tuple(below.columns[index] for index in plan.row_columns)
        return replace(below, rows=below.rows / FEWER, columns=_wider(columns, plan))

    def _process(self, plan: ProcessTable) -> Estimate:
        below = [self.of(relation) for relation in plan.relations]
        return Estimate(sum(estimate.rows for estimate in below), tuple(NOTHING for _ in plan.schema), False)

    def _over(self, plan: OverAggregate) -> Estimate:
        below = self.of(plan.input)
        return replace(below, columns=_wider(below.columns, plan))

    def groups(self, plan: GroupAggregate | WindowAggregate) -> float:
        """Return the estimated number of groups of an aggregate."""
        below = self.of(plan.input)
        if not plan.grouping and isinstance(plan, GroupAggregate):
            return 1.0
        if isinstance(plan, WindowAggregate) or any(below.columns[index].distinct is None for index in plan.grouping):
            return max(1.0, below.rows / FEWER)
        return min(max(1.0, below.rows), prod(below.distinct(index) for index in plan.grouping))

    def knows_groups(self, plan: GroupAggregate) -> bool:
        """Return whether how many groups there are is from tables."""
        below = self.of(plan.input)
        return below.is_known and all(below.columns[index].distinct is not None for index in plan.grouping)

    def _union(self, plan: Union) -> Estimate:
        sides = [self.of(source) for source in plan.sources]
        columns = tuple(NOTHING for _ in plan.schema)
        return Estimate(sum(side.rows for side in sides), columns, all(side.is_known for side in sides))

    def _sort(self, plan: Sort) -> Estimate:
        below = self.of(plan.input)
        rows = max(0.0, below.rows - plan.offset)
        return replace(below, rows=rows if plan.limit is None else min(rows, float(plan.limit)))

    def _rank(self, plan: Rank) -> Estimate:
        below = self.of(plan.input)
        keys = prod((below.distinct(index) for index in plan.partition), start=1.0)
        rows = below.rows if plan.last is None else min(below.rows, keys * (plan.last - plan.first + 1))
        return replace(below, rows=rows, columns=_wider(below.columns, plan))

    def _unnest(self, plan: Unnest) -> Estimate:
        below = self.of(plan.input)
        return replace(below, columns=_wider(tuple(below.columns[index] for index in plan.row_columns), plan))

    def _written_join(self, plan: Join) -> Estimate:
        condition = equalities(plan)
        return self._joined(plan, condition.pairs, condition.rest)

    def _keyed_join(self, plan: KeyedJoin) -> Estimate:
        keys = zip(plan.keys.left, plan.keys.right, plan.keys.nulls_match, strict=True)
        pairs = [Pair(plan.left.column(left), plan.right.column(right), nulls) for left, right, nulls in keys]
        return self._joined(plan, pairs, () if plan.condition is None else parts_of(plan.condition))

    def _joined(self, plan: Join | KeyedJoin, pairs: Sequence[Pair], rest: Sequence[Expr]) -> Estimate:
        left, right = self.of(plan.left), self.of(plan.right)
        columns, kind, is_known = (*left.columns, *right.columns), plan.kind, left.is_known and right.is_known
        share = self.of_pairs(left, right, pairs) * prod((selectivity(part, columns) for part in rest), start=1.0)
        if kind.is_of_left:
            met = min(1.0, right.rows * share)
            rows = left.rows * (met if kind is JoinKind.SEMI else 1 - met)
            return Estimate(rows, left.columns, is_known)
        rows = left.rows * right.rows * share
        rows = max(rows, left.rows) if kind.keeps_left else rows
        return Estimate(max(rows, right.rows) if kind.keeps_right else rows, columns, is_known)

    def _as_below(self, plan: Relation) -> Estimate:
        below = [self.of(child) for child in plan.inputs]
        columns = below[0].columns if len(below) == 1 else ()
        rows = sum(estimate.rows for estimate in below)
        return Estimate(rows, _wider(columns[: len(plan.schema)], plan), all(estimate.is_known for estimate in below))


def _wider(columns: tuple[ColumnStatistics, ...], plan: Relation) -> tuple[ColumnStatistics, ...]:
    """Append columns without statistics."""
    return (*columns, *(NOTHING for _ in range(len(plan.schema) - len(columns))))


def _with_distinct(column: ColumnStatistics, kind: DataType) -> ColumnStatistics:
    """Whole numbers have no more values than there are from the least to the greatest."""
    if kind.root not in INTEGERS or column.low is None or column.high is None:
        return column
    most = column.high - column.low + 1
    return replace(column, distinct=most if column.distinct is None else min(most, column.distinct))


def width(schema: Schema, columns: Sequence[ColumnStatistics] = ()) -> float:
    """Bytes of a row."""
    known = [column.width or 0.0 for column in columns] or [0.0] * len(schema)
    return sum(max(_bytes(column.type), least) for column, least in zip(schema, known, strict=True))


def _bytes(kind: DataType) -> float:
    return 16.0 if kind.is_text or kind.is_bytes or kind.items or kind.fields else 8.0


__all__ = ["EQUAL", "UNKNOWN_ROWS", "Estimate", "Estimates", "width"]
