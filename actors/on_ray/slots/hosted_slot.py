"""A slot that shares its process with others, as others call it: like the actor of one with a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..coordinators.hosted_coordinator import HostedCall
from ..ray_handles import RayActor

SLOT_CALLS = ("deliver", "command", "submit", "run", "close")
"""Calls of one slot."""
PROCESS_CALLS = ("threads", "figures", "log_files", "log", "profile")
"""Calls of the process, for all its slots."""


@dataclass(frozen=True)
class HostedSlot:
    """A slot that shares its process; it has the calls of `SlotActor`, each with its `remote`.

    Args:
        host: the process.
        token: of the slot: no other has it.
    """

    host: RayActor = field(compare=False)
    token: str

    @property
    def __ray_ready__(self) -> object:
        """Return the call that is answered once the process is there."""
        return self.host.__ray_ready__

    def __getattr__(self, name: str) -> object:
        if name in SLOT_CALLS:
            return HostedCall(getattr(self.host, name), self.token)
        if name in PROCESS_CALLS:
            return getattr(self.host, name)
        raise AttributeError(name)


__all__ = ["PROCESS_CALLS", "SLOT_CALLS", "HostedSlot"]
