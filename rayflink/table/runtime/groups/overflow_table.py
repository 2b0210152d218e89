"""A table of the values of groups beyond those that are stored with a group, and what a batch knows of its groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..keyed_state.frame_memory import Columns
from ..keyed_state.keyed_table import IndexForm, KeyedTable
from ..keyed_state.runs import ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .running_sums import GroupRows
    from .segments import Numbers, Truths

FEWEST_LISTED = 1024
"""Values that are present and stay with a group when the others go."""
MOST_LISTED = 2 * FEWEST_LISTED
"""Values that are with a group at most behind a batch."""


class BatchGroups(NamedTuple):
    """The groups of a batch whose rows lie group by group.

    Args:
        keys: of each group, in the form in which they are compared.
        first_segments: the first segment of each group.
        last_segments: the last one.
        is_emptied: which groups have no rows left behind a row of the batch.
        is_left: which groups have rows left behind the batch.
        now_ms: processing time.
    """

    keys: Columns
    first_segments: Numbers
    last_segments: Numbers
    is_emptied: Truths
    is_left: Truths
    now_ms: int


class OverflowTable:
    """A table of the values of groups beyond those that are stored with a group.

    Args:
        keys: types of the group's key.
        more: types of further columns of the table's key.
        values: types of the other columns.
    """

    def __init__(self, keys: Sequence[pa.DataType], more: Sequence[pa.DataType], values: Sequence[pa.DataType]) -> None:
        self.table = KeyedTable([*keys, *more], values, 0, len(keys), IndexForm.KEY_AND_PARTITION)

    def hot(self, groups: BatchGroups) -> Numbers:
        """Return the groups that have values in the table."""
        if not len(self.table):
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.table.find_partitions(groups.keys).count)

    def forget(self, keys: Columns) -> None:
        """Remove all values of groups.

        Args:
            keys: of the groups, in the form in which they are compared.
        """
        if len(self.table):
            stored = self.table.find_partitions(keys)
            self.table.remove(stored.order[ranges(stored.first, stored.count)].astype(np.int64))


class _Present(Protocol):
    """Finds the value behind each row among those of the lists."""

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]: ...


class ListOverflow(OverflowTable, ABC):
    """Finds the value behind each row where a list with the group has some values, and the table all others.

    Args:
        present: finds it where all values are in the list.
        keys: types of the group's key.
        more: types of further columns of the table's key.
        values: types of the other columns.
    """

    def __init__(
        self, present: _Present, keys: Sequence[pa.DataType], more: Sequence[pa.DataType], values: Sequence[pa.DataType]
    ) -> None:
        super().__init__(keys, more, values)
        self._present = present

    def run(self, base: Columns, rows: GroupRows, groups: BatchGroups) -> tuple[Columns, Columns]:
        """Return the value behind each row, and the lists behind each segment.

        Args:
            base: the lists before each segment.
            rows: of a batch.
            groups: those of the rows.
        """
        rows = rows._replace(values=with_equal_nans(rows.values))
        beyond, listed, hot = np.zeros(0, dtype=np.int64), rows, self.hot(groups)
        if len(hot):
            base = self._refilled(base, rows, groups, hot)
            beyond = self._beyond(base, rows, groups)
        if len(beyond):
            weights = rows.weights.copy()
            weights[beyond] = 0
            listed = rows._replace(weights=weights)
        results, state = self._present.run(base, listed)
        if len(beyond):
            self._change(rows, beyond, groups)
        return results, self._shortened(state, groups)

    @abstractmethod
    def _refilled(self, base: Columns, rows: GroupRows, groups: BatchGroups, hot: Numbers) -> Columns:
        """Return the lists before segments with enough values that at least one is left behind each row.

        Of groups that are emptied, all values are wanted, since other groups with their keys may follow.
        """

    @abstractmethod
    def _beyond(self, base: Columns, rows: GroupRows, groups: BatchGroups) -> Numbers:
        """Return the rows that change values of the table, not those of the lists."""

    @abstractmethod
    def _change(self, rows: GroupRows, beyond: Numbers, groups: BatchGroups) -> None:
        """Add the values of these rows to the table, or take them back from it."""

    @abstractmethod
    def _shortened(self, state: Columns, groups: BatchGroups) -> Columns:
        """Return the lists behind segments without the values that are too many, which go to the table."""


def with_equal_nans(values: pa.Array) -> pa.Array:
    """Return the values with all NaNs the same, as they are in the keys of a table."""
    if not types.is_floating(values.type):
        return values
    is_nan = pc.is_nan(values)
    return pc.if_else(is_nan, pa.scalar(np.nan, values.type), values) if pc.any(is_nan).as_py() else values


__all__ = ["FEWEST_LISTED", "MOST_LISTED", "BatchGroups", "ListOverflow", "OverflowTable", "with_equal_nans"]
