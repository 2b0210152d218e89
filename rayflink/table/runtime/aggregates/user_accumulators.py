"""The user's aggregate functions over rows of windows and of whole tables: partial state that is merged."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types

from ...user_functions.aggregate_kernels import UserAggregation
from .accumulators import Ordered
from .reductions import to_numpy

if TYPE_CHECKING:
    from .grouping import Codes


@dataclass(frozen=True)
class UserAccumulator(Ordered):
    """The bytes of an accumulator of the user's function, which has a method `merge`."""

    user: UserAggregation
    keeps_nulls: ClassVar[bool] = True

    def describe(self) -> str:
        flags = " ".join(flag.name for flag in fields(self) if flag.name == "has_arrival" and self.has_arrival)
        return " ".join(filter(None, ("UserAccumulator", flags, self.user.kernel.name)))

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (self.stored(pa.large_binary()),)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        user = self.user
        values, codes, firsts, starts, stops = _by_group(self, values, codes)
        arguments = user.rows(values)
        parts: list[bytes] = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            accumulator = user.create()
            user.accumulate(accumulator, arguments[start:stop])
            parts.append(user.dump(accumulator))
        return [self._column(parts, codes[starts], firsts, count)]

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        is_valid = columns[0].is_valid()
        values, codes = columns[0].filter(is_valid), codes[is_valid.to_numpy(zero_copy_only=False)]
        values, codes, firsts, starts, stops = _by_group(self, values, codes)
        parts = values.to_pylist()
        bounds = zip(starts.tolist(), stops.tolist(), strict=True)
        merged = [self.user.merge(parts[start:stop]) for start, stop in bounds]
        return [self._column(merged, codes[starts], firsts, count)]

    def _column(self, parts: list[bytes], groups: Codes, arrivals: pa.Array | None, count: int) -> pa.Array:
        """Return accumulators as a column with a row for each group, null where a group has none."""
        places = np.full(count, -1, dtype=np.int64)
        places[groups] = np.arange(len(parts))
        column = pa.array(parts, pa.large_binary())
        if arrivals is not None:
            column = pa.StructArray.from_arrays([arrivals, column], ["arrival", "value"])
        return column.take(pa.array(places, mask=places < 0))


def _by_group(
    ordered: Ordered, values: pa.Array, codes: Codes
) -> tuple[pa.Array, Codes, pa.Array | None, Codes, Codes]:
    """Return values group by group as they arrived, their groups, the first arrival of each, and where it lies."""
    if ordered.has_arrival:
        arrivals = to_numpy(values.field(0))
        order = np.lexsort((arrivals, codes))
    else:
        order = np.argsort(codes, kind="stable")
    codes, values = codes[order], values.take(pa.array(order))
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])) if len(codes) else np.zeros(0, dtype=np.intp)
    stops = np.append(starts[1:], len(codes)).astype(np.intp)
    if not ordered.has_arrival:
        return values, codes, None, starts, stops
    return values.field(1), codes, values.field(0).take(pa.array(starts)), starts, stops


def user_results(user: UserAggregation, states: pa.Array) -> pa.Array:
    """Return the results for accumulators, or for lists of the arguments of all rows."""
    if not types.is_large_list(states.type):
        return user.column([user.value(user.load(data)) for data in states.to_pylist()])
    offsets = states.offsets.to_numpy()
    elements = states.values
    if user.kernel.takes_columns:
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return user.column([
            user.value_of_columns(elements.slice(start, stop - start)) if stop > start else None
            for start, stop in bounds
        ])  # fmt: skip
    first = int(offsets[0]) if len(offsets) else 0
    arguments = user.rows(elements.slice(first, int(offsets[-1]) - first))
    values: list[object] = []
    for start, stop in zip((offsets[:-1] - first).tolist(), (offsets[1:] - first).tolist(), strict=True):
        accumulator = user.create()
        user.accumulate(accumulator, arguments[start:stop])
        values.append(user.value(accumulator))
    return user.column(values)


__all__ = ["UserAccumulator", "user_results"]
