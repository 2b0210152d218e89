"""Rows of a join of several inputs while they are put together, one input after the other.

A partial row has a row of each input so far, or none where a left join found no partner. It is three numbers for each
input; columns are taken when a condition reads them, and for the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext
from rayflink.operators.user_function import UserCode

from ...plan.typed import Evaluation, Expr, Session
from ..function_calls import OwnFunctions
from ..keyed_state.frame_memory import Columns
from .join_rows import JoinSide
from .stored_side import SideState

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Kinds = NDArray[np.int8]
    Truths = NDArray[np.bool_]

MISSING = -1
"""Stands for the row of an input that a left join did not find."""


@dataclass(frozen=True)
class StepSpec:
    """The join of an input with the rows of those before it.

    Args:
        is_left: rows without a partner stay, with nulls; else it is an inner join.
        required: inputs whose row must be there for a pair.
        condition: of a pair beyond equal keys, over the columns of all inputs up to this one; None: there is none.
    """

    is_left: bool
    required: tuple[int, ...] = ()
    condition: Expr | None = None


@dataclass(frozen=True)
class MultiJoinSpec:
    """Specification of a join of several inputs.

    Args:
        sides: the columns of the inputs, and of their common key.
        states: how the rows of each input are stored.
        steps: how each input but the first is joined.
        result: schema of the rows of the result.
        session: settings that conditions depend on, such as the time zone.
        with_before: whether updates may be UPDATE_BEFORE and UPDATE_AFTER; otherwise the former are deletions.
    """

    sides: tuple[JoinSide, ...]
    states: tuple[SideState, ...]
    steps: tuple[StepSpec, ...]
    result: pa.Schema
    session: Session
    with_before: bool = True

    @property
    def has_left(self) -> bool:
        """Return whether any row may stay without a partner."""
        return any(step.is_left for step in self.steps)


@dataclass(frozen=True)
class InputRows:
    """The rows of an input in partial rows.

    Args:
        columns: of some rows of the input.
        places: the place of each row in the columns, or MISSING: int64[n].
        stored: the number of each row in the state, or MISSING: int64[n].
    """

    columns: Columns
    places: Numbers
    stored: Numbers

    def take(self, chosen: Numbers) -> InputRows:
        """Return some of them."""
        return InputRows(self.columns, self.places[chosen], self.stored[chosen])


@dataclass(frozen=True)
class PartialRows:
    """Rows of the first inputs, in the order of the changes from which they come.

    Args:
        inputs: the rows of each of them.
        probe: the change that each comes from: int64[n].
        kinds: of the changes of the result.
        times: how often each is there; None: once.
    """

    inputs: tuple[InputRows, ...]
    probe: Numbers
    kinds: Kinds
    times: Numbers | None = None

    def __len__(self) -> int:
        return len(self.probe)

    def take(self, chosen: Numbers) -> PartialRows:
        """Return some of them."""
        inputs = tuple(rows.take(chosen) for rows in self.inputs)
        return PartialRows(
            inputs, self.probe[chosen], self.kinds[chosen], None if self.times is None else self.times[chosen]
        )

    def where(self, mask: Truths | None) -> PartialRows:
        """Return those for which the mask is true; None: all."""
        return self if mask is None or mask.all() else self.take(np.flatnonzero(mask))

    def beside(self, rows: InputRows, counts: Numbers | None = None) -> PartialRows:
        """Return them with the rows of a further input, and how often each of these is there."""
        times = counts if self.times is None else self.times if counts is None else self.times * counts
        return replace(self, inputs=(*self.inputs, rows), times=times)

    def has(self, required: Sequence[int]) -> Truths | None:
        """Return which of them have the rows of these inputs; None: all."""
        mask: Truths | None = None
        for number in required:
            places = self.inputs[number].places
            if len(places) and places.min() < 0:
                mask = places >= 0 if mask is None else mask & (places >= 0)
        return mask

    def repeated(self) -> PartialRows:
        """Return each as often as it is there."""
        if self.times is None or (self.times == 1).all():
            return self
        return replace(self, times=None).take(np.repeat(np.arange(len(self)), self.times))


class _Columns(Sequence[Any]):
    """The columns of partial rows, each taken when it is first read."""

    def __init__(self, partial: PartialRows, starts: Sequence[int]) -> None:
        self._partial, self._starts = partial, starts
        self._known: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return self._starts[len(self._partial.inputs)]

    def __getitem__(self, index: Any) -> Any:
        if index not in self._known:
            number = int(np.searchsorted(self._starts, index, side="right")) - 1
            rows = self._partial.inputs[number]
            self._known[index] = rows.columns[index - self._starts[number]].take(_indices(rows.places))
        return self._known[index]


class MultiJoinRows:
    """Evaluates the conditions of a join, and makes the rows of its result.

    An operator sets it up, opens and closes it.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: MultiJoinSpec) -> None:
        self._spec, self._session = spec, spec.session
        self._functions = OwnFunctions([step.condition for step in spec.steps if step.condition is not None])
        self._types = [side.schema.types for side in spec.sides]
        self._starts = [*accumulate(map(len, self._types), initial=0)]

    def setup(self, ctx: OperatorContext) -> None:
        """Take the clock, and the context of the user's functions."""
        self._ctx = ctx
        self._session = self._functions.set_up(ctx, self._spec.session)

    def open(self) -> None:
        """Open the user's functions in the conditions."""
        self._functions.open()

    def close(self) -> None:
        """Close the functions that were opened."""
        self._functions.close()

    def fulfilling(self, partial: PartialRows, condition: Expr | None) -> Truths | None:
        """Return for which rows a condition is true; None: for all."""
        if condition is None or not len(partial):
            return None
        evaluation = Evaluation(_Columns(partial, self._starts), len(partial), self._session)
        with UserCode(self._ctx, "the condition of the join"):
            values = evaluation.column(condition)
        mask: Truths = values.fill_null(False).to_numpy(zero_copy_only=False)
        return mask

    def batch(self, partial: PartialRows) -> pa.RecordBatch:
        """Return whole rows."""
        columns: Columns = []
        for rows, kinds in zip(partial.inputs, self._types, strict=True):
            if len(rows.places) and rows.places.max() < 0:
                columns += [pa.nulls(len(partial), kind) for kind in kinds]
                continue
            indices = _indices(rows.places)
            columns += [column.take(indices) for column in rows.columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._spec.result)


def _indices(places: Numbers) -> pa.Array:
    """Return numbers of rows for Arrow, null where a row is missing."""
    return pa.array(places, mask=places < 0) if len(places) and places.min() < 0 else pa.array(places)


__all__ = ["MISSING", "InputRows", "MultiJoinRows", "MultiJoinSpec", "PartialRows", "StepSpec"]
