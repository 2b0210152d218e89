"""The log of the dispatcher's own process, in bounded files that its clients may read."""

from __future__ import annotations

import logging
from pathlib import Path

from rayflink.actors.on_ray.process_files import ProcessFiles
from rayflink.actors.on_ray.task_log import TaskLog, TaskLogHandler

__all__ = ["JOB_MANAGER", "DispatcherLog"]

JOB_MANAGER = "jobmanager"
"""Flink's name of the process: JOB_MANAGER.log is its log, JOB_MANAGER.out what it prints."""


class DispatcherLog:
    """Keeps what the loggers of rayflink say in this process, from `start` on.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: Path) -> None:
        self._log = TaskLog(folder, JOB_MANAGER)
        self._handler = TaskLogHandler(self._log)
        self.files = ProcessFiles([(folder, JOB_MANAGER)], JOB_MANAGER)
        """The files, for readers."""

    def start(self) -> None:
        """Listen to the loggers, beside their other handlers."""
        logging.getLogger("rayflink").addHandler(self._handler)

    def stop(self) -> None:
        """Listen no more."""
        logging.getLogger("rayflink").removeHandler(self._handler)
        self._log.flush()
