"""The elements of a test of an operator, as input and as output: records, watermarks, moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    ArrowBatch,
    Batch,
    EndOfData,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
    rows_of,
)


class CaseElement:
    """An element of a case: a record, a watermark, a status, a moment, the end of input, or one of the second input.

    The type of lists of elements: `steps: list[CaseElement] = [rec(1, 5), wm(9)]`.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, repr=False)
class Record(CaseElement):
    """One record; `timestamp` is epoch milliseconds or None, `tag` the id of a side output or None for the main one."""

    value: Any
    timestamp: int | None = None
    tag: str | None = None

    def __repr__(self) -> str:
        suffix = "" if self.timestamp is None else f", {self.timestamp}"
        return f"rec({self.value!r}{suffix})" if self.tag is None else f"side({self.tag!r}, {self.value!r}{suffix})"


@dataclass(frozen=True, slots=True, repr=False)
class Mark(CaseElement):
    """A watermark."""

    timestamp: int

    def __repr__(self) -> str:
        return "MAX_WATERMARK" if self.timestamp == MAX_TIMESTAMP else f"wm({self.timestamp})"


MAX_WATERMARK = Mark(MAX_TIMESTAMP)
"""The last watermark, 2**63 - 1, which stands before the end of an input."""


@dataclass(frozen=True, slots=True, repr=False)
class Status(CaseElement):
    """The stream became idle or active."""

    is_idle: bool

    def __repr__(self) -> str:
        return "idle()" if self.is_idle else "active()"


@dataclass(frozen=True, slots=True, repr=False)
class Moment(CaseElement):
    """Processing time is moved to `ms`, and timers due by then fire."""

    ms: int

    def __repr__(self) -> str:
        return f"at({self.ms})"


@dataclass(frozen=True, slots=True, repr=False)
class End(CaseElement):
    """All input ends: the last watermark comes, then the operator finishes."""

    def __repr__(self) -> str:
        return "end()"


@dataclass(frozen=True, slots=True, repr=False)
class Columns(CaseElement):
    """Records as an Arrow batch."""

    batch: ArrowBatch

    def __repr__(self) -> str:
        return f"columns({self.batch!r})"


@dataclass(frozen=True, slots=True, repr=False)
class SecondInput(CaseElement):
    """An element of the second input."""

    element: Record | Columns | Mark | Status

    def __repr__(self) -> str:
        return f"in2({self.element!r})"


OutputElement = CaseElement | LatencyMarker
"""Output of an operator, one entry a record."""


def rec(value: Any, timestamp: int | None = None) -> Record:
    """Return a record of the main output, or of the first input.

    >>> rec("a", 5)
    rec('a', 5)
    """
    return Record(value, timestamp)


def side(tag: Any, value: Any, timestamp: int | None = None) -> Record:
    """Return a record of a side output; `tag` is an OutputTag or its id."""
    return Record(value, timestamp, str(getattr(tag, "tag_id", tag)))


def wm(timestamp: int) -> Mark:
    """Return a watermark in epoch milliseconds."""
    return Mark(timestamp)


def idle() -> Status:
    """Return the event that makes the stream idle."""
    return Status(True)


def active() -> Status:
    """Return the event that makes the stream active again."""
    return Status(False)


def at(ms: int) -> Moment:
    """Advance processing time to `ms`, never backwards; it is 0 before the first advance."""
    return Moment(ms)


def end() -> End:
    """End all input, like that of a bounded job: the last watermark comes first, and timers of event time fire.

    What comes out then ends with `MAX_WATERMARK`. Timers of processing time that are not due yet never fire. A case
    without `end()` stops with its last step.

    >>> from rayflink.datastream import KeyedProcessFunction
    >>> from rayflink.testing import MAX_WATERMARK, operator_of, verify
    >>> class Later(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.get_current_key()
    >>> later = operator_of(Later, key=lambda word: word)
    >>> verify(later, elements=[rec("a", 5), end()], then=[rec("a", 15), MAX_WATERMARK])
    """
    return End()


def columns(batch: Any, timestamps: Any = None) -> Columns:
    """Return records as a `pyarrow.RecordBatch`, with an int64 numpy array of timestamps or None."""
    return Columns(batch if isinstance(batch, ArrowBatch) else ArrowBatch(batch, timestamps))


def in2(element: Record | Columns | Mark | Status) -> SecondInput:
    """Return an element of the second input.

    Raises:
        TypeError: time and the end of the input concern both inputs at once.
    """
    if not isinstance(element, Record | Columns | Mark | Status):
        raise TypeError(f"in2 takes a record, a watermark or a status, found {element!r}; write it without in2")
    return SecondInput(element)


def row_batch(records: list[Record]) -> RowBatch:
    """Return records as one batch; it has timestamps when one of them has."""
    stamps = [MIN_TIMESTAMP if r.timestamp is None else r.timestamp for r in records]
    return RowBatch([r.value for r in records], stamps if any(r.timestamp is not None for r in records) else None)


def output_elements(element: Any, tag: str | None = None) -> Iterator[OutputElement]:
    """Yield an emitted batch as records, an event as itself; the end of data is not shown."""
    if isinstance(element, RowBatch | ArrowBatch):
        yield from _records(element, tag)
    elif isinstance(element, Watermark):
        yield Mark(element.timestamp)
    elif isinstance(element, WatermarkStatus):
        yield Status(element.idle)
    elif not isinstance(element, EndOfData):
        yield element


def _records(batch: Batch, tag: str | None) -> Iterator[Record]:
    stamps = batch.timestamps
    if stamps is None:
        yield from (Record(value, None, tag) for value in rows_of(batch))
        return
    assert len(stamps) == len(batch), f"a batch of {len(batch)} records has {len(stamps)} timestamps"
    for value, stamp in zip(rows_of(batch), stamps, strict=True):
        yield Record(value, None if stamp == MIN_TIMESTAMP else int(stamp), tag)
