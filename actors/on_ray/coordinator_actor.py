"""The coordinator of one job as a Ray actor: one forwarding method for each call in `CALLS`.

A driver and the tasks load this module to call the actor; what it does is loaded in its own process alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray

from rayflink.common.text_output.plain_table import printable

from .ray_handles import RayActorClass

if TYPE_CHECKING:
    from ..job.submission import Stored, Submission


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls that wait for each other only: no other call takes their threads.

    Args:
        threads: how many of them run at a time; with one they run in the order of their arrival.
        names: of methods of `Coordinator`.
    """

    threads: int
    names: tuple[str, ...]


CALLS = {
    "control": CallGroup(1, ("cancel", "stop", "status", "description", "checkpoints", "accumulators")),
    "wait": CallGroup(4, ("answer_to", "result", "rows")),
    "follow": CallGroup(1, ("follow",)),
    "events": CallGroup(1, ("report", "process_of")),
    "prints": CallGroup(1, ("printed",)),
    "rows": CallGroup(1, ("collected",)),
}
"""Concurrency group of the actor -> the calls that other processes make of a coordinator.

- control: calls of clients that return at once.
- wait: calls of clients that wait, each at most for its timeout.
- follow: the driver asks for news all the time, and shows so that it lives.
- events: reports of tasks, in the order of their arrival, and the addresses of their peers.
- prints, rows: output of tasks; such a call returns when the driver has room for more.

`start` is in the group control too, and `withdraw` in wait; the actor itself takes note of these two.
"""
START_WITHIN_S = 120.0
"""A coordinator that has no job by then has lost its driver, which waits less long for it to begin."""


class ExpectedStart:
    """The start that a new process expects: it arrives, or the process is withdrawn, and never both.

    >>> expected = ExpectedStart()
    >>> expected.withdraw(), expected.arrive()
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_arrived = self._is_withdrawn = False

    def arrive(self) -> bool:
        """Note that a start has arrived, and return whether it may go on: the process is not withdrawn."""
        with self._lock:
            self._has_arrived = not self._is_withdrawn
            return self._has_arrived

    def fail(self) -> None:
        """Note that the start has failed, so that the process has no job."""
        with self._lock:
            self._has_arrived = False

    def withdraw(self) -> bool:
        """Refuse each start from now on, unless one has arrived; return whether they are refused."""
        with self._lock:
            self._is_withdrawn = not self._has_arrived
            return self._is_withdrawn


class CoordinatorActor:
    """A `Coordinator` as other processes call it, by the methods in `CALLS`; `coordinator_class()` makes the Ray class.

    Where its process is lost, Ray makes another one by the same call: that one goes on with the job as it is stored.

    Args:
        job_id: 32 hex digits.
        stored: where the job is; None: nowhere, and it is lost with this process.
        title: name and id of the job, for people.

    Raises: when it comes back, what keeps it from going on.
    """

    def __init__(self, job_id: str, stored: Stored | None = None, title: str = "") -> None:
        from .ray_coordinator import Coordinator  # slow: it loads numpy

        self._title = title or job_id
        self._coordinator = Coordinator(stored)
        self._started = threading.Event()
        self._expected = ExpectedStart()
        if ray.get_runtime_context().was_current_actor_reconstructed:
            self._expected.arrive()
            self._coordinator.come_back(job_id)
            self._started.set()
            return
        threading.Thread(target=self._expect_start, name="start", daemon=True).start()

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return f"coordinator of {printable(self._title)}"

    def _expect_start(self) -> None:
        """End a detached process whose driver died before it submitted the job."""
        if not self._started.wait(START_WITHIN_S):
            self._coordinator.leave()

    # calls of the driver

    @ray.method(concurrency_group="control")
    def start(self, submission: Submission) -> None:
        """Start the job; another one, where the earlier one has finished and its processes wait.

        Raises: whatever loading the program here raises.
        """
        if not self._expected.arrive():
            self._coordinator.leave()  # whoever has called learns of the end: a refusal would be taken for the job's
        try:
            if self._started.is_set():
                self._coordinator = self._coordinator.successor()
            self._coordinator.start(submission)
        except BaseException:
            self._expected.fail()
            raise
        self._started.set()

    @ray.method(concurrency_group="wait")
    def withdraw(self) -> bool:
        """Refuse each start from now on, unless one has arrived; return whether they are refused.

        A dispatcher asks that which finds this process and has not made it: the one before may have died in between.
        """
        return self._expected.withdraw()


def _forwarded(name: str, group: str) -> Callable[..., Any]:
    """Return the method of the actor that calls the method `name` of its `Coordinator`, in a thread of the group."""

    def call(self: CoordinatorActor, *arguments: Any) -> Any:
        return getattr(self._coordinator, name)(*arguments)

    call.__name__, call.__qualname__ = name, f"CoordinatorActor.{name}"
    call.__doc__ = f"Call `Coordinator.{name}`, which describes arguments and result."
    decorated: Callable[..., Any] = ray.method(concurrency_group=group)(call)
    return decorated


for _group, _calls in CALLS.items():
    for _name in _calls.names:
        setattr(CoordinatorActor, _name, _forwarded(_name, _group))


def coordinator_class() -> RayActorClass:
    """Return the Ray actor class, with the threads of `CALLS`."""
    groups = {group: calls.threads for group, calls in CALLS.items()}
    options: dict[str, Any] = {
        "num_cpus": 0, "max_restarts": 0, "concurrency_groups": groups, "enable_task_events": False,
    }  # fmt: skip
    return ray.remote(**options)(CoordinatorActor)
