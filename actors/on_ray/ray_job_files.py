"""Files that a job leaves on the nodes of its cluster, beside Ray's logs: its record, and the log of each process.

They are found from any process that joins the cluster, also when the job has ended, and stay as long as Ray's logs do.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ray
from ray._private import worker as ray_worker
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError
from rayflink.state.private_folders import make_private

from .driver.ray_connection import join
from .task_log import LogLine, Piece, lines_of, read_pieces

FOLDER = "rayflink"
RECORD = "job.json"
READ_TIMEOUT_S = 60.0
"""A node that has not answered by then is an error; a process may have to start there."""
Positions = dict[str, int]
"""File -> where the next line begins."""


def job_folder(namespace: str, job_id: str) -> Path:
    """Return the folder in which this process of a Ray node keeps the files of a job."""
    return _folder() / namespace / job_id


def write_record(folder: Path, status: Mapping[str, Any]) -> None:
    """Write a job's status atomically; concurrent readers find the previous one."""
    make_private(folder)
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=RECORD, delete=False, encoding="utf-8") as file:
        json.dump(dict(status), file, default=str)
    os.replace(file.name, folder / RECORD)


def recorded_jobs(namespace: str) -> list[dict[str, Any]]:
    """Return the records of all jobs of the cluster, in order of their beginning; [] without a cluster."""
    if not join(namespace):
        return []
    records = [dict(json.loads(text)) for text in _on_each_node(_records, {}, namespace)]
    return sorted({record["jid"]: record for record in records}.values(), key=_began)


class RayJobLog:
    """The log of a job, read from all nodes of the running cluster.

    Args:
        job_id: 32 hex digits.
        namespace: Ray namespace of the job.

    Raises:
        JobExecutionError: there is no cluster.
    """

    def __init__(self, job_id: str, namespace: str) -> None:
        if not join(namespace):
            remedy = "start one with `ray start --head`, or set RAY_ADDRESS"
            raise JobExecutionError(job_id, "has no log here: no Ray cluster runs", remedy)
        self._job_id, self._namespace = job_id, namespace
        self._read: Positions = {}

    def read(self) -> list[LogLine]:
        """Return the lines that have come since the last call, in order of time."""
        lines: list[LogLine] = []
        while pieces := log_pieces(self._job_id, self._namespace, self._read):
            for piece in pieces:
                self._read[piece.file] = piece.end
                lines += lines_of(piece)
        return sorted(lines, key=lambda line: line.at_ms)


def log_pieces(job_id: str, namespace: str, positions: Positions) -> list[Piece]:
    """Return what follows the positions in the log of a job, a bounded part of each file; this process has joined."""
    pieces = _on_each_node(_pieces, positions, namespace, job_id)
    return list({piece.file: piece for piece in pieces}.values())  # nodes of one machine may have one folder


def _records(positions: Positions, namespace: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in (_folder() / namespace).glob(f"*/{RECORD}")]


def _pieces(positions: Positions, namespace: str, job_id: str) -> list[Piece]:
    return read_pieces(job_folder(namespace, job_id), positions)


def _on_each_node(read: Any, positions: Positions, *arguments: str) -> list[Any]:
    """Read the files on each live node; one that dies meanwhile has no files any more."""
    function = ray.remote(num_cpus=0, max_retries=0)(read)
    calls = {}
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answer = function.options(scheduling_strategy=there).remote(positions, *arguments)
            calls[node["NodeID"]] = answer
    results: list[Any] = []
    for node_id, answer in calls.items():
        try:
            results += ray.get(answer, timeout=READ_TIMEOUT_S)
        except GetTimeoutError as error:
            raise ControlPlaneTimeout("files of jobs", f"node {node_id}", int(READ_TIMEOUT_S * 1000)) from error
        except RayError as error:
            if any(node["NodeID"] == node_id and node["Alive"] for node in ray.nodes()):  # type: ignore[no-untyped-call]
                said = f"cannot be read from node {node_id}: {' '.join(str(error).split())}"
                remedy = "every node must have the same rayflink as this one"
                raise JobExecutionError("files", said, remedy) from error
    return results


def _folder() -> Path:
    node = ray_worker._global_node
    assert node is not None, "a process of Ray knows its node"
    return Path(node.get_logs_dir_path()) / FOLDER


def _began(status: Mapping[str, Any]) -> int:
    return min((int(stamp) for stamp in status["timestamps"].values()), default=0)


__all__ = ["RayJobLog", "job_folder", "log_pieces", "recorded_jobs", "write_record"]
