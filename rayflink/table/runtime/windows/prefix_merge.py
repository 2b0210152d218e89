"""Partial rows merged with all partial rows before them in their segment.

Source: Hillis and Steele (1986), data parallel algorithms: after k rounds each row has merged 2**k of them.
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
        partials: merges partial rows.
        columns: of n partial rows; within a segment their keys are equal.
        is_first: which are the first of their segments: bool[n], beginning with True.
    """
    count = len(is_first)
    rows = np.arange(count)
    places = rows - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    step, keys = 1, columns[: partials.width]
    while (places >= step).any():
        later = np.flatnonzero(places >= step)
        codes = np.concatenate([later, rows])  # the earlier row comes first in its group
        taken = pa.array(np.concatenate([later - step, rows]))
        columns = partials.merge([column.take(taken) for column in columns], Groups(codes, count, list(keys)))
        step *= 2
    return list(columns)


__all__ = ["prefixes"]
