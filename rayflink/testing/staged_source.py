"""A source that emits the steps of a test in their order, also for an operator with two inputs or timers.

A step that must not overtake an earlier one waits for it: behind the earlier one goes a step marker, a latency
marker, and once the operator has seen that, the stage lets the later step go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.records.batches import Batch, Element, EndOfData, LatencyMarker
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.capabilities import (
    AsyncCompletion,
    BoundedMultiInput,
    EventHandler,
    ProcessingTimers,
    Upkeep,
)
from rayflink.state.clock import ManualClock

LONGEST_WAIT_MS = 64
"""The longest wait between two polls of a source that waits for the operator."""


class Stage:
    """The progress of a test's operator, known to its sources in the same process; and its clock.

    Args:
        subtasks: of the operator.
    """

    def __init__(self, subtasks: int) -> None:
        self.clock = ManualClock()
        self.subtasks = subtasks
        self.ended: Counter[int] = Counter()
        self._step_markers: Counter[int] = Counter()
        self._operators: list[Operator] = []

    def enter(self, operator: Operator) -> None:
        """Note that a subtask of the operator, or of one chained to it, has been set up."""
        self._operators.append(operator)

    def count_marker(self, step_marker: int) -> None:
        """Note that a subtask has processed everything before the step marker."""
        self._step_markers[step_marker] += 1

    def has_passed(self, step_marker: int) -> bool:
        """Return whether every subtask has worked all that came before the step marker, and no timer is due."""
        if self._step_markers[step_marker] < self.subtasks:
            return False
        operators = list(self._operators)
        timers = (o.next_processing_time() for o in operators if isinstance(o, ProcessingTimers))
        completions = (o.next_completion_ms() for o in operators if isinstance(o, AsyncCompletion))
        return all(due is None for due in (*timers, *completions))


_stages: dict[str, Stage] = {}


def stage_of(name: str, subtasks: int) -> Stage:
    """Return the stage of that name in this process."""
    return _stages.setdefault(name, Stage(subtasks))


def forget_stage(name: str) -> None:
    """Forget the stage of that name."""
    _stages.pop(name, None)


@dataclass(frozen=True, slots=True)
class StepMarker:
    """A mark in the stream behind all earlier steps."""

    number: int


@dataclass(frozen=True, slots=True)
class Await:
    """A pause until every subtask of the operator has seen the step marker."""

    step_marker: int


@dataclass(frozen=True, slots=True)
class AwaitEnd:
    """A pause until the operator has been notified that the input has ended."""

    input_index: int


@dataclass(frozen=True, slots=True)
class SetClock:
    """An advance of processing time to `ms`."""

    ms: int


class StagedSource(Source):
    """Emits the steps of a script to one input of an operator, in one subtask.

    Args:
        script: batches, watermarks, statuses, and steps of this module.
        stage: name of the stage.
        subtasks: of the operator.
    """

    def __init__(self, script: list[Any], stage: str, subtasks: int) -> None:
        self.script, self.stage, self.subtasks = script, stage, subtasks

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def max_parallelism(self) -> int | None:
        return 1

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [(0, 0)])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _Reader(self, ctx)


class _Reader(OneByOneReader):
    def __init__(self, source: StagedSource, ctx: ReaderContext) -> None:
        super().__init__()
        self._source, self._ctx = source, ctx
        self.waits_ms = 0

    def open_split(self, split: tuple[int, int]) -> SplitCursor:
        return _Cursor(self, self._source, split)

    def next_poll_ms(self) -> int | None:
        return self._ctx.now_ms() + self.waits_ms if self.waits_ms else None

    def wait(self) -> None:
        """Ask again, later each time: virtual time should pass in few steps."""
        self.waits_ms = min(2 * self.waits_ms or 1, LONGEST_WAIT_MS)


class _Cursor:
    def __init__(self, reader: _Reader, source: StagedSource, position: tuple[int, int]) -> None:
        self._reader, self._source = reader, source
        self._item, self._row = position

    def read(self, max_records: int) -> Polled | None:
        script = self._source.script
        while self._item < len(script):
            item = script[self._item]
            if isinstance(item, Await | AwaitEnd | SetClock):
                if not self._may_pass(item):
                    self._reader.wait()
                    return PENDING
                self._reader.waits_ms = 0
                self._item += 1
                continue
            if hasattr(item, "slice"):
                return self._rows(item, max_records)
            self._item += 1
            return LatencyMarker(item.number, "step_marker", 0) if isinstance(item, StepMarker) else item  # type: ignore[return-value]
        return None

    def position(self) -> tuple[int, int]:
        return self._item, self._row

    def close(self) -> None:
        pass

    def _rows(self, batch: Batch, max_records: int) -> Batch:
        stop = min(self._row + max_records, len(batch))
        rows = batch.slice(self._row, stop)
        self._row = stop
        if stop == len(batch):
            self._item, self._row = self._item + 1, 0
        return rows

    def _may_pass(self, item: Await | AwaitEnd | SetClock) -> bool:
        stage = stage_of(self._source.stage, self._source.subtasks)
        if isinstance(item, Await):
            return stage.has_passed(item.step_marker)
        if isinstance(item, AwaitEnd):
            return stage.ended[item.input_index] >= stage.subtasks
        stage.clock.advance(item.ms - stage.clock.now_ms())
        return True


def on_stage(operator: Operator, stage: Stage, is_head: bool) -> Operator:
    """Let the operator live by the clock of the stage, and report to the stage how far it has come."""
    setup = operator.setup

    def staged_setup(ctx: OperatorContext) -> None:
        stage.enter(operator)
        setup(replace(ctx, clock=stage.clock, wake=None, open_worker=None))  # by that clock alone

    changed: dict[str, Callable[..., object]] = {"setup": staged_setup}
    if isinstance(operator, ProcessingTimers):
        changed |= _staged_timers(operator, stage)
    if isinstance(operator, AsyncCompletion):
        changed |= _staged_completion(operator, stage)
    if isinstance(operator, Upkeep):
        changed |= _staged_upkeep(operator, stage)
    if is_head:
        operator.__class__ = _reporting(type(operator))
        operator.stage = stage  # type: ignore[attr-defined]
    for name, method in changed.items():
        setattr(operator, name, method)
    return operator


def _at_once(method: Callable[[], int | None], stage: Stage) -> Callable[[], int | None]:
    """Return a method that answers 0 when the time that `method` returns has come on the stage, and None before."""

    def zero_when_due() -> int | None:
        due = method()
        return 0 if due is not None and due <= stage.clock.now_ms() else None

    return zero_when_due


def _staged_timers(operator: ProcessingTimers, stage: Stage) -> dict[str, Callable[..., object]]:
    fire = operator.on_processing_time
    return {
        "next_processing_time": _at_once(operator.next_processing_time, stage),
        "on_processing_time": lambda now_ms: fire(stage.clock.now_ms()),
    }


def _staged_upkeep(operator: Upkeep, stage: Stage) -> dict[str, Callable[..., object]]:
    upkeep = operator.upkeep
    return {
        "next_upkeep_ms": _at_once(operator.next_upkeep_ms, stage),
        "upkeep": lambda now_ms: upkeep(stage.clock.now_ms()),
    }


def _staged_completion(operator: AsyncCompletion, stage: Stage) -> dict[str, Callable[..., object]]:
    completion, accepts = operator.next_completion_ms, operator.accepts

    def accepts_all(element: Element) -> bool:
        """Accept any output of the steps, as by hand; at its end advance the clock, which no other step does then."""
        if not isinstance(element, EndOfData):
            return True
        due = completion()
        stage.clock.advance(max(0, due - stage.clock.now_ms()) if due is not None else 0)
        return accepts(element)

    return {"next_completion_ms": _at_once(completion, stage), "accepts": accepts_all}


class _Staged(Operator):
    stage: Stage


@cache
def _reporting(operator_class: type[Operator]) -> type[Operator]:
    """Return a subclass of an operator's class that reports step markers and ends of inputs to its `stage`."""
    process_marker = getattr(operator_class, "process_latency_marker", None)
    end_input = getattr(operator_class, "end_input", None)

    def process_latency_marker(self: _Staged, marker: LatencyMarker) -> Iterable[Element]:
        if marker.operator_id != "step_marker":
            return (marker,) if process_marker is None else process_marker(self, marker)
        self.stage.count_marker(marker.marked_time)
        return ()

    def end_of_input(self: _Staged, input_index: int) -> Iterable[Element]:
        if end_input is not None:
            yield from end_input(self, input_index)
        self.stage.ended[input_index] += 1

    reporting = type(f"Staged{operator_class.__name__}", (operator_class,), {})  # the layout of the class it replaces
    for capability, name, method in (
        (EventHandler, "process_latency_marker", process_latency_marker),
        (BoundedMultiInput, "end_input", end_of_input),
    ):
        setattr(reporting, name, method)
        capability.register(reporting)
    for name in ("process_status", "process_superstep"):
        if not hasattr(reporting, name):
            setattr(reporting, name, getattr(EventHandler, name))
    return reporting


__all__ = [
    "Await",
    "AwaitEnd",
    "SetClock",
    "Stage",
    "StagedSource",
    "StepMarker",
    "forget_stage",
    "on_stage",
    "stage_of",
]
