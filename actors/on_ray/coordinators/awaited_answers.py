"""The answers of a job to the requests of its clients, who wait for them in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...messages.commands import Answer, Request
from ...messages.request_answers import RequestAnswers


class AwaitedAnswers:
    """Answers that clients wait for; each request is performed once, however often it is sent.

    Args:
        perform: performs a request, and returns before its answer is known.
        ended: is set when the job has ended.
    """

    def __init__(self, perform: Callable[[Request], None], ended: threading.Event) -> None:
        self._perform, self._ended = perform, ended
        self._answers = RequestAnswers()
        self._answered = threading.Condition()

    def answer_to(self, request: Request, timeout_s: float) -> Answer | None:
        """Make a request, or wait on for one that was made; None when it takes longer than `timeout_s`."""
        number = request.request_id
        with self._answered:
            if self._answers.ask(number):
                self._perform(request)
            self._answered.wait_for(lambda: number in self._answers or self._ended.is_set(), timeout_s)
        if number not in self._answers and self._ended.is_set():
            return request.job_has_ended()
        return self._answers.get(number)

    def give(self, answer: Answer) -> None:
        """Give the answer to the clients that wait for it."""
        with self._answered:
            self._answers.add(answer)
            self._answered.notify_all()


__all__ = ["AwaitedAnswers"]
