"""Joins the watermarks of several channels to one: the minimum over those that take part. Pure."""

from __future__ import annotations

from typing import TypeAlias

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus

TimeEvent: TypeAlias = Watermark | WatermarkStatus


class WatermarkValve:
    """Watermarks and statuses of channels in, those of the task out.

    A channel's watermark is the greatest it sent. The task's is the minimum over channels that are active and
    aligned: one that was idle takes part again once its watermark has caught up with the task's. It never falls, and
    is given out only when it rises: a channel that takes part again alone gives its own at once. When the last active
    channel becomes idle, the greatest watermark of all goes out, whichever it is, then the idle status. (Flink 1.20
    holds either back when a channel has not caught up; that was a defect, which FLINK-40475 has mended.) The last
    watermark of all goes out when all channels have sent it, also those that are idle: an idle channel will come back,
    if only to end. (Flink gives it out at once, and all that the idle channel still sends is late.)

    Args:
        n_channels: inputs in all, at least 1; inputs of a two-input task count together.
    Source: apache/flink StatusWatermarkValve.
    """

    def __init__(self, n_channels: int) -> None:
        if n_channels < 1:
            raise ValueError(f"a valve needs at least one channel, found {n_channels}")
        self.watermarks = [MIN_TIMESTAMP] * n_channels
        """Watermark of each channel, for metrics."""
        self.current = MIN_TIMESTAMP
        """The watermark given out last."""
        self._active = [True] * n_channels
        self._aligned = [True] * n_channels
        self._ended = [False] * n_channels
        self._idle = False

    def watermark(self, channel: int, timestamp: int) -> list[TimeEvent]:
        """Handle a watermark; one of an idle channel, or one below the channel's last, is ignored.

        The last of all, `MAX_TIMESTAMP`, makes an idle channel active: its input has ended.
        """
        if timestamp <= self.watermarks[channel]:
            return []
        if not self._active[channel]:
            if timestamp < MAX_TIMESTAMP or self._ended[channel]:
                return []
            joined = self._join(channel)
            return [*joined, *self.watermark(channel, timestamp)]
        before, self.watermarks[channel] = self.watermarks[channel], timestamp
        if not self._aligned[channel]:
            self._aligned[channel] = timestamp >= self.current
        elif before > self.current:
            return []  # another channel holds the minimum
        return self._advance()

    def status(self, channel: int, idle: bool) -> list[TimeEvent]:
        """Handle a change of a channel to idle or active."""
        if self._ended[channel] or self._active[channel] is not idle:
            return []
        return self._leave(channel) if idle else self._join(channel)

    def end(self, channel: int) -> list[TimeEvent]:
        """Handle the end of a channel: the others go on without it. After the last one nothing is emitted."""
        if self._ended[channel]:
            return []
        self._ended[channel] = True
        if all(self._ended):
            self._active[channel] = self._aligned[channel] = False
            return []
        return self._leave(channel) if self._active[channel] else self._advance()

    def _leave(self, channel: int) -> list[TimeEvent]:
        self._active[channel] = self._aligned[channel] = False
        if any(self._active):
            return self._advance()
        self._idle = True
        return [*self._rise_to(max(self.watermarks)), WatermarkStatus(True, relayed=True)]

    def _join(self, channel: int) -> list[TimeEvent]:
        self._active[channel] = True
        self._aligned[channel] = self.watermarks[channel] >= self.current
        status = [WatermarkStatus(False)] if self._idle else []
        self._idle = False
        return [*status, *self._advance()]

    def _advance(self) -> list[TimeEvent]:
        aligned = [mark for mark, takes_part in zip(self.watermarks, self._aligned, strict=True) if takes_part]
        return self._rise_to(min(aligned)) if aligned else []

    def advance_to(self, timestamp: int) -> list[TimeEvent]:
        """Advance event time though no channel says so; channels take part again when they have caught up."""
        return self._rise_to(timestamp)

    @property
    def all_at_end(self) -> bool:
        """Return whether every channel has sent the MAX watermark or has ended."""
        return all(mark == MAX_TIMESTAMP or ended for mark, ended in zip(self.watermarks, self._ended, strict=True))

    def _rise_to(self, timestamp: int) -> list[TimeEvent]:
        if timestamp <= self.current or (timestamp == MAX_TIMESTAMP and not self.all_at_end):
            return []
        self.current = timestamp
        return [Watermark(timestamp)]


