"""Bounds the records in flight to a task by the number that it processes in the target time, at its measured rate.

Bytes alone do not bound this time: a million integers are 4 MB, and an hour of work for a function that takes 4 ms. So
every channel has a window in records beside its credit in buffers. A record is in flight from the moment it is
written to the producer's open batch until the consumer's chain takes it: the open batch, the subpartition, the
envelope, the channel and the undecoded rest of a buffer all count. The consumer measures its rate over its active time
(all time but that in which it has no input, so back-pressure counts), and sends each producer a `WindowUpdate`.

Where a batch costs the same whatever its size (a model, a kernel on columns, a turn of a thread that others share), a
small window would make itself smaller: few records a batch, a low rate, fewer records. So windows also have room for
batches large enough that records cost as much as the batch itself, which a regression over the last batches estimates.

A window starts at two records. It may grow to a multiple of the records that the measured rate stands on, and the
multiple grows with them: a few cheap records open it for a few more only, and thousands open it to millions. Each round
trip until then takes milliseconds on a cluster, in which the task may have no input. The price is that of any time
later: if cheap records are followed by expensive ones, as many of these are accepted as the cheap ones' rate allows.

Source: apache/flink BufferDebloater (FLIP-183), which sizes buffers in bytes; windows as in RFC 9113, section 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FIRST_WINDOW = 2
"""Records that may be in flight in a channel before its consumer was heard of; with one, each channel's first record
would stop the producer of all."""
_GROWTH = 4
"""A window grows to at most this multiple of the records that were measured, while these are few."""
_CERTAIN_ROWS = 64
"""Each time that this number of records was measured the multiple grows by one."""
_BUFFERS = 2
"""The number of buffers in a window, so that one travels while another is processed."""
_UPDATES = 4
"""The number of progress updates to a producer while a window is processed."""
_SAMPLES = 16
"""Parts of the target time that the measurement forgets one at a time."""
_DECAY = 0.9
"""The factor by which a batch reduces the weight of those before it."""
_SPREAD = 0.1
"""Least deviation of batches' sizes, as a part of their mean, that shows what a record costs."""
_MOST_ROWS = 1 << 48


class Monotonic(Protocol):
    """A clock for durations."""

    def monotonic(self) -> float:
        """Return seconds."""
        ...


@dataclass(frozen=True, slots=True)
class DebloatSettings:
    """Settings of debloating: when and how far windows follow the measured rate.

    Args:
        target_s: time in which the records in flight should be processed, in seconds, > 0.
        period_s: least time between two new sizes, in seconds, > 0; windows that still grow are sized at once.
        threshold: least change that is announced, as a fraction of the window in force, in [0, 1].
    """

    target_s: float = 1.0
    period_s: float = 0.2
    threshold: float = 0.25


class ConsumptionRate:
    """Records of one input by active time, over about the last `horizon_s` seconds of it, or since the last records.

    Args:
        horizon_s: active seconds that are remembered, > 0; one longer sample is remembered whole.
    """

    def __init__(self, horizon_s: float) -> None:
        self._horizon_s = horizon_s
        self._part_s = horizon_s / _SAMPLES
        self._samples: deque[tuple[int, float]] = deque()
        self._open_rows, self._open_s = 0, 0.0
        self.rows, self.seconds = 0, 0.0

    def add(self, rows: int, seconds: float) -> None:
        """Count `rows` records processed in `seconds` of active time."""
        self.rows += rows
        self.seconds += seconds
        self._open_rows += rows
        self._open_s += seconds
        if self._open_s < self._part_s:
            return
        self._samples.append((self._open_rows, self._open_s))
        self._open_rows, self._open_s = 0, 0.0
        while self.seconds - self._samples[0][1] >= self._horizon_s:
            if self.rows == self._samples[0][0] > 0:
                break  # time without records is no reason to forget the last ones
            old_rows, old_s = self._samples.popleft()
            self.rows -= old_rows
            self.seconds -= old_s

    def rows_within(self, seconds: float) -> int:
        """Return how many records take `seconds` at this rate; a large number where no time was measured."""
        if self.seconds <= 0:
            return _MOST_ROWS
        return min(_MOST_ROWS, int(self.rows * seconds / self.seconds))


class BatchCost:
    """The fixed cost of a batch and the cost of each of its records, by linear regression over the last batches."""

    def __init__(self) -> None:
        self._count = self._rows = self._seconds = self._squares = self._products = 0.0

    def add(self, rows: int, seconds: float) -> None:
        """Count a batch of `rows` records that took `seconds`."""
        self._count = self._count * _DECAY + 1
        self._rows = self._rows * _DECAY + rows
        self._seconds = self._seconds * _DECAY + seconds
        self._squares = self._squares * _DECAY + rows * rows
        self._products = self._products * _DECAY + rows * seconds

    @property
    def usual_rows(self) -> float:
        """Return the average number of records of a batch; 0 before the first one."""
        return self._rows / self._count if self._count else 0.0

    def amortizing_rows(self) -> int:
        """Return the number of records that together cost as much as their batch, at most twice the usual ones.

        Returns: 0 for a free batch, and where all batches had about the same size, which shows nothing.
        """
        if not self._count:
            return 0
        rows, seconds = self.usual_rows, self._seconds / self._count
        variance = self._squares / self._count - rows * rows
        if variance < (_SPREAD * rows) ** 2:
            return 0
        slope = (self._products / self._count - rows * seconds) / variance
        fixed = seconds - max(0.0, slope) * rows
        if fixed <= 0:
            return 0
        return int(2 * rows if fixed > 2 * rows * slope else fixed / slope)


