"""The processes that slots share, as the coordinators of one process find, make and end them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import ray
from ray import ObjectRef
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.common.text_output.logs import get_logger

from .deployment_check import SlotAssignment
from .hosted_slot import HostedSlot
from .slot_host import SlotHost, host_class

log = get_logger(__name__)

IDLE_S = 20.0
"""Time after which a process of which no job has a slot ends."""
CLOSES_WITHIN_S = 4.0
"""Time for the tasks of a slot that is given up to end; the process ends where they do not, with all its slots."""
ANSWERS_WITHIN_S = 60.0
"""Time for a process to answer, which may be starting; it ends where it does not."""
MARGIN_S = 1.0
LEAST_TASKS = 4
"""Tasks that a slot of a shared process can run at least, so that jobs with fewer share one."""


@dataclass(frozen=True)
class HostKind:
    """The properties that slots must have in common to share a process.

    >>> HostKind.of(8, 3) == HostKind.of(8, 1), HostKind.of(8, 5)
    (True, HostKind(slots=8, tasks=8))

    Args:
        slots: the number of slots of a process.
        tasks: that each slot can run at a time.
    """

    slots: int
    tasks: int

    @classmethod
    def of(cls, slots: int, tasks: int) -> HostKind:
        """Return the kind for a job whose slots run at most `tasks` tasks, rounded up to a power of two."""
        return cls(slots, max(LEAST_TASKS, 1 << (tasks - 1).bit_length()))


@dataclass(eq=False)
class _Host:
    actor: ActorHandle[SlotHost]
    ready: ObjectRef[bool]
    """Answered once the process is there."""
    node: str
    kind: HostKind
    tokens: set[str] = field(default_factory=set)
    idle_since: float = 0.0


@dataclass(frozen=True)
class _Closing:
    """A slot whose process has not answered yet that it is closed.

    Args:
        call: that closes it.
        slot: that closes.
        until: when the process ends if it has not answered, seconds, monotonic.
    """

    call: ObjectRef[bool]
    slot: HostedSlot
    until: float


class SlotHosts:
    """Finds a process with room for each slot, and makes one where there is none; any thread may call.

    It belongs to a process of coordinators, whose jobs may share processes of slots: that process has a single job at a
    time, or many with the same packages, log levels, and no classes of their scripts. The processes end with it.

    Args:
        name: with which the names of the processes begin; None: with the id of the job that has asked for it.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._hosts: list[_Host] = []
        self._lost: deque[ActorHandle[SlotHost]] = deque()
        self._not_killed: list[_Host] = []
        """Processes that get no slots any more, and that could not be ended yet."""
        self._closing: list[_Closing] = []
        self._is_watching = False

    def missing(self, kind: HostKind, nodes: Sequence[str]) -> int:
        """Return how many processes would start for slots on these nodes, as it is now.

        Args:
            kind: of process.
            nodes: of each slot.
        """
        self._end_lost()
        with self._lock:
            processes = 0
            for node in set(nodes):
                room = sum(kind.slots - len(host.tokens) for host in self._of(kind, node))
                processes += max(0, -(-(nodes.count(node) - room) // kind.slots))
            return processes

    def has(self, slot: HostedSlot) -> bool:
        """Return whether the process of a slot lives, as far as is known."""
        self._end_lost()
        with self._lock:
            return any(slot.token in host.tokens for host in self._hosts)

    def take(self, kind: HostKind, node: str, assignment: SlotAssignment) -> HostedSlot:
        """Return a slot in a process on a node.

        Args:
            kind: of process.
            node: Ray's id of it.
            assignment: which deployments the slot accepts.
        """
        self._end_lost()
        with self._lock:
            hosts = sorted(self._of(kind, node), key=lambda host: -len(host.tokens))
            host = next((host for host in hosts if len(host.tokens) < kind.slots), None)
            if host is None:
                host = self._make(kind, node, assignment)
            token = f"{assignment.job_id}/{os.urandom(8).hex()}"
            host.tokens.add(token)
        slot = HostedSlot(host.actor, token)
        slot.host.open.remote(token, assignment)
        return slot

    def _of(self, kind: HostKind, node: str) -> list[_Host]:
        return [host for host in self._hosts if (host.kind, host.node) == (kind, node)]

    def _make(self, kind: HostKind, node: str, assignment: SlotAssignment) -> _Host:
        blueprint = host_class(kind.slots, kind.tasks).options(
            name=f"{self._name or assignment.job_id}/slots/{os.urandom(4).hex()}",
            namespace=assignment.namespace,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        actor = blueprint.remote(kind.slots)
        host = _Host(actor, actor.__ray_ready__.remote(), node, kind)
        self._hosts.append(host)
        actor.exist.remote().future().add_done_callback(lambda call: self._lost.append(actor))
        if not self._is_watching:
            self._is_watching = True
            threading.Thread(target=self._watch, name="shared slots", daemon=True).start()
        return host

    def end(self, slots: Iterable[HostedSlot]) -> None:
        """End slots: their tasks are cancelled, and where one does not end, its process does.

        A process that starts, and has no task yet, is waited for beside the caller.
        """
        closing = [self._begin_to_close(slot) for slot in slots]
        if closing:
            calls = [each.call for each in closing]
            ray.wait(calls, num_returns=len(calls), timeout=CLOSES_WITHIN_S + MARGIN_S)
            self._end_closed(closing, time.monotonic())

    def close(self, slot: HostedSlot) -> None:
        """End a slot like `end`, and return at once."""
        closing = self._begin_to_close(slot)
        with self._lock:
            self._closing.append(closing)

    def _begin_to_close(self, slot: HostedSlot) -> _Closing:
        with self._lock:
            ready = [host.ready for host in self._hosts if slot.token in host.tokens]
        starts = bool(ready and ray.wait(ready, timeout=0)[1])
        within_s = ANSWERS_WITHIN_S if starts else CLOSES_WITHIN_S + MARGIN_S
        call = slot.host.close.remote(slot.token, CLOSES_WITHIN_S)
        return _Closing(call, slot, time.monotonic() + within_s)

    def _end_closed(self, closing: Iterable[_Closing], now: float) -> None:
        """Give back the slots that are closed, end the processes of those that do not close, and keep the others."""
        for each in closing:
            try:
                has_ended, problem = ray.get(each.call, timeout=0), "its tasks do not end"
            except GetTimeoutError:
                if now < each.until:
                    with self._lock:
                        self._closing.append(each)
                    continue
                has_ended, problem = False, "it does not answer"
            except Exception as error:  # whatever Ray raises: it is dead, or cannot be reached
                has_ended, problem = False, str(error)
            if has_ended:
                self._give_back(each.slot)
            else:
                log.warning("the process of slot %s is ended, with all its slots: %s", each.slot.token, problem)
                self.end_process(each.slot)

    def end_process(self, slot: HostedSlot) -> None:
        """End the process of a slot, with all its slots."""
        self.lost(slot)
        self._end_lost()

    def lost(self, slot: HostedSlot) -> None:
        """Note that the process of a slot is dead, or cannot be reached; it gets no slots, and is ended.

        This returns at once: Ray calls it in the thread that brings all answers, also to those who hold the lock.
        """
        self._lost.append(slot.host)

    def _end_lost(self) -> None:
        lost = []
        with suppress(IndexError):  # another thread may be faster
            while self._lost:
                lost.append(self._lost.popleft())
        if lost:
            self._drop(lambda host: any(host.actor is actor for actor in lost))

    def _drop(self, is_meant: Callable[[_Host], bool]) -> None:
        """End processes, which get no slots any more; those that cannot be ended are tried again by `tick`."""
        with self._lock:
            dropped = [*self._not_killed, *filter(is_meant, self._hosts)]
            self._hosts = [host for host in self._hosts if host not in dropped]
            self._not_killed = []
        for host in dropped:
            try:
                ray.kill(host.actor)
            except Exception as error:  # whatever Ray raises while its control service is away
                log.warning("a process of slots could not be ended yet: %s", error)
                with self._lock:
                    self._not_killed.append(host)

    def _give_back(self, slot: HostedSlot) -> None:
        with self._lock:
            for host in self._hosts:
                if slot.token in host.tokens:
                    host.tokens.remove(slot.token)
                    host.idle_since = time.monotonic()

    def _watch(self) -> None:
        while True:
            time.sleep(1)
            try:
                self.tick(time.monotonic())
            except Exception:  # whatever Ray raises while its control service is away
                log.exception("shared processes of slots could not be looked after; this is tried again")

    def tick(self, now: float) -> None:
        """End the processes that are lost, that do not close a slot, and of which no job has had a slot for long.

        Args:
            now: seconds, monotonic.
        """
        self._end_lost()
        with self._lock:
            closing, self._closing = self._closing, []
        self._end_closed(closing, now)
        self._drop(lambda host: not host.tokens and now - host.idle_since > IDLE_S)


__all__ = ["HostKind", "SlotHosts"]
