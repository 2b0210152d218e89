"""Copies of a job's registered files on the disk of the process that runs its tasks, made beside them.

Source: apache/flink FileCache; there a file comes through the blob server, here from a path that every node sees.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from rayflink.common.configuration import reading
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import RayflinkError

from ..messages.messages import TaskDeployment

log = get_logger(__name__)

_CHUNK_BYTES = 4 << 20


class CachedFileError(RayflinkError):
    """A file of the distributed cache cannot be copied for a task."""

    def __init__(self, task: str, name: str, path: str, cause: str) -> None:
        super().__init__(task, name, path, cause)
        self.task, self.name, self.path, self.cause = task, name, path, cause

    def __str__(self) -> str:
        problem = f"Exception while adding files to distributed cache of task {self.task}"
        remedy = "put it where every node sees it, or correct the path in register_cached_file()"
        return f"{problem}: {self.name!r} cannot be copied from {self.path!r} ({self.cause}); {remedy}"


@dataclass(frozen=True, slots=True)
class FileCacheStatistics:
    """The copies of one process."""

    files: int
    """Files that the tasks of the job may ask for; 0 before the first task."""
    copied: int
    """Those of them that are there."""
    failed: int
    """Those of them that could not be copied."""


class FileCache:
    """The copies of one process, for all tasks of its job; copying begins with the first of them.

    The copies lie in a folder of the job, which goes with the folders of its tasks.
    """

    def __init__(self) -> None:
        self._copies: dict[str, Future[str]] | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._copying: threading.Thread | None = None

    def files_of(self, deployment: TaskDeployment) -> Mapping[str, str]:
        """Return the local paths of a task's files by name; an access waits until the file is there."""
        with self._lock:
            if self._copies is None:
                self._copies = {name: Future() for name in deployment.cached_files}
                if self._copies:
                    self._begin(deployment, self._copies)
        return _TaskFiles(deployment, self._copies)

    def statistics(self) -> FileCacheStatistics:
        """Return the present counts."""
        copies = list((self._copies or {}).values())
        failed = sum(copy.done() and copy.exception() is not None for copy in copies)
        return FileCacheStatistics(len(copies), sum(copy.done() for copy in copies) - failed, failed)

    def stop(self) -> None:
        """Stop copying; waiting for a missing file is then an error. Returns when nothing is written any more."""
        self._stopped.set()
        if self._copying is not None:
            self._copying.join()

    def _begin(self, deployment: TaskDeployment, copies: Mapping[str, Future[str]]) -> None:
        disks = reading(deployment.config).get(options.TMP_DIRS) or [tempfile.gettempdir()]
        folder = Path(disks[0]) / f"rayflink-{deployment.job_id}-files-{os.urandom(8).hex()}"
        work = (folder, dict(deployment.cached_files), copies)
        self._copying = threading.Thread(target=self._copy_all, args=work, name="file cache", daemon=True)
        self._copying.start()

    def _copy_all(self, folder: Path, files: Mapping[str, str], copies: Mapping[str, Future[str]]) -> None:
        for index, (name, path) in enumerate(files.items()):
            target = folder / str(index) / os.path.basename(path)
            try:
                self._copy(Path(path), target)
            except OSError as error:
                log.warning("cached file %r cannot be copied from %s: %s", name, path, error.strerror or error)
                copies[name].set_exception(error)
            else:
                copies[name].set_result(str(target))

    def _copy(self, source: Path, target: Path) -> None:
        """Copy a file, or a folder with all below it, with their modes."""
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            for inner in sorted(source.iterdir()):
                self._copy(inner, target / inner.name)
        elif source.exists() and not source.is_file():
            raise OSError(errno.EINVAL, "it is a pipe, socket or device")
        else:
            with source.open("rb") as content:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as copy:
                    while block := content.read(_CHUNK_BYTES):
                        if self._stopped.is_set():
                            raise InterruptedError("the job has ended")
                        copy.write(block)
        shutil.copymode(source, target)


class _TaskFiles(Mapping[str, str]):
    """The files of one task, whose name stands in errors."""

    def __init__(self, deployment: TaskDeployment, copies: Mapping[str, Future[str]]) -> None:
        self._paths, self._copies = deployment.cached_files, copies
        self._task = f"{deployment.title} ({deployment.attempt})"

    def __getitem__(self, name: str) -> str:
        try:
            return self._copies[name].result()
        except OSError as error:
            cause = error.strerror or str(error)
            raise CachedFileError(self._task, name, self._paths[name], cause) from error

    def __contains__(self, name: object) -> bool:
        return name in self._copies  # without waiting for the copy

    def __iter__(self) -> Iterator[str]:
        return iter(self._copies)

    def __len__(self) -> int:
        return len(self._copies)

    def __reduce__(self) -> tuple[type, tuple[dict[str, str]]]:
        return dict, (dict(self),)


__all__ = ["CachedFileError", "FileCache"]
