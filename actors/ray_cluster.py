"""The driver's side of a job on Ray: find or start a cluster, submit, wait, cancel.

A running cluster is used where there is one (`RAY_ADDRESS`, or the node's own); else one is started on this machine and ended
with the driver.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError

from rayflink.common.errors import ControlPlaneTimeout, TaskLost
from rayflink.graph.job_graph import JobGraph

from .commands import JobResult
from .coordinator_actor import coordinator_class
from .scheduling import required_slots
from .user_code import pack

ASK_TIMEOUT_S = 10.0
"""A control call that is not answered by then is an error."""
OWNER_TIMEOUT_MS = 15_000
"""A job that ends with its driver is cancelled when the driver was not heard of for so long."""


def connect(slots: int, namespace: str) -> bool:
    """Join the running cluster, or start one with at least `slots` CPUs; True when it was started here."""
    if ray.is_initialized():
        return False
    try:
        ray.init(address="auto", namespace=namespace, log_to_driver=True, logging_level="warning")
        return False
    except ConnectionError:
        cpus = max(os.cpu_count() or 1, slots)
        ray.init(
            address="local",
            num_cpus=cpus,
            namespace=namespace,
            include_dashboard=False,
            log_to_driver=True,
            logging_level="warning",
        )
        return True


class RayJob:
    """A job that runs on Ray, seen from its driver.

    Args:
        graph: the job.
        namespace: Ray namespace of its actors.
        attached: the job is cancelled when this driver is lost.
        slot_cpus: CPUs of one slot.
    """

    def __init__(
        self,
        graph: JobGraph,
        namespace: str = "rayflink",
        attached: bool = True,
        slot_cpus: float = 1.0,
        cached_files: Mapping[str, str] | None = None,
    ) -> None:
        self.graph = graph
        self._started_cluster = connect(len(required_slots(graph)), namespace)
        program = pack(graph, f"job {graph.name!r}")
        self._coordinator = (
            coordinator_class()
            .options(name=f"{graph.id}/coordinator", namespace=namespace, lifetime="detached", max_restarts=0)
            .remote(program, dict(cached_files or {}), slot_cpus)
        )
        self._ask(self._coordinator.start.remote(OWNER_TIMEOUT_MS if attached else None), "start", timeout_s=60)

    @property
    def owns_cluster(self) -> bool:
        """Whether the cluster was started here and ends with this process."""
        return self._started_cluster

    def status(self) -> dict[str, Any]:
        """The job as plain data."""
        return dict(self._ask(self._coordinator.status.remote(), "status"))

    def cancel(self, by: str = "the user") -> None:
        """Ask for cancellation; `wait` tells when it is done."""
        self._ask(self._coordinator.cancel.remote(by), "cancel")

    def stop(self) -> None:
        """Let the sources end, then the job finish."""
        self._ask(self._coordinator.stop.remote(), "stop")

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None, every_s: float = 1.0) -> JobResult:
        """Wait for the end; `on_progress` is given the status every `every_s` seconds.

        Raises:
            TaskLost: the coordinator is dead.
        """
        while True:
            result = self.poll(every_s)
            if result is not None:
                return result
            if on_progress is not None:
                on_progress(self.status())

    def poll(self, timeout_s: float) -> JobResult | None:
        """The result, or None when the job still runs after `timeout_s`."""
        asked = self._coordinator.result.remote(timeout_s)
        return self._ask(asked, "result", timeout_s=timeout_s + ASK_TIMEOUT_S)  # type: ignore[no-any-return]

    def release(self) -> None:
        """Let go of the coordinator, and of the cluster when it was started here."""
        ray.kill(self._coordinator)
        if self._started_cluster:
            ray.shutdown()

    def _ask(self, ref: Any, what: str, timeout_s: float = ASK_TIMEOUT_S) -> Any:
        started = time.monotonic()
        try:
            return ray.get(ref, timeout=timeout_s)
        except GetTimeoutError as error:
            waited = int((time.monotonic() - started) * 1000)
            raise ControlPlaneTimeout(what, f"the coordinator of job {self.graph.name!r}", waited) from error
        except RayActorError as error:
            waited = int((time.monotonic() - started) * 1000)
            raise TaskLost("coordinator", "its node", waited, str(error)) from error
