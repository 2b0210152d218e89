"""Positions in a stream, splits, and the decision whether messages are missing. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .nats_errors import MissingStreamMessages, NatsError


class PositionKind(Enum):
    """The kinds of positions."""

    EARLIEST = "earliest"
    LATEST = "latest"
    LAST = "last"
    SEQUENCE = "sequence"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class NatsStreamPosition:
    """A position in a stream, at which reading starts or stops.

    >>> NatsStreamPosition.from_sequence(17)
    NatsStreamPosition.from_sequence(17)
    """

    kind: PositionKind = PositionKind.EARLIEST
    number: int = 0

    @staticmethod
    def earliest() -> NatsStreamPosition:
        """Return the position before the first message that the stream still has."""
        return NatsStreamPosition()

    @staticmethod
    def latest() -> NatsStreamPosition:
        """Return the position behind the last message that the stream has when the job starts."""
        return NatsStreamPosition(PositionKind.LATEST)

    @staticmethod
    def last() -> NatsStreamPosition:
        """Return the position of the last message, of those that a subject takes; it is read."""
        return NatsStreamPosition(PositionKind.LAST)

    @staticmethod
    def from_sequence(sequence: int) -> NatsStreamPosition:
        """Return the position of a message: the first that is read, or the last.

        Args:
            sequence: its number in the stream, from 1.

        Raises:
            NatsError: it is less than 1.
        """
        if sequence < 1:
            raise NatsError(f"found sequence {sequence}, wanted 1 or more", "a stream counts its messages from 1")
        return NatsStreamPosition(PositionKind.SEQUENCE, sequence)

    @staticmethod
    def from_timestamp(timestamp_ms: int) -> NatsStreamPosition:
        """Return the position before all messages that the stream took at or after a time, in epoch milliseconds."""
        return NatsStreamPosition(PositionKind.TIMESTAMP, timestamp_ms)

    def __repr__(self) -> str:
        if self.kind in (PositionKind.SEQUENCE, PositionKind.TIMESTAMP):
            return f"NatsStreamPosition.from_{self.kind.value}({self.number})"
        return f"NatsStreamPosition.{self.kind.value}()"


@dataclass(frozen=True)
class StreamFacts:
    """The facts of a stream that its server knows.

    Args:
        created: the time of its creation, as the server writes it.
        first: number of the first message that it still has; one more than `last` where it has none.
        last: number of the last message that it ever had; 0: none.
        retention: "limits", "interest" or "workqueue".
        keeps_last_of_subjects: whether a message removes older ones of its subject.
    """

    created: str = ""
    first: int = 1
    last: int = 0
    retention: str = "limits"
    keeps_last_of_subjects: bool = False

    @staticmethod
    def of_answer(answer: Mapping[str, Any]) -> StreamFacts:
        """Return the facts in an answer to STREAM.INFO.

        >>> StreamFacts.of_answer({"created": "2026", "config": {}, "state": {"first_seq": 3, "last_seq": 9}}).first
        3
        """
        state, config = answer["state"], answer["config"]
        last = int(state["last_seq"])
        first = int(state["first_seq"]) if state.get("messages", 1) else last + 1
        keeps_last = int(config.get("max_msgs_per_subject", -1)) > 0
        return StreamFacts(
            str(answer["created"]), max(first, 1), last, str(config.get("retention", "limits")), keeps_last
        )

    def start(self, position: NatsStreamPosition, looked_up: int) -> int:
        """Return the number of the last message that is not read.

        Args:
            looked_up: that number as the server knows it, for `last` and a time.

        Raises:
            NatsError: the position is behind the end of the stream.
        """
        match position.kind:
            case PositionKind.EARLIEST:
                return self.first - 1
            case PositionKind.LATEST:
                return self.last
            case PositionKind.SEQUENCE:
                if position.number > self.last + 1:
                    problem = f"the stream ends at sequence {self.last}, and {position.number} is wanted first"
                    raise NatsError(problem, f"start at {self.last + 1} at most, or at NatsStreamPosition.latest()")
                return max(position.number, self.first) - 1
            case _:
                return max(looked_up, self.first - 1)

    def stop(self, position: NatsStreamPosition, looked_up: int) -> int:
        """Return the number of the last message that may be read."""
        match position.kind:
            case PositionKind.EARLIEST:
                return self.first - 1
            case PositionKind.SEQUENCE:
                return position.number
            case PositionKind.TIMESTAMP:
                return looked_up
            case _:
                return self.last


@dataclass(frozen=True)
class NatsSplit:
    """The messages of a stream, or those of some subjects, behind a position.

    Args:
        subject: a filter, such as "orders.*"; "": all.
        created: the time of the stream's creation.
        covered: number of the message up to which all were read, or are not of these subjects.
        stopping: number of the last message to read; None: there is no end.
    """

    stream: str
    subject: str = ""
    created: str = ""
    covered: int = 0
    stopping: int | None = None

    @property
    def split_id(self) -> str:
        """Return stream and subject."""
        return name_of_split(self.stream, self.subject)

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to read."""
        return self.stopping is not None and self.covered >= self.stopping

    def check(self, facts: StreamFacts, place: str) -> None:
        """Check that the stream is the one that was read.

        Raises:
            MissingStreamMessages: it is another one, or has lost its end.
        """
        if facts.created != self.created:
            difference = f"it was created at {self.created} when it was first read, and at {facts.created} now"
        elif facts.last < self.covered:
            difference = f"it ends at {facts.last}, and was read up to {self.covered}: the server has lost its end"
        else:
            return
        problem = f"stream {self.stream!r} of NATS at {place} is another one: {difference}"
        raise MissingStreamMessages(problem, "start the job anew, without its checkpoint, to read this one")


