"""The rows that a join gives: of pairs that fulfil its condition, and of rows without a partner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch

from ...plan.joins import JoinKind
from ...plan.typed import Evaluation, Expr, Session
from .join_pairs import BLOCK_PAIRS

if TYPE_CHECKING:
    from .join_pairs import Rows

Columns = Sequence[pa.Array]


@dataclass(frozen=True)
class JoinSide:
    """The rows of one side.

    Args:
        schema: of its columns.
        keys: numbers of those that are equal in a pair.
        partition_columns: numbers of those by which rows are partitioned; both sides have the same types there.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    partition_columns: tuple[int, ...]
    state_identity: str = ""

    @cached_property
    def order(self) -> list[int]:
        """Return numbers of the columns as the state has them: those by which rows are partitioned come first."""
        leading = set(self.partition_columns)
        return [*self.partition_columns, *(at for at in range(len(self.schema)) if at not in leading)]

    @cached_property
    def places(self) -> list[int]:
        """Return the position of each column in the state."""
        found = {at: place for place, at in reversed([*enumerate(self.order)])}
        return [found[at] for at in range(len(self.schema))]

    def in_order(self, columns: Columns) -> list[pa.Array]:
        """Return columns as the state has them."""
        return [columns[at] for at in self.order]

    def as_they_are(self, held: Columns) -> list[pa.Array]:
        """Return columns of the state as the side has them."""
        return [held[at] for at in self.places]


@dataclass(frozen=True)
class JoinSpec:
    """Specification of a join.

    Args:
        nulls_match: of each key, whether a null is equal to a null.
        condition: what else a pair must fulfil, over the columns of both sides; None: nothing.
        result: schema of the rows of the result.
    """

    kind: JoinKind
    left: JoinSide
    right: JoinSide
    nulls_match: tuple[bool, ...]
    condition: Expr | None
    result: pa.Schema
    session: Session

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        """Left, right."""
        return self.left, self.right


class _OfPairs(Sequence[Any]):
    """The columns of both sides for pairs of rows, each taken when it is asked for."""

    def __init__(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> None:
        self._columns, self._width = (*left, *right), len(left)
        self._pairs = [pa.array(rows) for rows in pairs]
        self._known: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._known:
            self._known[index] = self._columns[index].take(self._pairs[index >= self._width])
        return self._known[index]


class JoinRows:
    """Makes the rows of a join's result.

    Args:
        spec: of the join.
        condition: evaluates the condition over columns of pairs.
    """

    def __init__(self, spec: JoinSpec, condition: Callable[[Evaluation], pa.Array] | None) -> None:
        self._spec, self._condition = spec, condition
        widths = len(spec.left.schema), len(spec.right.schema)
        self._types = [spec.result.types[: widths[0]], spec.result.types[widths[0] :]]

    def fulfilled(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
        """Return the pairs for which the condition is true."""
        if self._condition is None:
            return pairs
        found = Evaluation(_OfPairs(left, right, pairs), len(pairs[0]), self._spec.session)
        mask = self._condition(found).fill_null(False).to_numpy(zero_copy_only=False)
        return pairs if mask.all() else (pairs[0][mask], pairs[1][mask])

    def of_pairs(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> ArrowBatch:
        """Return the rows of pairs; -1 stands for a partner that is missing."""
        own, other = (pa.array(rows, mask=rows < 0) for rows in pairs)
        columns = [one.take(own) for one in left] + [one.take(other) for one in right]
        return self._batch(columns)

    def alone(self, columns: Columns, rows: Rows, of_right: bool = False) -> Iterator[ArrowBatch]:
        """Yield rows of one side by themselves, with nulls for the other side, if it is in the result."""
        for start in range(0, len(rows), BLOCK_PAIRS):
            block = rows[start : start + BLOCK_PAIRS]
            own = [one.take(pa.array(block)) for one in columns]
            if not self._spec.kind.is_of_left:
                nulls = [pa.nulls(len(block), kind) for kind in self._types[not of_right]]
                own = [*nulls, *own] if of_right else [*own, *nulls]
            yield self._batch(own)

    def joined(self, left: Columns, right: Columns, rows: tuple[int, int],
               pairs: Iterable[tuple[Rows, Rows]]) -> Iterator[ArrowBatch]:  # fmt: skip
        """Yield all rows of the join of two sides, as many as `rows` says, of which `pairs` have equal keys."""
        kind = self._spec.kind
        met = [np.zeros(count, dtype=np.bool_) for count in rows]
        for block in pairs:
            found = self.fulfilled(left, right, block)
            for side in (0, 1):
                met[side][found[side]] = True
            if not kind.is_of_left and len(found[0]):
                yield self.of_pairs(left, right, found)
        if kind is JoinKind.SEMI:
            yield from self.alone(left, np.flatnonzero(met[0]))
        if kind.keeps_left or kind is JoinKind.ANTI:
            yield from self.alone(left, np.flatnonzero(~met[0]))
        if kind.keeps_right:
            yield from self.alone(right, np.flatnonzero(~met[1]), of_right=True)

    def _batch(self, columns: Columns) -> ArrowBatch:
        return ArrowBatch(pa.RecordBatch.from_arrays(list(columns), schema=self._spec.result))


__all__ = ["JoinRows", "JoinSide", "JoinSpec"]
