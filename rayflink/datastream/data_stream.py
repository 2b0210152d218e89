"""Streams, under PyFlink's module path."""

from __future__ import annotations

from .streams.broadcast import BroadcastConnectedStream, BroadcastStream
from .streams.cached import CachedDataStream
from .streams.closeable_iterator import CloseableIterator
from .streams.connected import ConnectedStreams
from .streams.keyed import KeyedStream
from .streams.stream import DataStream, DataStreamSink
from .streams.windowed import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]
