"""Laws of the checkpoint coordinator, whatever tasks, storage and users do, and in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rayflink.actors.checkpoints.coordinator import Decision
from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.messages.commands import (
    AnswerSavepoint,
    DiscardFiles,
    PublishCheckpoint,
    SavepointRequested,
    SendToTask,
)
from rayflink.actors.messages.messages import (
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointComplete,
    CheckpointDeclined,
    TriggerCheckpoint,
)
from rayflink.actors.messages.states import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.state.snapshots import StoredSnapshot
from tests.actors.checkpoints.checkpointed_job import ALL, BASE, OPERATOR, Checkpoints, state

STRANGER = TaskAddress("stranger")
STOPS = st.sampled_from([None, None, StopMode.DRAIN, StopMode.SUSPEND])


class Life(RuleBasedStateMachine):
    """A job's checkpoints, a storage, and tasks that answer when and what they like."""

    @initialize(concurrent=st.integers(1, 3), retained=st.integers(1, 3), pause=st.sampled_from([0, 150]))
    def begin(self, concurrent: int, retained: int, pause: int) -> None:
        self.job = Checkpoints(
            max_concurrent=concurrent, retained=retained, min_pause_ms=pause, timeout_ms=350, tolerable_failures=1
        )
        self.files: set[str] = set()
        self.begun: dict[int, str] = {}
        self.ended: dict[int, str] = {}
        self.publishing: dict[int, PublishCheckpoint] = {}
        self.published: set[int] = set()
        self.in_doubt: set[int] = set()
        self.savepoints: dict[str, frozenset[str]] = {}
        self.asked, self.written = 0, 0
        self.answered: set[str] = set()
        self.given: dict[tuple[TaskAddress, int], StoredSnapshot] = {}
        self.bases: list[list[str]] = [[]]
        self.job.run()

    # the shell

    def carry_out(self, commands: list[Decision]) -> None:
        for command in commands:
            if isinstance(command, SendToTask):
                self.tell(command)
            elif isinstance(command, PublishCheckpoint):
                assert command.checkpoint_id not in self.publishing, "it is published once"
                self.publishing[command.checkpoint_id] = command
            elif isinstance(command, DiscardFiles):
                self.files -= {f"{command.base}/{path}" for path in command.paths}
                if command.folder is not None:
                    folder = f"{command.base}/{command.folder}".rstrip("/") + "/"
                    self.files = {file for file in self.files if not file.startswith(folder)}
            elif isinstance(command, AnswerSavepoint):
                assert command.request_id not in self.answered, "an answer is given once"
                self.answered.add(command.request_id)

    def tell(self, command: SendToTask) -> None:
        message = command.message
        if isinstance(message, TriggerCheckpoint):
            barrier = message.barrier
            assert barrier.checkpoint_id > max(self.begun, default=0), "no number comes twice"
            assert barrier.savepoint or len(self.job.it.pending) <= self.job.it.settings.max_concurrent
            self.begun[barrier.checkpoint_id] = barrier.savepoint or BASE
        elif isinstance(message, CheckpointComplete):
            number = message.checkpoint_id
            assert number in self.published, "nobody commits before it is durable"
            assert self.ended.setdefault(number, "complete") == "complete"
        elif isinstance(message, CheckpointAborted):
            assert self.ended.setdefault(message.checkpoint_id, "aborted") == "aborted"

    # what happens

    @rule(by=st.integers(0, 250))
    def time_passes(self, by: int) -> None:
        undecided = self.job.it.undecided
        self.carry_out(self.job.at(self.job.now + by))
        self.in_doubt |= {*undecided} - {*self.job.it.undecided}

    @rule()
    def one_is_wanted_now(self) -> None:
        self.carry_out(self.job.it.trigger_now(self.job.now))

    @rule(stop=STOPS)
    def a_savepoint_is_wanted(self, stop: StopMode | None) -> None:
        self.asked += 1
        self.carry_out(self.job.it.savepoint(SavepointRequested(f"r{self.asked}", "/s", stop), self.job.now))

    @precondition(lambda self: self.begun)
    @rule(attempt=st.sampled_from([*ALL, STRANGER]), nth=st.integers(0, 3), base=st.integers(0, 2), more=st.booleans())
    def a_task_acknowledges(self, attempt: TaskAddress, nth: int, base: int, more: bool) -> None:
        self.acknowledge(attempt, self.newest(nth), base, more)

    @precondition(lambda self: self.begun)
    @rule(nth=st.integers(0, 3), base=st.integers(0, 2), more=st.booleans())
    def all_tasks_acknowledge(self, nth: int, base: int, more: bool) -> None:
        for attempt in ALL:
            self.acknowledge(attempt, self.newest(nth), base, more)

    def newest(self, nth: int) -> int:
        return sorted(self.begun)[-1 - min(nth, len(self.begun) - 1)]

    def acknowledge(self, attempt: TaskAddress, number: int, base: int, more: bool) -> None:
        """Written once and told as often as you like, built on one of the checkpoints that were complete."""
        where = self.begun[number]
        if (attempt, number) not in self.given:
            self.written += 1
            shares = self.bases[-1 - min(base, len(self.bases) - 1)] if where == BASE else []
            new = [f"shared/{self.written}"] if more and where == BASE else []
            own = f"chk-{number}/{self.written}" if where == BASE else f"{self.written}"
            self.given[attempt, number] = state(own, *shares, *new)
            self.files |= {f"{where}/{path}" for path in (own, *new)}
        given = {OPERATOR.get(attempt, "om"): self.given[attempt, number]}
        self.carry_out(self.job.it.acknowledge(CheckpointAcknowledged(attempt, number, given), self.job.now))

    @precondition(lambda self: self.begun)
    @rule(attempt=st.sampled_from([*ALL, STRANGER]), nth=st.integers(0, 3), failure=st.booleans())
    def a_task_declines(self, attempt: TaskAddress, nth: int, failure: bool) -> None:
        self.carry_out(self.job.it.decline(CheckpointDeclined(attempt, self.newest(nth), "no", failure), self.job.now))

    @rule(attempt=st.sampled_from(ALL))
    def a_task_ends(self, attempt: TaskAddress) -> None:
        self.carry_out(self.job.it.task_ended(attempt, self.job.now))

    @precondition(lambda self: self.publishing)
    @rule(first=st.booleans(), works=st.sampled_from([True, True, False]))
    def the_storage_answers(self, first: bool, works: bool) -> None:
        number = min(self.publishing) if first else max(self.publishing)
        command = self.publishing.pop(number)
        if not works:
            self.carry_out(self.job.it.not_published(number, "full", self.job.now))
            return
        self.published.add(number)
        self.files.add(f"{command.base}/{command.path}")
        was_pending = number in self.job.it.undecided
        self.carry_out(self.job.it.published(number, self.job.now))
        if was_pending and command.manifest.kind == "savepoint":
            files = {command.path, *command.manifest.files()}
            self.savepoints[command.base] = frozenset(f"{command.base}/{path}" for path in files)
        elif was_pending:
            self.bases.append(sorted(command.manifest.shared_files()))

    @rule(wait=st.booleans())
    def the_job_starts_anew(self, wait: bool) -> None:
        self.carry_out(self.job.it.suspend(self.job.now, "a task failed"))
        if wait:
            while self.publishing:
                self.the_storage_answers(first=True, works=True)
        newest = self.job.it.latest
        found, commands = self.job.it.restore(self.job.now)
        assert found is newest
        self.carry_out(commands)
        assert self.job.it.pending == ()
        self.carry_out(self.job.it.resume(self.job.now))

    # laws

    @invariant()
    def what_can_be_restored_is_whole(self) -> None:
        for kept in self.job.it.completed:
            folder = f"{kept.folder}/" if kept.folder else ""
            wanted = {f"{kept.base}/{path}" for path in (f"{folder}_metadata", *kept.manifest.files())}
            assert wanted <= self.files, f"checkpoint {kept.checkpoint_id} misses {sorted(wanted - self.files)}"
        for address, files in self.savepoints.items():
            assert files <= self.files, f"savepoint {address} misses {sorted(files - self.files)}"

    @invariant()
    def as_many_are_kept_as_shall_be(self) -> None:
        numbers = [kept.checkpoint_id for kept in self.job.it.completed]
        assert numbers == sorted(set(numbers)) and len(numbers) <= self.job.it.settings.retained

    @invariant()
    def each_is_under_way_or_ended_once(self) -> None:
        counts = self.job.it.history.counts()
        assert counts["in_progress"] == len(self.job.it.pending)
        assert counts["total"] == len(self.begun) == sum(counts[k] for k in ("in_progress", "completed", "failed"))

    def teardown(self) -> None:
        """At the end nothing is left but savepoints and what may be one, and everybody has his answer."""
        self.carry_out(self.job.it.job_ended(JobStatus.FINISHED, self.job.now))
        while self.publishing:
            self.the_storage_answers(first=True, works=True)
        assert len(self.answered) == self.asked
        maybe = tuple(f"{self.begun[number]}/" for number in self.in_doubt)
        left = {file for file in self.files if not file.startswith(maybe)}
        assert left == {file for files in self.savepoints.values() for file in files}


Life.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestLife = pytest.mark.slow(Life.TestCase)
