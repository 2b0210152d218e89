"""Answers to requests that take something away, which a client may have to ask for twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rayflink.serving.json_requests import Refusal

__all__ = ["NumberedAnswers"]

KEEP_S = 120.0
"""Seconds for which an answer can be asked for again."""


class _Last:
    """The last answer of one key; the lock is held while the next one is made."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.number, self.content = 0, b""
        self.used_s = 0.0


class NumberedAnswers:
    """Remembers the last answer of each key, so that one that was lost on its way is given again.

    >>> answers = NumberedAnswers()
    >>> rows = iter([b"a", b"b"])
    >>> [answers.answer("job", number, lambda: next(rows)) for number in (1, 1, 2)]
    [b'a', b'a', b'b']

    Args:
        now: seconds, monotonic.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._last: dict[str, _Last] = {}

    def answer(self, key: str, number: int, take: Callable[[], bytes]) -> bytes:
        """Return the answer of a number: a new one, or the last one again.

        A request that is repeated while the first is still under way waits for it.

        Args:
            number: 1 more than that of the request before.
            take: makes the next answer.

        Raises:
            Refusal: the number has been passed, as another client asks for the same.
            Exception: what `take` raises.
        """
        with self._lock:
            self._forget()
            last = self._last.setdefault(key, _Last())
            last.used_s = self._now()
        with last.lock:
            if number < last.number:
                raise Refusal(409, f"request {number} comes after request {last.number}: the job has another client")
            if number > last.number:
                last.content = take()
                last.number = number
            last.used_s = self._now()
            return last.content

    def _forget(self) -> None:
        limit = self._now() - KEEP_S
        for key in [key for key, last in self._last.items() if last.used_s < limit and not last.lock.locked()]:
            del self._last[key]
