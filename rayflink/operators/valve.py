"""Joins the watermarks of several channels to one: the minimum over those that take part. Pure."""

from __future__ import annotations

from ..common.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Event, Watermark, WatermarkStatus


class WatermarkValve:
    """Watermarks and statuses of channels in, those of the task out.

    A channel's watermark is the greatest it sent. The task's is the minimum over channels that are active and
    aligned: one that was idle takes part again once its watermark has caught up with the task's. It never falls, and
    is given out only when it rises. When the last active channel becomes idle, the greatest watermark of all goes
    out, then the idle status.

    Args:
        n_channels: inputs in all, at least 1; inputs of a two-input task count together.
    Source: apache/flink StatusWatermarkValve.
    """

    def __init__(self, n_channels: int) -> None:
        if n_channels < 1:
            raise ValueError(f"a valve needs at least one channel, got {n_channels}")
        self.watermarks = [MIN_TIMESTAMP] * n_channels
        """Watermark of each channel, for metrics."""
        self.current = MIN_TIMESTAMP
        """The watermark given out last."""
        self._active = [True] * n_channels
        self._aligned = [True] * n_channels
        self._ended = [False] * n_channels
        self._idle = False

    def watermark(self, channel: int, timestamp: int) -> list[Event]:
        """A watermark arrived; one of an idle channel, or below the channel's last, is not looked at."""
        if not self._active[channel] or timestamp <= self.watermarks[channel]:
            return []
        before, self.watermarks[channel] = self.watermarks[channel], timestamp
        if not self._aligned[channel]:
            self._aligned[channel] = timestamp >= self.current
        elif before > self.current:
            return []  # another channel holds the minimum
        return self._advance()

    def status(self, channel: int, idle: bool) -> list[Event]:
        """A channel became idle or active."""
        if self._ended[channel] or self._active[channel] is not idle:
            return []
        return self._leave(channel) if idle else self._join(channel)

    def end(self, channel: int) -> list[Event]:
        """A channel has ended: the others go on without it. After the last one nothing is given out."""
        if self._ended[channel]:
            return []
        self._ended[channel] = True
        if all(self._ended):
            self._active[channel] = self._aligned[channel] = False
            return []
        return self._leave(channel) if self._active[channel] else []

    def _leave(self, channel: int) -> list[Event]:
        self._active[channel] = self._aligned[channel] = False
        if any(self._active):
            return self._advance()
        self._idle = True
        return [*self._rise_to(max(self.watermarks)), WatermarkStatus(True)]

    def _join(self, channel: int) -> list[Event]:
        self._active[channel] = True
        self._aligned[channel] = self.watermarks[channel] >= self.current
        if not self._idle:
            return []
        self._idle = False
        return [WatermarkStatus(False)]

    def _advance(self) -> list[Event]:
        aligned = [mark for mark, takes_part in zip(self.watermarks, self._aligned, strict=True) if takes_part]
        return self._rise_to(min(aligned)) if aligned else []

    def _rise_to(self, timestamp: int) -> list[Event]:
        if not self.current < timestamp <= MAX_TIMESTAMP:
            return []
        self.current = timestamp
        return [Watermark(timestamp)]
