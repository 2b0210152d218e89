"""The slots of a job that has finished, with their processes, which the next job of the same program takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ray
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, remove_placement_group

from rayflink.common.text_output.logs import get_logger

from ..ray_handles import RayActor
from .deployment_check import SlotAssignment

log = get_logger(__name__)

ANSWER_WITHIN_S = 10.0
"""A process that has waited and does not answer by then is lost."""
LEAST_TASKS = 16
"""Tasks that a slot whose process may wait for another job can run at least; that job may have more than the first."""


@dataclass(frozen=True, slots=True)
class IdleSlots:
    """Slots that wait for a job.

    Args:
        group: their placement group.
        placement: its strategy.
        bundles: what each slot has of the cluster, in the order of the group.
        actors: the process of each.
        tasks: how many tasks a process can run at a time.
    """

    group: PlacementGroup
    placement: str
    bundles: Sequence[Mapping[str, float]]
    actors: Sequence[RayActor]
    tasks: int

    def fits(self, bundles: Sequence[Mapping[str, float]], placement: str, tasks: int) -> bool:
        """Return whether a job that asks for such slots can have these.

        >>> IdleSlots(None, "PACK", [{"CPU": 1.0}], ["actor"], 16).fits([{"CPU": 1.0}], "PACK", 3)
        True
        """
        return [*bundles] == [*self.bundles] and placement == self.placement and tasks <= self.tasks

    def assign(self, assignments: Sequence[SlotAssignment]) -> bool:
        """Assign the processes to slots of another job, and return whether all of them still live."""
        calls = [actor.assign.remote(assignment) for actor, assignment in zip(self.actors, assignments, strict=True)]
        try:
            ray.get(calls, timeout=ANSWER_WITHIN_S)
        except RayError as error:
            log.warning("a process that waited for another job is lost: %s", error)
            return False
        return True

    def release(self) -> None:
        """End the processes, and free the slots."""
        for actor in self.actors:
            ray.kill(actor)
        remove_placement_group(self.group)


__all__ = ["LEAST_TASKS", "IdleSlots"]
