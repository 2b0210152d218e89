"""The weights of rows: whether each is added to its group, taken back from it, or does not count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..changes import signs_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from .segments import Numbers


@dataclass(frozen=True)
class Argument:
    """The values that an aggregate takes.

    Args:
        column: number of the input's column; None: it takes rows.
        filter: number of a boolean column; rows where it is not true do not count. None: all do.
        keeps_nulls: whether a null is a value.
    """

    column: int | None
    filter: int | None = None
    keeps_nulls: bool = False


@dataclass(frozen=True)
class DistinctArgument(Argument):
    """The values that an aggregate takes once each."""

    column: int


def counting_weights(rows: pa.RecordBatch, argument: Argument, weights: Numbers) -> Numbers:
    """Return the weights of rows, 0 where the argument is null or the filter not true."""
    counts: NDArray[np.bool_] | None = None
    if argument.filter is not None:
        counts = rows.column(argument.filter).fill_null(False).to_numpy(zero_copy_only=False)
    if argument.column is not None and not argument.keeps_nulls and rows.column(argument.column).null_count:
        is_valid = rows.column(argument.column).is_valid().to_numpy(zero_copy_only=False)
        counts = is_valid if counts is None else counts & is_valid
    return weights if counts is None else np.where(counts, weights, 0)


__all__ = ["Argument", "DistinctArgument", "counting_weights", "signs_of"]
