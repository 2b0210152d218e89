"""Specification of a window aggregation: its windows, keys and aggregates, and the columns of its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...plan.logical import WindowKind
from ...types import DataType, DataTypes, Root
from .aggregates import Aggregate

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class WindowSpec:
    """Windows over a time.

    >>> from rayflink.table.plan.logical import WindowKind
    >>> WindowSpec(WindowKind.HOP, size_ms=60_000, slide_ms=10_000, time_column=0).describe()
    'HOP size 60000 ms, slide 10000 ms, gap 0 ms, offset 0 ms in UTC'

    Args:
        kind: which windows.
        size_ms: length; of CUMULATE that of the longest window.
        slide_ms: of HOP from one window to the next; of CUMULATE the step by which windows grow.
        offset_ms: by which windows are shifted.
        gap_ms: of SESSION: how long nothing happens between two sessions.
        time_column: number of the column with the time; None: processing time.
        zone: the session's zone by its name; it counts where `time_type` is a TIMESTAMP_LTZ.
        time_type: type of the time and of `window_time`; that of processing time is TIMESTAMP_LTZ(3).
        end_column: number of a column that holds the ends of windows that were assigned before; None: they are
            assigned here. Then each pair of start and end is a window of its own.
        start_column: number of the column that holds their starts; None: they follow from the kind and the end.
        is_event_time: whether windows go by the watermark, else by the clock.
    Raises:
        ValueError: a length does not fit its window.
    """

    kind: WindowKind
    size_ms: int = 0
    slide_ms: int = 0
    offset_ms: int = 0
    gap_ms: int = 0
    time_column: int | None = None
    zone: str = "UTC"
    time_type: DataType = DataTypes.TIMESTAMP(3)
    end_column: int | None = None
    is_event_time: bool = True
    start_column: int | None = None

    def __post_init__(self) -> None:
        lengths = {
            WindowKind.TUMBLE: ("size_ms",), WindowKind.HOP: ("size_ms", "slide_ms"),
            WindowKind.CUMULATE: ("size_ms", "slide_ms"), WindowKind.SESSION: ("gap_ms",),
        }  # fmt: skip
        for name in lengths[self.kind]:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} of a {self.kind.value} window is {getattr(self, name)}; give at least 1 ms")
        if self.kind is WindowKind.CUMULATE and self.size_ms % self.slide_ms:
            raise ValueError(
                f"CUMULATE has windows of {self.size_ms} ms and steps of {self.slide_ms} ms; "
                "give a size that is a multiple of the step"
            )
        if self.kind is WindowKind.HOP and self.size_ms < self.slide_ms:
            raise ValueError(
                f"HOP has windows of {self.size_ms} ms and a slide of {self.slide_ms} ms; "
                "give a size that is no shorter"
            )
        if self.is_event_time and self.time_column is None and self.end_column is None:
            raise ValueError("windows of event time have no time_column; name it, or set is_event_time to False")

    def describe(self) -> str:
        """Return the windows as text; windows that differ have other strings."""
        if self.end_column is not None:
            return "windows assigned before"
        lengths = (f"{name[:-3]} {getattr(self, name)} ms" for name in ("size_ms", "slide_ms", "gap_ms", "offset_ms"))
        return f"{self.kind.value} {', '.join(lengths)} in {self.shift_zone}"

    @property
    def is_ltz(self) -> bool:
        """Return whether the time is an instant, which has an hour of the day in a zone only."""
        return self.time_type.root is Root.TIMESTAMP_LTZ

    @property
    def shift_zone(self) -> str:
        """Return the zone in whose days and hours windows lie: instants have theirs in `zone`, other times in none."""
        return self.zone if self.is_ltz else "UTC"


_WINDOW_COLUMNS = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class WindowAggregation:
    """Aggregates over windows of rows with equal keys.

    Rows of the result are the keys, the aggregates, window_start, window_end and window_time.

    Args:
        input: type of the rows that come in.
        keys: numbers of their columns that are the key; none: all rows have one key, and belong to one subtask.
        aggregates: what to compute; may be none.
        window: which windows.
        names: of the keys and the aggregates in the result; none: `k0`..., `a0`...
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    Raises:
        ValueError: the number of names is wrong.
    """

    input: DataType
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    window: WindowSpec
    names: tuple[str, ...] = ()
    state_identity: str = ""

    def __post_init__(self) -> None:
        wanted = len(self.keys) + len(self.aggregates)
        if self.names and len(self.names) != wanted:
            raise ValueError(f"{len(self.names)} names were given for {wanted} keys and aggregates")

    @property
    def key_names(self) -> tuple[str, ...]:
        """Return names of the key's columns in partial rows: by them rows are partitioned to the global aggregation."""
        return tuple(f"k{index}" for index in range(len(self.keys)))

    @property
    def result(self) -> DataType:
        """Type of the rows of the result."""
        names = self.names or (*self.key_names, *(f"a{index}" for index in range(len(self.aggregates))))
        types = [self.input.fields[key].type for key in self.keys] + [aggregate.result for aggregate in self.aggregates]
        times = (DataTypes.TIMESTAMP(3, False), DataTypes.TIMESTAMP(3, False), self.window.time_type.not_null())
        return DataTypes.ROW(list(zip((*names, *_WINDOW_COLUMNS), (*types, *times), strict=True)), False)

    @property
    def result_schema(self) -> pyarrow.Schema:
        """Return the same as Arrow's schema."""
        import pyarrow

        return pyarrow.schema([field.type.to_arrow_field(field.name) for field in self.result.fields])


__all__ = ["WindowAggregation", "WindowSpec"]
