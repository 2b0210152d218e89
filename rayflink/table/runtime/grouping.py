"""Rows with equal keys: each row gets the number of its group, groups are numbered as they first appear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Rows in groups.

    Args:
        codes: intp[n]: the group of each row, in [0, count).
        count: how many groups.
        keys: a column for each part of the key, with a row for each group.
    """

    codes: Codes
    count: int
    keys: list[Any]


def grouped(columns: Sequence[pa.Array], rows: int) -> Groups:
    """Rows by their keys; nulls are equal.

    Args:
        columns: parts of the key, each of `rows` values; none: all rows are one group.
    """
    if not columns:
        return Groups(np.zeros(rows, dtype=np.intp), 1 if rows else 0, [])
    codes, distinct = encoded(columns[0])
    if len(columns) == 1:
        return Groups(codes.astype(np.intp, copy=False), len(distinct), [distinct])
    parts = [distinct]
    places: list[NDArray[np.intp]] = [np.arange(len(distinct))]
    for column in columns[1:]:
        more, distinct = encoded(column)
        width = len(distinct)
        if width == 1 or len(places[0]) == 1:  # the one or the other tells all groups apart
            places = list(np.broadcast_arrays(*places, np.arange(width)))
            codes = more if width > 1 else codes
            parts.append(distinct)
            continue
        pairs = codes.astype(np.int64)
        pairs *= width
        pairs += more
        codes, found = encoded(pa.array(pairs))
        pair = found.to_numpy()
        before, own = np.divmod(pair, width)
        places = [place[before] for place in places] + [own]
        parts.append(distinct)
    keys = [part.take(pa.array(place)) for part, place in zip(parts, places, strict=True)]
    return Groups(codes.astype(np.intp, copy=False), len(keys[0]), keys)


def encoded(column: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """The number of each value among the distinct ones, int32[n], and these as they first appear; null is a value."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    found = pc.dictionary_encode(column, null_encoding="encode")
    return found.indices.to_numpy(), found.dictionary


__all__ = ["Groups", "encoded", "grouped"]