def name_of_split(stream: str, subject: str) -> str:
    """Return the name of the split of a stream's subject."""
    return f"{stream} {subject}".rstrip()


class RemovalWatch:
    """Notices messages that a stream has removed before they were delivered.

    Numbers of messages that were delivered are compared with the first one that the stream still has. Between delivered
    messages there are gaps where others are of another subject, or were deleted one by one; those are not missing.

    >>> watch = RemovalWatch(covered=10)
    >>> watch.deliver([11, 12])
    >>> watch.deliver([20])
    >>> watch.missing(StreamFacts(first=16, last=30)), watch.missing(StreamFacts(first=16, last=30))
    (3, 0)

    Args:
        covered: number of the message up to which nothing is missing.
        is_filtered: whether only some subjects are read.
    """

    def __init__(self, covered: int, is_filtered: bool = False) -> None:
        self._covered, self._is_filtered = covered, is_filtered
        self._beyond: list[int] = []

    @property
    def is_doubtful(self) -> bool:
        """Return whether the facts of the stream are needed to exclude that some are missing."""
        return bool(self._beyond)

    def deliver(self, sequences: Sequence[int]) -> None:
        """Note the numbers of messages that were delivered, in order."""
        is_next = not self._beyond and not self._is_filtered and sequences[0] == self._covered + 1
        if is_next and sequences[-1] == self._covered + len(sequences):
            self._covered = sequences[-1]
        else:
            self._beyond += sequences

    def missing(self, facts: StreamFacts) -> int:
        """Return the number of messages that were removed, and were not delivered; of a filter, at most that number."""
        first = facts.first
        lost = max(0, first - 1 - self._covered - bisect_left(self._beyond, first))
        self.cover(max(first - 1, self._beyond[-1] if self._beyond else 0))
        return 0 if facts.keeps_last_of_subjects else lost

    def cover(self, sequence: int) -> None:
        """Note that all messages up to a number are delivered, or of other subjects."""
        self._covered = max(self._covered, sequence)
        self._beyond = self._beyond[bisect_left(self._beyond, self._covered + 1) :]


def overlap(first: str, second: str) -> bool:
    """Return whether a message may be of both subjects.

    >>> overlap("a.*", "*.b"), overlap("a.>", "a"), overlap("a.b", "a.c"), overlap("a.>", "a.b.c")
    (True, False, False, True)
    """
    left, right = first.split("."), second.split(".")
    for left_token, right_token in zip(left, right, strict=False):
        if ">" in (left_token, right_token):
            return True
        if left_token != right_token and "*" not in (left_token, right_token):
            return False
    return len(left) == len(right)


__all__ = [
    "NatsSplit", "NatsStreamPosition", "PositionKind", "RemovalWatch", "StreamFacts", "name_of_split", "overlap",
]  # fmt: skip
