"""A case of `verify` as a whole job for any runner: sources that give its steps, the operator behind an exchange, and
one that records its output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.states import JobStatus
from rayflink.common.functions.accumulators import ListAccumulator
from rayflink.common.records.batches import Batch, Element, Watermark, WatermarkStatus
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.translation import PlanSettings, stream_graph
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import EventHandler
from rayflink.operators.factory import SourceFactory

from .cases import TO_ALL, Case, is_batch
from .differences import assert_same, assert_same_in_parallel, by_output
from .elements import Mark, Moment, OutputElement, Record, SecondInput, Status, output_elements
from .harness import operators_of
from .staged_source import Await, AwaitEnd, SetClock, StagedSource, StepMarker, forget_stage, on_stage, stage_of

__tracebackhide__ = True  # pytest shows the line of the test instead


class CaseJob:
    """One case as a job, or as a part of a larger one.

    The operator must give what it gives by hand, its inputs ended: of one subtask in that order; of several, the same
    records in any order, and the same watermarks and statuses from each.

    Args:
        case: what to run.
        parallelism: subtasks of the operator; more than one needs a case with a key.
        spread: the subtasks may run in several processes. The sources then do not know how far the operator has come,
            so watermarks may be merged on their way, and only the records are compared.

    Raises:
        ValueError: a case to be spread has two inputs or moments, whose order only one process can keep.
    """

    def __init__(self, case: Case, parallelism: int = 1, spread: bool = False) -> None:
        if spread and not can_spread(case):
            raise ValueError("found a case with two inputs or moments; run it in one process")
        self.case, self.parallelism, self.spread = case, parallelism, spread
        self.expected = case.run_to_its_end()
        self.tags = sorted(by_output(self.expected), key=lambda tag: tag or "")
        self.name = f"case-{os.urandom(8).hex()}"
        self.scripts, self.waits = _scripts(case, parallelism, not spread)

    def job_graph(self) -> JobGraph:
        """Return a job of this case alone."""
        return job_of_cases([self])

    def sinks(self) -> list[graph.Transformation]:
        """Return the sinks of the case's part of a job."""
        stream: graph.Transformation = self._head(
            [
                graph.Source(
                    SourceFactory(StagedSource(script, self.name, self.parallelism), None),
                    name=f"Source: input {index}",
                    parallelism=1,
                )
                for index, script in enumerate(self.scripts)
            ]
        )
        for number in range(1, len(operators_of(self.case.factory))):
            stream = self._chained(f"operator {number}", stream, _Member(self, number))
        outputs = [(tag, stream if tag is None else graph.SideOutput(stream, tag)) for tag in self.tags]
        return [self._chained(f"Sink: {tag or 'main'}", output, _Watch(self.name, tag)) for tag, output in outputs]

    def check(self, result: JobResult, name: str) -> None:
        """Compare what came out with what should have.

        Raises:
            AssertionError: the job did not finish, or its output is another one; `name` begins the text.
        """
        forget_stage(self.name)
        problem = "" if result.failure is None else f": {result.failure.message}"
        assert result.status is JobStatus.FINISHED, f"{name}: the job is {result.status.value}{problem}"
        parts: list[list[OutputElement]] = [[] for _ in range(self.parallelism)]
        events: list[dict[str | None, list[OutputElement]]] = [{} for _ in range(self.parallelism)]
        for tag in self.tags:
            for subtask in range(self.parallelism):
                entries = list(result.accumulators.get(_accumulator(self.name, tag, subtask)) or [])
                events[subtask][tag] = entries
                parts[subtask] += [entry for entry in entries if tag is None or isinstance(entry, Record)]
        if self.parallelism == 1:
            for tag, wanted in by_output(self.expected).items():
                assert_same(events[0][tag], wanted, name)
        else:
            assert_same_in_parallel(self.expected, parts, name, records_only=self.spread)

    def _head(self, sources: list[graph.Source]) -> graph.Transformation:
        keys, member = self.case.keys, _Member(self, 0)
        strategies = [partitioners.Rebalance()] * 2 if keys is None else list(map(_partitioner, keys))
        inputs = [graph.Partition(source, strategy) for source, strategy in zip(sources, strategies, strict=False)]
        first, second = (None if key is TO_ALL else key for key in keys or (None, None))
        how: dict[str, Any] = {"parallelism": self.parallelism, "chaining_strategy": ChainingStrategy.HEAD}
        if len(inputs) == 1:
            return graph.OneInput(inputs[0], member, first, name="operator 0", **how)
        return graph.TwoInput(inputs[0], inputs[1], member, first, second, name="operator 0", **how)

    def _chained(
        self, name: str, stream: graph.Transformation, factory: Callable[[], Operator]
    ) -> graph.Transformation:
        forward = graph.Partition(stream, partitioners.Forward())
        return graph.OneInput(forward, factory, name=name, parallelism=self.parallelism)


