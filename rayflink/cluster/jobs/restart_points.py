"""The checkpoints and savepoints from which a job that has ended can be started again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.state.storage.manifest import METADATA
from rayflink.state.storage.storage import MissingFileError, Storage

from .cluster_job import Document

__all__ = ["RestartPoint", "present_points", "restart_points"]

MOST = 30
"""Points that are looked for, the newest."""
_METADATA = re.compile(rf"chk-(\d+)/{METADATA}")


@dataclass(frozen=True, slots=True)
class RestartPoint:
    """A checkpoint or a savepoint that a job can start from.

    Args:
        path: its address.
        kind: "checkpoint", "savepoint", or "start": the one that the job itself has started from.
        checkpoint_id: its number; None: that is not known.
        taken_ms: time of its trigger, epoch milliseconds; None: that is not known.
        state_bytes: of its state; None: that is not known.
    """

    path: str
    kind: str
    checkpoint_id: int | None = None
    taken_ms: int | None = None
    state_bytes: int | None = None


def restart_points(statistics: Document | None, configuration: Document) -> list[RestartPoint]:
    """Return what the statistics of a job say that it can be started from, the newest first.

    >>> taken = {"id": 7, "status": "COMPLETED", "is_savepoint": False, "external_path": "/data/chk-7"}
    >>> restart_points({"history": [taken | {"trigger_timestamp": 1, "state_size": 2, "discarded": False}]}, {})
    [RestartPoint(path='/data/chk-7', kind='checkpoint', checkpoint_id=7, taken_ms=1, state_bytes=2)]

    Args:
        statistics: of its checkpoints, as `JobView.checkpoints` gives them.
        configuration: its options.
    """
    points: dict[str, RestartPoint] = {}
    for point in (*_taken(statistics or {}), *_begun_from(statistics or {}, configuration)):
        points.setdefault(point.path, point)
    return sorted(points.values(), key=_age)[:MOST]


def present_points(
    points: list[RestartPoint], folder: str, open_at: Callable[[str], Storage]
) -> list[RestartPoint]:
    """Return those that can be read; where there are none, those that lie in the folder of the job.

    Args:
        points: that are known, the newest first.
        folder: address of the job's own checkpoints; "": it has none.
        open_at: opens the storage at an address.

    Raises:
        StorageError: the storage does not answer.
    """
    present = [point for point in points if _is_present(open_at(point.path))]
    if present or not folder:
        return present
    stored = filter(None, map(_METADATA.fullmatch, open_at(folder).list()))
    points = [RestartPoint(f"{folder}/chk-{match[1]}", "checkpoint", int(match[1])) for match in stored]
    return sorted(points, key=_age)[:MOST]


def _taken(statistics: Document) -> Iterator[RestartPoint]:
    latest = statistics.get("latest") or {}
    entries = [*statistics.get("history", ()), *(latest.get(kind) for kind in ("completed", "savepoint"))]
    for entry in filter(None, entries):
        if entry.get("status") == "COMPLETED" and entry.get("external_path") and not entry.get("discarded"):
            kind = "savepoint" if entry["is_savepoint"] else "checkpoint"
            yield RestartPoint(
                entry["external_path"], kind, int(entry["id"]), entry["trigger_timestamp"], entry["state_size"]
            )


def _begun_from(statistics: Document, configuration: Document) -> Iterator[RestartPoint]:
    restored = (statistics.get("latest") or {}).get("restored")
    if restored and restored.get("external_path"):
        yield RestartPoint(restored["external_path"], "start", int(restored["id"]))
    if path := Configuration.from_dict(dict(configuration)).get(options.RESTORE_PATH):
        yield RestartPoint(path.rstrip("/").removesuffix(f"/{METADATA}"), "start")


def _age(point: RestartPoint) -> tuple[bool, int]:
    return point.kind == "start", -(point.checkpoint_id or 0)


def _is_present(storage: Storage) -> bool:
    try:
        storage.read(METADATA, 0, 1)
    except MissingFileError:
        return False
    return True
