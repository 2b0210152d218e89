"""The traces of a job: events go in, trees of spans come out."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.actors.job.checkpoint_spans import checkpoint_span
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import RescaleRequested, SlotsGranted, Tick
from rayflink.actors.messages.messages import CheckpointDeclined
from rayflink.actors.messages.states import ExecutionState
from rayflink.common.metrics.span import Span, Trace
from rayflink.common.options.option_values import SpanDetail
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import ManualClock
from rayflink.testing import Pause, ScriptedSource
from tests.actors.checkpoints.checkpointed_job import S
from tests.actors.checkpoints.test_checkpoint_history import one_complete
from tests.actors.job.job_events import Job, failure, three_vertices

ON = {"traces__reporter__otel__exporter__endpoint": "http://127.0.0.1:9"}
RESTARTS = {"restart_strategy__type": "fixed-delay", "restart_strategy__fixed_delay__delay": "10 ms"}
RUNNING, FAILED, INITIALIZING = ExecutionState.RUNNING, ExecutionState.FAILED, ExecutionState.INITIALIZING
MAP = "Map (1/2)"


def starts(job: Job, now: int) -> None:
    """All attempts load their programs at `now`, and run 5 ms later."""
    for state, moment in ((INITIALIZING, now), (RUNNING, now + 5)):
        for execution in list(job.master.executions.values()):
            job.says(execution.name, state, moment)


def taken(job: Job) -> dict[str, Span]:
    return {trace.subject: trace.root for trace in job.master.traces.take()}


def shape(span: Span) -> Any:
    """Name, times, and those of the children."""
    return span.name, span.start_ms, span.end_ms, [shape(child) for child in span.children]


@pytest.fixture
def job() -> Job:
    job = Job(three_vertices(**ON, **RESTARTS))
    job.start()
    job.on(SlotsGranted(), 100)
    return job


def test_a_start_ends_when_the_last_task_runs(job: Job) -> None:
    assert taken(job) == {}
    starts(job, 120)
    [(subject, root)] = taken(job).items()
    assert subject == "initialization/100"
    assert (root.name, root.start_ms, root.end_ms, root.failure) == ("JobInitialization", 100, 125, "")
    assert root.attributes["initializationStatus"] == "COMPLETED" and "checkpointId" not in root.attributes
    assert (root.attributes["maxMailboxStartDurationMs"], root.attributes["sumInitializeStateDurationMs"]) == (20, 20)
    parts = [("Deploy", 100, 120, []), ("Restore", 120, 125, [])]
    assert [shape(child) for child in root.children] == [("JobInitialization_Subtask", 100, 125, parts)] * 4
    job.on(Tick(), 130)
    assert taken(job) == {}, "it is reported once"


def test_a_failure_and_the_restart_after_it(job: Job) -> None:
    starts(job, 120)
    taken(job)
    job.says(MAP, FAILED, 200, failure=failure("no price"))
    [(subject, failed)] = taken(job).items()
    assert (subject, failed.name, failed.failure) == ("failure/200/1", "JobFailure", "no price")
    assert failed.attributes == {
        "canRestart": True, "isGlobalFailure": True, "task": MAP, "exception": "ValueError",
    }  # fmt: skip
    for execution in list(job.master.executions.values()):
        if not execution.state.is_terminal:
            job.says(execution.name, ExecutionState.CANCELED, 203)
    job.on(Tick(), 210)
    starts(job, 215)
    [(subject, root)] = taken(job).items()
    assert subject == "restart/200"
    name, begin, end, (cancel, delay, start) = shape(root)
    assert (name, begin, end) == ("JobRestart", 200, 220)
    assert (cancel, delay) == (("Cancel", 200, 203, []), ("Delay", 203, 210, []))
    assert start[:3] == ("JobInitialization", 210, 220)
    assert root.attributes == {"tasks": 4, "restoredBytes": 0, "restarts": 1}


def test_a_start_that_fails_says_so_and_an_end_too() -> None:
    job = Job(three_vertices(**ON, restart_strategy__type="none"))
    job.start()
    job.on(SlotsGranted(), 100)
    job.says(MAP, FAILED, 150, failure=failure("no"))
    traces = taken(job)
    assert traces["failure/150/1"].attributes["canRestart"] is False
    start = traces["initialization/100"]
    assert start.attributes["initializationStatus"] == "FAILED" and start.failure
    for execution in list(job.master.executions.values()):
        job.says(execution.name, FAILED, 160, failure=failure("a consequence"))
    assert taken(job) == {}


def test_nothing_is_collected_where_traces_are_off() -> None:
    job = Job(three_vertices(**RESTARTS))
    job.all_run()
    job.says(MAP, FAILED, 150, failure=failure("no"))
    assert not job.master.traces.are_on and taken(job) == {}


def test_a_checkpoint_has_flinks_attributes() -> None:
    history = one_complete().it.history
    span = checkpoint_span(history._latest["completed"], {}, SpanDetail.SPAN_PER_CHECKPOINT)
    assert shape(span) == ("Checkpoint", 100, 150, [])
    few = {name: value for name, value in span.attributes.items() if not name.startswith(("max", "sum"))}
    assert few == {
        "checkpointId": 1, "fullSize": 4100, "checkpointedSize": 140, "checkpointStatus": "COMPLETED",
        "isUnaligned": False, "checkpointType": "CHECKPOINT",
    }  # fmt: skip
    assert (span.attributes["maxAlignmentDurationMs"], span.attributes["sumAlignmentDurationMs"]) == (15, 20)


def test_the_parts_of_a_checkpoint_follow_one_another() -> None:
    record = one_complete().it.history._latest["completed"]
    root = checkpoint_span(record, {"vm": "Map"}, SpanDetail.CHILDREN_SPANS_PER_SUBTASK)
    source, mapped, publish = root.children
    assert [(span.name, span.start_ms, span.end_ms) for span in root.children] == [
        ("Checkpoint_Task", 100, 110), ("Checkpoint_Task", 100, 130), ("Publish", 130, 150),
    ]  # fmt: skip
    assert mapped.attributes["jobVertexId"] == "vm"
    assert (source.attributes["taskName"], mapped.attributes["taskName"]) == ("vs", "Map")
    assert [child.attributes["subtaskId"] for child in mapped.children] == [0, 1]
    assert shape(mapped.children[0]) == ("Checkpoint_Subtask", 100, 130, [
        ("StartDelay", 100, 104, []), ("Alignment", 104, 109, []), ("Sync", 109, 115, []), ("Async", 115, 122, []),
    ])  # fmt: skip
    late = mapped.children[1]
    assert late.end_ms == 120 == late.children[-1].end_ms, "what was measured elsewhere ends with the acknowledgement"
    tasks = checkpoint_span(record, {}, SpanDetail.CHILDREN_SPANS_PER_TASK)
    assert [child.children for child in tasks.children[:2]] == [(), ()]
    flat = checkpoint_span(record, {}, SpanDetail.SPAN_PER_CHECKPOINT_WITH_TASKS)
    assert flat.attributes["tasks"] == "[vs, vm]" and flat.attributes["perTaskMaxAlignmentDurationMs"] == "[0, 15]"


def test_a_checkpoint_that_fails_says_why_and_was_not_published() -> None:
    job = one_complete()
    ended: list[Any] = []
    job.it.history.on_end = ended.append
    job.at(200)
    job.it.decline(CheckpointDeclined(S, 2, "full", True), 210)
    [record] = ended
    span = checkpoint_span(record, {}, SpanDetail.CHILDREN_SPANS_PER_SUBTASK)
    assert span.attributes["checkpointStatus"] == "FAILED" and "full" in span.failure and span.children == ()


def rescaled_job(report: list[Trace]) -> None:
    """Run a job that is rescaled and takes checkpoints."""
    options = {"traces.reporters": "otel", "execution.checkpointing.interval": "100 ms"}
    env = StreamExecutionEnvironment({**options, "traces.reporter.otel.exporter.endpoint": "http://127.0.0.1:9"})
    numbers = env.from_source(ScriptedSource([1, Pause(1_000), 2, Pause(1_000), 3]))
    numbers.rebalance().map(lambda n: n).name("Same").rebalance().sink_to(CollectSink("out"))
    clock = ManualClock(1_000)
    cluster = InProcessCluster(env.get_job_graph("job"), clock, lambda ms: clock.advance(max(1, int(ms))))
    assert cluster._traces is not None
    cluster._traces.report = report.extend  # type: ignore[method-assign]
    request = RescaleRequested("r" * 32, {"Same": 2})

    def look() -> None:
        if clock.now_ms() > 1_500:
            cluster.request(request)

    cluster.run(look)
    assert cluster.answers[request.request_id].failure == ""


def test_a_rescaling_is_a_restart_with_its_changes_and_checkpoint() -> None:
    reported: list[Trace] = []
    rescaled_job(reported)
    [rescale] = [trace.root for trace in reported if trace.root.name == "JobRescale"]
    assert rescale.attributes["changes"] == "Same: 1 -> 2"
    assert [child.name for child in rescale.children] == ["Cancel", "Delay", "JobInitialization"]
    before = [t.root.attributes for t in reported if t.root.name == "Checkpoint" and t.root.end_ms <= rescale.start_ms]
    assert rescale.children[2].attributes["checkpointId"] == before[-1]["checkpointId"]
    assert len({trace.subject for trace in reported}) == len(reported)
