"""Rows of a state: one for each value, list element, map entry, or timer; and their stored form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from rayflink.state.backend import Namespace
from rayflink.state.clock import epoch_ms
from rayflink.state.group_content import Content, Rows
from rayflink.state.keys import canonical_key
from rayflink.user_types import UserKey, UserValue

EXPIRING = "expiring "
"""Prefix of the stored kind of a state with a time to live."""
TIMERS = "timers"


class StateRow(NamedTuple):
    """One row of a state.

    Attributes:
        key: that it belongs to; None in broadcast state; of a list of an operator the index of the subtask.
        value: the value, the element, the value of the map, or the timestamp of a timer in epoch milliseconds.
        namespace: most often its window; None where it belongs to the key alone.
        part: of a list the position of the element, of a map its key; else None.
        last_access: epoch milliseconds, of state with a time to live; else None.
    """

    key: UserKey
    value: UserValue
    namespace: Namespace = None
    part: UserValue = None
    last_access: int | None = None


def rows_in(content: Content, state: str, kind: str) -> Iterator[StateRow]:
    """Yield the rows of a state in the content of a key group.

    Args:
        kind: as `SavedState.kind` has it.
    """
    if kind == TIMERS:
        for _, namespace, key, timestamp in content["timers"].get(state, ()):
            yield StateRow(key, timestamp, namespace)
        return
    stored_kind, stored = content["tables"].get(state, ("", ()))
    expires = stored_kind.startswith(EXPIRING)
    for _, namespace, key, stored_value in stored:
        for part, value in _parts(stored_value, stored_kind):
            last_access, value = value if expires else (None, value)
            yield StateRow(key, value, namespace, part, last_access)


def _parts(stored_value: Any, stored_kind: str) -> Iterable[tuple[Any, Any]]:
    if stored_kind.endswith("map"):
        return tuple(stored_value.items())
    return enumerate(stored_value) if stored_kind.endswith("list") else ((None, stored_value),)


def stored_rows(rows: Iterable[StateRow], kind: str, expires: bool) -> Rows:
    """Return the rows of a state as a key group holds them; list elements in the order of the input.

    Raises:
        TypeError, ValueError: a time is no int of 64 bits.
    """
    if kind == TIMERS:
        what = "a timer's time"
        return [
            (position, row.namespace, canonical_key(row.key), epoch_ms(row.value, what))
            for position, row in enumerate(rows)
        ]
    values_by_place: dict[tuple[Any, Any], Any] = {}
    for row in rows:
        value = (epoch_ms(row.last_access, "the last access of a row"), row.value) if expires else row.value
        place = canonical_key(row.key), row.namespace
        if kind == "map":
            values_by_place.setdefault(place, {})[row.part] = value
        elif kind == "list":
            values_by_place.setdefault(place, []).append(value)
        else:
            values_by_place[place] = value
    return [
        (position, namespace, key, value) for position, ((key, namespace), value) in enumerate(values_by_place.items())
    ]


def replaced(content: Content, state: str, kind: str, rows: Callable[[Iterator[StateRow]], Iterable[StateRow]],
             expires: bool) -> Content:  # fmt: skip
    """Return the content of a key group with other rows of one state."""
    new = stored_rows(rows(rows_in(content, state, kind)), kind, expires)
    tables, timers = dict(content["tables"]), dict(content["timers"])
    if kind == TIMERS:
        timers[state] = new
    else:
        tables[state] = (EXPIRING if expires else "") + kind, new
    if not new:
        (timers if kind == TIMERS else tables).pop(state, None)
    return {"tables": tables, "timers": timers}


__all__ = ["EXPIRING", "TIMERS", "StateRow", "replaced", "rows_in", "stored_rows"]
