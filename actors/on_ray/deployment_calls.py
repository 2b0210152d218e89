"""The coordinator's calls that deploy attempts, from the first until each has been answered."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from rayflink.common.errors import described

from ..exchange.frames import TaskAddress
from ..messages.commands import DeploymentFailed
from ..messages.messages import TaskDeployment, TaskFailure


@dataclass(slots=True)
class _Call:
    name: str
    host: str
    made_s: float
    reached_s: float | None = None


class DeploymentCalls:
    """The deployments that wait for an answer, and their deadlines.

    A process first has to start, which takes long where a node is busy or new, and is bounded as the request for slots
    is; once it is there it has to answer as quickly as any other, or as it started: to give up a process on a busy node
    and start another one in its place keeps the node busy. Methods may be called from several threads.

    Args:
        start_timeout_ms: how long a process may take to start (slot.request.timeout).
        answer_timeout_ms: how long it may take at least to answer once it is there (pekko.ask.timeout).
    """

    def __init__(self, start_timeout_ms: int, answer_timeout_ms: int) -> None:
        self._start_timeout_ms, self._answer_timeout_ms = start_timeout_ms, answer_timeout_ms
        self._open: dict[TaskAddress, _Call] = {}

    def made(self, deployment: TaskDeployment, host: str, now_s: float) -> None:
        """Note that the process was requested, and that the call to deploy to it was made."""
        self._open[deployment.attempt] = _Call(deployment.name, host, now_s)

    def reached(self, attempt: TaskAddress, now_s: float) -> None:
        """Note that the process is there; from now on its answer is overdue sooner."""
        call = self._open.get(attempt)
        if call is not None:
            call.reached_s = now_s

    def answered(self, attempt: TaskAddress) -> None:
        """Note that the call has returned or failed, or that the attempt has reported by itself."""
        self._open.pop(attempt, None)

    def waiting(self) -> list[TaskAddress]:
        """Return the attempts that cannot have reported anything yet."""
        return list(self._open)

    def overdue(self, now_s: float) -> list[DeploymentFailed]:
        """Return the failures of overdue calls; they are waited for no longer."""
        failed = []
        for attempt, call in list(self._open.items()):
            problem = self._problem(call, now_s)
            if problem and self._open.pop(attempt, None) is not None:
                message = f"Cannot deploy task {call.name} ({attempt}) - its process ({call.host}) {problem}"
                failed.append(DeploymentFailed(attempt, TaskFailure("ControlPlaneTimeout", message, "")))
        return failed

    def _problem(self, call: _Call, now_s: float) -> str:
        if call.reached_s is not None:
            most_ms = max(self._answer_timeout_ms, round((call.reached_s - call.made_s) * 1000))
            late = (now_s - call.reached_s) * 1000 > most_ms
            took = "" if most_ms == self._answer_timeout_ms else ", in which it started"
            timeout = f"{most_ms} ms (pekko.ask.timeout{took})"
            return f"not responding after a rpcTimeout of {timeout}; see whether its node is overloaded" if late else ""
        late = (now_s - call.made_s) * 1000 > self._start_timeout_ms
        timeout = f"{self._start_timeout_ms} ms (slot.request.timeout)"
        return f"has not started within {timeout}; see the logs of its node" if late else ""


def could_not_deploy(deployment: TaskDeployment, error: Exception) -> DeploymentFailed:
    """Return the failure of an attempt for which not even a process could be requested."""
    message = f"Could not deploy execution {deployment.title}. Cause: {described(error)}"
    failure = TaskFailure(type(error).__name__, message, "".join(traceback.format_exception(error)))
    return DeploymentFailed(deployment.attempt, failure)
