"""Reserves the slots that a rescaling adds, on Ray, while the job still runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import ray.exceptions
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from rayflink.graph.job_graph import JobGraph

from ..job.submission import Submission
from ..messages.commands import AnswerRescale, RescaleRequested
from ..messages.scheduling import describe_bundles, more_bundles
from .driver.ray_resources import cluster_has


class MoreSlots:
    """Lets a request wait for its slots; the deciding thread calls.

    Args:
        submission: how the driver wants the job to run.
        timeout_s: longest time that a request waits.
        post: takes a request whose slots are reserved, from any thread.
        answer: reports that there are none, from any thread.
    """

    def __init__(
        self,
        submission: Submission,
        timeout_s: float,
        post: Callable[[RescaleRequested], None],
        answer: Callable[[AnswerRescale], None],
    ) -> None:
        self._submission, self._timeout_s, self._post, self._answer = submission, timeout_s, post, answer
        self._request: RescaleRequested | None = None
        self._group: PlacementGroup | None = None
        self.note = ""
        """The slots that a request waits for; "" for none."""

    @property
    def groups(self) -> list[PlacementGroup]:
        """Return the reserved slots: one placement group, or none."""
        return [] if self._group is None else [self._group]

    def hold(self, request: RescaleRequested, before: JobGraph, after: JobGraph) -> bool:
        """Return whether a request is not for the job yet: it waits for slots, or is answered already."""
        if self._request is not None:
            if request is not self._request:
                self._answer(AnswerRescale(request.request_id, failure="its parallelism is being changed already"))
            return request is not self._request
        bundles = more_bundles(before, after, self._submission.slot_cpus)
        if not bundles:
            return False
        self._request = request
        self._group = group = placement_group(bundles, strategy=self._submission.placement)
        wanted = describe_bundles(bundles)
        threading.Thread(target=self._await, args=(request, group, wanted), name="more slots", daemon=True).start()
        return True

    def answered(self, request_id: str) -> None:
        """Note that the job has answered a request."""
        if self._request is not None and self._request.request_id == request_id:
            self.give_back()

    def give_back(self) -> None:
        """Free the reserved slots: the job takes its slots now, or needs them no more."""
        group, self._group, self._request, self.note = self._group, None, None, ""
        if group is not None:
            remove_placement_group(group)

    def _await(self, request: RescaleRequested, group: PlacementGroup, wanted: str) -> None:
        begun = time.monotonic()
        while self._group is group:
            if group.wait(1):
                self.note = ""
                self._post(request)
                return
            try:
                room = cluster_has()
            except ray.exceptions.RayError:  # the next look may tell
                continue
            if time.monotonic() - begun > self._timeout_s:
                self.give_back()
                reason = f"there was no room for {wanted} more within {self._timeout_s:g} s: {room}"
                remedy = "choose fewer subtasks, add nodes, or raise slot.request.timeout; it runs on as it was"
                self._answer(AnswerRescale(request.request_id, failure=f"{reason}; {remedy}"))
                return
            self.note = f"waiting for {wanted} more, and runs on as it is until then; {room}"


__all__ = ["MoreSlots"]
