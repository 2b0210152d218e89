"""What a job's coordinator decides: an event in, commands out, compared whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.job_lifecycle import HISTORY_LENGTH, JobLifecycle
from rayflink.actors.messages.commands import (
    CancelRequested,
    DeployTask,
    EndJob,
    KillTask,
    RequestSlots,
    SendToTask,
    SlotsGranted,
    SlotsRefused,
    StopRequested,
    TaskGone,
    Tick,
)
from rayflink.actors.messages.messages import (
    AssignSplits,
    CancelTask,
    SourceEvent,
    SplitRequest,
    StopTask,
    TaskReport,
    TaskStateChanged,
)
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.common.connector_base.source import PendingSplits
from rayflink.common.errors import JobCancelled, TaskLost
from rayflink.common.functions.accumulators import IntCounter, ListAccumulator
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.connectors.collection import CollectionSplit
from rayflink.launch import raise_if_failed
from tests.actors.job.job_events import Job, failure, names, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
ALL = [SOURCE, MAP_1, MAP_2, SINK]
RUNNING, FINISHED = ExecutionState.RUNNING, ExecutionState.FINISHED
FAILED, CANCELED = ExecutionState.FAILED, ExecutionState.CANCELED


@pytest.fixture
def job() -> Job:
    return Job(three_vertices())


@pytest.fixture
def running(job: Job) -> Job:
    job.all_run()
    return job


# slots and deployment


@pytest.mark.spec("J02", "all", "J03", "J14", "assigned")
def test_all_slots_are_requested_at_once_and_nothing_is_deployed_before_they_come(job):
    assert job.start() == [RequestSlots((Slot("default", 0), Slot("default", 1)))]
    assert job.on(Tick(), 1_000) == []
    assert set(job.states().values()) == {"CREATED"}


@pytest.mark.spec("J01", "J02", "all", "J22")
def test_eager_deploys_everything_in_topological_order(job):
    job.start()
    commands = job.on(SlotsGranted())
    assert names(commands) == ALL
    assert all(isinstance(command, DeployTask) for command in commands)
    assert [(c.slot.index, c.deployment.attempt_number) for c in commands] == [
        (0, 0), (0, 0), (1, 0), (0, 0),
    ]  # fmt: skip
    assert job.master.status is JobStatus.RUNNING
    assert set(job.states().values()) == {"DEPLOYING"}
    assert all(list(e.timestamps) == ["SCHEDULED", "DEPLOYING"] for e in job.master.executions.values())


@pytest.mark.spec("J14", "once")
def test_an_execution_is_deployed_once(job):
    job.deploy()
    assert job.on(SlotsGranted()) == []


@pytest.mark.spec("J03", "K03")
def test_too_few_slots_deploy_nothing_and_end_the_job(job):
    job.start()
    (end,) = job.on(SlotsRefused("1 node with 1 CPU"), 50)
    assert isinstance(end, EndJob)
    assert end.result.status is JobStatus.FAILED
    assert "Slots required: 2, slots allocated: 0" in end.result.failure.message
    assert "1 node with 1 CPU" in end.result.failure.message
    assert set(job.states().values()) == {"CANCELED"}


@pytest.mark.spec("J04", "timeout")
def test_slots_that_do_not_come_end_the_job_after_the_timeout():
    job = Job(three_vertices(slot__request__timeout="5 s"))
    job.start()
    assert job.on(Tick(), 5_000) == []
    (end,) = job.on(Tick(), 5_001)
    assert end.result.failure.kind == "NoResourceAvailable"
    assert end.result.failure.message.startswith(
        "Could not allocate all required slots within timeout of 5001 ms. Slots required: 2, slots allocated: 0"
    )
    assert "slot.request.timeout" in end.result.failure.message


def test_slots_that_come_after_the_end_change_nothing(job):
    job.start()
    job.on(CancelRequested())
    assert job.master.status is JobStatus.CANCELED
    assert job.on(SlotsGranted()) == []


# lazy scheduling


@pytest.mark.spec("J01", "J06")
def test_lazy_deploys_sources_and_then_what_can_be_read():
    job = Job(three_vertices(execution__runtime_mode="BATCH"))
    assert job.deploy() == [SOURCE]
    assert job.says(SOURCE, RUNNING) == [], "a blocking result is read when it is complete"
    assert names(job.says(SOURCE, FINISHED)) == [MAP_1, MAP_2]
    for name in (MAP_1, MAP_2):
        assert job.says(name, RUNNING) == []
    assert job.says(MAP_1, FINISHED) == [], "one of two producers is not done"
    assert names(job.says(MAP_2, FINISHED)) == [SINK]
    job.says(SINK, RUNNING)
    (end,) = job.says(SINK, FINISHED)
    assert end.result.status is JobStatus.FINISHED


def test_a_lazy_job_that_is_cancelled_cancels_what_was_never_deployed():
    job = Job(three_vertices(execution__runtime_mode="BATCH"))
    job.deploy()
    assert job.sent(job.on(CancelRequested())) == {SOURCE: CancelTask()}
    assert job.states() == {SOURCE: "CANCELING", MAP_1: "CANCELED", MAP_2: "CANCELED", SINK: "CANCELED"}


# the good end


@pytest.mark.spec("K02", "K08")
def test_a_job_finishes_with_its_last_task(running):
    for name in (SOURCE, MAP_1, MAP_2):
        assert running.says(name, FINISHED) == []
    (end,) = running.says(SINK, FINISHED, now=90)
    assert (end.result.status, end.result.failure, end.result.runtime_ms) == (JobStatus.FINISHED, None, 90)
    assert running.master.result is end.result
    path = ["SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED"]
    assert all(list(e.timestamps) == path for e in running.master.executions.values())


def test_accumulators_of_all_tasks_are_merged(running):
    for n, name in enumerate(ALL, start=1):
        commands = running.says(name, FINISHED, accumulators={"n": IntCounter(n)} if n != 3 else {})
    assert commands[0].result.accumulators == {"n": 1 + 2 + 4}


def test_one_accumulator_name_of_two_kinds_fails_the_job_and_names_both_tasks(running):
    running.says(SOURCE, FINISHED, accumulators={"n": IntCounter(1), "m": IntCounter(5)})
    commands = running.says(MAP_1, FINISHED, accumulators={"n": ListAccumulator(), "m": IntCounter(2)})
    assert running.sent(commands) == {name: CancelTask() for name in (MAP_2, SINK)}
    running.says(MAP_2, CANCELED)
    (end,) = running.says(SINK, CANCELED)
    failed = end.result.failure
    assert (failed.kind, failed.operator) == ("TypeError", "Map") and "job_events.py:" in failed.call_site
    assert failed.message.startswith(
        "accumulator 'n' is of type ListAccumulator in Map (1/2) and IntCounter in Source: Collection Source (1/1) ("
    )
    assert end.result.accumulators == {"n": 1, "m": 7}, "what could be merged is kept"


class Fragile(IntCounter):
    """Raises in one of its methods."""

    def __init__(self, where: str, error: BaseException) -> None:
        super().__init__(1)
        self._where, self._error = where, error

    def merge(self, other: IntCounter) -> None:
        if self._where == "merge":
            raise self._error
        super().merge(other)

    def get_local_value(self) -> int:
        if self._where == "value":
            raise self._error
        return super().get_local_value()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit("no")])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("merge", "accumulator 'n' of Map (2/2) cannot be merged: "),
        ("value", "accumulator 'n' of Map (1/2) does not give its value: "),
    ],
)
def test_an_accumulator_that_raises_fails_the_job_and_takes_no_other_along(running, where, message, error):
    running.says(SOURCE, FINISHED, accumulators={"m": IntCounter(5)})
    for name in (MAP_1, MAP_2):
        running.says(name, FINISHED, accumulators={"n": Fragile(where, error)})
    (end,) = running.says(SINK, FINISHED if where == "value" else CANCELED)
    assert end.result.status is JobStatus.FAILED and end.result.accumulators == {"m": 5}
    assert end.result.failure.message == f"{message}{type(error).__name__}: no"
    assert end.result.failure.operator == "Map"


def test_an_enumerator_whose_close_raises_fails_the_job_and_the_others_are_closed(running):
    source = running.execution(SOURCE)
    running.on(SplitRequest(source.attempt, source.vertex.operators[0].operator_id))
    closed = []

    class Breaks:
        def close(self) -> None:
            closed.append(self)
            raise ValueError("enumerator close")

    open_ones = running.master.sources.enumerators._running
    ((operator_id, first),) = open_ones.items()
    open_ones.update({name: replace(first, enumerator=Breaks()) for name in (operator_id, "another")})
    for name in ALL:
        commands = running.says(name, FINISHED)
    result = commands[0].result
    assert (len(closed), len(running.master.exceptions), result.status) == (2, 2, JobStatus.FAILED)
    assert result.failure.message == (
        "the enumerator of source 'Source: Collection Source' failed when it was closed: ValueError: enumerator close"
    )


def test_a_stop_request_ends_the_sources_alone(running):
    assert running.sent(running.on(StopRequested())) == {SOURCE: StopTask()}
    assert running.master.status is JobStatus.RUNNING


def test_a_stop_that_comes_before_the_slots_takes_effect_when_sources_are_deployed(job):
    job.start()
    assert job.on(StopRequested()) == []
    commands = job.on(SlotsGranted())
    assert names(commands) == ALL
    assert job.sent(commands) == {SOURCE: StopTask()}
    assert isinstance(commands[-1], SendToTask), "after the task is there"


@pytest.mark.spec("J21", "I33", "splits")
def test_splits_are_assigned_on_request_until_there_are_no_more(running):
    source = running.execution(SOURCE)
    operator_id = source.vertex.operators[0].operator_id
    ask = SplitRequest(source.attempt, operator_id)
    assert running.sent(running.on(ask)) == {SOURCE: AssignSplits(operator_id, (CollectionSplit(0),))}
    assert running.sent(running.on(ask)) == {SOURCE: AssignSplits(operator_id, (), no_more=True)}


def test_an_event_of_a_reader_reaches_its_enumerator_which_may_assign_splits(running, monkeypatch):
    source = running.execution(SOURCE)
    operator_id = source.vertex.operators[0].operator_id
    received = []

    def handle(enumerator: PendingSplits, subtask: int, event: object) -> None:
        received.append((subtask, event))
        enumerator.handle_split_request(subtask)

    monkeypatch.setattr(PendingSplits, "handle_source_event", handle)
    event = SourceEvent(source.attempt, operator_id, to_bytes(("chunk", 7)))
    assert running.sent(running.on(event)) == {SOURCE: AssignSplits(operator_id, (CollectionSplit(0),))}
    assert received == [(0, ("chunk", 7))]


def test_an_event_for_an_enumerator_that_takes_none_fails_the_job(running):
    source = running.execution(SOURCE)
    running.on(SourceEvent(source.attempt, source.vertex.operators[0].operator_id, to_bytes("hello")))
    (entry,) = running.master.exceptions
    assert "PendingSplits takes no events of readers, found 'hello'" in entry.failure.message


def test_an_enumerator_that_raises_fails_the_job(running, monkeypatch):
    source = running.execution(SOURCE)

    def broken(*_: object) -> None:
        raise OSError("no such bucket")

    monkeypatch.setattr(running.master.sources.enumerators, "request", broken)
    running.on(SplitRequest(source.attempt, source.vertex.operators[0].operator_id))
    (entry,) = running.master.exceptions
    assert entry.failure.message == (
        "the enumerator of source 'Source: Collection Source' failed: OSError: no such bucket"
    )
    assert running.master.status is JobStatus.FAILING


# cancelling


@pytest.mark.spec("K03")
def test_cancelling_asks_every_task_and_waits_for_all(running):
    running.says(SOURCE, FINISHED)
    commands = running.on(CancelRequested("SIGINT"))
    assert running.sent(commands) == {name: CancelTask() for name in ALL[1:]}
    assert running.master.status is JobStatus.CANCELLING
    assert running.on(CancelRequested()) == []
    running.says(MAP_1, CANCELED)
    running.says(MAP_2, FINISHED)
    assert running.states()[MAP_2] == "CANCELED", "it finished while it was being cancelled"
    (end,) = running.says(SINK, CANCELED)
    assert (end.result.status, end.result.failure) == (JobStatus.CANCELED, None)
    with pytest.raises(JobCancelled, match="was cancelled by SIGINT"):
        raise_if_failed(end.result)


@pytest.mark.spec("J15", "stays")
def test_a_task_that_starts_to_run_while_it_is_cancelled_stays_cancelling(job):
    job.deploy()
    job.on(CancelRequested())
    assert job.says(MAP_1, RUNNING) == []
    assert job.states()[MAP_1] == "CANCELING"


@pytest.mark.spec("J15", "slot", "J02", "running")
def test_the_slot_of_a_task_cancelled_while_deploying_is_free_once_it_has_gone(job):
    job.deploy()
    job.on(CancelRequested())
    assert set(job.states().values()) == {"CANCELING"}, "they are DEPLOYING no more"
    ended = [job.says(name, CANCELED) for name in ALL]
    assert [[type(command) for command in commands] for commands in ended] == [[], [], [], [EndJob]]
    assert set(job.states().values()) == {"CANCELED"}
    assert job.on(SlotsGranted()) == [], "nothing is deployed to the slots any more"


@pytest.mark.spec("L12", "decided", "L22", "timeout", "L04", "overrides")
def test_a_task_that_does_not_stop_in_time_is_killed_once():
    job = Job(three_vertices(task__cancellation__timeout="30 s"))
    job.all_run()
    job.on(CancelRequested(), 0)
    job.says(MAP_1, CANCELED, now=10)
    assert job.on(Tick(), 30_000) == []
    killed = {c.attempt for c in job.on(Tick(), 30_001)}
    assert killed == {job.execution(name).attempt for name in (SOURCE, MAP_2, SINK)}
    assert job.on(Tick(), 60_000) == []
    for name in (SOURCE, MAP_2):
        assert job.on(TaskGone(job.execution(name).attempt, "killed")) == []
    (end,) = job.on(TaskGone(job.execution(SINK).attempt, "killed"))
    assert end.result.status is JobStatus.CANCELED


# failures


def test_a_failed_task_cancels_the_others_and_the_first_failure_is_the_cause(running):
    commands = running.says(MAP_2, FAILED, failure=failure("root"))
    assert running.sent(commands) == {name: CancelTask() for name in (SOURCE, MAP_1, SINK)}
    assert running.master.status is JobStatus.FAILING
    running.says(SINK, FAILED, failure=failure("producer failed"))
    running.says(SOURCE, CANCELED)
    (end,) = running.says(MAP_1, CANCELED)
    assert (end.result.status, end.result.failure.message, end.result.failed_subtask) == (JobStatus.FAILED, "root", 1)
    assert [(e.task, e.failure.message) for e in running.master.exceptions] == [
        (MAP_2, "root"),
        (SINK, "producer failed"),
    ]


def test_a_job_cancelled_while_it_fails_ends_as_cancelled_and_keeps_its_history(running):
    running.says(MAP_2, FAILED, failure=failure("root"))
    assert running.on(CancelRequested("SIGINT")) == [], "every task has been asked already"
    assert running.master.status is JobStatus.CANCELLING
    for name in (SOURCE, MAP_1):
        running.says(name, CANCELED)
    (end,) = running.says(SINK, CANCELED)
    assert (end.result.status, end.result.failure, end.result.cancelled_by) == (JobStatus.CANCELED, None, "SIGINT")
    assert [entry.failure.message for entry in running.master.exceptions] == ["root"]


@pytest.mark.spec("K11", "cancelling")
def test_a_task_that_fails_while_cancelling_is_cancelled_and_keeps_its_failure(running):
    running.on(CancelRequested())
    running.says(MAP_1, FAILED, failure=failure("of the last moment"))
    assert running.states()[MAP_1] == "CANCELED"
    for name in (SOURCE, MAP_2):
        running.says(name, CANCELED)
    (end,) = running.says(SINK, CANCELED)
    assert (end.result.status, end.result.failure) == (JobStatus.CANCELED, None)
    assert [(e.task, e.failure.message) for e in running.master.exceptions] == [(MAP_1, "of the last moment")]


def test_the_history_of_failures_is_bounded():
    life = JobLifecycle("three")
    for n in range(HISTORY_LENGTH + 5):
        life.fail("coordinator", 0, failure(str(n)))
    assert [e.failure.message for e in life.exceptions] == [str(n) for n in range(5, HISTORY_LENGTH + 5)]
    assert life.failure == failure("0")


def test_a_task_that_nobody_cancelled_and_says_it_was_fails_the_job(running):
    running.says(MAP_1, CANCELED)
    assert running.master.status is JobStatus.FAILING
    assert running.master.exceptions[0].failure.message == "Map (1/2) was cancelled from outside the job"


def test_a_lost_process_is_a_failure_that_names_the_attempt(running):
    running.on(TaskGone(running.execution(MAP_1).attempt, "its process ended with signal 9"), 40)
    assert running.master.exceptions[0].failure.message == (
        "lost task Map (1/2) (attempt #0): its process ended with signal 9"
    )
    assert running.states()[MAP_1] == "FAILED"


@pytest.mark.parametrize(
    ("report", "where"),
    [({}, ""), ({"host": "10.0.0.3", "pid": 7, "reportedMs": 15}, " on 10.0.0.3 (pid 7), silent for 25 ms")],
)
def test_a_lost_task_is_placed_only_where_it_said_where_it_was(running, report, where):
    lost = running.execution(MAP_1).attempt
    running.on(TaskReport(lost, report), 15)
    running.on(TaskGone(lost, "its process died"), 40)
    for name in (SOURCE, MAP_2, SINK):
        running.says(name, CANCELED)
    with pytest.raises(TaskLost) as caught:
        raise_if_failed(running.master.result, running.master.report.describe())
    assert str(caught.value).startswith(f"lost task Map (1/2){where}: its process died; ")


def test_a_silent_task_is_killed_and_fails_the_job():
    job = Job(three_vertices(heartbeat__timeout="50 s"))
    job.all_run()
    for name in (SOURCE, MAP_1, SINK):
        job.on(TaskReport(job.execution(name).attempt, {}), 30_000)
    assert job.on(Tick(), 50_000) == []
    commands = job.on(Tick(), 50_001)
    assert commands[0] == KillTask(job.execution(MAP_2).attempt)
    assert job.sent(commands) == {name: CancelTask() for name in (SOURCE, MAP_1, SINK)}
    assert job.master.exceptions[0].failure.message == (
        "lost task Map (2/2) (attempt #0): no heartbeat for 50001 ms (heartbeat.timeout)"
    )


# messages that come too late


def test_an_attempt_nobody_knows_is_not_listened_to(running):
    stale = TaskAddress("f" * 32)
    before = running.states()
    for event in (
        TaskStateChanged(stale, FAILED, failure("of long ago")),
        TaskGone(stale, "gone"),
        TaskReport(stale, {}),
        SplitRequest(stale, "0" * 32),
    ):
        assert running.on(event) == []
    assert (running.states(), running.master.status) == (before, JobStatus.RUNNING)
    assert not running.master.exceptions


def test_an_attempt_that_has_ended_is_not_listened_to(running):
    running.says(SOURCE, FINISHED)
    assert running.says(SOURCE, FAILED, failure=failure("late")) == []
    assert running.on(TaskGone(running.execution(SOURCE).attempt, "its process has ended")) == []
    assert (running.states()[SOURCE], running.master.status) == ("FINISHED", JobStatus.RUNNING)


@pytest.mark.parametrize("overtaken", [(), (RUNNING,), (RUNNING, ExecutionState.INITIALIZING)])
def test_a_task_so_fast_that_its_end_overtakes_its_beginning_has_finished(job, overtaken):
    job.deploy()
    assert job.says(SOURCE, FINISHED) == []
    for state in overtaken:
        assert job.says(SOURCE, state) == []
    assert job.states()[SOURCE] == "FINISHED"
    assert list(job.execution(SOURCE).timestamps) == ["SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED"]


def test_a_report_that_does_not_fit_ends_its_task_and_fails_the_job(running):
    commands = running.says(MAP_1, ExecutionState.SCHEDULED)
    assert commands[0] == KillTask(running.execution(MAP_1).attempt)
    assert running.sent(commands) == {name: CancelTask() for name in (SOURCE, MAP_2, SINK)}
    (entry,) = running.master.exceptions
    assert "execution Map (1/2) (attempt #0) cannot go from RUNNING to SCHEDULED" in entry.failure.message


@pytest.fixture
def half_read() -> Job:
    """A batch job whose maps read what their source, which has finished, still has to serve."""
    job = Job(three_vertices(execution__runtime_mode="BATCH"))
    job.deploy()
    for name, state in ((SOURCE, RUNNING), (SOURCE, FINISHED), (MAP_1, RUNNING), (MAP_2, RUNNING)):
        job.says(name, state)
    return job


def test_a_finished_task_that_cannot_serve_its_result_fails_the_job_that_reads_it(half_read):
    commands = half_read.says(SOURCE, FAILED, failure=failure("spill file s0 ends early"))
    assert half_read.sent(commands) == {name: CancelTask() for name in (MAP_1, MAP_2)}
    (entry,) = half_read.master.exceptions
    assert (entry.task, entry.failure.kind) == (SOURCE, "TaskLost")
    assert entry.failure.message == f"lost the result of {SOURCE} before it was read: spill file s0 ends early"
    assert half_read.states()[SOURCE] == "FINISHED"


@pytest.mark.parametrize("end", [CANCELED, FINISHED])
def test_a_result_that_nobody_reads_any_more_may_be_lost(half_read, end):
    if end is CANCELED:
        half_read.on(CancelRequested())
    else:
        for name in (MAP_1, MAP_2):
            half_read.says(name, FINISHED)
    assert half_read.says(SOURCE, FAILED, failure=failure("spill file s0 ends early")) == []
    assert not half_read.master.exceptions


def test_a_job_that_has_ended_answers_nothing(running):
    for name in ALL:
        running.says(name, FINISHED)
    result = running.master.result
    assert running.on(CancelRequested()) == running.on(Tick(), 10**9) == []
    assert running.master.result is result


def test_the_description_is_plain_data(running):
    running.on(TaskReport(running.execution(MAP_1).attempt, {"numRecordsIn": 3}), 5)
    running.says(MAP_2, FAILED, failure=failure("root"))
    described = running.master.report.describe()
    assert (described["name"], described["state"]) == ("three", "FAILING")
    vertex = described["vertices"][1]
    assert (vertex["name"], vertex["parallelism"], vertex["numRecordsIn"]) == ("Map", 2, 3)
    assert vertex["states"] == {"CANCELING": 1, "FAILED": 1}
    (entry,) = described["exceptions"]
    assert (entry["timestamp"], entry["task"], entry["exception"]) == (5, MAP_2, "root")
    assert (entry["place"]["subtask"], entry["place"]["attempt"], entry["concurrent"]) == (1, 0, False)
