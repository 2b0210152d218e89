"""Streams, under PyFlink's module path."""

from __future__ import annotations

from .broadcast import BroadcastConnectedStream, BroadcastStream
from .cached import CachedDataStream
from .closeable_iterator import CloseableIterator
from .connected import ConnectedStreams
from .keyed import KeyedStream
from .streams import DataStream, DataStreamSink
from .windowed import AllWindowedStream, WindowedStream

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