class InputWatermarks:
    """Watermark of a task over its inputs: a valve for each input, then the minimum over the inputs.

    An idle input is left out; when all are idle the watermark stays where it is. Of one input this is its valve.

    Args:
        input_of: for each channel the input (0 or 1) it belongs to.
    Source: apache/flink IndexedCombinedWatermarkStatus.
    """

    def __init__(self, input_of: list[int]) -> None:
        self._place: list[tuple[int, int]] = []
        counts: dict[int, int] = {}
        for number in input_of:
            self._place.append((number, counts.setdefault(number, 0)))
            counts[number] += 1
        self._valves = {number: WatermarkValve(count) for number, count in counts.items()}
        self._marks = dict.fromkeys(counts, MIN_TIMESTAMP)
        self._idle_inputs: set[int] = set()
        self._open = dict(counts)
        self._idle = False
        self._current = MIN_TIMESTAMP
        self._channel_idle: list[WatermarkStatus | None] = [None] * len(input_of)
        self._channel_ended = [False] * len(input_of)

    @property
    def current(self) -> int:
        """Return the watermark emitted last."""
        return self._valves[self._place[0][0]].current if self._is_one else self._current

    @property
    def _is_one(self) -> bool:
        return len(self._valves) == 1

    @property
    def by_input(self) -> list[int]:
        """Return the watermark of each input."""
        return [self.current] if self._is_one else [self._marks[number] for number in sorted(self._marks)]

    @property
    def sources_are_idle(self) -> bool:
        """Return whether all channels are idle and their producers generate the watermarks themselves.

        Those of other tasks go on by themselves, and so are not idle for long.
        """
        at_end = [
            ended or mark == MAX_TIMESTAMP for ended, mark in zip(self._channel_ended, self.watermarks, strict=True)
        ]
        left = [status for status, has_ended in zip(self._channel_idle, at_end, strict=True) if not has_ended]
        return bool(left) and all(status is not None and not status.relayed for status in left)

    def advance_to(self, timestamp: int) -> list[TimeEvent]:
        """Advance event time though all channels are idle; the task is active again from there."""
        if timestamp <= self.current:
            return [WatermarkStatus(False)]
        for valve in self._valves.values():
            valve.advance_to(timestamp)
        self._current = timestamp
        return [Watermark(timestamp)]

    @property
    def watermarks(self) -> list[int]:
        """Return the watermark of each channel, for metrics."""
        return [self._valves[number].watermarks[index] for number, index in self._place]

    def watermark(self, channel: int, timestamp: int) -> list[TimeEvent]:
        """Handle a watermark of a channel."""
        number, index = self._place[channel]
        return self._combined(number, self._valves[number].watermark(index, timestamp))

    def status(self, channel: int, idle: bool, relayed: bool = False) -> list[TimeEvent]:
        """Handle a change of a channel to idle or active."""
        self._channel_idle[channel] = WatermarkStatus(True, relayed) if idle else None
        number, index = self._place[channel]
        return self._combined(number, self._valves[number].status(index, idle))

    def end(self, channel: int) -> list[TimeEvent]:
        """Handle the end of a channel; an input all of whose channels have ended no longer holds the watermark back."""
        self._channel_ended[channel] = True
        number, index = self._place[channel]
        events = self._valves[number].end(index)
        self._open[number] -= 1
        if not self._open[number] and any(self._open.values()):
            self._marks[number] = MAX_TIMESTAMP
        return self._combined(number, events)

    def _combined(self, number: int, events: list[TimeEvent]) -> list[TimeEvent]:
        if self._is_one:
            return events
        for event in events:
            if isinstance(event, Watermark):
                self._marks[number] = event.timestamp
            elif isinstance(event, WatermarkStatus):
                (self._idle_inputs.add if event.idle else self._idle_inputs.discard)(number)
        active = [mark for other, mark in self._marks.items() if other not in self._idle_inputs]
        out: list[TimeEvent] = []
        if self._idle is bool(active):
            self._idle = not active
            out.append(WatermarkStatus(self._idle, relayed=True))
        lowest = min(active, default=MIN_TIMESTAMP)
        if lowest == MAX_TIMESTAMP and min(self._marks.values()) < MAX_TIMESTAMP:
            return out  # an idle input is yet to end
        if self._current < lowest and any(self._open.values()):
            self._current = lowest
            out.append(Watermark(self._current))
        return out
