"""Jobs that ended long ago, or on a cluster that is gone, as commands find them: in the archives that options name."""

from __future__ import annotations

from typing import Any

from rayflink.cluster.archives.archive_folders import configured_archives
from rayflink.common.configuration import Configuration

__all__ = ["archived_jobs", "whole_status"]

MARK = "archived"
"""The key of a status that is read from an archive, and has no subtasks yet."""


def archived_jobs(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """Return the statuses of archived jobs by id, those that began last first, without subtasks and failures."""
    archives = configured_archives(configuration, deletes=False)
    if archives is None:
        return {}
    archives.refresh()
    return {str(status["jid"]): {**status, MARK: True} for status in archives.statuses()}


def whole_status(configuration: Configuration, status: dict[str, Any]) -> dict[str, Any]:
    """Return the whole status of a job of `archived_jobs`; another one as it is.

    Raises:
        UnknownJob: its archive is gone by now.
    """
    archives = configured_archives(configuration, deletes=False) if MARK in status else None
    if archives is None:
        return status
    archives.refresh()
    return dict(archives.view(status["jid"]).status())
