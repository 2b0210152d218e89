"""The requests that are recorded from Flink and sent to rayflink: each a path with names in place of ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

KINDS = ("running", "finished", "failed", "restarting")
"""The jobs of both, by the state they are in."""
_OF_CLUSTER = (
    "/overview", "/config", "/jobs", "/jobs/overview", "/jobs/metrics", "/jobs/metrics?get=numRestarts",
    "/jobs/metrics?get=numRestarts,uptime&agg=max,skew", "/jobs/metrics?get=uptime&jobs={job}", "/datasets",
    "/taskmanagers", "/taskmanagers/{tm}", "/taskmanagers/{tm}/logs", "/taskmanagers/{tm}/thread-dump",
    "/taskmanagers/{tm}/metrics", "/taskmanagers/{tm}/metrics?get=Status.JVM.CPU.Load", "/taskmanagers/metrics",
    "/taskmanagers/metrics?get=Status.JVM.CPU.Load&agg=max", "/taskmanagers/{tm}/profiler",
    "/jobmanager/config", "/jobmanager/environment", "/jobmanager/logs", "/jobmanager/metrics",
    "/jobmanager/metrics?get=taskSlotsTotal,numRunningJobs", "/jobmanager/thread-dump", "/jobmanager/profiler", "/jars",
    "/applications/overview",
)  # fmt: skip
_OF_JOB = (
    "", "/plan", "/config", "/status", "/exceptions", "/exceptions?maxExceptions=1",
    "/exceptions?failureLabelFilter=type:user", "/accumulators", "/accumulators?includeSerializedValue=true",
    "/metrics",
    "/metrics?get=uptime,numRestarts,lastCheckpointSize", "/checkpoints", "/checkpoints/config",
    "/checkpoints/details/{checkpoint}", "/execution-result", "/resource-requirements", "/rescales/config",
    "/rescales/overview", "/rescales/summary", "/rescales/history", "/jobmanager/config", "/jobmanager/environment",
    "/jobmanager/log-url", "/taskmanagers/{tm}/log-url",
)  # fmt: skip
_OF_VERTEX = (
    "", "/accumulators", "/backpressure", "/metrics", "/metrics?get=0.numRecordsIn,1.numRecordsOut",
    "/subtasks/metrics", "/subtasks/metrics?get=numRecordsIn", "/subtasks/metrics?get=numRecordsOut&agg=min,max",
    "/subtasks/metrics?get=numRecordsOut&agg=sum,avg,skew&subtasks=0-1", "/subtasks/0", "/subtasks/0/attempts/0",
    "/subtasks/0/attempts/0/accumulators", "/subtasks/accumulators", "/subtasks/0/metrics",
    "/subtasks/0/metrics?get=numRecordsOut", "/subtasktimes", "/taskmanagers", "/watermarks", "/jm-operator-metrics",
    "/flamegraph", "/flamegraph?type=full&subtaskindex=0",
)  # fmt: skip
OF_ADAPTIVE = (
    "", "/resource-requirements", "/rescales/config", "/rescales/overview", "/rescales/summary", "/rescales/history",
    "/rescales/details/{rescale}", "/exceptions",
)  # fmt: skip
"""Requests about a running job that was rescaled, by Flink's adaptive scheduler."""
_NO_ID, _UNKNOWN = "xyz", "0123456789abcdef0123456789abcdef"
_RUNNING = "/jobs/{job}"
WRONG = (
    f"/jobs/{_UNKNOWN}", f"/jobs/{_NO_ID}", f"/jobs/{_NO_ID}/plan", f"/jobs/{_UNKNOWN}/plan",
    f"/jobs/{_UNKNOWN}/config",
    f"/jobs/{_UNKNOWN}/status", f"/jobs/{_UNKNOWN}/exceptions", f"/jobs/{_UNKNOWN}/accumulators",
    f"/jobs/{_UNKNOWN}/metrics", f"/jobs/{_UNKNOWN}/checkpoints", f"/jobs/{_UNKNOWN}/checkpoints/config",
    f"/jobs/{_UNKNOWN}/checkpoints/details/1", f"/jobs/{_UNKNOWN}/execution-result",
    f"/jobs/{_UNKNOWN}/resource-requirements", f"/jobs/{_UNKNOWN}/vertices/{{vertex}}",
    f"{_RUNNING}/vertices/{_UNKNOWN}", f"{_RUNNING}/vertices/{_NO_ID}", f"{_RUNNING}/vertices/{_UNKNOWN}/accumulators",
    f"{_RUNNING}/vertices/{_UNKNOWN}/backpressure", f"{_RUNNING}/vertices/{_UNKNOWN}/metrics",
    f"{_RUNNING}/vertices/{_UNKNOWN}/subtasks/metrics", f"{_RUNNING}/vertices/{_UNKNOWN}/subtasktimes",
    f"{_RUNNING}/vertices/{_UNKNOWN}/taskmanagers", f"{_RUNNING}/vertices/{_UNKNOWN}/watermarks",
    f"{_RUNNING}/vertices/{_UNKNOWN}/subtasks/0", f"{_RUNNING}/vertices/{_UNKNOWN}/subtasks/accumulators",
    f"{_RUNNING}/vertices/{_UNKNOWN}/jm-operator-metrics", f"{_RUNNING}/vertices/{{vertex}}/subtasks/9",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/-1", f"{_RUNNING}/vertices/{{vertex}}/subtasks/a",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/0/attempts/7", f"{_RUNNING}/vertices/{{vertex}}/subtasks/0/attempts/a",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/9/metrics", f"{_RUNNING}/vertices/{{vertex}}/metrics?get=nosuch",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/metrics?get=nosuch",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/metrics?get=numRecordsIn&agg=median",
    f"{_RUNNING}/vertices/{{vertex}}/subtasks/metrics?get=numRecordsIn&subtasks=a",
    f"{_RUNNING}/checkpoints/details/999999", f"{_RUNNING}/checkpoints/details/a",
    f"{_RUNNING}/checkpoints/details/{{checkpoint}}/subtasks/{_UNKNOWN}",
    f"{_RUNNING}/checkpoints/details/1/subtasks/b",
    f"{_RUNNING}/exceptions?maxExceptions=a", f"{_RUNNING}/exceptions?maxExceptions=-1",
    f"{_RUNNING}/exceptions?failureLabelFilter=a", f"{_RUNNING}/metrics?get=nosuch", "/jobs/metrics?jobs=xyz",
    f"/jobs/metrics?get=uptime&jobs={_UNKNOWN}", "/jobs/metrics?agg=median", f"{_RUNNING}/rescales/details/a",
    f"{_RUNNING}/rescales/details/{_UNKNOWN}", "/nosuch", f"{_RUNNING}/nosuch", "/taskmanagers/nosuch",
    f"{_RUNNING}/savepoints/xyz", f"{_RUNNING}/savepoints/{_UNKNOWN}", f"{_RUNNING}/checkpoints/{_UNKNOWN}",
    f"/savepoint-disposal/{_UNKNOWN}", "/taskmanagers/nosuch/logs", "/taskmanagers/nosuch/metrics",
    f"/jobs/{_UNKNOWN}/vertices/{{vertex}}/flamegraph", f"/applications/{_UNKNOWN}", f"/jobs/{_UNKNOWN}/savepoints/xyz",
)  # fmt: skip
"""Requests that ask for something absent or malformed."""


