"""The coordinators of a simulated job: each decides for one epoch, and another takes over when it is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from rayflink.actors.checkpoints.files import CheckpointFiles
from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.command_performer import perform
from rayflink.actors.job.history.job_history import JobHistory, decode_history, encode_history
from rayflink.actors.job.job_checkpoints import JobStart
from rayflink.actors.job.job_master import JobMaster
from rayflink.actors.job.recovery import Beginning, recover_or_start
from rayflink.actors.messages.commands import (
    Answer,
    CallForEnumerator,
    CheckpointPublished,
    CommandLost,
    DeployTask,
    DiscardFiles,
    EndJob,
    FileWork,
    KillTask,
    PublishCheckpoint,
    RequestRescale,
    RequestSlots,
    SendToTask,
    Signal,
    SlotsGranted,
    TaskGone,
    Tick,
)
from rayflink.actors.messages.messages import TaskReport, TaskStateChanged, ToCoordinator
from rayflink.actors.messages.states import JobStatus
from rayflink.common.errors import assert_never
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storage.ledger import Fenced, LedgerEnded
from rayflink.state.storage.storage import StorageError

from ..faults import FaultTarget
from .context import SimulationContext
from .network import SimulatedNetwork
from .requested_savepoints import RequestedSavepoints
from .scheduler import Lanes, ScheduledEvent
from .storage import SimulatedStorageWork
from .tasks import SimulatedTasks

_CLUSTER = "cluster"
"""Sender of the events that come from no task."""
_ENUMERATOR = "enumerator"
"""Sender of the answers to work of enumerators: they overtake other events."""


class SimulatedCoordinator:
    """One coordinator: its job master, and the performer of the commands of that (`CommandPerformer`).

    Args:
        epoch: its number, from 0.
        job: the decisions.
        files: of the job's checkpoints.
        coordinators: all of the job, which carry its events.
    """

    def __init__(self, epoch: int, job: JobMaster, files: CheckpointFiles, coordinators: SimulatedCoordinators) -> None:
        self.epoch, self.job, self._files = epoch, job, files
        self._coordinators = coordinators
        self._context = coordinators.context
        self._file_work: deque[FileWork] = deque()
        self._ticked_for: int | None = None
        self._stored_revision: object = None if epoch else job.history_revision
        self.zombie_until_ms: int | None = None
        """The time at which one ends that continues beside its successor; None: it leads."""

    def start(self) -> None:
        """Schedule the job."""
        now_ms = self._context.clock.now_ms()
        self._coordinators.began_ms = self._coordinators.began_ms or now_ms
        perform(self.job.start(now_ms), self)

    def handle(self, event: ToCoordinator | Signal) -> None:
        """Decide about an event, and perform what was decided."""
        was_running = self.job.status is JobStatus.RUNNING
        perform(self.job.handle(event, self._context.clock.now_ms()), self)
        if self is self._coordinators.leader and self.job.history_revision != self._stored_revision:
            self._stored_revision = self.job.history_revision
            self._coordinators.history = encode_history(self.job.report.past)
        self._context.story.restarts += was_running and self.job.status is JobStatus.RESTARTING

    def tick(self) -> None:
        """Let the job master know that time has passed."""
        self._coordinators.mail(self.epoch, _CLUSTER, Tick())

    def tick_if_due(self, now_ms: int) -> None:
        """Tick when the job master wants it, once for each time it names."""
        due = self.job.next_tick_ms
        if due is not None and due <= now_ms and self._ticked_for != due:
            self._ticked_for = due
            self.tick()

    # the performer of its commands

    def request_slots(self, command: RequestSlots) -> None:
        """Grant the slots."""
        self._coordinators.mail(self.epoch, _CLUSTER, SlotsGranted())

    def deploy_tasks(self, commands: Sequence[DeployTask]) -> None:
        """Create the tasks; later events start them."""
        for command in commands:
            self._coordinators.tasks.deploy(command, self.epoch)

    def send_to_task(self, command: SendToTask) -> None:
        """Send a message, subject to the faults."""
        for failure in self._coordinators.network.send_command(command.attempt, command.message):
            self._coordinators.post(failure)

    def kill_task(self, command: KillTask) -> None:
        """Kill a task that did not stop in time; one that is cut off goes on unseen."""
        tasks, attempt = self._coordinators.tasks, command.attempt
        if attempt in tasks.running:
            if not tasks.is_cut_off(attempt):
                tasks.drop(attempt)
            self._coordinators.post(TaskGone(attempt, "it did not stop in time"))

    def publish_checkpoint(self, command: PublishCheckpoint) -> None:
        """Queue the work."""
        self._add_file_work(command)

    def discard_files(self, command: DiscardFiles) -> None:
        """Queue the work."""
        self._add_file_work(command)

    def call_for_enumerator(self, command: CallForEnumerator) -> None:
        """Run work of an enumerator; its answer arrives like the other events, after other moves."""
        self._coordinators.mail(self.epoch, _ENUMERATOR, command.run())

    def request_rescale(self, command: RequestRescale) -> None:
        """Hand the job its own request, after other moves."""
        self._coordinators.mail(self.epoch, _CLUSTER, command.request)

    def answer(self, answer: Answer) -> None:
        """Keep the answer for the user who made the request."""
        self._coordinators.answers[answer.request_id] = answer

    def end_job(self, command: EndJob) -> None:
        """Drop the tasks that are left."""
        self._coordinators.drop_tasks(self.epoch)

    # its work on files

    def _add_file_work(self, command: FileWork) -> None:
        self._file_work.append(command)
        self._coordinators.storage.add_file_work(self.epoch, self._work_on_files)

    def _work_on_files(self) -> None:
        note, who = self._context.note, f"of coordinator {self.epoch}"
        match command := self._file_work.popleft():
            case DiscardFiles():
                note("discard", who, f"{command.base} {command.folder} {command.paths}")
                self._files.discard(command)
            case PublishCheckpoint():
                outcome = self._files.publish(command)
                note("publish", who, f"{command.path} {type(outcome).__name__}")
                self._coordinators.mail(self.epoch, _CLUSTER, outcome)
                if isinstance(outcome, CheckpointPublished):
                    self._coordinators.on_published(command.checkpoint_id)
            case _:
                assert_never(command)

    def finish_file_work(self) -> None:
        """Do all the work that waits, as a coordinator does whose job has ended."""
        while self._file_work:
            self._work_on_files()

    def lose_file_work(self) -> None:
        """Do some of the work that waits and forget the rest; no answer comes back to a coordinator that is dead."""
        for command in self._file_work:
            if self._context.draw.random() < 0.5:
                break
            if isinstance(command, PublishCheckpoint):
                self._files.publish(command)
            else:
                self._files.discard(command)
        self._file_work.clear()


class SimulatedCoordinators:
    """The coordinators that live, and the events on their way to them.

    They are numbered: each that takes over has the next epoch. An event of a task goes to the coordinator that deployed
    it, if that one still lives. A source of events: another coordinator takes over when there is no leader.

    Args:
        context: of the run.
        graph: the job.
        tasks: what the coordinators deploy.
        network: carries their commands.
        storage: has the disk with the checkpoints, and takes the work on files.
        cluster: what faults act on.
    """

    def __init__(
        self,
        context: SimulationContext,
        graph: JobGraph,
        tasks: SimulatedTasks,
        network: SimulatedNetwork,
        storage: SimulatedStorageWork,
        cluster: FaultTarget,
    ) -> None:
        self.context, self.tasks, self.network, self.storage = context, tasks, network, storage
        self._cluster = cluster
        self._cached_files = dict(graph.user_artifacts)
        self._graph = graph
        self.history = encode_history(JobHistory())
        """Of the job, as a coordinator finds it beside the checkpoints."""
        self.began_ms = 0
        """When the job began, epoch milliseconds; 0: it has not."""
        self.epoch = 0
        self.events = Lanes()
        self.answers: dict[str, Answer] = {}
        self.savepoints = RequestedSavepoints()
        self.task_state_changes = 0
        self._take_over_event = ScheduledEvent(0, _CLUSTER, self._take_over)
        self.latest = self._coordinator(graph, recover_or_start(graph, context.new_id, storage.disk.storage))
        """The one that leads; while none does, the last that did."""
        self._alive: dict[int, SimulatedCoordinator] = {0: self.latest}

    def _coordinator(self, graph: JobGraph, beginning: Beginning) -> SimulatedCoordinator:
        context = self.context
        job = JobMaster(graph, context.new_id, self._cached_files, context.draw, beginning.start)
        return SimulatedCoordinator(self.epoch, job, beginning.files, self)

    @property
    def leader(self) -> SimulatedCoordinator | None:
        """Return the coordinator that leads the job; None while the next one has not taken over."""
        return self._alive.get(self.epoch)

    def has_given_up(self, attempt: TaskAddress) -> bool:
        """Return whether no coordinator expects anything of a task any more."""
        coordinator = self._alive.get(self.tasks.epochs[attempt])
        execution = None if coordinator is None else coordinator.job.executions.get(attempt)
        return execution is None or execution.state.is_terminal

    # events for the coordinators

    def post(self, event: ToCoordinator | TaskGone | CommandLost) -> None:
        """Queue an event of a task; those of one task keep their order."""
        self.task_state_changes += isinstance(event, TaskStateChanged)
        self.context.story.record(event, self.tasks.names[event.attempt])
        self.mail(self.tasks.epochs[event.attempt], event.attempt, event)

    def signal(self, event: Signal) -> None:
        """Queue an event of a user; while no coordinator leads, it waits for the next one."""
        self.mail(self.epoch, _CLUSTER, event)

    def mail(self, epoch: int, sender: str, event: ToCoordinator | Signal) -> None:
        """Queue an event; those of one sender keep their order."""
        self.events.add(ScheduledEvent(0, (epoch, sender), partial(self._handle, epoch, sender, event)))

    def _handle(self, epoch: int, sender: str, event: ToCoordinator | Signal) -> None:
        if not isinstance(event, TaskReport | Tick):
            state = event.state.value if isinstance(event, TaskStateChanged) else ""
            self.context.note("event", self._title(sender), f"{type(event).__name__} {state}")
        coordinator = self._alive.get(epoch)
        if coordinator is not None:
            coordinator.handle(event)

    def _title(self, sender: str) -> str:
        return self.tasks.names.get(TaskAddress(sender), sender)

    def on_published(self, checkpoint_id: int) -> None:
        """Note a checkpoint that is complete, and let faults act before any task knows it."""
        completed = self.context.story.completed
        completed.append(checkpoint_id)
        self.context.faults.on_published(self._cluster, len(completed) - 1)

    # death and succession

    def drop_tasks(self, epoch: int) -> None:
        """Drop all tasks of a coordinator."""
        for attempt in self.tasks.of_epoch(epoch):
            self.tasks.drop(attempt)

    def kill_leader(self, zombie_ms: int) -> bool:
        """Kill the leader, or cut it off for a time in which it goes on; return False while there is none."""
        leader = self.leader
        if leader is None:
            return False
        goes_on = f"goes on for {zombie_ms} ms" if zombie_ms else ""
        self.context.note("kill", f"coordinator {self.epoch}", goes_on)
        if zombie_ms:
            leader.zombie_until_ms = self.context.clock.now_ms() + zombie_ms
        else:
            self._bury(leader)
        self.epoch += 1
        return True

    def _bury(self, coordinator: SimulatedCoordinator) -> None:
        """Remove a coordinator with its tasks; some of its requests to the storage are carried out."""
        epoch = coordinator.epoch
        del self._alive[epoch]
        self.drop_tasks(epoch)
        self.events.drop((epoch, _CLUSTER))
        self.events.drop((epoch, _ENUMERATOR))
        for attempt, its_epoch in self.tasks.epochs.items():
            if its_epoch == epoch:
                self.events.drop((epoch, attempt))
        self.storage.drop_file_work(epoch)
        coordinator.lose_file_work()

    def _take_over(self) -> None:
        """Let a new coordinator start from the contents of the storage; it is tried again where that fails."""
        who = f"coordinator {self.epoch}"
        try:
            beginning = recover_or_start(self._graph, self.context.new_id, self.storage.disk.storage)
        except (StorageError, Fenced, LedgerEnded) as error:
            self.context.note("take over", who, f"cannot begin: {error}")
            return
        self.context.note("take over", who, str([each.checkpoint_id for each in beginning.start.completed]))
        beginning = replace(beginning, start=self._with_history(beginning.start))
        self.latest = self._alive[self.epoch] = self._coordinator(beginning.laid_out(self._graph), beginning)
        self.savepoints.forget()
        self.context.story.coordinators += 1
        self.latest.start()

    def _with_history(self, start: JobStart) -> JobStart:
        """Return the start of a coordinator that has read the history; its counts stay, by which seeds are drawn."""
        history, mine = decode_history(self.history), start.past
        past = replace(history, restarts=mine.restarts, attempt=mine.attempt)
        past = replace(past, exceptions=(*history.exceptions, *mine.exceptions))
        return replace(start, past=past, began_ms=self.began_ms)

    # a source of events, and the clock

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the take-over while no coordinator leads."""
        return [] if self.epoch in self._alive else [self._take_over_event]

    def take(self, event: ScheduledEvent) -> None:
        """Do nothing: a take-over that fails is due again."""

    def times(self) -> Iterable[int]:
        """Return when coordinators want to be ticked, and when zombies end."""
        for coordinator in self._alive.values():
            yield from (coordinator.job.next_tick_ms or 0, coordinator.zombie_until_ms or 0)

    def end_zombies(self, now_ms: int, job_is_over: bool) -> None:
        """End the coordinators whose time beside their successor is over."""
        for coordinator in list(self._alive.values()):
            until_ms = coordinator.zombie_until_ms
            if until_ms is not None and (now_ms >= until_ms or job_is_over):
                self.context.note("end", f"coordinator {coordinator.epoch}")
                self._bury(coordinator)

    def tick(self) -> None:
        """Tick all coordinators."""
        for coordinator in self._alive.values():
            coordinator.tick()

    def tick_those_due(self, now_ms: int) -> None:
        """Tick the coordinators that want it now."""
        for coordinator in self._alive.values():
            coordinator.tick_if_due(now_ms)


__all__ = ["SimulatedCoordinator", "SimulatedCoordinators"]
