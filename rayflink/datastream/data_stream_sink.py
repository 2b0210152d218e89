"""The end of a stream."""

from __future__ import annotations

from .streams.step import Step


class DataStreamSink(Step):
    """The end of a stream; its operator can still be named, which is shown as "Sink: name", and sized."""


__all__ = ["DataStreamSink"]
