"""Runs one operator, or a few in a row, by hand: no job, no channel, and a clock that moves on request."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import TracebackType
from typing import Any, TypeAlias

from rayflink.actors.task.polled_source import PolledSource
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    Batch,
    Element,
    EndOfData,
    Tagged,
)
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot, SourceOperator
from rayflink.operators.capabilities import PreBarrier, ProcessingTimers, Upkeep
from rayflink.operators.chain import ChainEdge, ChainLink, ChainOutput, OperatorChain
from rayflink.operators.event_time.watermark_valve import InputWatermarks
from rayflink.operators.rescaling import rescale
from rayflink.state.clock import ManualClock
from rayflink.state.snapshots import InlineSnapshots, StoredSnapshot, loaded, stored

from .elements import (
    CaseElement,
    Columns,
    End,
    Mark,
    Moment,
    OutputElement,
    Record,
    SecondInput,
    Status,
    output_elements,
    row_batch,
)

__tracebackhide__ = True  # pytest shows the line of the test instead

OperatorFactory: TypeAlias = Callable[[], Operator | Sequence[Operator]]
"""Makes a fresh operator, or a list of operators that run as one chain, head first."""
Snapshots = Mapping[str, tuple[OperatorSnapshot, ...]]
"""Operator id -> its snapshots, as a task starts from them."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place at which the operator believes to run.

    Args:
        subtask: index in [0, parallelism).
        max_parallelism: key groups in all.
        config: option key -> value.
        cached_files: name -> path of the distributed cache.
        wake: called, by any thread, when work in the background has ended, whose results
            `OperatorHarness.set_processing_time` takes. None: the operator does all work in the calling thread.
    """

    subtask: int = 0
    parallelism: int = 1
    max_parallelism: int = 128
    config: Mapping[str, Any] = field(default_factory=dict)
    cached_files: Mapping[str, str] = field(default_factory=dict)
    wake: Callable[[], None] | None = None


def rescaled_snapshots(snapshots: Sequence[Snapshots], parallelism: int, max_parallelism: int = 128) -> list[Snapshots]:
    """Return the state that each of `parallelism` subtasks starts from, given the `snapshot` of each former one by its
    index.

    Keyed state goes with its key groups, lists as their mode says: split evenly, all to everyone, or one copy each.

    >>> from rayflink.operators.base import OperatorSnapshot
    >>> rules = OperatorSnapshot(lists={"rules": ("broadcast", (b"r",))})
    >>> [dict(s["map"][0].lists) for s in rescaled_snapshots([{"map": (rules,)}] * 3, 2)]
    [{'rules': ('broadcast', (b'r',))}, {'rules': ('broadcast', (b'r',))}]

    Args:
        max_parallelism: of the operators.
    """
    inline = InlineSnapshots()
    operators = {operator_id: None for taken in snapshots for operator_id in taken}
    fresh: list[dict[str, tuple[OperatorSnapshot, ...]]] = [{} for _ in range(parallelism)]
    for operator_id in operators:
        parts = [next(iter(taken.get(operator_id, ())), None) for taken in snapshots]
        states = [None if snapshot is None else _stored_again(snapshot, inline) for snapshot in parts]
        for part, snapshot in zip(fresh, rescale(states, parallelism, max_parallelism, operator_id), strict=True):
            if snapshot is not None:
                part[operator_id] = (loaded(snapshot, inline),)
    return list(fresh)


def _stored_again(snapshot: OperatorSnapshot, inline: InlineSnapshots) -> StoredSnapshot:
    """Return a snapshot that was loaded as it is stored, with the files of its databases."""
    return replace(stored(snapshot, inline), databases=tuple(snapshot.databases))


def operators_of(factory: OperatorFactory) -> list[Operator]:
    """Return fresh operators of a factory, in the order of their chain."""
    operators = factory()
    return list(operators) if isinstance(operators, Sequence) else [operators]


class _ObservedChain(OperatorChain):
    """A chain that shows what goes to side outputs, whether they are read or not.

    It gives an operator that works outside all that the test gives, and has only the end of the data wait.
    """

    def __init__(self, links: list[ChainLink], is_full: Callable[[], bool], show: Callable[[Tagged], None]) -> None:
        super().__init__(links, is_full)
        self._show = show

    def _route(self, index: int, element: Element) -> None:
        if isinstance(element, Tagged):
            self._show(element)
        super()._route(index, element)

    def _accepts(self, index: int, element: Element) -> bool:
        return not isinstance(element, EndOfData) or super()._accepts(index, element)


class _Output:
    """Takes what leaves the chain; with `narrow` it is full after each element until it is emptied."""

    def __init__(self, narrow: bool) -> None:
        self._narrow = narrow
        self.entries: list[OutputElement] = []
        self.is_full = False

    def write(self, element: Element) -> None:
        self.entries += output_elements(element)
        self.is_full = self._narrow

    def show(self, element: Tagged) -> None:
        self.entries += output_elements(element.batch, element.tag_id)
        self.is_full = self._narrow


class OperatorHarness:
    """One subtask of an operator, opened, stepped by hand.

    >>> from rayflink.operators.stateless import MapOperator
    >>> with OperatorHarness(lambda: MapOperator(str.upper)) as harness:
    ...     harness.process("a", 5)
    ...     harness.advance_watermark(7)
    ...     harness.output
    [rec('A', 5), wm(7)]

    Args:
        factory: makes the operator, or a list of operators chained one after the other.
        inputs: how many the operator has; the watermark of several is the smallest.
        place: subtask, parallelism and options.
        restore: what `snapshot` gave, to start from; several snapshots after a rescale.
        narrow: outputs have room for one element at a time.
        clock: None: one that stands at 0.
    """

    def __init__(
        self,
        factory: OperatorFactory,
        inputs: int = 1,
        place: Place | None = None,
        restore: Sequence[Snapshots] = (),
        narrow: bool = False,
        clock: ManualClock | None = None,
    ) -> None:
        self.place = place or Place()
        self.clock = clock or ManualClock()
        self.accumulators: dict[str, Any] = {}
        self.metrics = MetricGroup()
        self.operators = operators_of(factory)
        self._output = _Output(narrow)
        self._narrow = narrow
        last = len(self.operators) - 1
        links = [
            ChainLink(operator, (), (ChainOutput(self._output),))
            if index == last
            else ChainLink(operator, (ChainEdge(index + 1),), ())
            for index, operator in enumerate(self.operators)
        ]
        self._chain = _ObservedChain(links, lambda: self._output.is_full, self._output.show)
        self._valve = InputWatermarks(list(range(inputs)))
        self._ended: set[int] = set()
        self._inputs = inputs
        self._checkpoints = count(1)
        self._opened = 0
        self._requested_splits = 0
        self.source_events: list[object] = []
        """The events that a source's reader sent to its enumerator, in order."""
        self._start(restore)

    # what goes in

    def process(self, value: Any, timestamp: int | None = None, input_index: int = 0) -> None:
        """Give one record."""
        self.process_batch(row_batch([Record(value, timestamp)]), input_index)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        """Give a batch."""
        self._refuse_after_end(input_index, "records")
        self._feed(batch, input_index)

    def advance_watermark(self, timestamp: int, input_index: int = 0) -> None:
        """Move the event time of an input; of several inputs the smallest watermark counts."""
        self._refuse_after_end(input_index, "a watermark")
        self._feed_all(self._valve.watermark(input_index, timestamp))

    def set_status(self, is_idle: bool, input_index: int = 0) -> None:
        """Make an input idle or active."""
        self._refuse_after_end(input_index, "a status")
        self._feed_all(self._valve.status(input_index, is_idle))

    def set_processing_time(self, ms: int) -> None:
        """Move the clock to `ms`, never backwards, fire the timers that are due, and emit what is then completed.

        After the end of all input no timer of processing time fires any more, as in a job.

        Raises:
            ValueError: the clock already shows more.
        """
        self.clock.advance(ms - self.clock.now_ms())
        for index, operator in enumerate(() if self._has_ended else self.operators):
            if isinstance(operator, ProcessingTimers):
                self._fire_timers(index, operator, ms)
            if isinstance(operator, Upkeep):
                while (due := operator.next_upkeep_ms()) is not None and due <= ms:
                    operator.upkeep(ms)
        self._run()

    def _fire_timers(self, index: int, operator: ProcessingTimers, ms: int) -> None:
        before = None
        while (due := operator.next_processing_time()) is not None and due <= ms:
            if due == before:
                raise AssertionError(f"{operator!r} fired its timers of {due} and still asks for {due}")
            before = due
            self._chain.emit(index, operator.on_processing_time(ms))
            self._run()

    def end_input(self, input_index: int = 0) -> None:
        """End one input, like a bounded input of a job.

        Its watermark becomes the last one, 2**63 - 1. Once that is so of all inputs, windows and timers of event time
        fire, and the watermark is passed on; after the last input the operators finish, head first. The clock moves on
        until all that is under way outside is completed. Timers of processing time that are not due yet never fire.

        A job that is stopped with a savepoint and not drained does not come here: take a `snapshot`, call
        `notify_checkpoint_complete`, then `close`. One that is drained ends its inputs first.

        >>> from rayflink.datastream import KeyedProcessFunction
        >>> from rayflink.testing import operator_of
        >>> class AtNoon(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.timer_service().register_event_time_timer(12 * 3600 * 1000)
        ...     def on_timer(self, timestamp, ctx):
        ...         yield f"{ctx.get_current_key()} at noon"
        >>> with OperatorHarness(operator_of(AtNoon, key=lambda word: word)) as harness:
        ...     harness.process("a", 5)
        ...     harness.end_input()
        ...     harness.output
        [rec('a at noon', 43200000), MAX_WATERMARK]

        Raises:
            ValueError: the input has ended before.
        """
        self._refuse_after_end(input_index, "its end again")
        head = self.operators[0]
        if isinstance(head, SourceOperator):
            self._end_source(head)
            return
        self._feed_all(self._valve.watermark(input_index, MAX_TIMESTAMP))
        self._ended.add(input_index)
        if self._has_ended:
            self._feed(EndOfData(), input_index)
        else:
            self._chain.end_input(input_index)
            self._run()
        self._feed_all(self._valve.end(input_index))

    def poll(self, max_records: int = 1 << 14) -> bool:
        """Poll a source once; False at the end of its input, which is then ended as by `end_input`.

        Raises:
            TypeError: the operator is no source.
        """
        source = self.operators[0]
        if not isinstance(source, SourceOperator):
            raise TypeError(f"only a source is polled, found {type(source).__name__}; give it records by process()")
        if self._has_ended:
            return False
        elements = source.poll(max_records)
        if elements is None:
            self._end_source(source)
            return False
        self._chain.emit(0, elements)
        self._run()
        return True

    def give(self, element: CaseElement | Batch) -> None:
        """Take one step of a test: a record, a watermark, a moment, ..."""
        input_index = 0
        if isinstance(element, SecondInput):
            input_index, element = 1, element.element
        if isinstance(element, Record):
            self.process(element.value, element.timestamp, input_index)
        elif isinstance(element, Columns):
            self.process_batch(element.batch, input_index)
        elif isinstance(element, Mark):
            self.advance_watermark(element.timestamp, input_index)
        elif isinstance(element, Status):
            self.set_status(element.is_idle, input_index)
        elif isinstance(element, Moment):
            self.set_processing_time(element.ms)
        elif isinstance(element, End):
            for open_input in sorted(set(range(self._inputs)) - self._ended) or [0]:
                self.end_input(open_input)
        else:
            raise TypeError(f"found {element!r}; give rec, columns, wm, idle, active, at, end or in2")

    # what comes out

    @property
    def entries(self) -> list[OutputElement]:
        """Return all output, main and side outputs in the order of emission."""
        return list(self._output.entries)

    @property
    def output(self) -> list[OutputElement]:
        """Return the main output: records, watermarks and statuses in order."""
        return [entry for entry in self._output.entries if not isinstance(entry, Record) or entry.tag is None]

    def output_values(self) -> list[Any]:
        """Return the values of the main output's records."""
        return [entry.value for entry in self.output if isinstance(entry, Record)]

    def side_output(self, tag: Any) -> list[Record]:
        """Return the records of a side output; `tag` is an OutputTag or its id."""
        wanted = str(getattr(tag, "tag_id", tag))
        return [entry for entry in self._output.entries if isinstance(entry, Record) and entry.tag == wanted]

    def take(self) -> list[OutputElement]:
        """Return all output since the last call and clear it."""
        entries, self._output.entries = self._output.entries, []
        return entries

    # state

    def snapshot(self, checkpoint_id: int | None = None) -> Snapshots:
        """Return a checkpoint of the current state; feed it to `restore` or to a new harness."""
        number = next(self._checkpoints) if checkpoint_id is None else checkpoint_id
        for index, operator in enumerate(self.operators):
            if isinstance(operator, PreBarrier):
                self._chain.emit(index, operator.prepare_snapshot(number))
                self._run()
        taken = {operator.ctx.operator_id: operator.snapshot_state(number) for operator in self.operators}
        inline = InlineSnapshots(number)
        try:
            return {
                operator_id: (loaded(stored(state, inline), inline),)
                for operator_id, state in taken.items()
                if state is not None
            }
        finally:
            for state in taken.values():
                if state is not None and state.capture is not None:
                    state.capture.release()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notify the operators that a checkpoint is durable."""
        for operator in self._chain.checkpoint_listeners:
            operator.notify_checkpoint_complete(checkpoint_id)

    def restore(self, factory: OperatorFactory, snapshots: Snapshots) -> OperatorHarness:
        """Close this harness; the one returned runs a fresh operator from the snapshot, at the same moment."""
        self.close()
        successor = OperatorHarness(factory, self._inputs, self.place, (snapshots,), self._narrow, self.clock)
        successor.adopt_position(self)
        return successor

    def adopt_position(self, other: OperatorHarness) -> None:
        """Take over the moment, the watermarks and the ended inputs of another harness."""
        self.clock.advance(other.clock.now_ms() - self.clock.now_ms())
        self._valve, self._ended = copy.deepcopy((other._valve, other._ended))

    # life

    @property
    def _has_ended(self) -> bool:
        """Return whether all input has ended."""
        return len(self._ended) >= self._inputs

    @property
    def split_requests(self) -> int:
        """Return how often a source has asked for a split."""
        return self._requested_splits

    def close(self) -> None:
        """Close the operators without an end of input, as a cancelled job does; a second call does nothing.

        What windows and timers wait for is not emitted.
        """
        self._chain.abandon()
        opened, self._opened = self._opened, 0
        for operator in self.operators[len(self.operators) - opened :]:
            operator.close()

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, restore: Sequence[Snapshots]) -> None:
        for index, operator in enumerate(self.operators):
            operator.setup(self._context(index))
        for operator in reversed(self.operators):
            state = tuple(part for snapshots in restore for part in snapshots.get(operator.ctx.operator_id, ()))
            self._opened += 1
            operator.initialize_state(state)
            operator.open()

    def _context(self, index: int) -> OperatorContext:
        place, name = self.place, type(self.operators[index]).__name__
        return OperatorContext(
            operator_id=f"{index:032x}",
            operator_name=name,
            subtask=place.subtask,
            parallelism=place.parallelism,
            max_parallelism=place.max_parallelism,
            clock=self.clock,
            metrics=self.metrics.add_group("operator", f"{name}-{index}"),
            config=place.config,
            accumulators=self.accumulators,
            cached_files=place.cached_files,
            request_split=self._count_request,
            send_source_event=self.source_events.append,
            wake=place.wake,
        )

    def _count_request(self) -> None:
        self._requested_splits += 1

    def _end_source(self, source: SourceOperator) -> None:
        self._ended.add(0)
        self._chain.emit(0, PolledSource(source, source.ctx.operator_name).last_elements())
        self._run()

    def _refuse_after_end(self, input_index: int, element: str) -> None:
        if input_index in self._ended:
            raise ValueError(
                f"input {input_index} has ended and was given {element}; give it before end_input() or end()"
            )

    def _feed(self, element: Element, input_index: int = 0) -> None:
        self._chain.feed(element, input_index)
        self._run()

    def _feed_all(self, events: Iterable[Element]) -> None:
        for event in events:
            self._feed(event)

    def _run(self) -> None:
        """Work until idle; a narrow chain is stopped after each element that it emits or draws."""
        slowly = self._narrow
        while True:
            self._chain.emit_completed()
            if self._chain.run(lambda: not slowly):
                if not self._chain.emit_completed():
                    break
            elif self._chain.is_waiting:
                self._wait()
            self._output.is_full = False
        self._output.is_full = False

    def _wait(self) -> None:
        """Let time pass until something that is under way is completed."""
        due = self._chain.next_completion_ms()
        if due is None:
            raise AssertionError("the operator waits for outside work that no passing of time will complete")
        self.clock.advance(max(0, due - self.clock.now_ms()))
