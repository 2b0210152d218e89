"""Several operators that run as one: an element is drawn through all of them before the next one is taken.

Where an element has several ways out, each chained operator gets records of its own: what it does to them is seen
neither by the next one, which works later, nor by a writer, in which records may still wait.

The chain is a tree. Its work in progress is a stack of iterators, so it can stop after any element (outputs full, or
its time slice used up) and go on later exactly where it stood; nothing is buffered between chained operators.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from rayflink.common.functions.callables import SplitBy
from rayflink.common.records.aliasing import FanOutError, own_copies
from rayflink.common.records.batches import (
    ArrowBatch,
    Element,
    EndOfData,
    EndOfSuperstep,
    LatencyMarker,
    RowBatch,
    Tagged,
    Watermark,
    WatermarkStatus,
)

from .base import Operator, UserCodeError
from .capabilities import (
    AsyncCompletion,
    BoundedMultiInput,
    CheckpointListener,
    DeferredSnapshot,
    EventHandler,
    PreBarrier,
    ProcessingTimers,
    Satisfiable,
    StatePrefetch,
    Upkeep,
)
from .latency import record_latency
from .selection import Selection, SplitBatch


class ElementWriter(Protocol):
    """The exit of elements from the chain: one writer a result partition."""

    def write(self, element: Element) -> None:
        """Take an element; it is always taken, fullness is asked for before the next one."""
        ...


@dataclass(frozen=True)
class ChainEdge:
    """Operator -> operator inside a chain; `tag_id` None is the main output, `selection` None all of its records."""

    target: int
    tag_id: str | None = None
    input_index: int = 0
    selection: Selection | None = None


@dataclass(frozen=True)
class ChainOutput:
    """Operator -> result partition; `tag_id` and `selection` as of `ChainEdge`."""

    writer: ElementWriter
    tag_id: str | None = None
    selection: Selection | None = None


Routes = list[tuple[Any, Any]]
"""Edges and outputs of an operator, each with the element that goes there."""


@dataclass
class ChainLink:
    """One operator in its chain, with its ways out, the output selectors of its splits, and its counts of records."""

    operator: Operator
    edges: tuple[ChainEdge, ...] = ()
    outputs: tuple[ChainOutput, ...] = ()
    selectors: tuple[SplitBy, ...] = ()
    records_in: int = 0
    records_out: int = 0
    input_watermark: int | None = None
    output_watermark: int | None = None


class OperatorChain:
    """Runs a tree of operators whose head is link 0.

    Args:
        links: operators, each before its consumers.
        is_full: True while a result partition has no room; the chain then stops.
        copies: deep-copy values between chained operators (`pipeline.object-reuse: false` asked for by the user).
    """

    def __init__(self, links: list[ChainLink], is_full: Callable[[], bool], copies: bool = False) -> None:
        self.links = links
        self._is_full = is_full
        self._copies = copies
        self._stack: list[tuple[int, Iterator[Element]] | tuple[int, Element, int]] = []
        self._below = [_below(links, index) for index in range(len(links))]
        self._satisfied: set[int] = set()
        self.is_waiting = False
        """True if the chain stopped before an element that its operator does not accept yet."""
        self._find_capabilities()

    def _find_capabilities(self) -> None:
        """Note, once, which links have which capability, so that the others are never asked."""
        operators = [(index, link.operator) for index, link in enumerate(self.links)]
        self._event_handlers = {index: o for index, o in operators if isinstance(o, EventHandler)}
        self._timers = [(index, o) for index, o in operators if isinstance(o, ProcessingTimers)]
        self._upkeep = [o for _, o in operators if isinstance(o, Upkeep)]
        self._async = {index: o for index, o in operators if isinstance(o, AsyncCompletion)}
        self._unsatisfied = {index: o for index, o in operators if isinstance(o, Satisfiable)}
        self._pre_barrier = [(index, o) for index, o in operators if isinstance(o, PreBarrier)]
        self.checkpoint_listeners = [o for _, o in operators if isinstance(o, CheckpointListener)]
        """Operators to notify of checkpoints, head first."""
        self.deferred_snapshots: list[DeferredSnapshot] = [o for _, o in operators if isinstance(o, DeferredSnapshot)]
        """Operators whose snapshot is completed after the barrier, head first."""
        head = operators[0][1] if operators else None
        self.prefetch = head if isinstance(head, StatePrefetch) else None
        """The head, if it can load state ahead."""

    @property
    def idle(self) -> bool:
        """Return whether everything that was fed has been processed."""
        return not self._stack

    def feed(self, element: Element, input_index: int = 0) -> None:
        """Give the head an element; call `run` until the chain is idle."""
        self._stack.append((0, element, input_index))

    def emit(self, index: int, elements: Iterable[Element]) -> None:
        """Let link `index` emit `elements`, as if it had answered with them (sources, timers, finish)."""
        self._stack.append((index, iter(elements)))

    @property
    def works_async(self) -> bool:
        """Return whether any operator has its work done elsewhere."""
        return bool(self._async)

    def emit_completed(self) -> bool:
        """Let operators emit the results that have come back, unless earlier ones of theirs are still in the chain.

        Returns: whether there were any.
        """
        has_emitted = False
        for index in sorted(self._async, reverse=True):
            if not self._may_emit(index):
                continue
            elements = tuple(self._async[index].take_completed())
            if elements:
                self.emit(index, elements)
                has_emitted = True
        return has_emitted

    def next_completion_ms(self) -> int | None:
        """Return the epoch milliseconds at which `emit_completed` makes sense; None until another thread wakes the
        chain.
        """
        times = [operator.next_completion_ms() for index, operator in self._async.items() if self._may_emit(index)]
        return min((time for time in times if time is not None), default=None)

    def _may_emit(self, index: int) -> bool:
        below = self._below[index]
        return not any(frame[0] in below or (frame[0] == index and len(frame) == 2) for frame in self._stack)

    def fire_processing_time(self, now_ms: int) -> bool:
        """Let operators emit the results of timers that are due, and do their upkeep; return whether a timer was."""
        fired = False
        for index, operator in self._timers:
            due = operator.next_processing_time()
            if due is not None and due <= now_ms:
                self.emit(index, operator.on_processing_time(now_ms))
                fired = True
        for keeper in self._upkeep:
            due = keeper.next_upkeep_ms()
            if due is not None and due <= now_ms:
                keeper.upkeep(now_ms)
        return fired

    def next_processing_ms(self) -> int | None:
        """Return the epoch milliseconds at which `fire_processing_time` makes sense; None: there are no timers and no
        upkeep.
        """
        times = [operator.next_processing_time() for _, operator in self._timers]
        times += [keeper.next_upkeep_ms() for keeper in self._upkeep]
        return min((time for time in times if time is not None), default=None)

    def end_input(self, input_index: int) -> None:
        """Let the head emit what the end of one of its inputs leads to."""
        head = self.links[0].operator
        if isinstance(head, BoundedMultiInput):
            self.emit(0, head.end_input(input_index))

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Emit all elements that must precede the barrier of a checkpoint, whether outputs are full or not."""
        for index, operator in self._pre_barrier:
            self.emit(index, operator.prepare_snapshot(checkpoint_id))
            self.drain()

    def newly_satisfied(self) -> list[int]:
        """Return the links whose operators use no further record, each once."""
        if not self._unsatisfied:
            return []
        satisfied = [index for index, operator in self._unsatisfied.items() if operator.is_satisfied]
        for index in satisfied:
            del self._unsatisfied[index]
        self._satisfied.update(satisfied)
        return satisfied

    def is_satisfied(self, index: int = 0) -> bool:
        """Return whether neither link `index` nor any link that it emits records to uses a further record."""
        if index in self._satisfied:
            return True
        link = self.links[index]
        return bool(link.edges) and not link.outputs and all(self.is_satisfied(edge.target) for edge in link.edges)

    def accepts_records(self) -> bool:
        """Return whether no operator has as much work elsewhere as it may."""
        return all(operator.accepts(_RECORDS) for operator in self._async.values())

    def run(self, may_continue: Callable[[], bool]) -> bool:
        """Work until idle, until outputs are full, or until `may_continue` returns False; return True when idle.

        Raises:
            UserCodeError: a user's function raised.
        """
        return self._work(self._is_full, may_continue, self._accepts if self._async else None)

    def drain(self) -> None:
        """Work until idle whether outputs are full or not: for the little that must be in front of a barrier."""
        self._work(lambda: False, lambda: True, None)

    def overflow(self, is_flooded: Callable[[], bool]) -> bool:
        """Work until idle though outputs are full.

        Returns: False where they are flooded, or the end of the data waits for work that is done elsewhere.
        """
        return self._work(is_flooded, lambda: True, self._accepts_end if self._async else None)

    def _accepts_end(self, index: int, element: Element) -> bool:
        return not isinstance(element, EndOfData) or self._accepts(index, element)

    def _accepts(self, index: int, element: Element) -> bool:
        operator = self._async.get(index)
        return operator is None or operator.accepts(element)

    def _work(
        self,
        is_full: Callable[[], bool],
        may_continue: Callable[[], bool],
        accepts: Callable[[int, Element], bool] | None,
    ) -> bool:
        stack = self._stack
        self.is_waiting = False
        while stack:
            if is_full():
                return False
            frame = stack[-1]
            if len(frame) == 3:
                if accepts is not None and not accepts(frame[0], frame[1]):
                    self.is_waiting = True
                    return False
                stack[-1] = (frame[0], iter(self._answer(frame[0], frame[1], frame[2])))
                continue
            index, answers = frame
            try:
                element = next(answers, None)
            except UserCodeError:
                raise
            except (Exception, SystemExit) as error:  # sys.exit() of a function ends its job, not this process
                raise self._failure(index, "process") from error
            if element is None:
                stack.pop()
            else:
                self._route(index, element)
            if not may_continue():
                break
        return not stack

    def abandon(self) -> None:
        """Drop all work in progress (cancel, failure); generators are closed."""
        stack, self._stack = self._stack, []
        for frame in stack:
            closing = getattr(frame[1], "close", None)
            if len(frame) == 2 and closing is not None:
                closing()

    def _answer(self, index: int, element: Element, input_index: int) -> Iterable[Element]:
        link = self.links[index]
        operator = link.operator
        try:
            if isinstance(element, (RowBatch, ArrowBatch)):
                link.records_in += len(element)
                return operator.process(element, input_index)
            if isinstance(element, Watermark):
                link.input_watermark = element.timestamp
                return operator.process_watermark(element)
            if isinstance(element, EndOfData):
                return self._finishing(operator, element)
            if isinstance(element, (WatermarkStatus, LatencyMarker, EndOfSuperstep)):
                return self._answer_event(index, element)
        except UserCodeError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failure(index, "process") from error
        raise TypeError(f"operator {operator.ctx.operator_name!r} was fed a {type(element).__name__}")

    def _answer_event(self, index: int, event: WatermarkStatus | LatencyMarker | EndOfSuperstep) -> Iterable[Element]:
        handler = self._event_handlers.get(index)
        if handler is None:
            if isinstance(event, LatencyMarker):
                record_latency(self.links[index].operator.ctx, event)
            return (event,)
        if isinstance(event, WatermarkStatus):
            return handler.process_status(event)
        if isinstance(event, LatencyMarker):
            return handler.process_latency_marker(event)
        return handler.process_superstep(event)

    @staticmethod
    def _finishing(operator: Operator, end: EndOfData) -> Iterator[Element]:
        if end.drain:
            yield from operator.finish()
        yield end

    def _route(self, index: int, element: Element) -> None:
        link = self.links[index]
        tag: str | None = None
        is_event = True  # events go to main and side outputs alike
        if isinstance(element, Tagged):
            tag, element, is_event = element.tag_id, element.batch, False
        elif isinstance(element, (RowBatch, ArrowBatch)):
            is_event = False
        if not is_event:
            if not len(element):  # type: ignore[arg-type]
                return
            link.records_out += len(element)  # type: ignore[arg-type]
        elif isinstance(element, Watermark):
            link.output_watermark = element.timestamp
        outputs = [(output, element) for output in link.outputs if is_event or output.tag_id == tag]
        edges = [(edge, element) for edge in reversed(link.edges) if is_event or edge.tag_id == tag]
        if link.selectors and not is_event:
            outputs, edges = self._selected(index, element, outputs, edges)
        self._send(index, outputs, edges)

    def _selected(self, index: int, element: Any, outputs: Routes, edges: Routes) -> tuple[Routes, Routes]:
        """Return the outputs and edges that records of the batch go to, each with its part of them."""
        split = SplitBatch(element, self.links[index].selectors)
        parts = [[(route, split.part(route.selection)) for route, _ in routes] for routes in (outputs, edges)]
        outputs, edges = [[(route, part) for route, part in routes if len(part)] for routes in parts]
        return outputs, edges

    def _send(self, index: int, outputs: Routes, edges: Routes) -> None:
        for output, element in outputs:
            output.writer.write(element)
        for edge, element in edges:
            batch = element
            if type(element) is RowBatch:
                if self._copies:
                    batch = copy.deepcopy(element)
                elif outputs or edge is not edges[0][0]:  # the last to work may have the records themselves
                    batch = self._copy_records(index, element)
            self._stack.append((edge.target, batch, edge.input_index))

    def _copy_records(self, index: int, batch: RowBatch) -> RowBatch:
        try:
            values = own_copies(batch.values)
        except FanOutError as error:
            raise self._failure(index, "the copy for each of several consumers") from error
        return batch if values is batch.values else RowBatch(values, batch.timestamps)

    def _failure(self, index: int, where: str) -> UserCodeError:
        ctx = self.links[index].operator.ctx
        return UserCodeError(ctx.operator_name, ctx.call_site, "", where)


_RECORDS = RowBatch([])
"""Stands for records of any kind."""


def _below(links: list[ChainLink], index: int) -> frozenset[int]:
    """Return the links that the output of link `index` may reach."""
    reached: set[int] = set()
    for edge in links[index].edges:
        reached |= {edge.target} | _below(links, edge.target)
    return frozenset(reached)
