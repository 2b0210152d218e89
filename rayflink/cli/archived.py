"""Jobs that have ended, as commands find them: in the archives that options name, or with a dispatcher."""

from __future__ import annotations

from typing import Any

from rayflink import launch
from rayflink.cluster.archives.archive_folders import configured_archives
from rayflink.common.configuration import Configuration
from rayflink.common.job_status import JobStatus
from rayflink.common.options import registry as options

__all__ = ["archived_jobs", "whole_status"]

MARK = "archived"
"""The key of a status that is read from an archive, and has no subtasks yet."""
_ENDED = frozenset(state.value for state in JobStatus if state.is_terminal)


def archived_jobs(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """Return the statuses of archived jobs by id, those that began last first, without subtasks and failures."""
    archives = configured_archives(configuration, deletes=False)
    if archives is None:
        return {}
    archives.refresh()
    return {str(status["jid"]): {**status, MARK: True} for status in archives.statuses()}


def whole_status(configuration: Configuration, status: dict[str, Any]) -> dict[str, Any]:
    """Return the whole status of a job of a list, in which those that have ended have no subtasks and failures.

    Raises:
        UnknownJob: its archive is gone by now.
        JobExecutionError: its dispatcher has forgotten it by now.
    """
    archives = configured_archives(configuration, deletes=False) if MARK in status else None
    if archives is not None:
        archives.refresh()
        return dict(archives.view(status["jid"]).status())
    if status["state"] in _ENDED and configuration.get(options.TARGET) is options.Target.REMOTE:
        return launch.attach(str(status["jid"]), configuration).status()
    return status
