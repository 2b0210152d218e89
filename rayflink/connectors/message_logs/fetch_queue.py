"""The bounded queue between the thread that fetches messages and the task that reads them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rayflink.user_types import SourceSplit, UserValue

MOST_RUNS = 3
"""Runs of each split that wait for the reader, at most: the fetcher is one ahead while the reader decodes another."""


class FetchedRun(Protocol):
    """Messages of one split that were fetched together, in order."""

    @property
    def split_id(self) -> str:
        """Return the split that they belong to."""
        ...

    @property
    def messages(self) -> Sequence[UserValue]:
        """Return the messages as the schema takes them; none: only the position advances."""
        ...

    def timestamps(self, start: int, stop: int) -> list[int] | None:
        """Return the epoch milliseconds of messages [start, stop); None: they have none."""
        ...

    def place_of(self, index: int) -> str:
        """Return the position of a message in the log, for errors."""
        ...

    def split_after(self, count: int) -> SourceSplit:
        """Return the split with the position behind the first `count` messages."""
        ...


Run = TypeVar("Run", bound=FetchedRun)


@dataclass(frozen=True, slots=True)
class FetchStatistics:
    """The runs that were fetched and not read yet."""

    runs: Mapping[str, int]
    """Id of each split -> runs of it that wait."""
    messages: int
    """Messages in all of these runs."""


class FetchQueue(Generic[Run]):
    """Runs between one fetching thread and one reading thread; each split has a queue of its own.

    Args:
        most_runs: of a split that wait.
    """

    def __init__(self, most_runs: int = MOST_RUNS) -> None:
        self._most_runs = most_runs
        self._runs: dict[str, deque[Run]] = {}
        self._turn: deque[str] = deque()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self.is_closed = False
        """Whether the reader is gone, so that the fetcher should end."""

    def statistics(self) -> FetchStatistics:
        """Return the present sizes; may be called by any thread."""
        with self._changed:
            waiting = {split_id: len(runs) for split_id, runs in self._runs.items()}
            messages = sum(len(run.messages) for runs in self._runs.values() for run in runs)
        return FetchStatistics(waiting, messages)

    # the fetcher's side

    def with_room(self) -> list[str]:
        """Return the splits that take another run."""
        with self._changed:
            return [split_id for split_id, runs in self._runs.items() if len(runs) < self._most_runs]

    def put(self, run: Run) -> None:
        """Add a run; one of a split that is removed is dropped."""
        with self._changed:
            runs = self._runs.get(run.split_id)
            if runs is not None:
                runs.append(run)

    def fail(self, error: BaseException) -> None:
        """Have the reader raise an error once it has taken all runs before it."""
        with self._changed:
            self._failure = error

    def wait(self, seconds: float) -> None:
        """Wait until the reader takes a run, adds a split or closes the queue, or the time is over."""
        with self._changed:
            if not self.is_closed:
                self._changed.wait(seconds)

    # the reader's side

    def add(self, split_id: str) -> None:
        """Add a split."""
        with self._changed:
            self._runs[split_id] = deque()
            self._turn.append(split_id)
            self._changed.notify_all()

    def remove(self, split_id: str) -> None:
        """Remove a split, with the runs that wait."""
        with self._changed:
            del self._runs[split_id]
            self._turn.remove(split_id)

    def take(self, paused: Collection[str]) -> Run | None:
        """Return the next run of a split that is not paused, the splits in turn; None: there is none.

        Raises: the error of the fetcher.
        """
        with self._changed:
            for _ in range(len(self._turn)):
                split_id = self._turn[0]
                self._turn.rotate(-1)
                runs = self._runs[split_id]
                if runs and split_id not in paused:
                    self._changed.notify_all()
                    return runs.popleft()
            if self._failure is not None:
                raise self._failure
        return None

    def close(self) -> None:
        """Have the fetcher end."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()


def start_thread(work: Callable[[], None], queue: FetchQueue[Run], name: str) -> threading.Thread:
    """Run the loop of a fetcher in a thread; what it raises fails the reader."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            queue.fail(error)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


__all__ = ["FetchQueue", "FetchedRun", "start_thread"]