@dataclass(frozen=True)
class RestRequest:
    """A request of GET.

    Args:
        kind: of the job it is about; "": of none.
        path: with names in braces, and its query.
        vertex: position of the vertex it is about; None: of none.
    """

    kind: str
    path: str
    vertex: int | None = None

    def address(self, names: Mapping[str, str]) -> str:
        """Return the path with the ids."""
        address = self.path
        for name, value in names.items():
            address = address.replace(f"{{{name}}}", value)
        return address

    @property
    def title(self) -> str:
        """Return the name of the request in the recorded file and in the list of differences."""
        vertex = "" if self.vertex is None else f" vertex {self.vertex}"
        return f"{self.kind or 'cluster'}{vertex} {self.path}"


def requests(vertices: int) -> Iterator[RestRequest]:
    """Return all requests that have an answer, of jobs with that many vertices."""
    for path in _OF_CLUSTER:
        yield RestRequest("", path)
    for kind in KINDS:
        for path in _OF_JOB:
            yield RestRequest(kind, f"/jobs/{{job}}{path}")
        for vertex in range(vertices):
            for path in (*(f"/vertices/{{vertex}}{end}" for end in _OF_VERTEX),
                         "/checkpoints/details/{checkpoint}/subtasks/{vertex}"):  # fmt: skip
                yield RestRequest(kind, f"/jobs/{{job}}{path}", vertex)


def wrong_requests() -> Iterator[RestRequest]:
    """Return the requests that are refused, about the running job where they name one."""
    for path in WRONG:
        yield RestRequest("running", path, 0 if "{vertex}" in path else None)
