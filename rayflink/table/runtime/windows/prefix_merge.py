"""Partial rows joined with all that stand before them in their segment.

Source: Hillis and Steele (1986), data parallel algorithms: after k rounds each row has joined 2**k of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import Groups
from ..aggregates.partial_aggregates import PartialAggregates
from ..keyed_state.frame_memory import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray


def prefixes(partials: PartialAggregates, columns: Columns, is_first: NDArray[np.bool_]) -> Columns:
    """Merge each partial row with those of its segment before it.

    Args:
        partials: says how partial rows are joined.
        columns: of partial rows, n of them, whose keys are equal within a segment.
        is_first: which are the first of their segments: bool[n], of them the first.
    """
    count = len(is_first)
    own = np.arange(count)
    places = own - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    step, keys = 1, columns[: partials.width]
    while (places >= step).any():
        later = np.flatnonzero(places >= step)
        codes = np.concatenate([later, own])  # what stands earlier comes first in its group
        taken = pa.array(np.concatenate([later - step, own]))
        columns = partials.merge([one.take(taken) for one in columns], Groups(codes, count, list(keys)))
        step *= 2
    return list(columns)


__all__ = ["prefixes"]
