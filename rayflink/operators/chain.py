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
from .selection import Divided, Selection


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


Ways = list[tuple[Any, Any]]
"""Ways out of an operator, each with what goes there."""


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
        self.outside = [index for index, link in enumerate(links) if link.operator.works_outside]
        """Links whose work is done outside of the task."""
        self._ending_early = [index for index, link in enumerate(links) if link.operator.ends_early]
        self._satisfied: set[int] = set()
        self._below = [_below(links, index) for index in range(len(links))]
        self.is_waiting = False
        """True if the chain stopped before an element that its operator does not accept yet."""

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

    def emit_completed(self) -> bool:
        """Let operators emit what has come back from outside, each unless something of its own is still on its way.

        Returns: whether there was something.
        """
        found = False
        for index in reversed(self.outside):
            if not self._may_emit(index):
                continue
            elements = tuple(self.links[index].operator.completed())
            if elements:
                self.emit(index, elements)
                found = True
        return found

    def next_completion_ms(self) -> int | None:
        """Return the epoch milliseconds at which `emit_completed` makes sense; None until another thread wakes the
        chain.
        """
        times = [self.links[i].operator.next_completion_ms() for i in self.outside if self._may_emit(i)]
        return min((time for time in times if time is not None), default=None)

    def _may_emit(self, index: int) -> bool:
        below = self._below[index]
        return not any(frame[0] in below or (frame[0] == index and len(frame) == 2) for frame in self._stack)

    def fire_processing_time(self, now_ms: int) -> bool:
        """Let operators emit what their timers that are due give, and do their upkeep; whether a timer was due."""
        fired = False
        for index, link in enumerate(self.links):
            due = link.operator.next_processing_time()
            if due is not None and due <= now_ms:
                self.emit(index, link.operator.on_processing_time(now_ms))
                fired = True
            due = link.operator.next_upkeep_ms()
            if due is not None and due <= now_ms:
                link.operator.upkeep(now_ms)
        return fired

    def next_processing_ms(self) -> int | None:
        """Return the epoch milliseconds at which `fire_processing_time` makes sense; None: there are no timers and no
        upkeep.
        """
        times = [link.operator.next_processing_time() for link in self.links]
        times += [link.operator.next_upkeep_ms() for link in self.links]
        return min((time for time in times if time is not None), default=None)

    def newly_satisfied(self) -> list[int]:
        """Return the links whose operators use no further record, each once."""
        found = [index for index in self._ending_early if self.links[index].operator.is_satisfied]
        if found:
            self._ending_early = [index for index in self._ending_early if index not in found]
            self._satisfied.update(found)
        return found

    def is_satisfied(self, index: int = 0) -> bool:
        """Return whether neither link `index` nor any link that it emits records to uses a further record."""
        if index in self._satisfied:
            return True
        link = self.links[index]
        return bool(link.edges) and not link.outputs and all(self.is_satisfied(edge.target) for edge in link.edges)

    def takes_records(self) -> bool:
        """Return whether no operator is busy outside with all it can have."""
        return all(self.links[index].operator.takes(_RECORDS) for index in self.outside)

    def run(self, may_continue: Callable[[], bool]) -> bool:
        """Work until idle, until outputs are full, or until `may_continue` returns False; return True when idle.

        Raises:
            UserCodeError: a user's function raised.
        """
        return self._work(self._is_full, may_continue, self._takes if self.outside else None)

    def drain(self) -> None:
        """Work until idle whether outputs are full or not: for the little that must be in front of a barrier."""
        self._work(lambda: False, lambda: True, None)

    def overflow(self, is_flooded: Callable[[], bool]) -> bool:
        """Work until idle though outputs are full.

        Returns: False where they are flooded, or the end of the data waits for what is outside.
        """
        return self._work(is_flooded, lambda: True, self._takes_records_and_end if self.outside else None)

    def _takes_records_and_end(self, index: int, element: Element) -> bool:
        return not isinstance(element, EndOfData) or self._takes(index, element)

    def _takes(self, index: int, element: Element) -> bool:
        operator = self.links[index].operator
        return not operator.works_outside or operator.takes(element)

    def _work(
        self,
        is_full: Callable[[], bool],
        may_continue: Callable[[], bool],
        takes: Callable[[int, Element], bool] | None,
    ) -> bool:
        stack = self._stack
        self.is_waiting = False
        while stack:
            if is_full():
                return False
            frame = stack[-1]
            if len(frame) == 3:
                if takes is not None and not takes(frame[0], frame[1]):
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
            if isinstance(element, WatermarkStatus):
                return operator.process_status(element)
            if isinstance(element, LatencyMarker):
                return operator.process_latency_marker(element)
            if isinstance(element, EndOfSuperstep):
                return operator.process_superstep(element)
        except UserCodeError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failure(index, "process") from error
        raise TypeError(f"operator {operator.ctx.operator_name!r} was fed a {type(element).__name__}")

    @staticmethod
    def _finishing(operator: Operator, end: EndOfData) -> Iterator[Element]:
        if end.drain:
            yield from operator.finish()
        yield end

    def _route(self, index: int, element: Element) -> None:
        link = self.links[index]
        tag: str | None = None
        every_way = True  # events go to main and side outputs alike
        if isinstance(element, Tagged):
            tag, element, every_way = element.tag_id, element.batch, False
        elif isinstance(element, (RowBatch, ArrowBatch)):
            every_way = False
        if not every_way:
            if not len(element):  # type: ignore[arg-type]
                return
            link.records_out += len(element)  # type: ignore[arg-type]
        elif isinstance(element, Watermark):
            link.output_watermark = element.timestamp
        outputs = [(output, element) for output in link.outputs if every_way or output.tag_id == tag]
        edges = [(edge, element) for edge in reversed(link.edges) if every_way or edge.tag_id == tag]
        if link.selectors and not every_way:
            outputs, edges = self._selected(index, element, outputs, edges)
        self._send(index, outputs, edges)

    def _selected(self, index: int, element: Any, outputs: Ways, edges: Ways) -> tuple[Ways, Ways]:
        """Return the outputs that any records of the batch go to, each with its part of them."""
        divided = Divided(element, self.links[index].selectors)
        parts = [[(way, divided.part(way.selection)) for way, _ in ways] for ways in (outputs, edges)]
        outputs, edges = [[(way, part) for way, part in ways if len(part)] for ways in parts]
        return outputs, edges

    def _send(self, index: int, outputs: Ways, edges: Ways) -> None:
        for output, element in outputs:
            output.writer.write(element)
        for edge, element in edges:
            given = element
            if type(element) is RowBatch:
                if self._copies:
                    given = copy.deepcopy(element)
                elif outputs or edge is not edges[0][0]:  # the last to work may have the records themselves
                    given = self._own(index, element)
            self._stack.append((edge.target, given, edge.input_index))

    def _own(self, index: int, batch: RowBatch) -> RowBatch:
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
