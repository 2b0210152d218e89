"""A function of the program that has not returned for long: while it runs, its task does nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

STALLED = "stalled"
"""Name under which a task reports it, beside its metrics: a mapping with operator, at and ms."""


def stalled_text(task: str, stalled: Mapping[str, Any]) -> str:
    """Return one line on a stalled function, for people.

    >>> stalled_text("Source -> parse (1/2)", {"operator": "parse", "at": "job.py:12 in split", "ms": 62_000})
    "'parse' in Source -> parse (1/2) has not returned for 62 s: job.py:12 in split"

    Args:
        task: name and subtask.
        stalled: the operator, where in the program it is, and milliseconds since its task did anything else.
    """
    site = f": {stalled['at']}" if stalled["at"] else ""
    return f"{stalled['operator']!r} in {task} has not returned for {stalled['ms'] / 1000:.0f} s{site}"


def stalled_tasks(vertices: Any) -> Iterator[str]:
    """Return a line for each running task of a job in which a function has not returned for long.

    Args:
        vertices: of a job's status.
    """
    for vertex in vertices:
        for subtask in vertex["subtasks"]:
            stalled = subtask["metrics"].get(STALLED)
            if stalled and subtask["state"] in ("INITIALIZING", "RUNNING", "CANCELING"):
                yield stalled_text(f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']})", stalled)


__all__ = ["STALLED", "stalled_tasks", "stalled_text"]
