"""A coordinator that shares its process, as others call it: like the actor of one with a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from ray.exceptions import ActorDiedError

from ..coordinator_actor import CALLS
from ..ray_handles import RayActor, RayRef
from .job_places import JobPlaces

OWN_CALLS = ("start", "withdraw")
"""Calls that the process answers itself."""
CALL_NAMES = frozenset((*OWN_CALLS, *(name for calls in CALLS.values() for name in calls.names)))


class CoordinatorGone(Exception):
    """The process has no coordinator of this start: it has ended, or never began."""


class CoordinatorBusy(Exception):
    """The coordinator starts, or comes back, and answers soon."""


def is_gone(error: BaseException) -> bool:
    """Return whether a call failed because its coordinator is dead."""
    return isinstance(error, ActorDiedError) or isinstance(getattr(error, "cause", None), CoordinatorGone)


@dataclass(frozen=True)
class HostedCall:
    """A call of one coordinator or slot in a process that has several: `remote` makes it.

    Args:
        method: of the actor.
        token: of the coordinator or slot.
    """

    method: RayActor
    token: str

    def remote(self, *arguments: object) -> RayRef:
        """Make the call, and return the reference to its answer."""
        return self.method.remote(self.token, *arguments)


@dataclass(frozen=True)
class HostedCoordinator:
    """A coordinator that shares its process; it has the calls of `CoordinatorActor`, each with its `remote`.

    Args:
        host: the process.
        namespace: Ray namespace of the job.
        token: of the start of the job: no other coordinator has it.
    """

    host: RayActor = field(compare=False)
    namespace: str
    token: str

    def free(self) -> None:
        """Free the place of its job, which it has no longer."""
        JobPlaces.of_cluster(self.namespace).free(self.token)

    def __getattr__(self, name: str) -> HostedCall:
        if name not in CALL_NAMES:
            raise AttributeError(name)
        return HostedCall(getattr(self.host, name), self.token)


__all__ = ["CALL_NAMES", "CoordinatorBusy", "CoordinatorGone", "HostedCall", "HostedCoordinator", "is_gone"]