class ChannelWindow:
    """The window of one input channel, as its consumer sees it.

    `worked` records were taken from the channel in all; `rows` more than that may be in flight, in buffers of
    `buffer_rows` records.
    """

    def __init__(self) -> None:
        self.worked = 0
        self.rows = FIRST_WINDOW
        self.buffer_rows = 1
        self.announced_worked = 0
        self.announced_rows = FIRST_WINDOW

    @property
    def is_due(self) -> bool:
        """Return whether the producer should hear of the records processed since the last announcement."""
        return (self.worked - self.announced_worked) * _UPDATES >= self.announced_rows

    def announce(self) -> tuple[int, int, int]:
        """Return the numbers to send now: records processed in all, the window, and the records of a buffer."""
        self.announced_worked, self.announced_rows = self.worked, self.rows
        return self.worked, self.rows, self.buffer_rows


class _Input:
    """Channels that feed one input of the operator, and the rate at which it is processed."""

    def __init__(self, horizon_s: float) -> None:
        self.rate = ConsumptionRate(horizon_s)
        self.channels: list[int] = []
        self.pending_rows = 0
        self.sized_rows = 0
        self.recent: dict[int, float] = {}
        self.cost = BatchCost()
        self.batch_rows, self.batch_s = 0, 0.0

    def begin_batch(self, rows: int) -> None:
        """Count the batch that has ended, and begin the next."""
        if self.batch_rows:
            self.cost.add(self.batch_rows, self.batch_s)
        self.batch_rows, self.batch_s = rows, 0.0


class BufferDebloater:
    """Sizes the windows of a task's input channels by the rate at which the task works each of its inputs.

    Half of what an input may have in flight is divided evenly among its channels, the other half in proportion to what
    they delivered lately, so that one busy channel of a hundred has half of it. Every channel has at least one record.

    Args:
        inputs: for each channel the index of the operator's input that it feeds.
        settings: target, period and threshold.
        clock: measures the active time.
    """

    def __init__(self, inputs: Sequence[int], settings: DebloatSettings, clock: Monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._of_channel = [index for index in inputs]
        self._inputs: dict[int, _Input] = {}
        for channel, index in enumerate(inputs):
            self._inputs.setdefault(index, _Input(settings.target_s)).channels.append(channel)
        self.windows = [ChannelWindow() for _ in inputs]
        self._current = inputs[0] if inputs else 0
        self._since_s: float | None = None
        self._blocked = self._in_batch = False
        self._next_s = 0.0

    def count_taken(self, channel: int, rows: int) -> None:
        """Count records that the chain takes from a channel."""
        if self._since_s is None:
            self._since_s = self._clock.monotonic()
        self._current = self._of_channel[channel]
        taken = self._inputs[self._current]
        taken.pending_rows += rows
        if self._in_batch:
            taken.batch_rows += rows
        else:
            self._in_batch = True
            taken.begin_batch(rows)
        taken.recent[channel] = taken.recent.get(channel, 0.0) + rows
        self.windows[channel].worked += rows

    def step(self, idle: bool, blocked: bool = False) -> list[int]:
        """Count the active time since the last step, and size windows when that is due.

        Args:
            idle: the task has no input now, so that time is not active until it takes records again.
            blocked: the task waits for room in its outputs, which is no cost of a batch.
        Returns: channels whose producers should hear of a new window.
        """
        since = self._since_s
        if since is None:
            if not idle:  # there is input, but the task does not take it yet: that is no idleness
                self._since_s = self._clock.monotonic()
            return []
        now_s = self._clock.monotonic()
        self._since_s = None if idle else now_s
        current = self._inputs.get(self._current)
        if current is None:
            return []
        spent = max(0.0, now_s - since)
        current.rate.add(current.pending_rows, spent)
        current.pending_rows = 0
        if not self._blocked:
            current.batch_s += spent
        self._blocked, self._in_batch = blocked, False
        is_due = now_s >= self._next_s
        if is_due:
            self._next_s = now_s + self._settings.period_s
        changed: list[int] = []
        for each in self._inputs.values():
            if is_due or each.rate.rows >= 2 * each.sized_rows + 1:
                changed += self._resize(each)
        return changed

    def rows_in_flight(self, index: int) -> int:
        """Return how many records one input may have in flight over all its channels."""
        sized = self._inputs[index]
        allowed = sized.rate.rows_within(self._settings.target_s / len(self._inputs))
        allowed = max(allowed, sized.cost.amortizing_rows())
        growth = _GROWTH + sized.rate.rows // _CERTAIN_ROWS
        return min(allowed, growth * sized.rate.rows + len(sized.channels))

    def _resize(self, sized: _Input) -> list[int]:
        sized.sized_rows = sized.rate.rows
        if not sized.rate.rows:
            return []
        count = len(sized.channels)
        allowed = self.rows_in_flight(self._of_channel[sized.channels[0]])
        lately = sum(sized.recent.values())
        base, shared = allowed / (2 * count), allowed / 2
        if count == 1 or not lately:
            base, shared = allowed / count, 0.0
        changed = []
        for channel in sized.channels:
            window = self.windows[channel]
            share = sized.recent.get(channel, 0.0) / lately if lately else 0.0
            window.rows = max(1, int(base + shared * share))
            window.buffer_rows = -(-window.rows // _BUFFERS)
            if abs(window.rows - window.announced_rows) > self._settings.threshold * window.announced_rows:
                changed.append(channel)
        sized.recent = {channel: rows / 2 for channel, rows in sized.recent.items() if rows > 1}
        return changed


__all__ = [
    "FIRST_WINDOW",
    "BatchCost",
    "BufferDebloater",
    "ChannelWindow",
    "ConsumptionRate",
    "DebloatSettings",
]