def job_of_cases(jobs: Sequence[CaseJob]) -> JobGraph:
    """Return one job that runs several cases beside each other."""
    sinks = [sink for job in jobs for sink in job.sinks()]
    return job_graph(stream_graph(sinks, PlanSettings(name="cases", buffer_timeout_ms=0)))


class _Member:
    """Makes operator `number` of the case's chain, on the stage where the case waits for its operators or for time."""

    def __init__(self, job: CaseJob, number: int) -> None:
        self._factory, self._number = job.case.factory, number
        self._stage = job.name if job.waits else None
        self._subtasks = job.parallelism

    def __call__(self) -> Operator:
        operator = operators_of(self._factory)[self._number]
        if self._stage is None:
            return operator
        return on_stage(operator, stage_of(self._stage, self._subtasks), self._number == 0)


class _Watch:
    """Makes the operator that keeps what it sees of one output."""

    def __init__(self, job: str, tag: str | None) -> None:
        self._job, self._tag = job, tag

    def __call__(self) -> Operator:
        return _WatchOperator(self._job, self._tag)


class _WatchOperator(Operator, EventHandler):
    def __init__(self, job: str, tag: str | None) -> None:
        self._job, self._tag = job, tag

    def open(self) -> None:
        name = _accumulator(self._job, self._tag, self.ctx.subtask)
        self._output = self.ctx.accumulators.setdefault(name, ListAccumulator())

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self._output.extend(output_elements(batch, self._tag))
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._output.extend(output_elements(watermark))
        return ()

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        self._output.extend(output_elements(status))
        return ()


def _accumulator(job: str, tag: str | None, subtask: int) -> str:
    return f"{job}/{subtask}/{'main' if tag is None else f'side {tag}'}"


def _partitioner(key: Any) -> partitioners.Partitioner:
    return partitioners.Broadcast() if key is TO_ALL else partitioners.KeyGroup(key)


def can_spread(case: Case) -> bool:
    """Return whether the records of a case are the same wherever its subtasks run."""
    return case.inputs == 1 and not any(isinstance(element, Moment) for element in case.elements)


def _scripts(case: Case, parallelism: int, in_order: bool) -> tuple[list[list[Any]], bool]:
    """Return the script of each input's source, and whether it ever waits for the operator.

    It waits where only the test knows the order, between two inputs and around a moment, and between two events with no
    record in between, for a channel that holds both keeps the later one alone.
    """
    scripts: list[list[Any]] = [[] for _ in range(case.inputs)]
    step_markers, last, after_event = 0, 0, False

    def wait(behind: int, before: int) -> None:
        nonlocal step_markers
        if not in_order:
            return
        step_markers += 1
        scripts[behind].append(StepMarker(step_markers))
        scripts[before].append(Await(step_markers))

    for index, element in case.steps_to_the_end():
        inner = element.element if isinstance(element, SecondInput) else element
        if index != last or isinstance(inner, Moment) or (after_event and not is_batch(inner)):
            wait(last, index)
        last, after_event = index, not is_batch(inner) or (after_event and parallelism > 1)
        if isinstance(inner, Moment):
            scripts[index].append(SetClock(inner.ms))
            wait(index, index)
        elif isinstance(inner, Mark):
            scripts[index].append(Watermark(inner.timestamp))
        elif isinstance(inner, Status):
            scripts[index].append(WatermarkStatus(inner.is_idle))
        else:
            scripts[index].append(inner)
    if after_event or case.inputs == 2:
        wait(last, 0)
    if case.inputs == 2:
        scripts[1].append(AwaitEnd(0))
    return scripts, step_markers > 0


__all__ = ["CaseJob", "can_spread", "job_of_cases"]
