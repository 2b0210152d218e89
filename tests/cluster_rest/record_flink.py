"""Records what a session cluster of Flink itself answers to every request that reads, about four jobs.

    python -m tests.cluster_rest.record_flink

It needs a JDK; Flink's jars are downloaded from PyPI the first time. One line of the file is one answer, with ids of
jobs, processes and requests replaced by names, and stack traces cut.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.runs.environments import Unavailable

from .flink_cluster import FlinkCluster, flink_cluster
from .rest_requests import KINDS, OF_ADAPTIVE, RestRequest, requests, wrong_requests

ANSWERS = Path(__file__).with_name("flink_answers") / "flink_2_3.jsonl"
_STATES = {"running": "RUNNING", "finished": "FINISHED", "failed": "FAILED", "restarting": "RESTARTING"}
_FRAMES = re.compile(r"(\n\tat [^\n]*)(\n\t(?:at |\.\.\. )[^\n]*)+")
_CHECKPOINTS = 4
_SERIALIZED = re.compile(r"^(rO0AB[\w+/]{60})[\w+/=]+$")
"""Values that Java has serialized, in base 64."""
_OWN_PARTS = 3
"""Threads, options of Java and jars that are kept of each process."""
_ADAPTIVE = {"jobmanager.scheduler": "adaptive", "web.adaptive-scheduler.rescale-history.size": 5,
             "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 s",
             "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 s"}  # fmt: skip


class Recording:
    """Asks a cluster and replaces its ids.

    Args:
        cluster: with the jobs.
        jobs: kind -> id.
    """

    def __init__(self, cluster: FlinkCluster, jobs: Mapping[str, str]) -> None:
        self._cluster, self._jobs = cluster, jobs
        self.vertices = [vertex["id"] for vertex in self._read(f"/jobs/{jobs['running']}")["vertices"]]
        self._manager = self._read("/taskmanagers")["taskmanagers"][0]["id"]
        self._replaced = {identity: f"<{kind} job>" for kind, identity in jobs.items()}
        self._replaced |= {self._manager: "<task manager>", str(cluster.folder): "<folder>"}
        self._replaced |= {str(Path.home()): "<home>", cluster.url.rpartition(":")[2]: "<port>"}

    def _read(self, path: str) -> Any:
        status, document = self._cluster.ask("GET", path)
        assert status == 200, document
        return document

    def names(self, request: RestRequest) -> dict[str, str]:
        """Return name in a path -> id."""
        job = self._jobs[request.kind or "running"]
        latest = self._read(f"/jobs/{job}/checkpoints")["latest"]["completed"] if request.kind == "running" else None
        names = {"job": job, "tm": self._manager, "checkpoint": str(latest["id"]) if latest else "1"}
        return names if request.vertex is None else {**names, "vertex": self.vertices[request.vertex]}

    def record(self, requests: Iterable[RestRequest], **more: str) -> list[dict[str, Any]]:
        """Return the answers; what Flink fetches only when it is asked for, it is asked for twice."""
        answers = []
        for request in requests:
            address = request.address(self.names(request) | more)
            status, body = self._answer(address)
            answers.append({"request": request.title, "status": status, "body": self._plain(body)})
        return answers

    def _answer(self, address: str) -> tuple[int, Any]:
        if "/flamegraph" in address and "/vertices/" in address and self._jobs["running"] in address:
            self._cluster.wait_for(lambda: _sampled_ms(self._cluster.ask("GET", address)) > 0, address)
        return self._cluster.ask("GET", address)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self._text(key): self._plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._plain(item) for item in _shortened(value)]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for identity, name in self._replaced.items():
            text = text.replace(identity, name)
        return _SERIALIZED.sub(r"\1...", _FRAMES.sub(r"\1\n\t...", text))


def _shortened(values: list[Any]) -> list[Any]:
    """Return a list in a fixed order where it names metrics, and cut where it tells of the processes' own parts."""
    if all(isinstance(value, Mapping) and "id" in value and len(value) < 3 for value in values):
        return sorted(values, key=lambda value: str(value["id"]))
    is_own = all(isinstance(value, str) or isinstance(value, Mapping) and "threadName" in value for value in values)
    return values[:_OWN_PARTS] if is_own else values


