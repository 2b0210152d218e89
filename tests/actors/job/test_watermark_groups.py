"""The coordinator's part of watermark alignment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.watermark_groups import WatermarkGroups
from rayflink.actors.messages.commands import CancelRequested, SendToTask
from rayflink.actors.messages.messages import WatermarkAnnounced, WatermarkReported
from rayflink.actors.messages.states import ExecutionState
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from rayflink.common.watermarks import WatermarkAlignment
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from tests.actors.job.job_events import Job

G = WatermarkAlignment("g", 50, 1000)
A, B, C = TaskAddress("a"), TaskAddress("b"), TaskAddress("c")


def test_each_may_go_as_far_as_the_slowest_and_its_own_drift() -> None:
    groups = WatermarkGroups()
    assert groups.reported(A, "op", G, MIN_TIMESTAMP) == MIN_TIMESTAMP + 50
    assert groups.reported(B, "op", G, 100) == MIN_TIMESTAMP + 50, "A has no watermark yet"
    assert groups.reported(A, "op", G, 30) == 80
    assert groups.reported(B, "op", WatermarkAlignment("g", 7, 1), 100) == 37
    assert groups.reported(C, "op", WatermarkAlignment("other", 5, 1), 900) == 905


def test_who_is_idle_or_has_ended_or_is_gone_holds_nobody_back() -> None:
    groups = WatermarkGroups()
    for attempt, mark in ((A, 10), (B, 20), (C, 30)):
        groups.reported(attempt, "op", G, mark)
    assert groups.reported(A, "op", G, None) == 70
    assert groups.reported(B, "op", G, MAX_TIMESTAMP) == 80
    groups.keep({A, B})
    assert groups.reported(A, "op", G, None) == MAX_TIMESTAMP
    assert groups.reported(A, "op", G, 40) == 90


@given(st.dictionaries(st.sampled_from([A, B, C]), st.none() | st.integers(-99, 99), min_size=1))
def test_the_slowest_never_waits(marks: dict[TaskAddress, int | None]) -> None:
    groups = WatermarkGroups()
    for attempt, mark in marks.items():
        groups.reported(attempt, "op", G, mark)
    known = {attempt: mark for attempt, mark in marks.items() if mark is not None}
    if known:
        slowest = min(known, key=lambda attempt: known[attempt])
        assert groups.reported(slowest, "op", G, known[slowest]) >= known[slowest]


def two_sources() -> Any:
    env = StreamExecutionEnvironment.get_execution_environment({})
    env.from_collection([1]).union(env.from_collection([2]).map(str)).rebalance().sink_to(CollectSink("out"))
    return env.get_job_graph("two")


@pytest.mark.parametrize("end", [ExecutionState.FINISHED, ExecutionState.FAILED])
def test_the_coordinator_answers_each_report_and_forgets_an_attempt_that_has_ended(end: ExecutionState) -> None:
    job = Job(two_sources())
    job.all_run()
    names = [name for name in job.states() if name.startswith("Source")]
    attempts = {name: job.execution(name).attempt for name in names}
    fast, slow = names

    def reports(name: str, mark: int | None) -> list[Any]:
        return job.on(WatermarkReported(attempts[name], "op", G, mark))

    assert reports(slow, 10) == [SendToTask(attempts[slow], WatermarkAnnounced("op", 60))]
    assert reports(fast, 90) == [SendToTask(attempts[fast], WatermarkAnnounced("op", 60))]
    assert reports(slow, MAX_TIMESTAMP) == [], "it reads no more"
    assert job.sent(reports(fast, 90)) == {fast: WatermarkAnnounced("op", 140)}
    assert job.sent(reports(slow, 5)) == {slow: WatermarkAnnounced("op", 55)}
    if end is ExecutionState.FINISHED:
        job.says(slow, end)
        assert job.sent(reports(fast, 95)) == {fast: WatermarkAnnounced("op", 145)}
        assert reports(slow, 1) == [], "of an attempt that has ended"
    else:
        job.on(CancelRequested("the user"))
        assert reports(fast, 95) == [], "an attempt that is being cancelled gets no answer"
