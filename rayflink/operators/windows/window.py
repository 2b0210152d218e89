"""Windows, which are only names: their contents are in keyed state; and their bytes as Flink writes them."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.serializer import TypeSerializer

W_contra = TypeVar("W_contra", contravariant=True)


class Window(ABC):
    """A finite group of records. Windows are compared, hashed and pickled, and never changed.

    A class of one's own may derive from it; the built-in windows count as its instances.
    """

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the greatest timestamp that belongs to the window, epoch milliseconds."""


class Merging(Protocol[W_contra]):
    """The callback for windows that merge; see `MergingWindowAssigner.MergeCallback`."""

    def merge(self, to_be_merged: Iterable[W_contra], merge_result: W_contra) -> None: ...


class TimeWindow(NamedTuple):
    """The interval [start, end) in epoch milliseconds.

    >>> TimeWindow(0, 10).max_timestamp()
    9
    """

    start: int
    end: int

    def max_timestamp(self) -> int:
        """Return the greatest timestamp that belongs to the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that covers both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window of `window_size` with `timestamp` in it, where windows begin at `offset`.

        >>> TimeWindow.get_window_start_with_offset(17, 2, 10)
        12
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: Merging[TimeWindow]) -> None:
        """Notify `callback` of the windows to merge: those that overlap or touch; each group the earliest first."""
        group: list[TimeWindow] = []
        whole: TimeWindow | None = None
        for window in sorted(set(windows)):
            if whole is not None and whole.intersects(window):
                group.append(window)
                whole = whole.cover(window)
                continue
            if whole is not None and len(group) > 1:
                callback.merge(group, whole)
            group, whole = [window], window
        if whole is not None and len(group) > 1:
            callback.merge(group, whole)


class CountWindow(NamedTuple):
    """The window of number `id` of a key, made of a count of records; it ends by no clock.

    >>> CountWindow(3).max_timestamp() == 2**63 - 1
    True
    """

    id: int

    def max_timestamp(self) -> int:
        """Return the greatest timestamp there is."""
        return MAX_TIMESTAMP


class GlobalWindow(Window):
    """The one window all records of a key fall into.

    >>> GlobalWindow.get() == GlobalWindow()
    True
    """

    @staticmethod
    def get() -> GlobalWindow:
        """Return the window."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """Return the greatest timestamp there is."""
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return type(other) is GlobalWindow

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"


Window.register(TimeWindow)
Window.register(CountWindow)


AnyWindow = Window | TimeWindow | CountWindow
"""A window of any kind; those built in are tuples, and count as instances of `Window` at run time only."""


def _whole(stream: BinaryIO, form: str) -> tuple[Any, ...]:
    data = stream.read(struct.calcsize(form))
    if len(data) < struct.calcsize(form):
        raise EOFError(f"a window of {struct.calcsize(form)} bytes is wanted, found {len(data)} before the end")
    return struct.unpack(form, data)


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """A serializer of the window's start and end: 8 bytes each, most significant first.

    >>> import io
    >>> TimeWindowSerializer().deserialize(io.BytesIO(bytes(7) + b"\\x01" + bytes(7) + b"\\x09"))
    TimeWindow(start=1, end=9)
    """

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        stream.write(struct.pack(">qq", element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        return TimeWindow(*_whole(stream, ">qq"))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """A serializer of the window's number: 8 bytes, most significant first."""

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        stream.write(struct.pack(">q", element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        return CountWindow(*_whole(stream, ">q"))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One byte 0."""

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        _whole(stream, "b")
        return GlobalWindow()


__all__ = [
    "CountWindow", "CountWindowSerializer", "GlobalWindow", "GlobalWindowSerializer", "TimeWindow",
    "TimeWindowSerializer", "Window",
]  # fmt: skip
