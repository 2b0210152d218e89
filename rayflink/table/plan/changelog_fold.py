"""Folds changelogs: the rows that are left after all changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rayflink.common.types import Row

from ..errors import SqlError


def materialized(changes: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return the rows that hold at the end, in the order in which they came.

    >>> from rayflink.common.types import RowKind
    >>> kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.INSERT]
    >>> materialized(Row.of_kind(kind, n) for kind, n in zip(kinds, [1, 1, 2, 1]))
    [(2,), (1,)]

    Args:
        changes: rows with their kinds.

    Raises:
        SqlError: a row is taken back that is not there.
    """
    rows: list[tuple[Any, ...] | None] = []
    places: dict[str, list[int]] = {}
    for row in changes:
        values = tuple(row)
        if row._is_accumulate_msg():
            places.setdefault(repr(values), []).append(len(rows))
            rows.append(values)
            continue
        there = places.get(repr(values))
        if not there:
            remedy = "a row is taken back with the values that it was given with, behind it, in the same subtask"
            raise SqlError(f"{row.get_row_kind()} {values}, and there is no such row", remedy)
        rows[there.pop()] = None
    return [row for row in rows if row is not None]


__all__ = ["materialized"]
