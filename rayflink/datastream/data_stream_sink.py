"""The end of a stream."""

from __future__ import annotations

from .streams.step import Step


class DataStreamSink(Step):
    """The end of a stream; its operator can still be named and sized."""

    def name(self, name: str) -> DataStreamSink:
        """Name the sink; shown as "Sink: name"."""
        return super().name(name if name.startswith("Sink: ") else f"Sink: {name}")


__all__ = ["DataStreamSink"]
