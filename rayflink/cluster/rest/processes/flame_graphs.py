"""Flame graphs of vertices: where the threads of their subtasks spend their time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from rayflink.common.errors import RayflinkError, described
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ...jobs.cluster_job import ClusterJobs, Document
from ...jobs.cluster_process import ClusterProcesses, process_of
from ..job_lookup import JobLookup
from ..operations import in_thread
from ..typed_requests import TypedEndpoint, versioned
from .flame_tree import FlameNode, flame_tree, waiting

__all__ = ["FlameGraphs"]

ENDED, NOT_YET = -1, -3
"""Flink's times of a vertex that does not run, and of one of which no samples have come yet."""
FRESH_MS = 60_000
"""Time after which new samples are taken where somebody looks (rest.flamegraph.refresh-interval)."""
FORGOTTEN_MS = 600_000
SAMPLED_S = 1.0
MOST_PROCESSES = 16
"""Processes of a vertex of which samples are taken; of more, the first."""
Stacks = Sequence["tuple[str, int]"]


class FlameGraphQuery(msgspec.Struct, frozen=True):
    """The query of a request for a flame graph.

    Args:
        type: full: all samples; on_cpu: of threads that run; off_cpu: of threads that wait.
        subtaskindex: of one subtask; None: of all.
    """

    type: Literal["full", "on_cpu", "off_cpu", "FULL", "ON_CPU", "OFF_CPU"] = "full"
    subtaskindex: int | None = None


class FlameGraph(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """A flame graph.

    Args:
        end_timestamp: when its last sample was taken; -1: the vertex does not run; -3: there are no samples yet.
        data: the tree.
    """

    end_timestamp: int
    data: FlameNode | None = None


@dataclass(frozen=True)
class _Samples:
    """The samples of a process.

    Args:
        ended_ms: when the last was taken.
        whole: of all threads.
        running: of threads that run.
        failure: why there are none; "": there are.
    """

    ended_ms: int
    whole: Stacks = ()
    running: Stacks = ()
    failure: str = ""


class FlameGraphs:
    """Answers requests for flame graphs; the samples of a process are taken beside them, when somebody looks.

    Args:
        jobs: of the cluster.
        processes: that run their tasks.
        now_ms: epoch milliseconds.
        start: lets work run, beside the caller.

    Source: apache/flink JobVertexFlameGraphHandler, whose answers these are.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        processes: ClusterProcesses,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        start: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._lookup, self._processes, self._now_ms, self._start = JobLookup(jobs), processes, now_ms, start
        self._lock = threading.Lock()
        self._samples: dict[str, _Samples] = {}
        self._under_way: set[str] = set()

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        path = "/jobs/{jobid}/vertices/{vertexid}/flamegraph"
        return versioned("GET", path, TypedEndpoint(self._graph, FlameGraphQuery), Role.READ)

    def _graph(self, request: JsonRequest, query: FlameGraphQuery) -> FlameGraph:
        """Return the flame graph of a vertex, and take new samples where the last are a minute old."""
        status, vertex = self._lookup.vertex(request)
        subtasks = [subtask for subtask in vertex["subtasks"] if query.subtaskindex in (None, subtask["subtask"])]
        if not subtasks:
            raise Refusal(404, f"Invalid subtask index for vertex {vertex['id']}")
        running = [subtask for subtask in subtasks if subtask["state"] == "RUNNING"]
        if not running:
            return FlameGraph(ENDED)
        ids = sorted({process_of(subtask["metrics"]) for subtask in running} - {""})[:MOST_PROCESSES]
        samples = [known for process_id in ids if (known := self._known(process_id)) is not None]
        for known in samples:
            if known.failure:
                raise Refusal(503, known.failure)
        if not samples:
            return FlameGraph(NOT_YET)
        names = _threads(status, vertex, running)
        chosen = [stack for known in samples for stack in _chosen(known, query.type.lower(), names)]
        return FlameGraph(max(known.ended_ms for known in samples), flame_tree(chosen))

    def _known(self, process_id: str) -> _Samples | None:
        """Return the last samples of a process, and take new ones where they are old."""
        now = self._now_ms()
        with self._lock:
            for other, samples in list(self._samples.items()):
                if now - samples.ended_ms > FORGOTTEN_MS:
                    del self._samples[other]
            known = self._samples.get(process_id)
            is_old = known is None or known.failure != "" or now - known.ended_ms > FRESH_MS
            if is_old and process_id not in self._under_way:
                self._under_way.add(process_id)
                self._start(lambda: self._take(process_id))
            return known

    def _take(self, process_id: str) -> None:
        whole: Stacks = ()
        running: Stacks = ()
        failure = ""
        try:
            whole = self._processes.profile(process_id, SAMPLED_S, True)
            running = self._processes.profile(process_id, SAMPLED_S, False)
        except Exception as error:  # samples that are never taken would keep all others from being taken
            failure = str(error) if isinstance(error, RayflinkError) else described(error)
        with self._lock:
            self._under_way.discard(process_id)
            self._samples[process_id] = _Samples(self._now_ms(), whole, running, failure)


def _threads(status: Document, vertex: Document, subtasks: Sequence[Document]) -> frozenset[str]:
    """Return the names of the threads that run subtasks: their own on Ray, that of the job in a local cluster.

    A thread in a process of several jobs has the beginning of the job's id in its name.
    """
    own = {f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']})" for subtask in subtasks}
    return frozenset({*own, *(f"{name} of {status['jid'][:8]}" for name in own), f"job {status['name']}"})


def _chosen(samples: _Samples, kind: str, threads: frozenset[str]) -> Stacks:
    """Return the stacks of a kind, of these threads."""

    def of_threads(stacks: Stacks) -> Stacks:
        return [(stack, number) for stack, number in stacks if stack.partition(";")[0] in threads]

    whole, running = of_threads(samples.whole), of_threads(samples.running)
    return {"full": whole, "on_cpu": running, "off_cpu": waiting(whole, running)}[kind]
