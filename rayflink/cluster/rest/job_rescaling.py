"""Requests for other parallelisms of a job while it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document, JobHasEnded, UnknownJob
from .typed_requests import EMPTY, Empty, TypedEndpoint, hex_id, versioned

__all__ = ["JobRescaling"]

WAIT_S = 2.0
"""Seconds for which a request waits for the outcome; what takes longer goes on after the answer."""
Bound = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
VertexId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")]


class ParallelismBounds(msgspec.Struct, rename="camel", frozen=True):
    """The numbers of subtasks that a vertex may have.

    Args:
        lower_bound: the least; it is checked and otherwise without effect: a job runs with as many as asked for.
        upper_bound: the number that it gets.
    """

    lower_bound: Bound
    upper_bound: Bound


class WantedResources(msgspec.Struct, frozen=True):
    """The resources of a vertex.

    Args:
        parallelism: bounds of its subtasks.
    """

    parallelism: ParallelismBounds


class JobRescaling:
    """Answers requests for other parallelisms.

    Args:
        jobs: of the cluster.

    Source: apache/flink JobResourceRequirementsUpdateHandler, JobResourceRequirements.validate, RescalingHandlers.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._jobs = jobs

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        job, name = "/jobs/{jobid}", "JobResourceRequirementsBody"
        update = TypedEndpoint(self._update, None, dict[VertexId, WantedResources], name)
        refused = TypedEndpoint(self._refuse)
        return [
            *versioned("PUT", f"{job}/resource-requirements", update, Role.OPERATE),
            *versioned("PATCH", f"{job}/rescaling", refused, Role.OPERATE),
            *versioned("GET", f"{job}/rescaling/{{triggerid}}", refused, Role.READ),
        ]

    def _update(self, request: JsonRequest, body: Mapping[str, WantedResources]) -> Empty:
        """Change the parallelism of a running job in place, each vertex to its upper bound."""
        job_id = hex_id(request, "jobid")
        if not body:
            raise Refusal(400, "Request body does not specify resource requirements.")
        try:
            job = self._jobs.running(job_id)
            present, described = job.status(), job.description()
        except (UnknownJob, JobHasEnded) as error:
            raise Refusal(404, str(error)) from error
        wanted = {vertex.lower(): requirements.parallelism for vertex, requirements in body.items()}
        problems = [*_problems(wanted, present, described)]
        if problems:
            raise Refusal(400, "\n".join(problems))
        now = {str(vertex["id"]): int(vertex["parallelism"]) for vertex in present["vertices"]}
        changed = {vertex: bounds.upper_bound for vertex, bounds in wanted.items() if bounds.upper_bound != now[vertex]}
        if changed:
            outcome = job.rescale(os.urandom(16).hex(), changed, WAIT_S)
            if outcome is not None and outcome[1]:
                raise Refusal(409, outcome[1])
        return EMPTY

    def _refuse(self, request: JsonRequest) -> Empty:
        """Refuse Flink's earlier request for another parallelism."""
        problem = "Rescaling is temporarily disabled. See FLINK-12312."
        raise Refusal(503, problem, "send PUT /jobs/:jobid/resource-requirements")


def _problems(wanted: Mapping[str, ParallelismBounds], status: Document, description: Document) -> Iterator[str]:
    """Yield in Flink's words why a job cannot have these parallelisms."""
    most = {str(vertex["id"]): int(vertex["max_parallelism"]) for vertex in description["vertices"]}
    known = [str(vertex["id"]) for vertex in status["vertices"]]
    for vertex, bounds in wanted.items():
        lower, upper = bounds.lower_bound, bounds.upper_bound
        if vertex not in known:
            yield f"Job vertex [{vertex}] was not found in the JobGraph."
            continue
        if lower < 1 or upper < 1:
            yield f"The requested bounds [{lower}] and [{upper}] for job vertex [{vertex}] must be greater than zero."
        elif lower > upper:
            problem = f"The requested lower bound [{lower}] for job vertex [{vertex}]"
            yield f"{problem} is higher than the upper bound [{upper}]."
        limit = most.get(vertex, 0)
        if 0 < limit < upper:
            problem = f"The newly requested parallelism {upper} for the job vertex {vertex}"
            yield f"{problem} exceeds its maximum parallelism {limit}."
    for vertex in known:
        if vertex not in wanted:
            yield f"The request is incomplete, missing job vertex [{vertex}] resource requirements."
