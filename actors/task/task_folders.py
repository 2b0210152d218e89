"""The folders of a job on the disks of a node: one an attempt, one of copies; each goes when nothing needs it.

A task that ends removes its own. What a killed attempt left is removed by the attempt that takes its place, or at the
end of the job. The room on these disks is a metric of each task.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rayflink.common.configuration import reading
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger

from ..messages.messages import TaskDeployment

log = get_logger(__name__)
TOTAL, FREE = "rayflink.Status.Disk.Total", "rayflink.Status.Disk.Free"
"""Metrics of the disk that has the least free."""


def spill_folder(deployment: TaskDeployment) -> Path:
    """Return the folder in which the attempt spills sorts, blocking partitions, and keyed state of a stream."""
    return _disk(deployment) / f"{_of_subtask(deployment)}{deployment.attempt}"


def copies_folder(deployment: TaskDeployment) -> Path:
    """Return the folder of local state copies of all tasks of the job on one disk; removed with the job."""
    return _disk(deployment) / _copies_of(deployment.job_id)


def remove_spills(deployment: TaskDeployment) -> bool:
    """Remove the spilled files of the attempt; return False when something is left."""
    return _remove(spill_folder(deployment))


def remove_older_spills(deployment: TaskDeployment) -> None:
    """Remove the files of earlier attempts that this one replaces, to make room for it."""
    own, prefix = spill_folder(deployment), _of_subtask(deployment)
    for folder in _folders(own.parent, prefix):
        if folder != own and not _remove(folder):
            log.warning("could not remove what an older attempt of %s has spilled: %s", deployment.name, folder)


def remove_folders(job_id: str, config: Mapping[str, Any], *, copies: bool, within_s: float = 0.0) -> list[str]:
    """Remove the files that the tasks of a job left on the disks of this node; return what is left.

    Args:
        config: of the job.
        copies: also those of its checkpoints.
        within_s: seconds to try; a process that is about to die may still write.
    """
    get = reading(config).get
    disks = {*(get(options.ROCKSDB_DIRS) or ()), *(get(options.TMP_DIRS) or (tempfile.gettempdir(),))}
    deadline = time.monotonic() + within_s
    while True:
        folders = [folder for disk in disks for folder in _folders(Path(disk), f"rayflink-{job_id}-")]
        left = [
            str(folder) for folder in folders if (copies or folder.name != _copies_of(job_id)) and not _remove(folder)
        ]
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(0.05)


def _disk(deployment: TaskDeployment) -> Path:
    get = reading(deployment.config).get
    in_batches = get(options.RUNTIME_MODE).name == "BATCH" or any(spec.blocking for spec in deployment.outputs)
    of_state = None if in_batches else get(options.ROCKSDB_DIRS)
    disks = of_state or get(options.TMP_DIRS) or [tempfile.gettempdir()]
    return Path(disks[deployment.subtask % len(disks)])


def _of_subtask(deployment: TaskDeployment) -> str:
    return f"rayflink-{deployment.job_id}-{deployment.vertex_id}-{deployment.subtask}-"


def _copies_of(job_id: str) -> str:
    return f"rayflink-{job_id}-copies"


def _folders(disk: Path, prefix: str) -> list[Path]:
    with suppress(OSError):  # of a disk that is not there, or that no task could write to
        return [disk / name for name in os.listdir(disk) if name.startswith(prefix)]
    return []


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def report_disks(group: MetricGroup, config: Mapping[str, object]) -> None:
    """Let a task's metric group report the size and the free bytes of the disk that has the least free.

    Args:
        group: of the task.
        config: of its job, which names the folders of state and of spilled data.
    """
    get = reading(config).get
    folders = sorted({*(get(options.ROCKSDB_DIRS) or ()), *(get(options.TMP_DIRS) or (tempfile.gettempdir(),))})
    group.gauge(FREE, partial(_disk_bytes, folders, 0))
    group.gauge(TOTAL, partial(_disk_bytes, folders, 1))


def _disk_bytes(folders: list[str], index: int) -> int | None:
    usage = _fullest(folders)
    return None if usage is None else usage[index]


def _fullest(folders: list[str]) -> tuple[int, int] | None:
    """Return the free bytes and the size of the disk with the least free; None where none can be read."""
    usages = []
    for folder in folders:
        try:
            usage = shutil.disk_usage(folder)
        except OSError:  # a folder that no task has made yet
            continue
        usages.append((usage.free, usage.total))
    return min(usages, default=None)
