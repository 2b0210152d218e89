"""The rows of one side of a join of streams: a keyed multiset with its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext

from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec, RowForm
from ..keyed_state.keyed_table import EXPIRED
from ..keyed_state.stored_table import StoredTable
from .folded_changes import folded_by_key, folded_equal
from .join_pairs import Matches
from .join_rows import JoinSide

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

_NO_KEY = pa.array([0], pa.int8())
"""The key of all rows, where a join has none."""


@dataclass(frozen=True)
class SideState:
    """The state of a side.

    Args:
        form: what distinguishes its rows.
        ttl_ms: how long a row is known that is not written; 0: for ever.
        has_matches: whether each row has the number of rows of the other side that it matches.
        takes_upserts: rows that replace others by their unique key may come without the row before.
    """

    form: RowForm
    ttl_ms: int = 0
    has_matches: bool = False
    takes_upserts: bool = False


class StoredSide:
    """The rows of a side that may match rows of the other one.

    Args:
        side: the columns.
        state: how they are stored.
        nulls_match: of each key, whether a null is equal to a null; rows that match none are not stored.
    """

    def __init__(self, side: JoinSide, state: SideState, nulls_match: tuple[bool, ...]) -> None:
        self._side, self._nulls_match = side, nulls_match
        self._has_key = bool(side.partition_columns)
        kinds = [side.schema.types[index] for index in side.state_order]
        columns = kinds if self._has_key else [_NO_KEY.type, *kinds]
        unique_width = len(side.key_order) + (not self._has_key)
        self._width = len(side.partition_columns) or 1
        spec = MultisetSpec(
            tuple(columns), self._width, state.form, unique_width, state.has_matches, state.ttl_ms
        )  # fmt: skip
        self.rows = KeyedMultiset(spec)
        self.has_matches, self._expires = state.has_matches, state.ttl_ms > 0
        self._form, self._takes_upserts = state.form, state.takes_upserts

    @property
    def is_each_row_once(self) -> bool:
        """Return whether the rows of a key are as many as `find` says: none is over, and none stands for others."""
        return not self._expires and self._form is not RowForm.COUNTED

    def open(self, ctx: OperatorContext, memory: FrameMemory, name: str) -> StoredTable:
        """Take memory and metrics, and return what takes the snapshots."""
        self.rows.table.open(memory)
        if ctx.metrics is not None and self._expires:
            self.rows.table.expired = ctx.metrics.counter(EXPIRED).inc
        return StoredTable(self.rows.table, f"{name} side of a join: {self._side.state_identity}", ctx, name)

    def folded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return changes of the side as those that are left of them, see `folded_changes`.

        Args:
            rows: in the order of the side, with kinds or without.
        """
        match self._form:
            case RowForm.APPENDED:
                return rows
            case RowForm.COUNTED:
                return folded_equal(rows)
            case _:
                return folded_by_key(rows, self._side.key_order, self._takes_upserts)

    def state_columns(self, batch: pa.RecordBatch) -> Columns:
        """Return the columns of rows in the order of the state."""
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(batch.columns, self._side.schema.types, strict=True)
        ]
        ordered = [columns[index] for index in self._side.state_order]
        if self._has_key:
            return ordered
        return [_NO_KEY.take(pa.array(np.zeros(batch.num_rows, dtype=np.int64))), *ordered]

    def from_state(self, columns: Columns) -> Columns:
        """Return columns of the state in the order of the side."""
        return self._side.from_state(columns if self._has_key else columns[1:])

    def can_match(self, columns: Columns) -> Truths | None:
        """Return which rows have a key without a NULL that matches nothing: bool[n]; None: all."""
        valid: Truths | None = None
        for column, nulls in zip(columns[: self._width], self._nulls_match if self._has_key else (True,), strict=True):
            if column.null_count and not nulls:
                is_valid = column.is_valid().to_numpy(zero_copy_only=False)
                valid = is_valid if valid is None else valid & is_valid
        return valid

    def find(self, columns: Columns, can_match: Truths | None) -> Matches:
        """Return which stored rows have the keys of rows of the other side.

        Args:
            columns: of these rows, in the order of their state.
            can_match: which may match; None: all.
        """
        stored = self.rows.find(columns[: self._width])
        count = stored.count if can_match is None else np.where(can_match, stored.count, 0)
        return Matches(cast("Numbers", stored.order), stored.first, count)

    def take(self, rows: Numbers) -> Columns:
        """Return the columns of stored rows, in the order of the side."""
        return self.from_state(self.rows.take(rows)) if len(rows) else self.no_rows()

    def no_rows(self) -> Columns:
        """Return empty columns, in the order of the side."""
        return self._side.no_rows()


__all__ = ["SideState", "StoredSide"]
