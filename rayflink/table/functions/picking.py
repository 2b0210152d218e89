"""Puts together a column whose rows come from several ones, each computed for its own rows only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pyarrow

from rayflink.table.plan.typed import Evaluation


class Picked:
    """Rows of a column, given part by part.

    Args:
        evaluation: of all rows.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self._places = numpy.full(evaluation.rows, -1, numpy.int64)
        self._parts: list[pyarrow.Array] = []
        self._size = 0

    def add(self, mask: pyarrow.Array, compute: Callable[[Evaluation], pyarrow.Array]) -> None:
        """Take the rows of a mask without nulls from what is computed for them alone."""
        rows = mask.true_count
        if rows == 0:
            return
        whole = rows == self.evaluation.rows
        self._add(mask, compute(self.evaluation if whole else self.evaluation.among(mask)))

    def add_value(self, mask: pyarrow.Array, value: pyarrow.Scalar) -> None:
        """Take one value for the rows of a mask without nulls."""
        self._places[_truths(mask)] = self._size
        self._parts.append(pyarrow.array([value.as_py()], value.type))
        self._size += 1

    def _add(self, mask: pyarrow.Array, values: pyarrow.Array) -> None:
        self._places[_truths(mask)] = numpy.arange(self._size, self._size + len(values))
        self._parts.append(values)
        self._size += len(values)

    def column(self, kind: pyarrow.DataType) -> pyarrow.Array:
        """Return all rows; null where none was given."""
        if not self._parts:
            return pyarrow.nulls(self.evaluation.rows, kind)
        if len(self._parts) == 1 and len(self._parts[0]) == self.evaluation.rows:
            places = self._places
            if self._size and places[0] == 0 and places[-1] == self._size - 1 and (numpy.diff(places) == 1).all():
                return self._parts[0]
        parts = pyarrow.concat_arrays([piece if piece.type == kind else piece.cast(kind) for piece in self._parts])
        return parts.take(pyarrow.array(self._places, mask=self._places < 0))


def _truths(mask: pyarrow.Array) -> Any:
    return mask.to_numpy(zero_copy_only=False)
