"""Savepoints made from others by replacing the rows of a state."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from rayflink.graph.uids import uid_to_operator_id
from rayflink.state.descriptors import StateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.handles import convert_of
from rayflink.state.schema.state_summary import SAMPLES, StateSummary, merge_summaries, summary_of
from rayflink.state.snapshots import InlineSnapshots
from rayflink.state.storage.manifest import OperatorManifest

from .contents import OperatorContents
from .edited import ChangedRows, GivenEntries, GivenRows, NoContents, RowChange, WithoutState
from .rows import TIMERS, StateRow
from .savepoint import NotInSavepointError, OperatorState, Savepoint
from .states import KEYED_KINDS, SavedState
from .tables import Column, rows_of

_LIST_KINDS = {"split list": "split", "union list": "union", "broadcast": "broadcast"}


class TimersDescriptor(StateDescriptor):
    """The name of a queue of timers."""

    kind = TIMERS


def with_state(
    savepoint: Savepoint,
    operator: str,
    state: str | StateDescriptor,
    rows: object,
    columns: tuple[Column, Column],
    max_parallelism: int,
) -> Savepoint:
    """Return a savepoint with other rows; see `Savepoint.with_state`."""
    try:
        old = savepoint.operator(operator)
    except NotInSavepointError:
        if not isinstance(state, StateDescriptor):
            raise
        name = uid_to_operator_id(operator)
        manifest = OperatorManifest(str(name), operator, operator, 1, max_parallelism, (None,))
        old = OperatorState(manifest, NoContents(), InlineSnapshots())
    known = _known(old, state)
    if known.kind in _LIST_KINDS:
        new = _with_entries(old, known, rows, columns)
    elif known.kind in KEYED_KINDS:
        new = _with_rows(old, known, state, rows, columns)
    else:
        problem = f"the {known.kind} state {known.name!r} of {operator!r} cannot be given other rows"
        raise StateError(f"{problem}; it is the operator's own, and is made by it when a job starts without it")
    others = [other for other in savepoint.operators if other is not old]
    place = next((index for index, other in enumerate(savepoint.operators) if other is old), len(others))
    return Savepoint(savepoint.manifest, [*others[:place], new, *others[place:]])


def without_state(savepoint: Savepoint, operator: str, state: str) -> Savepoint:
    """Return a savepoint without a state; see `Savepoint.without_state`."""
    old = savepoint.operator(operator)
    known = old.state(state)
    states = tuple(
        summary for summary in old.manifest.states if (summary.is_keyed, summary.name) != (known.is_keyed, known.name)
    )
    contents = WithoutState(old.contents, known.name, known.is_keyed)
    coordinator = None if known.kind == "enumerator" else old.manifest.coordinator
    new = OperatorState(replace(old.manifest, states=states, coordinator=coordinator), contents, old.reader)
    return Savepoint(savepoint.manifest, [new if other is old else other for other in savepoint.operators])


def _known(operator: OperatorState, state: str | StateDescriptor) -> SavedState:
    """Return the existing state; for a descriptor one that fits it, or a new one."""
    if not isinstance(state, StateDescriptor):
        return operator.state(state)
    wanted = summary_of(state, state.stored_kind, ())
    for known in operator.states:
        if known.is_keyed and known.name == state.name:
            if known.summary.kind != wanted.kind:
                problem = f"state {state.name!r} of {operator.uid or operator.name!r} is {known.summary.kind} state"
                raise StateError(f"{problem}, not {wanted.kind} state; describe it as it is, or remove it first")
            return SavedState(merge_summaries((wanted, known.summary))[0], known.rows)
    return SavedState(wanted, lambda: iter(()))


def _with_rows(
    old: OperatorState, known: SavedState, state: str | StateDescriptor, rows: object, columns: tuple[Column, Column]
) -> OperatorState:
    place = known.name, known.kind, known.expires
    if callable(rows) and not hasattr(rows, "to_batches"):
        change: RowChange = rows
        contents: OperatorContents = ChangedRows(old.contents, place, change)
        return _edited(old, contents, known.summary)
    key, value = columns
    if known.kind == TIMERS and value == "value":
        value = "time"
    now_ms = int(time.time() * 1000)
    state_rows = [_dated(row, known.expires, now_ms) for row in rows_of(rows, key, value, known.summary)]
    sampled = known.summary
    if isinstance(state, StateDescriptor) and known.kind != TIMERS:
        convert, where = convert_of(state.type_info), f"state {state.name!r}"
        if convert is not None:
            state_rows = [row._replace(value=convert(row.value, where)) for row in state_rows]
        sampled = summary_of(state, known.summary.kind, [row.value for row in islice(state_rows, SAMPLES)])
    elif known.kind != TIMERS:
        sampled = _seen(known.summary, state_rows)
    contents = GivenRows(old.contents, place, state_rows, old.max_parallelism)
    return _edited(old, contents, sampled)


def _with_entries(old: OperatorState, known: SavedState, rows: object, columns: tuple[Column, Column]) -> OperatorState:
    """Replace the entries of an operator state; if `rows` is a function, all entries are read here."""
    if callable(rows) and not hasattr(rows, "to_batches"):
        changed = (rows(row) for row in known.rows())
        entries: list[StateRow] = [row for row in changed if row is not None]
    else:
        subtask: Column = columns[0]
        if subtask == "key":
            subtask = lambda row: row.get("subtask")  # noqa: E731
        entries = list(rows_of(rows, subtask, columns[1], known.summary))
    contents = GivenEntries(old.contents, known.name, _LIST_KINDS[known.kind], entries, old.parallelism)
    return _edited(old, contents, _seen(known.summary, entries))


def _edited(old: OperatorState, contents: OperatorContents, summary: StateSummary) -> OperatorState:
    """Return the operator with other contents, one state of which has a new description.

    Where the savepoint described no state it describes none now: those that are there are found by reading.
    """
    others = [
        state for state in old.manifest.states if (state.is_keyed, state.name) != (summary.is_keyed, summary.name)
    ]
    is_new = not any(part is not None for part in old.manifest.subtasks)
    states = merge_summaries((*others, summary)) if old.manifest.states or is_new else ()
    return OperatorState(replace(old.manifest, states=states), contents, old.reader)


def _seen(summary: StateSummary, rows: Iterable[StateRow]) -> StateSummary:
    """Return a summary with the classes that are in the rows, in addition to those it knows."""
    values = [row.value for row in islice(rows, SAMPLES)]
    described = summary_of(StateDescriptor(summary.name), summary.kind, values)
    return summary.merge(described)


def _dated(row: StateRow, expires: bool, now_ms: int) -> StateRow:
    return row._replace(last_access=now_ms) if expires and row.last_access is None else row


__all__ = ["TimersDescriptor", "with_state", "without_state"]
