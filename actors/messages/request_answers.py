"""The latest requests that were made of a job, with their answers: each is performed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .commands import Answer

__all__ = ["RequestAnswers"]

MOST_ANSWERS = 1_000
"""Answers that are remembered; the client of an older one has had it."""


class RequestAnswers(Mapping[str, Answer]):
    """Answers by the ids of their requests.

    >>> answers = RequestAnswers()
    >>> answers.ask("a" * 32), answers.ask("a" * 32), dict(answers)
    (True, False, {})

    Args:
        most: answers; of more, the oldest go, and their requests would be performed again.
    """

    def __init__(self, most: int = MOST_ANSWERS) -> None:
        self._most = most
        self._asked: set[str] = set()
        self._answers: dict[str, Answer] = {}
        self.count = 0
        """The answers so far, with those that are gone."""

    def ask(self, request_id: str) -> bool:
        """Note a request, and return whether it is a new one, which has to be performed."""
        if request_id in self._asked:
            return False
        self._asked.add(request_id)
        return True

    def add(self, answer: Answer) -> None:
        """Remember an answer."""
        self._asked.add(answer.request_id)
        self._answers[answer.request_id] = answer
        self.count += 1
        while len(self._answers) > self._most:
            oldest = next(iter(self._answers))
            del self._answers[oldest]
            self._asked.discard(oldest)

    def __getitem__(self, request_id: str) -> Answer:
        return self._answers[request_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)
