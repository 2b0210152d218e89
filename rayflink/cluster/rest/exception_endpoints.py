"""The request for the failures of a job: each with those that came with it, the newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

import msgspec

from rayflink.serving.json_requests import JsonRequest, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document
from ..jobs.cluster_process import process_of
from .job_lookup import JobLookup
from .typed_requests import TypedEndpoint, bad_parameter, versioned

__all__ = ["ExceptionEndpoints", "failure_stack"]

SHOWN = 20
"""Failures of an answer where the request does not say how many."""
OF_USER, OF_SYSTEM = "USER", "SYSTEM"
"""Values of the label "type": the failure was in a function of the program, or not."""


class ExceptionQuery(msgspec.Struct, rename="camel", frozen=True):
    """The parameters of the request.

    Args:
        max_exceptions: failures of the answer at most, the newest.
        failure_label_filter: labels that they have: "key:value", several with commas.
    """

    max_exceptions: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = SHOWN
    failure_label_filter: str = ""


class ExceptionInfo(TypedDict, total=False):
    """A failure; one of the job as a whole has neither task nor process."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    failureLabels: dict[str, str]
    taskName: str
    endpoint: str
    taskManagerId: str


class RootException(ExceptionInfo, total=False):
    """A failure with those that came before the job had restarted."""

    concurrentExceptions: list[ExceptionInfo]


class ExceptionHistory(TypedDict):
    """The failures, and whether there are more."""

    entries: list[RootException]
    truncated: bool


class JobExceptions(TypedDict):
    """The failures of a job."""

    exceptionHistory: ExceptionHistory


class ExceptionEndpoints:
    """Answers the request for failures.

    Args:
        jobs: of the cluster.

    Source: apache/flink JobExceptionsHandler.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._lookup = JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the function of the request."""
        endpoint = TypedEndpoint(self._exceptions, ExceptionQuery)
        return versioned("GET", "/jobs/{jobid}/exceptions", endpoint, Role.READ)

    def _exceptions(self, request: JsonRequest, query: ExceptionQuery) -> JobExceptions:
        """Return the failures of a job, newest first."""
        wanted = _labels(query.failure_label_filter)
        failures = self._lookup.status(request)["exceptions"]
        entries = [entry for entry in roots(failures) if wanted.items() <= entry["failureLabels"].items()]
        shown = entries[: query.max_exceptions]
        return {"exceptionHistory": {"entries": shown, "truncated": len(shown) < len(entries)}}


def _labels(text: str) -> Mapping[str, str]:
    """Read the labels that failures have to have.

    Raises:
        Refusal: one is no "key:value".
    """
    labels = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition(":")
        if not key or not value or ":" in value:
            raise bad_parameter("query", "failureLabelFilter", text, "send key:value, several with commas between them")
        labels[key] = value
    return labels


def roots(failures: Sequence[Document]) -> list[RootException]:
    """Return failures newest first, each with those that came with it.

    Args:
        failures: as in the status of a job, oldest first.
    """
    entries: list[RootException] = []
    for failure in failures:
        if failure.get("concurrent") and entries:
            entries[-1]["concurrentExceptions"].append(_info(failure))
        else:
            entries.append({**_info(failure), "concurrentExceptions": []})
    return entries[::-1]


def failure_stack(failure: Document) -> str:
    """Return what a failure says, and below it where it was raised, unless that adds nothing."""
    message, traceback = failure["exception"], failure.get("traceback", "").rstrip("\n")
    return f"{message}\n{traceback}" if "\n" in traceback else str(message)


def _info(failure: Document) -> ExceptionInfo:
    place = failure.get("place")
    info: ExceptionInfo = {
        "exceptionName": failure.get("kind", "JobExecutionError"),
        "stacktrace": failure_stack(failure),
        "timestamp": failure["timestamp"],
        "failureLabels": {"type": OF_USER if failure.get("operator") else OF_SYSTEM},
    }
    if place is not None:
        info["taskName"] = f"{failure['task']} - execution #{place['attempt']}"
        if place["pid"]:
            info["endpoint"], info["taskManagerId"] = f"{place['host']}:{place['pid']}", process_of(place)
    return info
