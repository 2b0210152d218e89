"""The context that all parts of a simulated cluster share: chance, the time, the faults and the story."""

from __future__ import annotations

import random
from collections.abc import Sequence

from rayflink.state.clock import ManualClock

from ..faults import Fault
from ..story import Happening, Story
from .fault_plan import FaultPlan
from .scheduler import Scheduler

START_MS = 1_000_000
"""The virtual time at which a run begins."""


class SimulationContext:
    """The shared parts of one run.

    Args:
        seed: of all choices.
        faults: what goes wrong.
    """

    def __init__(self, seed: int, faults: Sequence[Fault]) -> None:
        self.draw = random.Random(seed)
        self.clock = ManualClock(START_MS)
        self.faults = FaultPlan(faults, self.draw)
        self.story = Story(seed)
        self.scheduler = Scheduler(self.clock, self.draw)

    def note(self, what: str, who: str, detail: str = "") -> None:
        """Write a line of the story."""
        self.story.happenings.append(Happening(self.scheduler.move, self.clock.now_ms(), what, who, detail))

    def new_id(self) -> str:
        """Draw an id of 32 hex digits."""
        return f"{self.draw.getrandbits(128):032x}"


__all__ = ["SimulationContext"]
