"""The user's aggregate functions over rows one after the other, where rows may be taken back as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa

from rayflink.user_types import UserValue

from ...user_functions.aggregate_kernels import UserAggregation
from ..keyed_state.frame_memory import Columns
from .running_sums import GroupRows, RunningValue


class Accumulators(Protocol):
    """The accumulators of segments, and their bytes in state."""

    def load(self, segment: int, data: bytes | None) -> UserValue:
        """Return the accumulator before a segment, a new one if nothing is stored."""
        ...

    def dump(self, segment: int, accumulator: UserValue) -> bytes:
        """Return the bytes of the accumulator behind a segment."""
        ...


class _Whole:
    """Pickles accumulators with all that they contain; an `Accumulators`.

    Args:
        user: the function.
    """

    def __init__(self, user: UserAggregation) -> None:
        self._user = user

    def load(self, segment: int, data: bytes | None) -> UserValue:
        return self._user.load(data)

    def dump(self, segment: int, accumulator: UserValue) -> bytes:
        return self._user.dump(accumulator)


@dataclass(frozen=True)
class RunningUserAggregate(RunningValue):
    """An accumulator of the user's function.

    Its state is the accumulator's bytes, and the result that was shown last: a result is taken back as it was shown,
    whatever the function would say of it later.
    """

    user: UserAggregation
    keeps_nulls: ClassVar[bool] = True

    def describe(self) -> str:
        return f"{super().describe()} {self.user.kernel.name}"

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return pa.large_binary(), self.user.result.to_arrow()

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        return self.run_with(base, rows, _Whole(self.user))

    def run_with(self, base: Columns, rows: GroupRows, accumulators: Accumulators) -> tuple[Columns, Columns]:
        """Return what `run` does.

        Args:
            accumulators: reads and writes accumulators.
        """
        user, segments = self.user, rows.segments
        arguments, weights = user.rows(rows.values), rows.weights.tolist()
        only_adds = bool((rows.weights > 0).all())
        values: list[object] = []
        stored: list[bytes] = []
        bounds = zip(base[0].to_pylist(), segments.starts.tolist(), segments.stops.tolist(), strict=True)
        for number, (data, start, stop) in enumerate(bounds):
            accumulator = accumulators.load(number, data)
            if not rows.is_folded:
                values += user.values_behind_rows(accumulator, arguments[start:stop], weights[start:stop])
            elif only_adds:
                user.accumulate(accumulator, arguments[start:stop])
            else:
                user.change(accumulator, arguments[start:stop], weights[start:stop])
            if rows.is_folded:
                values.append(user.value(accumulator))
            stored.append(accumulators.dump(number, accumulator))
        results = user.column(values)
        shown = results if rows.is_folded else results.take(pa.array(segments.lasts))
        return [results], [pa.array(stored, pa.large_binary()), shown]

    def shown(self, state: Columns) -> Columns:
        return [state[1]]


@dataclass(frozen=True)
class RunningUserColumns(RunningValue):
    """A function of the user's that is given all values of rows at once.

    It has no state: it is for frames of rows that are at hand, not for groups that go on.
    """

    user: UserAggregation
    keeps_nulls: ClassVar[bool] = True

    def describe(self) -> str:
        return f"{super().describe()} {self.user.kernel.name}"

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (self.user.result.to_arrow(),)

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        user, segments = self.user, rows.segments
        counting = np.flatnonzero(rows.weights)
        column = rows.values.take(pa.array(counting))
        ends = segments.stops if rows.is_folded else np.arange(1, segments.rows + 1)
        begins = segments.starts if rows.is_folded else segments.starts[segments.codes]
        firsts, stops = np.searchsorted(counting, begins), np.searchsorted(counting, ends)
        values = [
            user.value_of_columns(column.slice(first, stop - first)) if stop > first else None
            for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True)
        ]
        results = user.column(values)
        return [results], [results if rows.is_folded else results.take(pa.array(segments.lasts))]

    def shown(self, state: Columns) -> Columns:
        return state


__all__ = ["Accumulators", "RunningUserAggregate", "RunningUserColumns"]
