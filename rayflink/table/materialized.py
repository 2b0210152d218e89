"""What is left of rows after all their changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rayflink.common.types import Row


def materialized(changes: Iterable[Row]) -> list[tuple[Any, ...]]:
    """The rows that hold at the end, in the order in which they came.

    >>> from rayflink.common.types import RowKind
    >>> kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.INSERT]
    >>> materialized(Row.of_kind(kind, n) for kind, n in zip(kinds, [1, 1, 2, 1]))
    [(2,), (1,)]

    Args:
        changes: rows with their kinds; one that is taken back was given before.
    """
    found: list[tuple[Any, ...] | None] = []
    places: dict[str, list[int]] = {}
    for row in changes:
        values = tuple(row._values)
        if row._is_accumulate_msg():
            places.setdefault(repr(values), []).append(len(found))
            found.append(values)
        else:
            found[places[repr(values)].pop()] = None
    return [one for one in found if one is not None]


__all__ = ["materialized"]
