"""Credit at the receiver: the buffers of a channel, and when it announces credit. Pure counting, no memory.

One credit is one free buffer (a batch of at most `rayflink.batch.max-bytes`). Every channel owns `exclusive` buffers;
the gate's pool lends floating ones to whichever channel's sender has a backlog. A buffer that is free again is
announced once the sender is left with less than half of what it should have: a call costs more than the wait.

Source: apache/flink RemoteInputChannel and BufferManager (AvailableBufferQueue), credit-based flow control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .exchange_statistics import CreditStatistics, PoolStatistics


class FloatingPool:
    """The gate's buffers that any of its channels may borrow.

    Args:
        size: how many there are, >= 0.
    """

    def __init__(self, size: int) -> None:
        self._waiting: deque[ChannelCredit] = deque()
        self.size = self.available = 0
        self.resize(size)

    def resize(self, size: int) -> None:
        """Have `size` buffers, >= 0, before any is borrowed."""
        if size < 0:
            raise ValueError(f"floating buffers per gate must be >= 0, found {size}")
        assert self.available == self.size, "a pool is resized before its first buffer is borrowed"
        self.size = self.available = size

    def take(self) -> bool:
        """Borrow one buffer; False when none is left."""
        if not self.available:
            return False
        self.available -= 1
        return True

    def wait(self, channel: ChannelCredit) -> None:
        """Call the channel's `buffer_available` once a buffer comes back."""
        self._waiting.append(channel)

    def give_back(self) -> None:
        """Return one buffer: to the channel that has waited longest, else to the pool."""
        assert self.available < self.size, "more floating buffers came back than were borrowed"
        self.available += 1
        while self.available and self._waiting:
            self._waiting.popleft().buffer_available()

    def forget(self, channel: ChannelCredit) -> None:
        """Remove a released channel from the waiting ones."""
        self._waiting = deque(c for c in self._waiting if c is not channel)

    def statistics(self) -> PoolStatistics:
        """Return the present counts."""
        return PoolStatistics(self.size, self.available, len(self._waiting))


class ChannelCredit:
    """The buffers of one input channel.

    Args:
        exclusive: buffers that are always the channel's own, >= 1; they are its initial credit.
        pool: where floating buffers come from.
        credit_due: called when there is credit that should be announced, once until it is.
    """

    def __init__(self, exclusive: int, pool: FloatingPool, credit_due: Callable[[], None] = lambda: None) -> None:
        if exclusive < 1:
            raise ValueError(f"buffers per channel must be >= 1, found {exclusive}; a channel without one never moves")
        self.initial = exclusive
        self.pool = pool
        self._credit_due = credit_due
        self._exclusive = exclusive
        self._floating = 0
        self._taken: deque[bool] = deque()  # of the buffers in use, oldest first: is it a floating one
        self._required = exclusive
        self._waiting = False
        self._released = False
        self._due = False
        self.unannounced = 0

    @property
    def free(self) -> int:
        """Return the buffers ready to receive, exclusive and floating."""
        return self._exclusive + self._floating

    def take(self) -> bool:
        """Occupy a buffer for arrived data, a floating one first; return False when the data came without credit."""
        if self._floating:
            self._floating -= 1
            self._taken.append(True)
        elif self._exclusive:
            self._exclusive -= 1
            self._taken.append(False)
        else:
            return False
        self._request_announcement_if_due()
        return True

    def backlog(self, backlog: int) -> None:
        """Note that the sender has `backlog` data buffers: try to have that many free on top of the initial ones."""
        if self._released:
            return
        self._required = backlog + self.initial
        while self.free < self._required and not self._waiting:
            if self.pool.take():
                self._floating += 1
                self._add_unannounced()
            else:
                self._waiting = True
                self.pool.wait(self)
        self._request_announcement_if_due()

    def buffer_available(self) -> None:
        """Take a floating buffer that came back to the pool while this channel waited for one."""
        self._waiting = False
        if self._released or self.free >= self._required:
            return
        if self.pool.take():
            self._floating += 1
            self._add_unannounced()
        if self.free < self._required:
            self._waiting = True
            self.pool.wait(self)

    def recycle(self) -> None:
        """Free the oldest occupied buffer, which was consumed."""
        floating = self._taken.popleft()
        if self._released:
            if floating:
                self.pool.give_back()
            return
        if floating:
            # a floating buffer returns to the pool, which hands it to whoever waits, this channel perhaps
            self.pool.give_back()
            if self.free < self._required and not self._waiting and self.pool.take():
                self._floating += 1
                self._add_unannounced()
            return
        self._exclusive += 1
        if self.free > self._required and self._floating:
            # with its own buffer back the channel has one too many: a borrowed one goes, and there is no new credit
            self._floating -= 1
            self.pool.give_back()
        else:
            self._add_unannounced()

    def _add_unannounced(self) -> None:
        self.unannounced += 1
        self._request_announcement_if_due()

    def _request_announcement_if_due(self) -> None:
        """Ask for an announcement if one is due."""
        known = self.free - self.unannounced  # what the sender has left
        if self.unannounced and not self._due and 2 * known < self._required:
            self._due = True
            self._credit_due()

    def announce(self) -> int:
        """Return the credit to announce to the sender now, and reset the count."""
        credit, self.unannounced, self._due = self.unannounced, 0, False
        return credit

    def release(self) -> None:
        """Release the floating buffers of a channel that has ended; occupied ones follow as they are recycled."""
        if self._released:
            return
        self._released = True
        self.pool.forget(self)
        self.unannounced = 0
        for _ in range(self._floating):
            self.pool.give_back()
        self._floating = 0

    def statistics(self) -> CreditStatistics:
        """Return the present counts."""
        return CreditStatistics(self._exclusive, self._floating, len(self._taken), self._required, self.unannounced)
