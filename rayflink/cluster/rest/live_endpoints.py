"""The requests of the dashboard for which Flink has no path: live figures, reasons, phases of checkpoints, state."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, cast

from rayflink.common.errors import RayflinkError
from rayflink.serving.json_requests import Answer, JsonRequest, Refusal, Role, Route

from ..dispatcher.job_restarts import Lineage
from ..jobs.checkpoint_phases import describe_phases
from ..jobs.cluster_job import ClusterJobs, Document, JobView, UnknownJob
from ..jobs.findings import findings
from ..jobs.job_figures import job_figures, job_row, operator_figures, without_subtasks
from ..jobs.state_sizes import StateSizes, stored_state
from ..jobs.trends import FIGURES, Trends

__all__ = ["LiveEndpoints"]

MOST_REMEMBERED = 512
"""Checkpoints that have ended, and manifests, whose figures are remembered."""
FRESH_MS = 400
"""Time for which an answer with all jobs is given again."""
_ID = re.compile("[0-9a-fA-F]{32}")


class LiveEndpoints:
    """Answers what the dashboard and `rayflink top` ask beside Flink's requests.

    Args:
        jobs: of the cluster.
        storage_options: of the storages in which checkpoints lie.
        now_ms: the time, epoch milliseconds.
        lineage: which jobs are new starts of others; None: none can be started again here.
        trends: of running jobs; None: none are remembered here.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        storage_options: Mapping[str, str] | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        lineage: Lineage | None = None,
        trends: Trends | None = None,
    ) -> None:
        self._jobs, self._storage_options, self._now_ms = jobs, dict(storage_options or {}), now_ms
        self._lineage, self._trends = lineage, trends
        self._lock = threading.Lock()
        self._rows: Document | None = None
        """The last answer with all jobs."""
        self._remembered: OrderedDict[tuple[str, object], Document] = OrderedDict()

    def routes(self) -> list[Route]:
        """Return the functions of all requests."""
        job = "/rayflink/jobs/{job}"
        return [
            Route("GET", "/rayflink/live", self._overview, Role.READ),
            Route("GET", f"{job}/live", self._job, Role.READ),
            Route("GET", f"{job}/live/vertices/{{vertex}}", self._vertex, Role.READ),
            Route("GET", f"{job}/findings", self._findings, Role.READ),
            Route("GET", f"{job}/trends", self._trend, Role.READ),
            Route("GET", f"{job}/configuration", self._configuration, Role.READ),
            Route("GET", f"{job}/phases", self._phases, Role.READ),
            Route("GET", f"{job}/state", self._state, Role.READ),
        ]

    def _overview(self, request: JsonRequest) -> Answer:
        """Return a row for each job; pages that ask within a moment get the same."""
        now_ms, answer = self._now_ms(), self._rows
        if answer is None or not 0 <= now_ms - answer["now_ms"] < FRESH_MS:
            rows = [{**job_row(status, now_ms), **self._family(status)} for status in self._jobs.statuses()]
            self._rows = answer = {"now_ms": now_ms, "jobs": rows}
        return dict(answer)

    def _job(self, request: JsonRequest) -> Answer:
        """Return the figures of a job, with subtasks of the one vertex that the request names."""
        view = self._view(request)
        status = view.status()
        figures: Document = job_figures(status, view.description(), self._now_ms())
        vertices = without_subtasks(figures["vertices"], request.query.get("vertex", ""))
        return {**figures, "vertices": vertices, **self._family(status), "can_restart": self._lineage is not None}

    def _family(self, status: Document) -> Document:
        """Return of which job this one is a new start, and which ones are of it."""
        job_id, lineage = str(status["jid"]), self._lineage
        if lineage is None:
            return {"restarted_from": "", "restarted_as": []}
        return {"restarted_from": lineage.origin(job_id), "restarted_as": list(lineage.successors(job_id))}

    def _vertex(self, request: JsonRequest) -> Answer:
        vertex_id = request.parameters["vertex"]
        for vertex in self._view(request).status()["vertices"]:
            if vertex["id"] == vertex_id:
                return {"id": vertex_id, "name": vertex["name"], "operators": operator_figures(vertex)}
        raise Refusal(404, f"the job has no vertex {vertex_id!r:.80}; its plan names those that it has")

    def _findings(self, request: JsonRequest) -> Answer:
        view = self._view(request)
        reasons = findings(view.status(), view.description(), self._now_ms())
        return {"findings": [finding.describe() for finding in reasons]}

    def _trend(self, request: JsonRequest) -> Answer:
        """Return the figures of a job over the last hour, the oldest first; none where they are not remembered."""
        job_id, trends = str(self._view(request).status()["jid"]), self._trends
        if trends is None:
            return {"figures": ["now_ms", *FIGURES], "every_ms": None, "points": []}
        return {"figures": ["now_ms", *FIGURES], "every_ms": trends.every_ms, "points": trends.of(job_id)}

    def _configuration(self, request: JsonRequest) -> Answer:
        """Return the options of a job, in which secrets are masked."""
        return {"configuration": dict(self._view(request).description().get("configuration", {}))}

    def _phases(self, request: JsonRequest) -> Answer:
        view, job_id = self._view(request), request.parameters["job"]
        overview = view.checkpoints() or {}
        entries: list[Document] = []
        for summary in overview.get("history", ()):
            phases = self._phases_of(job_id, view, summary)
            entries.append({**summary, "vertices": phases.get("vertices", [])})
        return {**overview, "history": entries}

    def _phases_of(self, job_id: str, view: JobView, summary: Document) -> Document:
        """Return the phases of a checkpoint; of one that has ended they are asked for once."""

        def read() -> Document:
            details = view.checkpoints(summary["id"])
            return {"vertices": []} if details is None else {"vertices": describe_phases(details)}

        if summary["status"] == "IN_PROGRESS":
            return read()
        return self._once((job_id, summary["id"]), read)

    def _state(self, request: JsonRequest) -> StateSizes:
        """Return the sizes of the state in the newest checkpoint: as the job knows them, else as its manifest does."""
        view = self._view(request)
        latest = (view.checkpoints() or {}).get("latest") or {}
        stored = [latest[kind] for kind in ("completed", "savepoint") if latest.get(kind)]
        restored = [latest["restored"]] if latest.get("restored") else []
        newest: Mapping[str, Any] = max(stored or restored, key=lambda entry: int(entry["id"]), default={})
        path = newest.get("external_path")
        if not newest:
            return {"reason": "no checkpoint has been completed yet", "operators": []}
        state = self._state_of(request.parameters["job"], view, newest) if stored else {}
        if state:
            return cast(StateSizes, {"path": path or None, **state})
        if not path:
            return {"reason": "the newest checkpoint is in memory; set execution.checkpointing.dir", "operators": []}
        try:
            known = self._once(("state", path), lambda: dict(stored_state(path, self._storage_options)))
            return cast(StateSizes, dict(known))
        except (RayflinkError, OSError) as error:  # it may be gone by now, or lie where this process may not read
            return {"reason": f"the newest checkpoint cannot be read from here: {error}", "path": path, "operators": []}

    def _state_of(self, job_id: str, view: JobView, newest: Document) -> Document:
        """Return the sizes that the job itself knows; empty where it does not, as in archives of earlier versions."""

        def read() -> Document:
            return (view.checkpoints(newest["id"]) or {}).get("state") or {}

        return self._once((f"state of {job_id}", newest["id"]), read)

    def _once(self, key: tuple[str, object], read: Callable[[], Document]) -> Document:
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
        document = read()
        with self._lock:
            self._remembered[key] = document
            while len(self._remembered) > MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return document

    def _view(self, request: JsonRequest) -> JobView:
        job_id = request.parameters["job"]
        if _ID.fullmatch(job_id) is None:
            raise Refusal(400, f"found the job id {job_id!r:.80}, wanted 32 hexadecimal digits")
        try:
            return self._jobs.view(job_id.lower())
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error
