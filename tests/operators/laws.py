"""The laws every operator keeps: any split into batches and any restore in between gives the same output.

Steps are `RowBatch`es, watermarks, and `now(ms)` which moves the clock and fires processing-time timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rayflink.common.batches import RowBatch, Tagged, Watermark, WatermarkStatus
from rayflink.operators.base import Operator, OperatorContext
from tests.operators.write_back import write_back_backend


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
    """A metric group of counters."""

    def __init__(self) -> None:
        self.counters: dict[str, Counter] = {}

    def counter(self, name: str) -> Counter:
        return self.counters.setdefault(name, Counter())


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
        return operator.process_status(step)
    operator.ctx.clock.ms = step.ms
    return operator.on_processing_time(step.ms)


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


def by_output(records: list[Any]) -> dict[Any, list[Any]]:
    """Side outputs are streams of their own; their order against the main output is not seen by anyone."""
    outputs: dict[Any, list[Any]] = {}
    for entry in records:
        tags = [entry[0]] if isinstance(entry, tuple) else {r[0] for r in records if isinstance(r, tuple)} | {None}
        for tag in tags:
            outputs.setdefault(tag, []).append(entry[1:] if isinstance(entry, tuple) else entry)
    return outputs


def split(steps: list[Any], size: int) -> list[Any]:
    """The same steps with batches of at most `size` records."""
    out: list[Any] = []
    for step in steps:
        if isinstance(step, RowBatch):
            out += [step.slice(i, min(i + size, len(step))) for i in range(0, len(step), size)]
        else:
            out.append(step)
    return out


def run(make: Callable[[], Operator], steps: list[Any], restores: bool = False) -> list[Any]:
    """What comes out, as `flat`; with `restores` a new operator takes over from a snapshot before each step."""
    ctx = context()
    operator = started(make, ctx)
    out: list[Any] = []
    for step in steps:
        if restores:
            snapshot = operator.snapshot_state(1)
            operator.close()
            operator = started(make, ctx, () if snapshot is None else (snapshot,))
        out += flat(answers(operator, step))
    operator.close()
    return out


def verify(make: Callable[[], Operator], given: list[Any], then: list[Any] | None = None) -> list[Any]:
    """Run the steps whole and under every hardship; all must give the same, and that must be `then`."""
    whole = run(make, given)
    if then is not None:
        assert whole == then
    expected = by_output(whole)
    longest = max((len(step) for step in given if isinstance(step, RowBatch)), default=1)
    for size in {1, 2, 3, max(1, longest // 2)}:
        assert by_output(run(make, split(given, size))) == expected, f"batches of {size}"
    assert by_output(run(make, given, restores=True)) == expected, "restored before each step"
    assert by_output(run(make, split(given, 1), restores=True)) == expected, "restored before each record"

    def with_write_back() -> Operator:
        operator = make()
        if hasattr(operator, "create_backend"):
            operator.create_backend = write_back_backend  # type: ignore[method-assign]
        return operator

    assert by_output(run(with_write_back, given)) == expected, "on a backend that writes back"
    assert by_output(run(with_write_back, split(given, 2), restores=True)) == expected, "write back, restored"
    return whole
