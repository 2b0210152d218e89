"""Differences between two savepoints: rows that were added, removed or changed, state by state."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rayflink.user_types import UserValue

from .columns import array
from .contents import OperatorContents
from .rows import TIMERS, StateRow, rows_in
from .savepoint import OperatorState, Savepoint
from .states import SavedState

if TYPE_CHECKING:
    import pyarrow

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


class RowChange(NamedTuple):
    """One row that differs.

    Attributes:
        change: "added", "removed" or "changed".
        row: as it is in the later savepoint, or was where it is removed.
        before: the value it had; None where it is added.
    """

    change: str
    row: StateRow
    before: UserValue = None


class StateChanges:
    """The rows of one state that differ, read lazily.

    Rows are the same where key, namespace and position or map key are; of timers where the time is. The time of the
    last access makes no difference.

    Args:
        operator: uid of the operator, or its name where it has none.
        before: the state in the earlier savepoint; None where it has none.
        after: the state in the later one; None where it has none.
        contents: of the operators, where the state is by key and both have the same key groups.
    """

    def __init__(
        self,
        operator: str,
        before: SavedState | None,
        after: SavedState | None,
        contents: tuple[OperatorContents, OperatorContents] | None = None,
    ) -> None:
        self.operator, self.before, self.after, self._contents = operator, before, after, contents
        state = after or before
        assert state is not None, "a state is in one of the two"
        self._state = state

    @property
    def state(self) -> str:
        """Return the name of the state."""
        return self._state.name

    @property
    def kind(self) -> str:
        """Return the kind of the state."""
        return self._state.kind

    def rows(self) -> Iterator[RowChange]:
        """Yield the rows that differ; where both have the same key groups only one of them is in memory at a
        time.
        """
        if self._contents is None or self.before is None or self.after is None or self.before.kind != self.after.kind:
            yield from self._compared(_rows_of(self.before), _rows_of(self.after))
            return
        for old, new in _side_by_side(*self._contents):
            yield from self._compared(rows_in(old, self.state, self.kind), rows_in(new, self.state, self.kind))

    def counts(self) -> dict[str, int]:
        """Return how many rows were "added", "removed" and "changed"."""
        counts = {ADDED: 0, REMOVED: 0, CHANGED: 0}
        for row in self.rows():
            counts[row.change] += 1
        return counts

    def to_arrow(self) -> pyarrow.Table:
        """Return a table of `change`, the columns of the state, and its value in `before` and `after`."""
        import pyarrow as pa

        changes = list(self.rows())
        shown = SavedState(self._state.summary, lambda: (change.row for change in changes)).to_arrow()
        value = "time" if self.kind == TIMERS else "value"
        columns = {"change": pa.array([change.change for change in changes], pa.string())}
        columns |= {name: shown[name] for name in shown.column_names if name != value}
        columns["before"] = array([change.before for change in changes])[0]
        columns["after"] = array([None if c.change == REMOVED else c.row.value for c in changes])[0]
        return pa.table(columns)

    def _compared(self, old: Iterator[StateRow], new: Iterator[StateRow]) -> Iterator[RowChange]:
        old_rows = {self._identity(row): row for row in old}
        for row in new:
            known = old_rows.pop(self._identity(row), None)
            if known is None:
                yield RowChange(ADDED, row)
            elif not _equal(known.value, row.value):
                yield RowChange(CHANGED, row, known.value)
        for row in old_rows.values():
            yield RowChange(REMOVED, row, row.value)

    def _identity(self, row: StateRow) -> Any:
        return (row.key, row.namespace, row.value) if self.kind == TIMERS else (row.key, row.namespace, row.part)


def differences(before: Savepoint, after: Savepoint) -> tuple[StateChanges, ...]:
    """Return the states of both savepoints side by side, including operators that only one of them has."""
    earlier = {operator.id: operator for operator in before.operators}
    later = {operator.id: operator for operator in after.operators}
    changes = []
    for name in dict.fromkeys((*earlier, *later)):
        old, new = earlier.get(name), later.get(name)
        operator = new or old
        assert operator is not None
        olds = {} if old is None else {(state.is_keyed, state.name): state for state in old.states}
        news = {} if new is None else {(state.is_keyed, state.name): state for state in new.states}
        for state in dict.fromkeys((*olds, *news)):
            contents = _contents(old, new) if state[0] else None
            changes.append(StateChanges(operator.uid or operator.name, olds.get(state), news.get(state), contents))
    return tuple(changes)


def _contents(old: OperatorState | None, new: OperatorState | None) -> tuple[OperatorContents, OperatorContents] | None:
    if old is None or new is None or old.max_parallelism != new.max_parallelism:
        return None
    return old.contents, new.contents


def _side_by_side(before: OperatorContents, after: OperatorContents) -> Iterator[tuple[Any, Any]]:
    """Yield the contents of both, key group by key group."""
    nothing: Any = {"tables": {}, "timers": {}}
    olds, news = before.groups(), after.groups()
    old, new = next(olds, None), next(news, None)
    while old is not None or new is not None:
        group = min(pair[0] for pair in (old, new) if pair is not None)
        left = right = nothing
        if old is not None and old[0] == group:
            left, old = old[1], next(olds, None)
        if new is not None and new[0] == group:
            right, new = new[1], next(news, None)
        yield left, right


def _rows_of(state: SavedState | None) -> Iterator[StateRow]:
    return iter(()) if state is None else state.rows()


def _equal(left: UserValue, right: UserValue) -> bool:
    """Return whether two values are equal, or have the same bytes, as two NaN."""
    try:
        same = bool(left == right)
    except Exception:  # a user's class, or an array, may have its own idea of equality
        same = False
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if same and (numbers or type(left) is type(right)):
        return True
    try:
        return pickle.dumps(left, 5) == pickle.dumps(right, 5)
    except Exception:  # what cannot be pickled has no bytes to compare
        return same


__all__ = ["ADDED", "CHANGED", "REMOVED", "RowChange", "StateChanges", "differences"]
