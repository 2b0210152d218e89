"""Ids of entries, positions in streams, and the decision whether entries are missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from .redis_errors import RedisError

EntryId = tuple[int, int]
"""The id of an entry: epoch milliseconds, and a number among the entries of that millisecond."""
FIRST: EntryId = (0, 0)
"""An id before all entries."""
_LAST_SEQUENCE = 2**64 - 1


def id_of(entry_id: str | bytes) -> EntryId:
    """Return an id as a pair.

    >>> id_of("1700000000000-3"), id_of(b"17")
    ((1700000000000, 3), (17, 0))

    Raises:
        RedisError: it is no id.
    """
    shown = entry_id.decode("utf-8", "replace") if isinstance(entry_id, bytes) else entry_id
    milliseconds, _, sequence = shown.partition("-")
    if not milliseconds.isdecimal() or not (sequence or "0").isdecimal():
        raise RedisError(f"{shown!r} is no id of an entry", "write milliseconds-sequence, such as '1700000000000-0'")
    return int(milliseconds), int(sequence or 0)


def shown_id(entry_id: EntryId) -> str:
    """Return an id as Redis writes it."""
    return f"{entry_id[0]}-{entry_id[1]}"


def id_before(entry_id: EntryId) -> EntryId:
    """Return the greatest id that is less.

    >>> shown_id(id_before((5, 0)))
    '4-18446744073709551615'
    """
    milliseconds, sequence = entry_id
    if sequence:
        return milliseconds, sequence - 1
    return (milliseconds - 1, _LAST_SEQUENCE) if milliseconds else FIRST


class _Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    ID = "id"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class RedisStreamPosition:
    """A position in each of the streams, at which reading starts or stops.

    >>> RedisStreamPosition.from_id("1700000000000-0")
    RedisStreamPosition.from_id('1700000000000-0')
    """

    _kind: _Kind = _Kind.EARLIEST
    entry_id: EntryId = FIRST

    @staticmethod
    def earliest() -> RedisStreamPosition:
        """Return the position before the first entry that a stream still has."""
        return RedisStreamPosition()

    @staticmethod
    def latest() -> RedisStreamPosition:
        """Return the position behind the last entry that a stream has when the job starts."""
        return RedisStreamPosition(_Kind.LATEST)

    @staticmethod
    def from_id(entry_id: str) -> RedisStreamPosition:
        """Return the position of an entry: the first that is read, or the last.

        Raises:
            RedisError: it is no id.
        """
        return RedisStreamPosition(_Kind.ID, id_of(entry_id))

    @staticmethod
    def from_timestamp(timestamp_ms: int) -> RedisStreamPosition:
        """Return the position before all entries that were added at or after a time.

        Args:
            timestamp_ms: epoch milliseconds, as they are in the ids that Redis gives.
        """
        return RedisStreamPosition(_Kind.TIMESTAMP, (timestamp_ms, 0))

    def start_in(self, stream: str, info: StreamInfo, stopping: RedisStreamPosition | None) -> RedisStreamSplit:
        """Return the split that begins at this position.

        Args:
            stopping: where it ends; None: it does not.
        """
        stop = None if stopping is None else stopping.stop_in(info)
        match self._kind:
            case _Kind.EARLIEST:
                return RedisStreamSplit(stream, FIRST, info.removed, True, stop)
            case _Kind.LATEST:
                return RedisStreamSplit(stream, info.last_id, info.added, True, stop)
            case _:
                return RedisStreamSplit(stream, id_before(self.entry_id), None, False, stop)

    def stop_in(self, info: StreamInfo) -> EntryId:
        """Return the id of the last entry that may be read."""
        match self._kind:
            case _Kind.EARLIEST:
                return FIRST
            case _Kind.LATEST:
                return info.last_id
            case _Kind.ID:
                return self.entry_id
            case _Kind.TIMESTAMP:
                return id_before(self.entry_id)

    def __repr__(self) -> str:
        detail = {_Kind.ID: repr(shown_id(self.entry_id)), _Kind.TIMESTAMP: str(self.entry_id[0])}.get(self._kind, "")
        prefix = "" if self._kind in (_Kind.EARLIEST, _Kind.LATEST) else "from_"
        return f"RedisStreamPosition.{prefix}{self._kind.value}({detail})"


@dataclass(frozen=True)
class RedisStreamSplit:
    """A stream from a position on.

    Args:
        last_id: of the last entry that was read.
        entries_read: number of entries ever added to the stream, up to that one; None: it is not known.
        is_started: whether something was read, or the position was looked up in the stream; else it is what the
            program asked for, and entries before the first one there are not missing.
        stopping_id: of the last entry to read; None: there is no end.
    """

    stream: str
    last_id: EntryId = FIRST
    entries_read: int | None = 0
    is_started: bool = True
    stopping_id: EntryId | None = None

    @property
    def split_id(self) -> str:
        """Return the key of the stream."""
        return self.stream

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to read."""
        return self.stopping_id is not None and self.last_id >= self.stopping_id


