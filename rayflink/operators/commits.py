"""The committables of one sink's subtask: which wait for their checkpoint, which are due, and when one is tried again.

A committable is given to the committer once its checkpoint or a later one is complete, those of an older checkpoint
first. It is forgotten only when the committer is done with it, and until then every snapshot holds it.

A committer that waits for another system runs in a thread of its own, one call at a time, while the task takes records
(`Committer.in_background`); what it has to compute is done by the task first (`Committer.begin`). The task waits for it
when the next checkpoint is complete, so that at most one checkpoint is being committed while the next one is collected.
A committer with `early_ms` begins before the checkpoint is complete: `early_commits`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

from rayflink.common.connector_base.commits import CommitFailed, CommitOutcome, CommitRequest
from rayflink.common.connector_base.sink import Committer
from rayflink.common.errors import described, shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.value_bytes import from_bytes, to_pieces
from rayflink.state.snapshots import Pieces
from rayflink.user_types import UserValue

from .base import ProcessingTime
from .early_commits import BackgroundCall, EarlyCommits

log = get_logger(__name__)

FIRST_PAUSE_MS = 100
LONGEST_PAUSE_MS = 10_000
LONGEST_PAUSE_AT_THE_END_MS = 1_000
SLICE_S = 0.02
"""Seconds after which the task does other work before the next committables."""
SETTLING_S = 0.5
"""Seconds for which a snapshot waits for commits in the background that are under way or due, at most."""
EVERY_CHECKPOINT = 2**63 - 1
"""In place of a checkpoint's number: after all checkpoints."""


def pause_ms(retries: int) -> int:
    """Return the milliseconds before the next attempt for a committable that was retried `retries` times.

    >>> [pause_ms(retries) for retries in (0, 1, 2, 9)]
    [100, 200, 400, 10000]
    """
    return min(FIRST_PAUSE_MS << min(retries, 20), LONGEST_PAUSE_MS)


