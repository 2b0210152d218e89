"""The laws every operator keeps: any split into batches and any restore in between gives the same output.

Steps are `RowBatch`es, watermarks, and `now(ms)` which moves the clock and fires processing-time timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rayflink.common.records.batches import RowBatch, Tagged, Watermark, WatermarkStatus
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.capabilities import EventHandler, ProcessingTimers
from rayflink.state.snapshots import InlineSnapshots, OperatorSnapshot, loaded, stored
from rayflink.testing import HARDSHIPS, at, hardships
from rayflink.testing.elements import CaseElement, output_elements
from tests.operators.write_back import write_back_backend


def snapshot_of(operator: Operator, checkpoint_id: int = 1) -> OperatorSnapshot:
    """What an operator gets back of the checkpoint that is taken now."""
    taken = operator.snapshot_state(checkpoint_id)
    assert taken is not None, "the operator has no state"
    inline = InlineSnapshots(checkpoint_id)
    return loaded(stored(taken, inline), inline)


@dataclass(frozen=True)
class now:
    """Move processing time to `ms`."""

    ms: int


class Clock:
    """Processing time that stands still until it is moved."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class Counter:
    """A counter metric."""

    def __init__(self) -> None:
        self.count = 0

    def inc(self, n: int = 1) -> None:
        self.count += n


class Metrics:
    """A metric group of counters; gauges are not looked at."""

    def __init__(self) -> None:
        self.counters: dict[str, Counter] = {}

    def counter(self, name: str) -> Counter:
        return self.counters.setdefault(name, Counter())

    def gauge(self, name: str, obj: Callable[[], Any]) -> None: ...


def context(clock: Any = None, metrics: Any = None, **more: Any) -> OperatorContext:
    """An operator's context for tests."""
    return OperatorContext("0" * 32, "tested", clock=clock or Clock(), metrics=metrics or Metrics(), **more)


def started(make: Callable[[], Operator], ctx: OperatorContext, snapshots: tuple[Any, ...] = ()) -> Operator:
    """A fresh operator, open."""
    operator = make()
    operator.setup(ctx)
    operator.initialize_state(snapshots)
    operator.open()
    return operator


def answers(operator: Operator, step: Any) -> Iterable[Any]:
    """The elements an operator answers one step with."""
    if isinstance(step, RowBatch):
        return operator.process(step, 0)
    if isinstance(step, Watermark):
        return operator.process_watermark(step)
    if isinstance(step, WatermarkStatus):
        return operator.process_status(step) if isinstance(operator, EventHandler) else (step,)
    operator.ctx.clock.ms = step.ms
    return operator.on_processing_time(step.ms) if isinstance(operator, ProcessingTimers) else ()


def flat(elements: Iterable[Any]) -> list[Any]:
    """One entry a record: (tag, value, timestamp); events as they are."""
    out: list[Any] = []
    for element in elements:
        tag = None
        if isinstance(element, Tagged):
            tag, element = element.tag_id, element.batch
        if isinstance(element, RowBatch):
            stamps = element.timestamps or [None] * len(element)
            assert len(stamps) == len(element)
            out += [(tag, value, stamp) for value, stamp in zip(element.values, stamps, strict=True)]
        else:
            out.append(element)
    return out


def run(make: Callable[[], Operator], steps: list[Any]) -> list[Any]:
    """What comes out, as `flat`."""
    operator = started(make, context())
    out = [entry for step in steps for entry in flat(answers(operator, step))]
    operator.close()
    return out


def verify(
    make: Callable[[], Operator], given: list[Any], then: list[Any] | None = None, without: Sequence[str] = ()
) -> list[Any]:
    """What the steps give, which must be `then`; under every hardship, and on a backend that writes back, the same."""
    whole = run(make, given)
    if then is not None:
        assert whole == then

    def with_write_back() -> Operator:
        operator = make()
        if hasattr(operator, "create_backend"):
            operator.create_backend = write_back_backend
        return operator

    elements = [element for step in given for element in as_elements(step)]
    hardships.verify(make, elements, without=without)
    as_a_job = [name for name in HARDSHIPS if name.startswith("as a")]
    hardships.verify(with_write_back, elements, without=[*without, *as_a_job])
    return whole


def as_elements(step: Any) -> Iterable[CaseElement]:
    """A step in the words of `rayflink.testing`."""
    if isinstance(step, now):
        return (at(step.ms),)
    return output_elements(step)