@dataclass(frozen=True)
class StreamInfo:
    """The facts of `XINFO STREAM` that say what was removed.

    Args:
        length: number of entries.
        last_id: the greatest id that an entry ever had.
        added: number of entries ever added; None: the server is older than Redis 7, and does not count them.
        first_id: of the first entry; meaningless where there is none.
        deleted_id: the greatest id that was deleted by `XDEL`.
    """

    length: int = 0
    last_id: EntryId = FIRST
    added: int | None = 0
    first_id: EntryId = FIRST
    deleted_id: EntryId = FIRST

    @property
    def removed(self) -> int | None:
        """Return the number of entries that are gone."""
        return None if self.added is None else self.added - self.length

    @staticmethod
    def of_answer(answer: Sequence[object]) -> StreamInfo:
        """Return the facts of an answer of the server: names and values in turn.

        >>> StreamInfo.of_answer([b"length", 1, b"last-generated-id", b"7-0"])
        StreamInfo(length=1, last_id=(7, 0), added=None, first_id=(0, 0), deleted_id=(0, 0))
        """
        facts = dict(zip(answer[::2], answer[1::2], strict=True))

        def entry_id(name: bytes) -> EntryId:
            value = facts.get(name, b"0-0")
            return id_of(value) if isinstance(value, bytes) else FIRST

        added, length = facts.get(b"entries-added"), facts.get(b"length")
        return StreamInfo(
            length if isinstance(length, int) else 0, entry_id(b"last-generated-id"),
            added if isinstance(added, int) else None, entry_id(b"recorded-first-entry-id"),
            entry_id(b"max-deleted-entry-id"),
        )  # fmt: skip

    def is_behind(self, split: RedisStreamSplit) -> bool:
        """Return whether the stream ends before what was read: it is another one, or a server has lost its end."""
        return split.is_started and self.last_id < split.last_id

    def missing(self, split: RedisStreamSplit) -> int | None:
        """Return the number of entries behind the position that are gone; None: some are, an unknown number.

        As the entries of a stream are removed from its beginning (`XTRIM`, `MAXLEN`), those that are gone are the first
        `removed` ones; the position is behind `entries_read`. Where entries further behind were deleted one by one
        (`XDEL`), the answer may be too high.
        """
        removed = self.removed
        if removed is None or not split.is_started or self.last_id <= split.last_id:
            return 0
        if self.length and self.first_id <= split.last_id:
            return 0
        return None if split.entries_read is None else max(0, removed - split.entries_read)

    def counted(self, split: RedisStreamSplit) -> RedisStreamSplit:
        """Return the split with the number of entries up to its position, as far as it can be known.

        Missing entries count as read.
        """
        count, removed = split.entries_read, self.removed
        if removed is None:
            return replace(split, entries_read=None, is_started=True)
        if not self.length or self.first_id > split.last_id:
            count = removed if count is None else max(count, removed)
        if self.deleted_id > split.last_id:
            count = None
        return replace(split, entries_read=count, is_started=True)


__all__ = [
    "FIRST", "EntryId", "RedisStreamPosition", "RedisStreamSplit", "StreamInfo", "id_before", "id_of", "shown_id",
]  # fmt: skip
