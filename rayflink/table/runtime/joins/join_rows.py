"""The rows of a join's result: pairs that fulfil its condition, and rows without a partner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.operators.base import OperatorContext
from rayflink.operators.user_function import UserCode

from ...plan.joins import JoinKind
from ...plan.typed import Evaluation, Expr, Session
from ..function_calls import OwnFunctions
from .join_pairs import BLOCK_PAIRS

if TYPE_CHECKING:
    from .join_pairs import Rows

Columns = Sequence[pa.Array]


@dataclass(frozen=True)
class JoinSide:
    """The rows of one side. In the state, the columns by which they are partitioned stand first, then its unique key.

    Args:
        schema: of its columns.
        keys: numbers of the columns that are equal in a pair.
        partition_columns: numbers of the columns by which rows are partitioned; both sides have the same types there.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
        unique: numbers of the columns of a unique key; none: the state asks for none.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    partition_columns: tuple[int, ...]
    state_identity: str = ""
    unique: tuple[int, ...] = ()

    @cached_property
    def key_order(self) -> list[int]:
        """Return the numbers of the columns by which rows are partitioned, and of the rest of the unique key."""
        return [*self.partition_columns, *(index for index in self.unique if index not in self.partition_columns)]

    @cached_property
    def state_order(self) -> list[int]:
        """Return the numbers of the columns in the order of the state."""
        leading = set(self.key_order)
        return [*self.key_order, *(index for index in range(len(self.schema)) if index not in leading)]

    @cached_property
    def state_places(self) -> list[int]:
        """Return the position of each column in the state."""
        places = {index: place for place, index in reversed([*enumerate(self.state_order)])}
        return [places[index] for index in range(len(self.schema))]

    def state_columns(self, batch: Batch) -> list[pa.Array]:
        """Return the columns of a batch in the order of the state."""
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(batch.data.columns, self.schema.types, strict=True)
        ]
        return [columns[index] for index in self.state_order]

    def from_state(self, columns: Columns) -> list[pa.Array]:
        """Return columns of the state in the order of the side."""
        return [columns[place] for place in self.state_places]

    def no_rows(self) -> list[pa.Array]:
        """Return empty columns in the order of the side."""
        return [pa.array([], kind) for kind in self.schema.types]


@dataclass(frozen=True)
class JoinSpec:
    """Specification of a join.

    Args:
        kind: which rows are in the result.
        left, right: the sides.
        nulls_match: of each key, whether a null is equal to a null.
        condition: of a pair beyond equal keys, over the columns of both sides; None: there is none.
        result: schema of the rows of the result.
        session: settings that the condition depends on, such as the time zone.
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
        """Return both sides, the left one first."""
        return self.left, self.right


class _PairColumns(Sequence[Any]):
    """The columns of both sides for pairs of rows, each computed when it is first read."""

    def __init__(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> None:
        self._columns, self._left_width = (*left, *right), len(left)
        self._pairs = [pa.array(rows) for rows in pairs]
        self._known: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._known:
            self._known[index] = self._columns[index].take(self._pairs[index >= self._left_width])
        return self._known[index]


class JoinRows:
    """Evaluates the condition of a join, and makes the rows of its result. An operator sets it up, opens and closes it.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: JoinSpec) -> None:
        self._spec, self._condition, self._session = spec, spec.condition, spec.session
        self._functions = OwnFunctions(() if spec.condition is None else (spec.condition,))
        left_width = len(spec.left.schema)
        self._types = [spec.result.types[:left_width], spec.result.types[left_width:]]

    def setup(self, ctx: OperatorContext) -> None:
        """Take the clock, and the context of the user's functions."""
        self._ctx = ctx
        self._session = self._functions.set_up(ctx, self._spec.session)

    def open(self) -> None:
        """Open the user's functions in the condition."""
        self._functions.open()

    def close(self) -> None:
        """Close the functions that were opened."""
        self._functions.close()

    def matching(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
        """Return the pairs for which the condition is true."""
        if self._condition is None:
            return pairs
        evaluation = Evaluation(_PairColumns(left, right, pairs), len(pairs[0]), self._session)
        with UserCode(self._ctx, "the condition of the join"):
            values = evaluation.column(self._condition)
        mask = values.fill_null(False).to_numpy(zero_copy_only=False)
        return pairs if mask.all() else (pairs[0][mask], pairs[1][mask])

    def pairs(self, left: Columns, right: Columns, pairs: tuple[Rows, Rows]) -> ArrowBatch:
        """Return the rows of pairs; -1 stands for a partner that is missing."""
        left_rows, right_rows = (pa.array(rows, mask=rows < 0) for rows in pairs)
        return self._batch([column.take(left_rows) for column in left] + [column.take(right_rows) for column in right])

    def unmatched(self, columns: Columns, rows: Rows, is_right: bool = False) -> Iterator[ArrowBatch]:
        """Yield rows of one side by themselves, with nulls for the other side, if it is in the result."""
        for start in range(0, len(rows), BLOCK_PAIRS):
            block = pa.array(rows[start : start + BLOCK_PAIRS])
            taken = [column.take(block) for column in columns]
            if not self._spec.kind.is_of_left:
                nulls = [pa.nulls(len(block), kind) for kind in self._types[not is_right]]
                taken = [*nulls, *taken] if is_right else [*taken, *nulls]
            yield self._batch(taken)

    def join(
        self, left: Columns, right: Columns, rows: tuple[int, int], candidates: Iterable[tuple[Rows, Rows]]
    ) -> Iterator[ArrowBatch]:
        """Yield all rows of the join of two sides.

        Args:
            left, right: columns of the sides.
            rows: how many rows the sides have.
            candidates: blocks of the pairs that have equal keys.
        """
        kind = self._spec.kind
        has_partner = [np.zeros(count, dtype=np.bool_) for count in rows]
        for block in candidates:
            matching = self.matching(left, right, block)
            for side in (0, 1):
                has_partner[side][matching[side]] = True
            if not kind.is_of_left and len(matching[0]):
                yield self.pairs(left, right, matching)
        if kind is JoinKind.SEMI:
            yield from self.unmatched(left, np.flatnonzero(has_partner[0]))
        if kind.keeps_left or kind is JoinKind.ANTI:
            yield from self.unmatched(left, np.flatnonzero(~has_partner[0]))
        if kind.keeps_right:
            yield from self.unmatched(right, np.flatnonzero(~has_partner[1]), is_right=True)

    def _batch(self, columns: Columns) -> ArrowBatch:
        return ArrowBatch(pa.RecordBatch.from_arrays(list(columns), schema=self._spec.result))


__all__ = ["JoinRows", "JoinSide", "JoinSpec"]
