"""Joins the watermarks of the parts of one stream, such as the splits of a source, to one. Pure, time is given."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rayflink.common.records.batches import MIN_TIMESTAMP, Element, Watermark, WatermarkStatus
from rayflink.common.watermarks import Idleness, WatermarkGenerator, WatermarkOutput

WHOLE = ""
"""The part that is all of a stream that is not divided, or that has no parts just now."""


class Part(WatermarkOutput):
    """One part: its generator, and how far it is."""

    def __init__(self, joined: PartialWatermarks, generator: WatermarkGenerator, idleness: Idleness | None) -> None:
        self._joined = joined
        self.generator, self.idleness = generator, idleness
        self.on_batch = batch_method(generator)
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self.is_paused = False

    def seen(self) -> None:
        """Note that a record came."""
        if self.idleness is not None:
            self.idleness.active()

    def emit_watermark(self, watermark: Watermark) -> None:
        if not isinstance(watermark, Watermark):
            raise TypeError(f"emit_watermark wants a Watermark, found {watermark!r} of type {type(watermark).__name__}")
        self.idle = False
        self.watermark = max(self.watermark, watermark.timestamp)
        self._joined.changed()

    def mark_idle(self) -> None:
        self.idle = True
        self._joined.changed()

    def mark_active(self) -> None:
        self.idle = False
        self._joined.mark_active()


class PartialWatermarks:
    """The watermark of a stream: the minimum over its parts that are not idle; it never falls.

    A part that has ended is left out; when none is left the greatest watermark of those that ended counts, and a
    generator that sees no record is asked on. When all are idle the stream is, and it is active again when the
    watermark rises.

    Args:
        create: makes the generator of a part.
        idleness: makes what notices that a part is idle; gives None where none is to be.
    Source: apache/flink WatermarkOutputMultiplexer, CombinedWatermarkStatus; there a part that ends between two
        periodic emissions takes its last watermark with it.
    """

    def __init__(self, create: Callable[[], WatermarkGenerator], idleness: Callable[[], Idleness | None]) -> None:
        self._create, self._new_idleness = create, idleness
        self.parts: dict[str, Part] = {}
        self.pending: list[Element] = []
        """Elements to be sent, in order."""
        self.current = MIN_TIMESTAMP
        """The watermark sent last."""
        self.is_idle = False
        self._ended = MIN_TIMESTAMP
        self._waits = False

    def hold(self, names: Collection[str]) -> list[str]:
        """Replace the set of parts: new ones begin, the others end. Return those that ended."""
        names = names or (WHOLE,)
        gone = [name for name in self.parts if name not in names]
        for name in gone:
            self._end(name)
        for name in names:
            if name not in self.parts:
                part = self.parts[name] = Part(self, self._create(), self._new_idleness())
                if name == WHOLE:
                    part.watermark = self._ended
        return gone

    def _end(self, name: str) -> None:
        part = self.parts.pop(name)
        self._waits = True
        try:
            part.generator.on_periodic_emit(part)
        finally:
            self._waits = False
        self._ended = max(self._ended, part.watermark)

    def seen(self, name: str) -> Part:
        """Note records of a part and return the part."""
        part = self.parts[name]
        part.seen()
        return part

    def periodic(self, now_ms: int | None) -> None:
        """Ask the generators of all parts for their watermarks.

        Args:
            now_ms: those without records for long become idle; None: not looked at.
        """
        self._waits = True
        try:
            for part in self.parts.values():
                if part.is_paused and part.idleness is not None:
                    part.idleness.active()
                if now_ms is not None and part.idleness is not None and part.idleness.check(now_ms):
                    part.idle = True
                else:
                    part.generator.on_periodic_emit(part)
        finally:
            self._waits = False
        self.changed()

    def changed(self) -> None:
        """Note that a part has another watermark or status."""
        if self._waits:
            return
        active = [part.watermark for part in self.parts.values() if not part.idle]
        if active:
            self._rise_to(min(active))
        else:
            self._become_idle()

    def mark_active(self) -> None:
        """Make consumers wait for this stream's watermarks again."""
        if self.is_idle:
            self.is_idle = False
            self.pending.append(WatermarkStatus(False))

    def _become_idle(self) -> None:
        if not self.is_idle:
            self.is_idle = True
            self.pending.append(WatermarkStatus(True))

    def emit(self, watermark: Watermark) -> None:
        """Send a watermark that is of no part."""
        self._rise_to(watermark.timestamp)

    def _rise_to(self, timestamp: int) -> None:
        if timestamp > self.current:
            self.current = timestamp
            self.mark_active()
            self.pending.append(Watermark(timestamp))

    def take(self) -> list[Element]:
        """Return the elements that were sent since the last call."""
        sent, self.pending = self.pending, []
        return sent


def batch_method(generator: WatermarkGenerator) -> Callable[[object], None] | None:
    """Return the generator's `on_batch`, unless a class below the one that has it has an `on_event` of its own."""
    for kind in type(generator).__mro__:
        if "on_batch" in vars(kind):
            on_batch: Callable[[object], None] = generator.on_batch  # type: ignore[attr-defined]
            return on_batch
        if "on_event" in vars(kind):
            return None
    return None
