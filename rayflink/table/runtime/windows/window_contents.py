"""The contract between a window operator and its windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from rayflink.common.records.batches import Batch, Element
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ..aggregates.partial_aggregates import PartialRows
from ..keyed_state.frame_memory import Columns
from .window_time import WindowTime


class WindowContents(ABC):
    """The windows of a `TableWindowOperator` with their rows: `SlicedWindows`, `SessionWindows`, `EmittingWindows`."""

    partials: PartialRows
    """Describes the partial rows that the windows consist of."""
    state_fields: tuple[pa.Field, ...]
    """Columns of a snapshot behind those of the partial rows."""
    restores_ahead = False
    """True if rows of a subtask for which time had come further may be restored at once. Else they wait until time has
    come as far here, so that no window fires twice.
    """

    @abstractmethod
    def open(self, ctx: OperatorContext, time: WindowTime) -> None:
        """Called once, before state is restored and before the first batch. Take memory, and the operator's time."""

    @abstractmethod
    def close(self) -> None:
        """Called once, at the end of the operator, also after a failure. Release the memory."""

    # rows

    @abstractmethod
    def add(self, batch: Batch) -> Iterable[Element]:
        """Called for each batch. Add its rows to their windows, count and drop those that are late, and return what
        has to be emitted at once.
        """

    # time

    @abstractmethod
    def next_firing(self, after: int) -> int | None:
        """Called whenever the task looks for the next timer. Return the progress of time behind `after` at which a
        window is over; None: there is none.
        """

    @abstractmethod
    def advance(self, after: int, until: int) -> Iterator[Element]:
        """Called when time has come to `until`. Yield the results of the windows that end behind `after` and up to
        `until`, and then forget them.
        """

    def next_refresh_ms(self) -> int | None:
        """Called whenever the task looks for the next timer. Return the processing time at which results are emitted
        in addition to those at the end of a window; None: they are not.
        """
        return None

    def refresh(self, now_ms: int) -> Iterable[Element]:
        """Called when a timer of processing time fires. Return the results that are due by `next_refresh_ms`."""
        return ()

    # snapshots

    @abstractmethod
    def pieces(self) -> Iterable[Columns]:
        """Called at the end of all data. Return the partial rows of windows that are not over."""

    @abstractmethod
    def frame(self) -> Callable[[], Columns | None]:
        """Called for each snapshot. Return a function that returns the rows of the state as they are now, whenever it
        is called, with the columns of `partials` and `state_fields`; None where there are no rows.
        """

    @abstractmethod
    def add_frame(self, frame: pa.RecordBatch) -> None:
        """Called for each frame of a snapshot that is restored. Add its rows to the state."""

    def lists(self) -> Mapping[str, tuple[str, tuple[bytes, ...]]]:
        """Called for each snapshot. Return operator state that is not by key: name -> (mode, entries)."""
        return {}

    def add_lists(self, snapshots: Iterable[OperatorSnapshot]) -> None:  # noqa: B027
        """Called once when state is restored. Restore what `lists` returned."""


__all__ = ["WindowContents"]