class Commits:
    """Committables that a subtask's writer prepared and its committer has still to commit.

    Args:
        committer: commits it.
        retries: how often a committable is tried again.
        clock: of the task.
        metrics: where outcomes are counted, under Flink's names.
        wake: lets the task step soon, may be called by any thread. None: time is that of a simulation, where nothing
            runs in the background and pauses at the end of input are skipped.

    Raises:
        ValueError: the committer takes no request.
    """

    def __init__(
        self,
        committer: Committer,
        retries: int,
        clock: ProcessingTime,
        metrics: MetricGroup,
        wake: Callable[[], None] | None,
    ) -> None:
        if committer.most_at_once < 1:
            problem = f"{type(committer).__name__}.most_at_once is {committer.most_at_once}"
            raise ValueError(f"{problem}, so nothing would be committed; set it to 1 or more")
        self._committer, self._retries, self._clock, self._wake = committer, retries, clock, wake
        self._waiting: list[tuple[int, CommitRequest[Any]]] = []
        self._complete = -1
        self._has_failed = False
        self._due_ms: int | None = None
        self._call: tuple[BackgroundCall, list[CommitRequest[Any]]] | None = None
        self._early = EarlyCommits(committer, clock, wake) if committer.early_ms and wake is not None else None
        self._total = metrics.counter("totalCommittables")
        self._retried = metrics.counter("retriedCommittables")
        self._counters = {
            CommitOutcome.COMMITTED: metrics.counter("successfulCommittables"),
            CommitOutcome.ALREADY_COMMITTED: metrics.counter("alreadyCommittedCommittables"),
            CommitOutcome.KNOWN_FAILURE: metrics.counter("failedCommittables"),
            CommitOutcome.UNKNOWN_FAILURE: metrics.counter("failedCommittables"),
        }
        metrics.gauge("pendingCommittables", lambda: len(self._waiting))

    def add(self, checkpoint_id: int, committables: Iterable[Any]) -> None:
        """Add committables that were prepared for a checkpoint."""
        self._take((checkpoint_id, CommitRequest(committable)) for committable in committables)

    def restore(self, entries: Iterable[bytes]) -> None:
        """Add the committables of the checkpoint from which the subtask starts; they are due."""
        pairs = [pair for entry in entries for pair in _pairs(from_bytes(entry))]
        pairs.sort(key=lambda pair: pair[0])
        self._take((checkpoint_id, CommitRequest(committable, True)) for checkpoint_id, committable in pairs)

    def settle(self) -> None:
        """Commit what is due, so that the next snapshot need not contain it, unless that takes long or has just failed.

        It does so for a committer whose committables are large.

        Raises:
            CommitFailed: something could not be committed.
        """
        deadline = self._clock.monotonic() + SETTLING_S
        while self._committer.has_large_committables and self._wake is not None:
            if self._call is None and (self._due_ms is not None or not self.is_behind):
                return
            if self._call is not None and not self._call[0].ends_within(deadline - self._clock.monotonic()):
                return
            self.run()

    def begin_early(self) -> None:
        """Let the committer begin what the snapshot that was just taken contains, beside the task, where it can.

        It does so where nothing else waits.
        """
        if self._early is not None and self._call is None and self._due_ms is None and not self.is_behind:
            self._early.begin(self._oldest())

    def snapshot(self) -> tuple[Pieces, ...]:
        """Return everything that is not committed, in pieces; `restore` takes the bytes of each."""
        groups: dict[Hashable, list[tuple[int, UserValue]]] = {}
        for index, (checkpoint_id, request) in enumerate(self._waiting):
            committable = request.get_committable()
            group = self._committer.group_of(committable)
            alone = ("", index) if group is None else (group,)
            groups.setdefault(alone, []).append((checkpoint_id, committable))
        return tuple(self._entry(pairs) for pairs in groups.values())

    @staticmethod
    def entry(checkpoint_id: int, committable: Any) -> Pieces:
        """Return a committable of a checkpoint, as `snapshot` does."""
        return to_pieces((checkpoint_id, committable))

    @classmethod
    def _entry(cls, pairs: list[tuple[int, UserValue]]) -> Pieces:
        """Return committables that stay together."""
        return cls.entry(*pairs[0]) if len(pairs) == 1 else to_pieces(pairs)

    def complete(self, checkpoint_id: int) -> None:
        """Make due the committables that were prepared for this complete checkpoint or an older one.

        If others are being committed in the background, wait until that is done or has to be tried again.

        Raises:
            CommitFailed: something could not be committed.
        """
        if self._call is not None:
            self.run(slice_s=math.inf)
        self._complete = max(self._complete, checkpoint_id)
        if self._early is not None:
            self._early.complete()

    @property
    def due_ms(self) -> int | None:
        """Return the time at which `run` has something to do.

        None: until a checkpoint is complete, or `wake` is called.
        """
        if self._call is not None:
            return self._clock.now_ms() if self._call[0].has_ended else None
        early_ms = None if self._early is None else self._early.due_ms
        return min((time_ms for time_ms in (self._due_ms, early_ms) if time_ms is not None), default=None)

    @property
    def is_behind(self) -> bool:
        """Return whether a committable is due."""
        return bool(self._due())

    def run(self, slice_s: float = SLICE_S) -> None:
        """Commit what is due, for a short time; `due_ms` says when to go on.

        Args:
            slice_s: seconds after which no other call of the committer is begun; if infinite, return only when nothing
                is due or something has to be tried again.

        Raises:
            CommitFailed: something could not be committed.
        """
        self._end_late()
        if self._wake is not None and self._committer.in_background and not math.isinf(slice_s):
            return self._run_in_background(self._wake)
        began, again = self._clock.monotonic(), self._end_call()
        while not again and (requests := self._due()):
            again = self._commit(requests)
            if not again and self._clock.monotonic() - began > slice_s:
                self._due_ms = self._clock.now_ms()
                return
        self._pause(again)

    def _run_in_background(self, wake: Callable[[], None]) -> None:
        """Begin the next call of the committer unless one is under way."""
        if self._call is not None:
            if self._call[0].has_ended:
                self._pause(self._end_call())
        elif self._due_ms is not None and self._due_ms <= self._clock.now_ms():
            self._due_ms = None
        if self._call is not None or self._due_ms is not None or not (requests := self._due()):
            return
        if self._begin(requests):
            self._call = BackgroundCall(lambda: self._finish(requests), wake), requests
        else:
            self._pause(self._count(requests))

    def _end_call(self) -> int:
        """Wait for the call in the background; return the most retries of any of its requests that failed."""
        if self._call is None:
            return 0
        (call, requests), self._call = self._call, None
        call.wait()
        return self._count(requests)

    def _pause(self, again: int) -> None:
        """Set the time of the next attempt of requests that were tried `again` times; 0: nothing has to be repeated."""
        self._due_ms = self._clock.now_ms() + pause_ms(again - 1) if again else None

    def run_to_the_end(self) -> None:
        """Commit all that is due; the task has nothing else to do.

        Raises:
            CommitFailed: something could not be committed.
        """
        self._end_late()
        self._due_ms, again = None, self._end_call()
        while requests := self._due():
            again = again or self._commit(requests)
            if again and self._wake is not None:
                time.sleep(min(pause_ms(again - 1), LONGEST_PAUSE_AT_THE_END_MS) / 1000)
            again = 0

    def _end_late(self) -> None:
        """Take back what was begun early, if its checkpoint is not complete in time."""
        if self._early is not None and not self.is_behind:
            self._early.end_late()

    def leave(self) -> None:
        """Try once to commit everything due when the task ends, as after a stop with savepoint; a restore commits the
        rest. Nothing runs in the background after it.

        Raises:
            CommitFailed: a call in the background has failed for good.
        """
        self._end_call()
        if self._early is not None and (self._has_failed or not self.is_behind):
            self._early.drop()
        if self._has_failed or not self.is_behind:
            return
        try:
            self.run(slice_s=math.inf)
        except CommitFailed as error:
            log.warning("%s", error)
        if self.is_behind:
            log.warning("%d committables are left to whoever restores the last checkpoint", len(self._waiting))

    def _take(self, entries: Iterable[tuple[int, CommitRequest[Any]]]) -> None:
        before = len(self._waiting)
        self._waiting += entries
        self._total.inc(len(self._waiting) - before)

    def _due(self) -> list[CommitRequest[Any]]:
        """Return the oldest committables that are due, all of one checkpoint."""
        if not self._waiting:
            return []
        first, request = self._waiting[0]
        return self._oldest() if request.restored or first <= self._complete else []

    def _oldest(self) -> list[CommitRequest[Any]]:
        """Return the oldest committables, all of one checkpoint."""
        if not self._waiting:
            return []
        first, request = self._waiting[0]
        group = (first, request.restored)
        head = takewhile(lambda entry: (entry[0], entry[1].restored) == group, self._waiting)
        return [due for _, due in islice(head, self._committer.most_at_once)]

    def _commit(self, requests: list[CommitRequest[Any]]) -> int:
        """Give the first ones to the committer; return the most retries of any that failed, 0 if none did."""
        if self._begin(requests):
            self._finish(requests)
        return self._count(requests)

    def _begin(self, requests: Sequence[CommitRequest[Any]]) -> bool:
        """Let the committer begin; return False where the requests have to be tried again."""
        for request in requests:
            request.outcome, request.error = CommitOutcome.COMMITTED, None
        try:
            if self._early is None or not self._early.has_begun(requests):
                self._committer.begin(requests)
        except Exception as error:
            for request in requests:
                request.retry_later(error)
            return False
        return True

    def _finish(self, requests: Sequence[CommitRequest[Any]]) -> None:
        """Let the committer commit, and note the outcome of each request; a thread in the background may do so."""
        try:
            self._committer.commit(requests)
        except Exception as error:
            for request in requests:
                if request.outcome is CommitOutcome.COMMITTED:
                    request.retry_later(error)

    def _count(self, requests: Sequence[CommitRequest[Any]]) -> int:
        """Count the outcomes of the first requests and forget those that are done; return as `_commit` does.

        Raises:
            CommitFailed: one of them failed.
        """
        left = [request for request in requests if request.outcome is CommitOutcome.RETRY]
        for request in requests:
            if request.outcome is CommitOutcome.RETRY:
                continue
            self._counters[request.outcome].inc()
            if request.outcome is CommitOutcome.UNKNOWN_FAILURE:
                raise self._failure(request) from request.error
            if request.outcome is CommitOutcome.KNOWN_FAILURE:
                reason = described(request.error) if request.error is not None else ""
                log.error("given up a committable: %s; %s", shorten(request.get_committable()), reason)
        checkpoint_id = self._waiting[0][0]
        self._waiting[: len(requests)] = [(checkpoint_id, request) for request in left]
        return max(map(self._again, left), default=0)

    def _again(self, request: CommitRequest[Any]) -> int:
        if request.retries >= self._retries:
            self._counters[CommitOutcome.UNKNOWN_FAILURE].inc()
            raise self._failure(request) from request.error
        request.retries += 1
        self._retried.inc()
        reason = described(request.error) if request.error is not None else "the committer asks for a retry"
        log.warning("commit to be retried: %s; %s", shorten(request.get_committable()), reason)
        return request.retries

    def _failure(self, request: CommitRequest[Any]) -> CommitFailed:
        self._has_failed = True
        reason = "the committer asked for a retry" if request.error is None else described(request.error)
        return CommitFailed(shorten(request.get_committable()), request.retries, reason)


def _pairs(entry: tuple[int, UserValue] | list[tuple[int, UserValue]]) -> list[tuple[int, UserValue]]:
    return entry if isinstance(entry, list) else [entry]


__all__ = ["EVERY_CHECKPOINT", "Commits", "pause_ms"]
