"""A job of a cluster, asked through its dispatcher."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.messages import TaskFailure
from rayflink.common.errors import JobExecutionError, described
from rayflink.common.job_status import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.user_code.value_bytes import from_bytes
from rayflink.serving.framing import unframed

from .cluster_client import ClusterClient, ClusterRequest, RequestRefused

__all__ = ["RemoteHandle", "result_of_status"]

LONGEST_WAIT_S = 10.0
"""The longest time that one request waits; a longer one is several requests."""


class RemoteHandle:
    """A job of a cluster, as any client sees it.

    Args:
        job_id: 32 hex digits.
        cluster: that runs it.
    """

    def __init__(self, job_id: str, cluster: ClusterClient) -> None:
        self.job_id, self._cluster = job_id, cluster

    def status(self) -> dict[str, Any]:
        """Return the job as plain data, with current rates.

        Raises:
            JobExecutionError: the cluster does not know it.
            ClusterUnreachable: the cluster does not answer.
        """
        return self._document("GET", "status")

    def cancel(self, by: str = "the user") -> None:
        """Request cancellation; `poll` shows when it is done."""
        self._document("POST", "cancel", {"by": by})

    def stop(self) -> None:
        """Request that the sources end and the job finishes."""
        self._document("POST", "stop")

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        """Return the address of a savepoint, and why there is none; None where it is not known within `timeout_s`."""
        body = {"request_id": request_id, "directory": directory, "stop": None if stop is None else stop.name}
        answer = self._outcome("savepoint", body, timeout_s)
        return None if answer is None else (str(answer[0] or ""), answer[1])

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        """Return the pause in milliseconds, and why there is no change; None if unknown within `timeout_s`."""
        body = {"request_id": request_id, "parallelism": dict(parallelism)}
        answer = self._outcome("rescale", body, timeout_s)
        return None if answer is None else (int(answer[0] or 0), answer[1])

    def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return statistics of the job's checkpoints, or of one; None when it is not remembered."""
        query = None if checkpoint_id is None else {"id": checkpoint_id}
        statistics: dict[str, Any] | None = self._document("GET", "checkpoints", query)["checkpoints"]
        return statistics

    def accumulators(self) -> dict[str, Any]:
        """Return name -> value, merged over the subtasks that have finished."""
        head, packed = self._pieces("accumulators")[:2]
        return dict(self._read(packed) if head["values"] is None else head["values"])

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the result, or None when the job still runs after `timeout_s`."""
        until = time.monotonic() + timeout_s
        while True:
            wait_s = min(max(until - time.monotonic(), 0.0), LONGEST_WAIT_S)
            head, packed = self._pieces("result", {"wait_s": wait_s}, wait_s)[:2]
            if head["has_ended"]:
                return self._result(head, packed)
            if time.monotonic() >= until:
                return None

    def _result(self, head: Mapping[str, Any], packed: bytes) -> JobResult:
        """Return the result: as the job has given it, or as far as the cluster remembers it."""
        if not packed:
            return result_of_status(head["status"], head["accumulators"])
        result: JobResult = self._read(packed)
        return result

    def _outcome(self, path: str, body: dict[str, Any], timeout_s: float) -> tuple[Any, str] | None:
        wait_s = min(timeout_s, LONGEST_WAIT_S)
        answer = self._document("POST", path, {"wait_s": wait_s}, body, wait_s)
        return (answer["value"], str(answer["failure"])) if answer else None

    def _document(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: dict[str, Any] | None = None,
        wait_s: float = 0.0,
    ) -> dict[str, Any]:  # fmt: skip
        try:
            data = b"" if body is None else json.dumps(body).encode()
            return self._cluster.document(ClusterRequest(method, self._path(path), query, data, wait_s))
        except RequestRefused as error:
            raise self._refused(error) from error

    def _pieces(self, path: str, query: Mapping[str, Any] | None = None, wait_s: float = 0.0) -> list[Any]:
        """Return the pieces of an answer, the first of them read as JSON."""
        try:
            request = ClusterRequest("GET", self._path(path), query, b"", wait_s)
            answer = self._cluster.ask(request, is_wanted=self._is_wanted)
        except RequestRefused as error:
            raise self._refused(error) from error
        head, *pieces = unframed(answer)
        return [json.loads(head), *pieces]

    def _is_wanted(self) -> bool:
        """Return whether requests are to be repeated."""
        return True

    def _path(self, path: str) -> str:
        return f"/rayflink/jobs/{self.job_id}/{path}"

    def _refused(self, error: RequestRefused) -> Exception:
        """Return the error for the program."""
        if error.status == 404:
            remedy = "it ended some time ago, or runs on another cluster; `rayflink list -a` lists those of this one"
            return JobExecutionError(self.job_id, f"is not known to the cluster at {self._cluster.url}", remedy)
        if error.status == 422:
            reason, *rest = error.messages
            return JobExecutionError(self.job_id, reason, "; ".join(rest) or error.remedy)
        return error

    def _read(self, packed: bytes) -> Any:
        try:
            return from_bytes(packed)
        except Exception as error:  # a user's class may raise anything while it is unpickled
            reason = f"has sent results that cannot be read here: {described(error)}"
            remedy = "values that are collected must come through pickle in every process; give their class __reduce__"
            raise JobExecutionError(self.job_id, reason, remedy) from error


def result_of_status(status: Mapping[str, Any], accumulators: Mapping[str, Any]) -> JobResult:
    """Return the result of a job that has ended, from what can be read of it.

    Args:
        status: in the form of `JobClient.status()`.
        accumulators: name -> value.
    """
    state, stamps = JobStatus(status["state"]), status["timestamps"]
    began = stamps.get(JobStatus.RUNNING.value)
    runtime_ms = 0 if began is None else max(0, int(stamps[state.value]) - int(began))
    failure, subtask = None, 0
    if state is JobStatus.FAILED:
        entry: Mapping[str, Any] = next(iter(status.get("exceptions") or ()), {})
        failure = TaskFailure(
            str(entry.get("kind", "")), str(entry.get("exception", "it is not known why")),
            str(entry.get("traceback", "")), str(entry.get("operator", "")), str(entry.get("line", "")),
            str(entry.get("record", "")),
        )  # fmt: skip
        subtask = int((entry.get("place") or {}).get("subtask", 0))
    by = "a request to its cluster" if state is JobStatus.CANCELED else ""
    return JobResult(
        str(status["jid"]), str(status["name"]), state, runtime_ms, accumulators, tuple(status["vertices"]), failure,
        subtask, by,
    )  # fmt: skip
