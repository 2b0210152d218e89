"""The common part of operators whose requests are answered elsewhere: the queue, its bound, its snapshot."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.records.batches import (
    Batch,
    Element,
    EndOfData,
    EndOfSuperstep,
    LatencyMarker,
    Watermark,
    WatermarkStatus,
)
from rayflink.state.descriptors import ListStateDescriptor
from rayflink.state.operator_state import OperatorStateStore

from ..base import Operator, OperatorSnapshot, UserCodeError
from ..capabilities import AsyncCompletion, EventHandler
from ..latency import record_latency
from ..user_function import UserCode
from .event_loops import CoroutineRunner, coroutine_runner
from .request_queue import Request, RequestQueue

STATE = "in flight"
_BEGINNING = "beginning of a subtask"
"""Stands before the elements of each subtask in the state."""


class AsyncOperator(Operator, AsyncCompletion, EventHandler):
    """Sends requests for its records, up to `capacity` at a time, and emits their answers.

    It takes a whole batch. Records for which there is no room wait here, and meanwhile it accepts no further input. The
    snapshot contains all that was not emitted, events included; the requests are sent again after a restore.

    Args:
        capacity: requests under way or answered and not emitted, at least 1.
        ordered: whether answers are emitted in the order of the records.

    Source: apache/flink AsyncWaitOperator.
    """

    def __init__(self, capacity: int, ordered: bool) -> None:
        self._capacity = capacity
        self._queue = RequestQueue(ordered)
        self._waiting: deque[Element] = deque()
        self._runner: CoroutineRunner | None = None

    @abstractmethod
    def begin(self, waiting: deque[Element]) -> tuple[Batch, Callable[[], Coroutine[Any, Any, Any]]] | None:
        """Take the next request from the first batches that wait.

        Returns: the records, which are kept to ask again, and what asks; None: rather wait for more.
        """

    @abstractmethod
    def elements_of(self, answered: list[Request]) -> Iterable[Element]:
        """Return the elements for requests that have been answered.

        Raises:
            UserCodeError: an answer is a failure.
        """

    @abstractmethod
    def life_cycle(self) -> tuple[Callable[..., Any], Callable[[], Any]]:
        """Return the object that opens the user's function, given a RuntimeContext, and closes it."""

    # life

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._store = OperatorStateStore([snapshot.lists for snapshot in snapshots], self.ctx.label)
        self._state = self._store.get_list_state(ListStateDescriptor(STATE))
        elements = list(self._state.get())
        if [index for index, element in enumerate(elements) if element == _BEGINNING] != [0]:
            # watermarks of one subtask say nothing of the records of another; the inputs send new ones
            elements = [element for element in elements if not isinstance(element, (Watermark, WatermarkStatus))]
        self._waiting.extend(element for element in elements if element != _BEGINNING)

    def open(self) -> None:
        self.ctx.metrics.gauge("inFlightRequests", lambda: self._queue.requests)
        self._runner = coroutine_runner(self.ctx)
        with UserCode(self.ctx, "open"):
            self._runner.call(self.life_cycle()[0], RuntimeContext(self.ctx))
        self._begin()

    def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is None:
            return
        with UserCode(self.ctx, "close"):
            runner.close(self.life_cycle()[1])

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        elements = list(map(self.stored, [*self._queue.waiting(), *self._waiting]))
        self._state.update([_BEGINNING, *elements] if elements else [])
        return OperatorSnapshot(lists=self._store.snapshot())

    def stored(self, element: Element) -> Element:
        """Return an element as the snapshot stores it."""
        return element

    # what comes

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return self.take([batch])

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        return self.take([watermark])

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        return self.take([status])

    def process_latency_marker(self, marker: LatencyMarker) -> Iterable[Element]:
        return self.take([marker])

    def process_superstep(self, end: EndOfSuperstep) -> Iterable[Element]:
        return self.take([end])

    def accepts(self, element: Element) -> bool:
        if isinstance(element, EndOfData):
            return not element.drain or not (self._queue or self._waiting)
        return not self._waiting and self._queue.requests < self._capacity

    def take(self, elements: Iterable[Element]) -> Iterable[Element]:
        """Append elements to those that wait, and begin the requests for which there is room."""
        self._waiting.extend(elements)
        self._begin()
        return ()

    def _begin(self) -> None:
        waiting = self._waiting
        assert self._runner is not None, "an operator is opened before it is given anything"
        while waiting:
            first = waiting[0]
            if isinstance(first, _EVENTS):
                self._queue.add_event(first)
                waiting.popleft()
                continue
            if self._queue.requests >= self._capacity:
                break
            begun = self.begin(waiting)
            if begun is None:
                break
            records, ask = begun
            self._runner.begin(self._queue.add(records), ask)

    # what comes back

    def take_completed(self) -> Iterable[Element]:
        runner = self._runner
        if runner is None:
            return ()
        runner.advance()
        while runner.answers:
            request, answer = runner.answers.popleft()
            if isinstance(answer, Exception):
                raise self.failure("the event loop", "") from answer
            answer, ask = self.next_step(answer)
            if ask is not None:
                runner.begin(request, ask)
                continue
            self._queue.complete(request, answer)
            self.check_answer(request)
        ready = self._queue.pop_ready()
        self._begin()
        return self._elements(ready) if ready else ()

    def next_step(self, answer: Any) -> tuple[Any, Callable[[], Coroutine[Any, Any, Any]] | None]:
        """Return an answer that has arrived as it is stored, and what asks further for its records; None: nothing."""
        return answer, None

    def note_event(self, event: Element) -> None:
        """Called before an event is emitted, between the answers to the records before it and behind it."""

    def check_answer(self, request: Request) -> None:
        """Called when an answer has arrived; its turn to be emitted may come later.

        Raises:
            UserCodeError: it is a failure.
        """

    def next_completion_ms(self) -> int | None:
        return None if self._runner is None else self._runner.next_due_ms()

    def _elements(self, ready: list[Request | Element]) -> list[Element]:
        elements: list[Element] = []
        answered: list[Request] = []
        for entry in ready:
            if isinstance(entry, Request):
                answered.append(entry)
                continue
            elements += self.elements_of(answered)
            answered = []
            self.note_event(entry)
            if isinstance(entry, LatencyMarker):
                record_latency(self.ctx, entry)
            elements.append(entry)
        return [*elements, *self.elements_of(answered)]

    def failure(self, where: str, record: str) -> UserCodeError:
        """Return the error to raise from the exception of the user's function."""
        return UserCodeError(self.ctx.operator_name, self.ctx.call_site, record, where)


_EVENTS = (Watermark, WatermarkStatus, LatencyMarker, EndOfSuperstep)
__all__ = ["AsyncOperator"]
