"""The tasks of a simulated cluster: when each may step, and how it is frozen or dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.local.task_executor import TaskCarrier, TaskExecutor
from rayflink.actors.messages.commands import DeployTask
from rayflink.actors.messages.messages import TaskReport
from rayflink.actors.task.progress import Mail
from rayflink.actors.task.task import StreamTask
from rayflink.common.options import registry as options

from .context import SimulationContext
from .random_slicer import RandomSlicer
from .scheduled_task import FOR_EVER, ScheduledTask
from .scheduler import ScheduledEvent
from .storage import SimulatedStorageWork


class SimulatedTasks:
    """The tasks that run, and the names of all that ever ran; a source of events: their starts and steps.

    Args:
        context: of the run.
        executor: runs the tasks.
        carrier: takes what they send.
        storage: takes what they write.
    """

    def __init__(
        self, context: SimulationContext, executor: TaskExecutor, carrier: TaskCarrier, storage: SimulatedStorageWork
    ) -> None:
        self._context, self._executor, self._carrier, self._storage = context, executor, carrier, storage
        self._scheduled: dict[TaskAddress, ScheduledTask] = {}
        self.names: dict[TaskAddress, str] = {}
        self.epochs: dict[TaskAddress, int] = {}
        """Attempt -> epoch of the coordinator that deployed it."""

    @property
    def running(self) -> Mapping[TaskAddress, StreamTask]:
        """Return the tasks that run, frozen ones too."""
        return self._executor.tasks

    @property
    def all_frozen(self) -> bool:
        """Return whether no task is left but frozen ones."""
        return all(scheduled.frozen_until_ms for scheduled in self._scheduled.values())

    @property
    def work_done(self) -> int:
        """Return a count that changes whenever a task received, worked or sent something."""
        return sum(task.work_done for task in self.running.values())

    def describe_waits(self) -> list[str]:
        """Describe what each task waits for, a line each."""
        return [f"  {self.names[attempt]} {task.waits_for()}" for attempt, task in self.running.items()]

    # a source of events

    def due(self, now_ms: int) -> Sequence[ScheduledEvent]:
        """Return the start or the next step of each task that may do something."""
        events = []
        for scheduled in self._scheduled.values():
            if not scheduled.has_started:
                events.append(scheduled.start)
            elif scheduled.frozen_until_ms or scheduled.busy_until_ms > now_ms:
                continue
            elif scheduled.is_awake or scheduled.mailbox or scheduled.due_ms <= now_ms:
                events.append(scheduled.step)
        return events

    def take(self, event: ScheduledEvent) -> None:
        """Do nothing: whether a task may step again is seen afterwards."""

    def times(self) -> Iterable[int]:
        """Return when tasks may step, thaw or end."""
        for scheduled in self._scheduled.values():
            yield from (scheduled.frozen_until_ms, scheduled.dies_at_ms or 0, scheduled.next_ms())

    def step_times(self) -> list[int]:
        """Return when each task may step, without those that wait for a message."""
        return [due for due in (scheduled.next_ms() for scheduled in self._scheduled.values()) if due < FOR_EVER]

    # the life of a task

    def deploy(self, command: DeployTask, epoch: int) -> None:
        """Create a task whose slices and batches are of random size; a later event starts it."""
        deployment = command.deployment
        attempt = deployment.attempt
        self.names[attempt], self.epochs[attempt] = deployment.name, epoch
        draw = self._context.draw
        drawn = {
            options.BATCH_MAX_ROWS.key: draw.choice((1, 2, 5, 100, 16_384)),
            options.BATCH_MAX_BYTES.key: draw.choice(("100 bytes", "400 bytes", "10 kb", "1 mb")),
            options.MAX_IN_FLIGHT_CALLS.key: draw.choice((1, 2, 3)),
        }
        deployment = replace(deployment, config={**drawn, **deployment.config})
        write = partial(self._storage.add_write, attempt, deployment.name)
        services = replace(self._executor.services, background=write, new_name=self._context.new_id)
        mailbox: deque[Mail] = deque()
        task = self._executor.create(deployment, services, mailbox, RandomSlicer(self._context.clock, draw))
        start = ScheduledEvent(0, attempt, partial(self._start, attempt))
        step = ScheduledEvent(0, attempt, partial(self._step, attempt))
        self._scheduled[attempt] = ScheduledTask(task, command.slot, mailbox, start, step)

    def _start(self, attempt: TaskAddress) -> None:
        scheduled = self._scheduled[attempt]
        scheduled.has_started = scheduled.is_awake = True
        self._context.note("start", self.names[attempt])
        self._executor.start(attempt)
        for report in scheduled.task.reports():
            self._carrier.post(report)

    def _step(self, attempt: TaskAddress) -> None:
        context, scheduled, name = self._context, self._scheduled[attempt], self.names[attempt]
        task = scheduled.task
        records_before = task.records_taken
        scheduled.is_awake = self._executor.step(attempt)
        context.note("step", name, "busy" if scheduled.is_awake else scheduled.sleep())
        peaks = context.story.peak_buffers
        peaks[name] = max(peaks.get(name, 0), task.buffers_held)
        delay_ms = context.faults.step_delay_ms(name, task.records_taken - records_before)
        task.metrics.worked_on(delay_ms / 1000)
        scheduled.busy_until_ms = context.clock.now_ms() + delay_ms
        if attempt not in self.running:
            del self._scheduled[attempt]

    def wake(self, attempt: TaskAddress) -> None:
        """Let a task step soon."""
        self._scheduled[attempt].is_awake = True

    def reports(self) -> list[TaskReport]:
        """Return a heartbeat of each task that can give one, and let these tasks look at their deadlines."""
        reports = []
        for scheduled in self._scheduled.values():
            if scheduled.has_started and not scheduled.frozen_until_ms:
                reports.append(scheduled.task.report())
                scheduled.is_awake = True
        return reports

    def drop(self, attempt: TaskAddress) -> None:
        """End a task without notice; what it has not written yet is never written."""
        del self._scheduled[attempt]
        self._storage.drop_writes(attempt)
        self._executor.drop(attempt)

    def is_cut_off(self, attempt: TaskAddress) -> bool:
        """Return whether a task goes on for a time where its coordinator cannot see it."""
        return self._scheduled[attempt].dies_at_ms is not None

    def freeze(self, attempt: TaskAddress, for_ms: int | None) -> None:
        """Let a task do nothing, for a time or for ever; after a time it goes on for as long again."""
        self._context.note("freeze", self.names[attempt])
        scheduled, now = self._scheduled[attempt], self._context.clock.now_ms()
        scheduled.frozen_until_ms = FOR_EVER if for_ms is None else now + for_ms
        if for_ms is not None:
            scheduled.dies_at_ms = now + 2 * for_ms

    def pass_time(self, now_ms: int, job_is_over: bool, is_given_up: Callable[[TaskAddress], bool]) -> None:
        """Thaw tasks, and end those whose time is over and whom their coordinator has given up."""
        for attempt, scheduled in list(self._scheduled.items()):
            if scheduled.frozen_until_ms and now_ms >= scheduled.frozen_until_ms:
                self._context.note("thaw", self.names[attempt])
                scheduled.frozen_until_ms, scheduled.is_awake = 0, True
            if scheduled.dies_at_ms is not None and (now_ms >= scheduled.dies_at_ms or job_is_over):
                scheduled.dies_at_ms = None
                if is_given_up(attempt):
                    self._context.note("end", self.names[attempt])
                    self.drop(attempt)

    # which tasks

    def named(self, name: str) -> list[TaskAddress]:
        """Return the tasks whose name has that part."""
        return [attempt for attempt in self.running if name in self.names[attempt]]

    def of_epoch(self, epoch: int) -> list[TaskAddress]:
        """Return the tasks that one coordinator has deployed."""
        return [attempt for attempt in self.running if self.epochs[attempt] == epoch]

    def in_slot(self, index: int) -> list[TaskAddress]:
        """Return the tasks of one slot, counted among those with tasks, modulo their number."""
        slots = sorted({scheduled.slot for scheduled in self._scheduled.values()})
        if not slots:
            return []
        slot = slots[index % len(slots)]
        return [attempt for attempt, scheduled in self._scheduled.items() if scheduled.slot == slot]


__all__ = ["SimulatedTasks"]
