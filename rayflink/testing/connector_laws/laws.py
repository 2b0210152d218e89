"""The checks of a source and of a sink against crashes at every place, restores and rescaling."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment

from ..committed_sink import CommittedSink
from ..sources import Pause, ScriptedSource
from .crash_points import (
    GLOBAL_SINK_PLACES,
    SINK_PLACES,
    SOURCE_PLACES,
    CrashingSource,
    CrashPoints,
    crashing_sink,
)
from .crashing_job import CrashingJob, quick_collections
from .subjects import SinkSubject, SourceSubject, Subject

__tracebackhide__ = True  # pytest shows the line of the test instead

RECORDS = 240
SCRIPTS = 3
CHUNK = 8
HAPPENINGS = 6
TURNS = 40
"""Rounds of the job between two happenings, at most."""
OUTAGE_S = 3.0
"""Seconds after which no round begins while the outside system has an outage."""


def check_sink(subject: Callable[[], SinkSubject], seeds: Iterable[int] = range(5), records: int = RECORDS) -> None:
    """Check that a sink keeps its promise, whatever happens to the job and its outside system.

    A job in this process writes numbered records and takes a checkpoint every 20 ms. Drawn from the seed, the writer or
    the committer, also a global one, raises before or after one of its methods, a task is killed, the process is
    dropped without notice and the job restored with another parallelism, or the outside system has an outage. An
    outside reader must never see a record twice (exactly once), and sees all at the end (exactly or at least once).

    >>> from rayflink.testing import CommittedSink
    >>> class Committed(SinkSubject):
    ...     def create_sink(self):
    ...         return CommittedSink("checked")
    ...     def read(self):
    ...         return CommittedSink.records("checked")
    ...     def close(self):
    ...         CommittedSink.forget("checked")
    >>> check_sink(Committed, seeds=range(2))

    Args:
        subject: makes a sink with an empty outside system, for each seed.
        seeds: each gives another run, of about half a second.
        records: that the job writes.

    Raises:
        AssertionError: the promise is broken, or the job fails for good; names the seed and the happenings.
    """
    with quick_collections():
        for seed in seeds:
            _check_one_sink(subject(), seed, records)


def check_source(subject: Callable[[], SourceSubject], seeds: Iterable[int] = range(5), records: int = RECORDS) -> None:
    """Check that a source keeps its promise, whatever happens to the job and its outside system.

    Numbers are written to the outside system before and while a job in this process reads them into an exactly-once
    sink; happenings are those of `check_sink`, in the reader. All numbers must come out, and none twice where the
    promise is exactly once.

    Args:
        subject: makes a source with an empty outside system, for each seed.
        seeds: each gives another run.
        records: that are written.

    Raises:
        AssertionError: the promise is broken, or the job fails for good; names the seed and the happenings.
    """
    with quick_collections():
        for seed in seeds:
            _check_one_source(subject(), seed, records)


def _check_one_sink(subject: SinkSubject, seed: int, records: int) -> None:
    draw = Random(seed)
    places = GLOBAL_SINK_PLACES if subject.create_sink().commits_globally else SINK_PLACES
    points = CrashPoints(f"sink {seed}", places, draw)
    scripts = [_script([subject.record(n) for n in range(number, records, SCRIPTS)]) for number in range(SCRIPTS)]

    def write(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_source(ScriptedSource(*scripts), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
        numbers.sink_to(crashing_sink(subject.create_sink(), points.name)).uid("sink")

    with tempfile.TemporaryDirectory() as folder:
        job = CrashingJob(write, Path(folder), points, subject.parallelisms, subject.options)
        try:
            for _ in range(HAPPENINGS):
                job.turn(draw.randrange(TURNS))
                _happen(job, points, subject, draw)
                _refuse_repeated(subject, subject.read(), seed, job)
            points.disarm()
            job.turn_until(lambda: job.has_ended, lambda: f"seed {seed}: the job has not ended")
            job.check()
            _compare(subject, list(subject.read()), range(records), seed, job)
        finally:
            job.cancel()
            points.close()
            subject.close()


def _check_one_source(subject: SourceSubject, seed: int, records: int) -> None:
    draw, system = Random(seed), f"check_source {seed}"
    points = CrashPoints(f"source {seed}", SOURCE_PLACES, draw)
    parts = [list(range(start, min(start + records // HAPPENINGS, records))) for start in _starts(records)]
    CommittedSink.forget(system)

    def write(env: StreamExecutionEnvironment) -> None:
        source = CrashingSource(subject.create_source(), points.name)
        records_read = env.from_source(source, WatermarkStrategy.no_watermarks(), "source").uid("source")
        records_read.map(subject.number).sink_to(CommittedSink(system)).uid("sink")

    def has_all() -> bool:
        return set(range(records)).issubset(CommittedSink.records(system))

    def problem() -> str:
        lost = sorted(set(range(records)).difference(CommittedSink.records(system)))
        return f"seed {seed}: {len(lost)} records did not come out, such as {lost[:5]}"

    subject.write(parts[0])
    with tempfile.TemporaryDirectory() as folder:
        job = CrashingJob(write, Path(folder), points, subject.parallelisms, subject.options)
        try:
            for part in parts[1:]:
                job.turn(draw.randrange(TURNS))
                _happen(job, points, subject, draw)
                subject.write(part)
                _refuse_repeated(subject, CommittedSink.records(system), seed, job)
            points.disarm()
            job.turn_until(has_all, problem)
            job.turn(2 * TURNS)  # what comes twice has time to come
            job.check()
            _compare(subject, CommittedSink.records(system), range(records), seed, job)
        finally:
            job.cancel()
            points.close()
            subject.close()
            CommittedSink.forget(system)


def _starts(records: int) -> range:
    return range(0, records, records // HAPPENINGS)


def _script(values: Sequence[object]) -> list[object]:
    """Return a script that gives its values in chunks, with pauses in which checkpoints are taken."""
    script: list[object] = []
    for start in range(0, len(values), CHUNK):
        script += [*values[start : start + CHUNK], Pause(7)]
    return script


def _happen(job: CrashingJob, points: CrashPoints, subject: Subject, draw: Random) -> None:
    match draw.randrange(5):
        case 0:
            job.kill_task()
        case 1 | 2:
            job.end_without_notice()
        case 3:
            job.events.append(f"arm {points.arm()!r}")
        case _:
            outage = subject.outage()
            if outage is None:
                job.events.append(f"arm {points.arm()!r}")
                return
            job.events.append("outage")
            with outage:
                job.turn(draw.randrange(TURNS), OUTAGE_S)


def _refuse_repeated(subject: Subject, numbers: Iterable[int], seed: int, job: CrashingJob) -> None:
    if subject.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        return
    repeated = sorted(number for number, times in Counter(numbers).items() if times > 1)
    count = len(repeated)
    assert not repeated, f"seed {seed}: {count} records are there twice, such as {repeated[:5]}; {job.describe()}"


def _compare(subject: Subject, numbers: Sequence[int], expected: range, seed: int, job: CrashingJob) -> None:
    _refuse_repeated(subject, numbers, seed, job)
    unknown = sorted(set(numbers).difference(expected))
    assert not unknown, f"seed {seed}: records that were never written, such as {unknown[:5]}; {job.describe()}"
    if subject.guarantee is not DeliveryGuarantee.NONE:
        lost = sorted(set(expected).difference(numbers))
        assert not lost, f"seed {seed}: {len(lost)} records are lost, such as {lost[:5]}; {job.describe()}"


__all__ = ["check_sink", "check_source"]
