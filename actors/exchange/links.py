"""The messages between a task and each of its peers: what to send next, and what was received, in order and once. Pure.

One call carries everything for a peer. While `max_in_flight` calls are under way nothing more is sent to it and all
that comes up is gathered; when one returns, everything that credit allows goes out together.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .exchange_statistics import IncomingStatistics, OutgoingStatistics
from .frames import Envelope, Frame, TaskAddress
from .subpartition import ExchangeError, Subpartition, SubpartitionState


class MessageGap(ExchangeError):
    """A message of a peer did not come within the deadline."""

    def __init__(self, peer: str, expected: int, later_count: int, waited_ms: int) -> None:
        super().__init__(peer, expected, later_count, waited_ms)
        self.peer, self.expected, self.later_count, self.waited_ms = peer, expected, later_count, waited_ms

    def __str__(self) -> str:
        return (
            f"message {self.expected} from {self.peer} is missing, waited {self.waited_ms} ms with {self.later_count} "
            "later ones at hand; the network lost it (rayflink.exchange.missing-message-timeout bounds the wait)"
        )


class Outgoing:
    """The messages to one peer.

    Args:
        me: this attempt.
        peer: the other one.
        max_in_flight: calls under way at a time, >= 1.
        max_bytes: of data in one call; the first buffer always goes.
    """

    def __init__(self, me: TaskAddress, peer: TaskAddress, max_in_flight: int, max_bytes: int) -> None:
        self._me, self.peer = me, peer
        self._max_in_flight, self._max_bytes = max_in_flight, max_bytes
        self._frames: deque[Frame] = deque()
        self._subpartitions: list[Subpartition] = []
        self._turn = 0
        self._sequence = 0
        self.in_flight = 0
        self.calls = 0

    def say(self, frame: Frame) -> None:
        """Queue a message that needs no credit."""
        self._frames.append(frame)

    def serve(self, subpartition: Subpartition) -> None:
        """Serve this subpartition to the peer from now on."""
        self._subpartitions.append(subpartition)

    @property
    def has_something(self) -> bool:
        """Return whether an envelope composed now would carry anything."""
        return bool(self._frames) or any(sub.available for sub in self._subpartitions)

    def compose(self) -> Envelope | None:
        """Compose the next envelope, now in flight; None when there is nothing to send or too many are under way.

        Raises:
            SpillError: data cannot be read again; no message that needs no credit is lost by that.
        """
        if self.in_flight >= self._max_in_flight or not (self._frames or self._subpartitions):
            return None
        frames = list(self._frames)
        self._gather(frames)
        self._frames.clear()
        if not frames:
            return None
        envelope = Envelope(self._me, self.peer, self._sequence, tuple(frames))
        self._sequence += 1
        self.in_flight += 1
        self.calls += 1
        return envelope

    def returned(self) -> None:
        """Note that one call has returned."""
        assert self.in_flight > 0, "a call returned that was not under way"
        self.in_flight -= 1

    def statistics(self) -> OutgoingStatistics:
        """Return the present counts."""
        return OutgoingStatistics(len(self._frames), len(self._subpartitions), self.in_flight, self.calls)

    def _gather(self, frames: list[Frame]) -> None:
        subs = self._subpartitions
        if not subs:
            return
        budget = self._max_bytes
        idle = 0
        while idle < len(subs):
            turn = self._turn % len(subs)
            sub = subs[turn]
            frame = sub.poll()
            if sub.state is SubpartitionState.READING:
                self._turn = turn + 1
            else:
                del subs[turn]  # its end has gone out, or its consumer is gone
                self._turn = turn
            if frame is None:
                idle += sub.state is SubpartitionState.READING
                continue
            idle = 0
            frames.append(frame)
            body = getattr(frame, "body", None)
            if body is not None:
                budget -= len(body)
                if budget <= 0:
                    return


@dataclass
class _Early:
    envelope: Envelope
    since_ms: int


class Incoming:
    """The messages from one peer, put in order.

    Args:
        peer: who sends.
        gap_timeout_ms: how long a missing message is waited for.
        window: the most later messages that wait for a missing one.
    """

    def __init__(self, peer: TaskAddress, gap_timeout_ms: int, window: int = 256) -> None:
        self._peer = peer
        self._gap_timeout_ms, self._window = gap_timeout_ms, window
        self._expected = 0
        self._early: dict[int, _Early] = {}
        self.repeated = 0

    def accept(self, envelope: Envelope, now_ms: int) -> list[Envelope]:
        """Return the envelopes that may be processed now, in order; a repeated one yields none.

        Raises:
            MessageGap: more than `window` later messages wait for a missing one.
        """
        number = envelope.sequence
        if number < self._expected or number in self._early:
            self.repeated += 1
            return []
        if number != self._expected:
            self._early[number] = _Early(envelope, now_ms)
            if len(self._early) > self._window:
                raise MessageGap(self._peer, self._expected, len(self._early), 0)
            return []
        ready = [envelope]
        self._expected += 1
        while self._expected in self._early:
            ready.append(self._early.pop(self._expected).envelope)
            self._expected += 1
        return ready

    def check(self, now_ms: int) -> None:
        """Check the deadline of a missing message; to be called now and then.

        Raises:
            MessageGap: a missing message is overdue.
        """
        if self._early:
            waited = now_ms - min(early.since_ms for early in self._early.values())
            if waited > self._gap_timeout_ms:
                raise MessageGap(self._peer, self._expected, len(self._early), waited)

    def statistics(self) -> IncomingStatistics:
        """Return the present counts."""
        return IncomingStatistics(self._expected, len(self._early), self.repeated)
