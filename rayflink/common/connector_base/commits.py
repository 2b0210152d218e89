"""Requests to commit, and the answers that a committer can signal for each."""

from __future__ import annotations

from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")


class CommitOutcome(Enum):
    """The outcome of a committable in one call of the committer."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already committed"
    RETRY = "to be retried"
    KNOWN_FAILURE = "given up for a known reason"
    UNKNOWN_FAILURE = "failed for an unknown reason"


class CommitFailed(Exception):
    """A committable could not be committed; it is in the last checkpoint, and the next attempt commits it.

    Args:
        committable: shortened.
        retries: how often it was tried again.
    """

    def __init__(self, committable: str, retries: int, what: str) -> None:
        super().__init__(committable, retries, what)
        self.committable, self.retries, self.what = committable, retries, what

    def __str__(self) -> str:
        tried = f"after {self.retries} retries " if self.retries else ""
        outcome = "it is in the last checkpoint, from which the next attempt commits it; a job that fails for good "
        outcome += "keeps that one where execution.checkpointing.externalized-checkpoint-retention is "
        outcome += "DELETE_ON_CANCELLATION"
        return f"{self.committable} was not committed {tried}({self.what}); {outcome}"


class CommitRequest(Generic[T]):
    """One committable that is to be committed; what the committer does not signal anything of counts as committed.

    >>> request = CommitRequest("file-1")
    >>> request.get_committable(), request.get_number_of_retries(), request.outcome
    ('file-1', 0, <CommitOutcome.COMMITTED: 'committed'>)
    >>> request.retry_later()
    >>> request.outcome
    <CommitOutcome.RETRY: 'to be retried'>

    Args:
        committable: what the writer prepared.
        restored: it comes from a checkpoint, so that it may have been committed before.

    Source: apache/flink Committer.CommitRequest.
    """

    def __init__(self, committable: T, restored: bool = False) -> None:
        self._committable, self.restored = committable, restored
        self.retries = 0
        self.outcome = CommitOutcome.COMMITTED
        self.error: BaseException | None = None

    def get_committable(self) -> T:
        """Return the committable that the writer prepared."""
        return self._committable

    def get_number_of_retries(self) -> int:
        """Return the number of times that it was tried before."""
        return self.retries

    def signal_already_committed(self) -> None:
        """Signal that it was committed before: nothing was done."""
        self.outcome = CommitOutcome.ALREADY_COMMITTED

    def retry_later(self, error: BaseException | None = None) -> None:
        """Signal that it cannot be committed now; `error` says why, should it be tried too often."""
        self.outcome, self.error = CommitOutcome.RETRY, error

    def update_and_retry_later(self, committable: T) -> None:
        """Signal that a part of it is committed; `committable` is the rest."""
        self._committable = committable
        self.retry_later()

    def signal_failed_with_known_reason(self, error: BaseException) -> None:
        """Signal that it can never be committed, and that is expected: it is logged, counted and given up."""
        self.outcome, self.error = CommitOutcome.KNOWN_FAILURE, error

    def signal_failed_with_unknown_reason(self, error: BaseException) -> None:
        """Signal that it cannot be committed for an unknown reason: the task fails, and the committable is not lost."""
        self.outcome, self.error = CommitOutcome.UNKNOWN_FAILURE, error


__all__ = ["CommitFailed", "CommitOutcome", "CommitRequest"]