def _sampled_ms(answer: tuple[int, Any]) -> int:
    return int(answer[1].get("endTimestamp", 0))


def _is_ready(cluster: FlinkCluster, jobs: Mapping[str, str]) -> bool:
    states = {job["jid"]: job["state"] for job in cluster.ask("GET", "/jobs/overview")[1]["jobs"]}
    running = jobs["running"]
    counts = cluster.ask("GET", f"/jobs/{running}/checkpoints")[1]["counts"]
    reached = all(states.get(jobs[kind]) == _STATES[kind] for kind in jobs)
    vertices = cluster.ask("GET", f"/jobs/{running}")[1]["vertices"]
    watermarks = [cluster.ask("GET", f"/jobs/{running}/vertices/{v['id']}/watermarks")[1] for v in vertices]
    return reached and counts["completed"] >= _CHECKPOINTS and bool(watermarks[-1])


def record_default() -> list[dict[str, Any]]:
    """Return the answers of a cluster with Flink's default scheduler."""
    with flink_cluster() as cluster:
        jobs = {kind: cluster.submit(kind) for kind in KINDS}
        cluster.wait_for(lambda: _is_ready(cluster, jobs), "the jobs in their states")
        recording, running = Recording(cluster, jobs), f"/jobs/{jobs['running']}"
        _, triggered = cluster.ask("POST", f"{running}/savepoints", {"cancel-job": False})
        savepoint = f"/savepoints/{triggered['request-id']}"
        cluster.wait_for(lambda: _is_over(cluster, running + savepoint), "the savepoint")
        cluster.wait_for(lambda: _has_savepoint(cluster, running), "the savepoint among the checkpoints")
        answers = recording.record(requests(len(recording.vertices)))
        trigger = RestRequest("running", "/jobs/{job}/savepoints/{trigger}")
        answers += recording.record([trigger], trigger=triggered["request-id"])
        return answers + [{**answer, "wrong": True} for answer in recording.record(wrong_requests())]


def _is_over(cluster: FlinkCluster, path: str) -> bool:
    return bool(cluster.ask("GET", path)[1]["status"]["id"] == "COMPLETED")


def _has_savepoint(cluster: FlinkCluster, job: str) -> bool:
    return cluster.ask("GET", f"{job}/checkpoints")[1]["latest"]["savepoint"] is not None


def record_adaptive() -> list[dict[str, Any]]:
    """Return the answers about rescaling of a cluster with Flink's adaptive scheduler."""
    with flink_cluster(_ADAPTIVE) as cluster:
        jobs = {"running": cluster.submit("running")}
        cluster.wait_for(lambda: _is_ready(cluster, jobs), "the job running")
        recording, path = Recording(cluster, jobs), f"/jobs/{jobs['running']}"
        wanted = {vertex: {"parallelism": {"lowerBound": 1, "upperBound": 1}} for vertex in recording.vertices}
        cluster.ask("PUT", f"{path}/resource-requirements", wanted)
        cluster.wait_for(lambda: cluster.ask("GET", path)[1]["vertices"][0]["parallelism"] == 1, "the rescale")
        cluster.wait_for(lambda: _is_ready(cluster, jobs), "the job running again")
        _, history = cluster.ask("GET", f"{path}/rescales/history")
        rescale = str(history[0]["rescaleUuid"])
        asked = [RestRequest("running", f"/jobs/{{job}}{end}") for end in OF_ADAPTIVE]
        found = recording.record(asked, rescale=rescale)
        return [{**answer, "request": f"adaptive {answer['request']}"} for answer in found]


def main() -> int:
    try:
        answers = record_default() + record_adaptive()
    except Unavailable as reason:
        print(f"not recorded: {reason}")
        return 1
    ANSWERS.parent.mkdir(exist_ok=True)
    lines = (json.dumps(answer, separators=(",", ":"), ensure_ascii=False) for answer in answers)
    ANSWERS.write_text("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
