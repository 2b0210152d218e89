"""Requests under way, and in which order their answers come out."""

from __future__ import annotations

from collections import deque
from typing import Any

from rayflink.common.records.batches import Element


class Request:
    """What was given out, and later its answer.

    Args:
        given: what an operator must keep to ask again.
    """

    __slots__ = ("answer", "given", "is_answered")

    def __init__(self, given: Any) -> None:
        self.given = given
        self.answer: Any = None
        self.is_answered = False


class InFlight:
    """Requests and events in the order of their arrival; answered requests leave it in an order that follows from that.

    >>> line = InFlight(ordered=False)
    >>> slow, quick = line.ask("slow"), line.ask("quick")
    >>> line.answered(quick, 1)
    >>> [request.given for request in line.taken()]
    ['quick']

    Args:
        ordered: answers leave in the order of the requests; else as they come, but never across an event: all that was
            asked before it leaves before it, all that was asked behind it behind it.
    Source: apache/flink OrderedStreamElementQueue, UnorderedStreamElementQueue.
    """

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._line: deque[Request | Element] = deque()
        self._first_answers: list[Request] = []
        self._first_segment: dict[Request, None] = {}
        self._events = 0
        self.requests = 0
        """Requests that have not left, answered or not."""

    def __len__(self) -> int:
        """Requests and events that have not left."""
        return self.requests + self._events

    def ask(self, given: Any) -> Request:
        """A request is given out."""
        request = Request(given)
        self.requests += 1
        if not self._ordered and not self._events:
            self._first_segment[request] = None
        else:
            self._line.append(request)
        return request

    def divide(self, event: Element) -> None:
        """An event came, which answers do not cross."""
        self._events += 1
        self._line.append(event)

    def answered(self, request: Request, answer: Any) -> None:
        """The answer to a request has come."""
        request.answer, request.is_answered = answer, True
        if request in self._first_segment:
            del self._first_segment[request]
            self._first_answers.append(request)

    def taken(self) -> list[Request | Element]:
        """What may leave now: answered requests and events, once and in order."""
        return self._in_order() if self._ordered else self._as_they_came()

    def waiting(self) -> list[Any]:
        """What has not left, in the order of arrival: of requests what was given, and events."""
        kept = [*self._first_answers, *self._first_segment, *self._line]
        return [entry.given if isinstance(entry, Request) else entry for entry in kept]

    def _in_order(self) -> list[Request | Element]:
        line, taken = self._line, []
        while line:
            first = line[0]
            if isinstance(first, Request):
                if not first.is_answered:
                    break
                self.requests -= 1
            else:
                self._events -= 1
            taken.append(line.popleft())
        return taken

    def _as_they_came(self) -> list[Request | Element]:
        taken: list[Request | Element] = []
        while True:
            taken += self._first_answers
            self.requests -= len(self._first_answers)
            self._first_answers = []
            if self._first_segment or not self._line:
                return taken
            event = self._line.popleft()
            assert not isinstance(event, Request), "what stands behind the first segment is an event"
            taken.append(event)
            self._events -= 1
            self._open_next_segment()

    def _open_next_segment(self) -> None:
        """What stands before the next event may leave as it is answered."""
        line = self._line
        while line and isinstance(line[0], Request):
            request = line.popleft()
            assert isinstance(request, Request)
            if request.is_answered:
                self._first_answers.append(request)
            else:
                self._first_segment[request] = None


__all__ = ["InFlight", "Request"]
