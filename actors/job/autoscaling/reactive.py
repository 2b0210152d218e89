"""Reactive mode: a job takes what slots there are, and grows and shrinks as they come and go. Pure.

Source: apache/flink AdaptiveScheduler with `scheduler-mode: reactive`, DefaultStateTransitionManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.options import autoscaler_options as options
from rayflink.common.options.autoscaler_options import SchedulerMode
from rayflink.graph.job_graph import JobGraph, ScheduleMode

from ...messages.scheduling import required_slots
from ..rescaled_graph import rescaled_graph
from .figures import facts_of


@dataclass(frozen=True, slots=True)
class ReactiveSettings:
    """The settings of reactive mode; times in milliseconds.

    Args:
        stabilization_ms: time for which the number of slots has to stay.
        cooldown_ms: time after a start or a rescaling within which a job does not grow.
    """

    enabled: bool = False
    stabilization_ms: int = 60_000
    cooldown_ms: int = 30_000

    @classmethod
    def of(cls, config: Mapping[str, object]) -> ReactiveSettings:
        """Parse the settings from option key -> value.

        Raises:
            ConfigError: a value does not parse.
        """
        get = Configuration.from_dict(dict(config)).get
        return cls(
            get(options.SCHEDULER_MODE) is SchedulerMode.REACTIVE,
            get(options.RESOURCE_STABILIZATION).to_millis(),
            get(options.RESCALE_COOLDOWN).to_millis(),
        )


class ReactiveScaling:
    """The number of slots that a cluster has for a job, and the layout that fits into them.

    Args:
        config: of the job, option key -> value.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self.settings = ReactiveSettings.of(config)
        self.request_id = ""
        """The request for more subtasks that is not answered yet; "" for none."""
        self._slots: int | None = None
        self._since_ms = 0

    def slots_seen(self, slots: int, now_ms: int) -> None:
        """Note how many slots there are for the job, those that it has among them."""
        if slots != self._slots:
            self._slots, self._since_ms = slots, now_ms

    def fitting(self, graph: JobGraph, now_ms: int) -> JobGraph | None:
        """Return the job as it fits into the slots, once their number has stayed for a time; None where it does."""
        slots = self._slots
        if not self.settings.enabled or not slots or now_ms - self._since_ms < self.settings.stabilization_ms:
            return None
        fitted = fitted_graph(graph, slots)
        return None if fitted == graph else fitted

    def may_grow(self, running_ms: int, now_ms: int) -> bool:
        """Return whether a job that has run since a time may ask for more subtasks."""
        return not self.request_id and now_ms - running_ms >= self.settings.cooldown_ms

    def answered(self, request_id: str) -> None:
        """Note that a request was answered."""
        if request_id == self.request_id:
            self.request_id = ""


def fitted_graph(graph: JobGraph, slots: int) -> JobGraph:
    """Return a job with as many subtasks as fit into slots, at least one of each vertex.

    Each group of vertices that share slots gets the same number of them. A job in batch mode stays as it is.
    """
    if graph.schedule_mode is not ScheduleMode.EAGER:
        return graph
    groups = {vertex.slot_sharing_group for vertex in graph.vertices}
    width, facts = max(1, slots // len(groups)), facts_of(graph)
    wanted = {}
    for vertex_id, vertex in facts.items():
        members = [facts[each] for each in vertex.group]
        if not any(each.is_fixed for each in members):
            wanted[vertex_id] = min(width, *(each.most for each in members), 1 << 30)
    return rescaled_graph(graph, wanted)


def is_larger(graph: JobGraph, other: JobGraph) -> bool:
    """Return whether a job needs more slots than in another layout."""
    return len(required_slots(graph)) > len(required_slots(other))


__all__ = ["ReactiveScaling", "ReactiveSettings", "fitted_graph", "is_larger"]
