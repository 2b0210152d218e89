"""The event time of rows, by properties."""

from __future__ import annotations

from .descriptor import Descriptor


class Rowtime(Descriptor):
    """Says what the event time of rows is, and what their watermarks are; each call returns the same object.

    Extractors and strategies of one's own are Java classes in Flink, and not here.

    >>> Rowtime().timestamps_from_field("at").watermarks_from_source().to_properties()["rowtime.timestamps.from"]
    'at'
    """

    def __init__(self) -> None:
        self._timestamps: dict[str, str] = {}
        self._watermarks: dict[str, str] = {}

    def timestamps_from_field(self, field_name: str) -> Rowtime:
        """Take the event time from a column."""
        self._timestamps = {"rowtime.timestamps.type": "from-field", "rowtime.timestamps.from": field_name}
        return self

    def timestamps_from_source(self) -> Rowtime:
        """Take the event time that the records of a stream have."""
        self._timestamps = {"rowtime.timestamps.type": "from-source"}
        return self

    def watermarks_periodic_ascending(self) -> Rowtime:
        """Let the watermark follow the greatest event time: rows come in order."""
        self._watermarks = {"rowtime.watermarks.type": "periodic-ascending"}
        return self

    def watermarks_periodic_bounded(self, delay: int) -> Rowtime:
        """Let the watermark follow the greatest event time at a distance, in milliseconds."""
        self._watermarks = {"rowtime.watermarks.type": "periodic-bounded", "rowtime.watermarks.delay": str(delay)}
        return self

    def watermarks_from_source(self) -> Rowtime:
        """Take the watermarks that the stream has."""
        self._watermarks = {"rowtime.watermarks.type": "from-source"}
        return self

    def to_properties(self) -> dict[str, str]:
        return {**self._timestamps, **self._watermarks}


__all__ = ["Rowtime"]
