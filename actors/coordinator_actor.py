"""The coordinator of one job as a Ray actor: carries out what `JobMaster` decides.

It owns the task actors and their placement group, so that its end is theirs. One thread decides; calls only leave events.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rayflink.state.clock import SystemClock

from .commands import (
    CancelRequested,
    Command,
    DeployTask,
    EndJob,
    JobResult,
    KillTask,
    RequestSlots,
    SendToTask,
    Signal,
    SlotsGranted,
    StopRequested,
    TaskGone,
    Tick,
)
from .exchange.frames import TaskAddress
from .job import JobMaster
from .messages import ToCoordinator
from .scheduling import Slot
from .settings import JobSettings
from .task_actor import actor_class
from .user_code import unpack

log = logging.getLogger(__name__)

TICK_S = 0.2
LINGER_S = 60.0
"""How long the result of an ended job is kept for a driver that has not fetched it."""


class CoordinatorActor:
    """Shell around `JobMaster`; `coordinator_class()` makes the Ray class."""

    def __init__(self, program: bytes, cached_files: Mapping[str, str], slot_cpus: float) -> None:
        graph = unpack(program)
        self._program = ray.put(program)
        self._slot_cpus = slot_cpus
        self._settings = JobSettings.of(graph.configuration)
        self._clock = SystemClock()
        self._job = JobMaster(graph, lambda: os.urandom(16).hex(), cached_files)
        self._events: queue.Queue[ToCoordinator | Signal] = queue.Queue()
        self._actors: dict[TaskAddress, Any] = {}
        self._group: PlacementGroup | None = None
        self._bundles: dict[Slot, int] = {}
        self._granted = False
        self._me: Any = None
        self._ended = threading.Event()
        self._result: JobResult | None = None
        self._owner_seen = time.monotonic()
        self._owner_timeout_s: float | None = None
        self._fault: str | None = None

    @ray.method(concurrency_group="control")
    def start(self, owner_timeout_ms: int | None) -> None:
        """Begin; with `owner_timeout_ms` the job is cancelled when its driver has not been heard of for so long."""
        self._me = ray.get_runtime_context().current_actor
        self._owner_timeout_s = None if owner_timeout_ms is None else owner_timeout_ms / 1000
        threading.Thread(target=self._decide, name="coordinator", daemon=True).start()

    @ray.method(concurrency_group="events")
    def report(self, reports: list[ToCoordinator]) -> None:
        """What a task has to say."""
        for item in reports:
            self._events.put(item)

    @ray.method(concurrency_group="control")
    def cancel(self, by: str) -> None:
        """Ask for cancellation."""
        self._events.put(CancelRequested(by))

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """Let the sources end."""
        self._events.put(StopRequested())

    @ray.method(concurrency_group="control")
    def status(self) -> dict[str, Any]:
        """The job as plain data; also tells that the driver lives."""
        self._owner_seen = time.monotonic()
        described = self._job.describe()
        described["slots"] = "granted" if self._granted else f"waiting for {len(self._bundles)} slots"
        if self._fault is not None:
            described["fault"] = self._fault
        return described

    @ray.method(concurrency_group="wait")
    def result(self, timeout_s: float) -> JobResult | None:
        """The result, or None when the job has not ended within `timeout_s`."""
        self._owner_seen = time.monotonic()
        self._ended.wait(timeout_s)
        if self._fault is not None:
            raise RuntimeError(self._fault)
        return self._result

    def _decide(self) -> None:
        try:
            self._carry_out(self._job.start(self._clock.now_ms()))
            last_tick = 0.0
            while self._result is None:
                self._next_event()
                now = time.monotonic()
                if now - last_tick >= TICK_S:
                    last_tick = now
                    self._tick(now)
            self._ended.set()
            time.sleep(LINGER_S)
        except Exception as error:  # the last resort: whoever waits for the job must learn of it
            log.exception("coordinator failed")
            self._fault = f"the coordinator of job {self._job.graph.name!r} failed: {type(error).__name__}: {error}"
            self._release()
            self._ended.set()
            time.sleep(LINGER_S)
        os._exit(0)

    def _next_event(self) -> None:
        try:
            event = self._events.get(timeout=TICK_S)
        except queue.Empty:
            return
        self._carry_out(self._job.handle(event, self._clock.now_ms()))

    def _tick(self, now: float) -> None:
        if self._group is not None and not self._granted and self._group.wait(0.001):
            self._granted = True
            self._carry_out(self._job.handle(SlotsGranted(), self._clock.now_ms()))
        if self._owner_timeout_s is not None and now - self._owner_seen > self._owner_timeout_s:
            self._owner_timeout_s = None
            self._events.put(CancelRequested("the loss of its driver"))
        self._carry_out(self._job.handle(Tick(), self._clock.now_ms()))

    def _carry_out(self, commands: list[Command]) -> None:
        deploys = [command for command in commands if isinstance(command, DeployTask)]
        if deploys:
            self._deploy(deploys)
        for command in commands:
            if isinstance(command, RequestSlots):
                self._request(command.slots)
            elif isinstance(command, SendToTask):
                actor = self._actors.get(command.attempt)
                if actor is not None:
                    actor.command.remote(command.message)
            elif isinstance(command, KillTask):
                actor = self._actors.get(command.attempt)
                if actor is not None:
                    ray.kill(actor)
            elif isinstance(command, EndJob):
                self._release()
                self._result = command.result

    def _request(self, slots: tuple[Slot, ...]) -> None:
        self._bundles = {slot: index for index, slot in enumerate(slots)}
        bundles = [{"CPU": self._slot_cpus} for _ in slots]
        self._group = placement_group(bundles, strategy="PACK", name=f"rayflink/{self._job.graph.id}")
        if self._group.wait(1):
            self._granted = True
            self._events.put(SlotsGranted())

    def _deploy(self, deploys: list[DeployTask]) -> None:
        """Make all actors first, so that each can be told its peers."""
        blueprint = actor_class()
        for command in deploys:
            deployment = command.deployment
            strategy = PlacementGroupSchedulingStrategy(self._group, self._bundles[command.slot])
            cpus = int(self._slot_cpus * command.share * 10_000) / 10_000
            name = f"{deployment.job_id}/{deployment.attempt}"
            self._actors[deployment.attempt] = blueprint.options(
                name=name, num_cpus=cpus, max_restarts=0, scheduling_strategy=strategy
            ).remote()
        report_ms = min(self._settings.heartbeat_interval_ms, 1000)
        addresses = ray.put(dict(self._actors))
        for command in deploys:
            deployment = replace(command.deployment, operators=())
            actor = self._actors[deployment.attempt]
            running = actor.run.remote(self._program, deployment, addresses, self._me, report_ms)
            self._watch(running, deployment.attempt)

    def _watch(self, running: Any, attempt: TaskAddress) -> None:
        def ended(future: Any) -> None:
            error = future.exception()
            if error is not None:
                self._events.put(TaskGone(attempt, f"{type(error).__name__}: {error}"))

        running.future().add_done_callback(ended)

    def _release(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor)
        self._actors.clear()
        if self._group is not None:
            remove_placement_group(self._group)
            self._group = None


def coordinator_class() -> Any:
    """The Ray actor class: events in order in one thread, control calls and waiting drivers in others."""
    groups = {"events": 1, "control": 1, "wait": 2}
    return ray.remote(num_cpus=0, concurrency_groups=groups)(CoordinatorActor)
