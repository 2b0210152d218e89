"""The queue of asynchronous requests in flight, which decides the order in which their answers are emitted."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from rayflink.common.records.batches import Element


class Request:
    """A request in flight, and later its answer.

    Args:
        payload: what the operator needs to send the request again after a restore.
    """

    __slots__ = ("answer", "is_answered", "payload")

    def __init__(self, payload: Any) -> None:
        self.payload = payload
        self.answer: Any = None
        self.is_answered = False


@dataclass(frozen=True, slots=True)
class RequestQueueStatistics:
    """The requests in flight, and the events between them."""

    requests: int
    """Requests, answered or not."""
    answered: int
    """Requests that are answered, and may have to wait for earlier ones."""
    events: int
    """Events, such as watermarks, that wait for the requests before them."""


class RequestQueue:
    """Requests and events in order of arrival; answered requests leave in that order or as they complete.

    >>> queue = RequestQueue(ordered=False)
    >>> slow, quick = queue.add("slow"), queue.add("quick")
    >>> queue.complete(quick, 1)
    >>> [request.payload for request in queue.pop_ready()]
    ['quick']

    Args:
        ordered: whether answers leave in the order of the requests; if not, they leave as they complete, but never
            cross an event: requests added before an event leave before it, later ones after it.
    Source: apache/flink OrderedStreamElementQueue, UnorderedStreamElementQueue.
    """

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._queue: deque[Request | Element] = deque()
        self._first_answers: list[Request] = []
        self._first_segment: dict[Request, None] = {}
        self._events = 0
        self.requests = 0
        """Number of requests in the queue, answered or not."""

    def __len__(self) -> int:
        """Return the number of requests and events in the queue."""
        return self.requests + self._events

    def add(self, payload: Any) -> Request:
        """Append a request that is about to be sent, and return it."""
        request = Request(payload)
        self.requests += 1
        if not self._ordered and not self._events:
            self._first_segment[request] = None
        else:
            self._queue.append(request)
        return request

    def add_event(self, event: Element) -> None:
        """Append an event, which answers do not cross."""
        self._events += 1
        self._queue.append(event)

    def complete(self, request: Request, answer: Any) -> None:
        """Store the answer to a request."""
        request.answer, request.is_answered = answer, True
        if request in self._first_segment:
            del self._first_segment[request]
            self._first_answers.append(request)

    def pop_ready(self) -> list[Request | Element]:
        """Remove and return what may leave now: answered requests and events, in order."""
        return self._pop_in_order() if self._ordered else self._pop_as_completed()

    def waiting(self) -> list[Any]:
        """Return the payloads of all requests in the queue, and its events, in order of arrival."""
        entries = [*self._first_answers, *self._first_segment, *self._queue]
        return [entry.payload if isinstance(entry, Request) else entry for entry in entries]

    def statistics(self) -> RequestQueueStatistics:
        """Return the present sizes, counted one by one."""
        entries = [*self._first_answers, *self._first_segment, *self._queue]
        answered = sum(isinstance(entry, Request) and entry.is_answered for entry in entries)
        return RequestQueueStatistics(self.requests, answered, self._events)

    def _pop_in_order(self) -> list[Request | Element]:
        queue, ready = self._queue, []
        while queue:
            first = queue[0]
            if isinstance(first, Request):
                if not first.is_answered:
                    break
                self.requests -= 1
            else:
                self._events -= 1
            ready.append(queue.popleft())
        return ready

    def _pop_as_completed(self) -> list[Request | Element]:
        ready: list[Request | Element] = []
        while True:
            ready += self._first_answers
            self.requests -= len(self._first_answers)
            self._first_answers = []
            if self._first_segment or not self._queue:
                return ready
            event = self._queue.popleft()
            assert not isinstance(event, Request), "the first segment is followed by an event"
            ready.append(event)
            self._events -= 1
            self._open_next_segment()

    def _open_next_segment(self) -> None:
        """Let the requests before the next event leave as they complete."""
        queue = self._queue
        while queue and isinstance(queue[0], Request):
            request = queue.popleft()
            assert isinstance(request, Request)
            if request.is_answered:
                self._first_answers.append(request)
            else:
                self._first_segment[request] = None


__all__ = ["Request", "RequestQueue", "RequestQueueStatistics"]
