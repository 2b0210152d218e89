"""The waits of running tasks, as tasks report them beside their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WAITS = "waits"
"""Name under which a task reports its waits: a list of mappings with for (a name below), reason and ms."""
ROOM = "room"
"""Room in the outputs."""
TRIGGER = "trigger"
"""A checkpoint was triggered here, and cannot begin while the outputs have no room."""
BARRIER = "barrier"
"""Barriers of the other channels, for which channels are blocked; not a barrier behind records of its own channel."""
ANSWERS = "answers"
"""An asynchronous operator that is at its capacity."""
SAVEPOINT = "savepoint"
"""The savepoint or checkpoint that ends the task."""
INPUT = "input"
"""Records, where there are none."""
LONG_MS = 5_000
"""A wait for room or for a barrier that is this long is shown to people, in milliseconds."""
_SENTENCES = {
    ROOM: "{task} waits for room in its outputs",
    TRIGGER: "{task} cannot begin a triggered checkpoint: its outputs have no room",
    BARRIER: "{task} {reason}",
}


def waiting_tasks(vertices: Any) -> Iterator[str]:
    """Return a line for each running task of a job that has waited long for room or for a barrier.

    >>> waits = [{"for": "barrier", "reason": "holds back channels [1] for a barrier", "ms": 12_400}]
    >>> subtask = {"subtask": 0, "state": "RUNNING", "metrics": {"waits": waits}}
    >>> list(waiting_tasks([{"name": "Join", "parallelism": 2, "subtasks": [subtask]}]))
    ['Join (1/2) holds back channels [1] for a barrier, for 12 s']

    Args:
        vertices: of a job's status.
    """
    for vertex in vertices:
        for subtask in vertex["subtasks"]:
            if subtask["state"] != "RUNNING":
                continue
            task = f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']})"
            for wait in subtask["metrics"].get(WAITS, ()):
                if wait["for"] in _SENTENCES and wait["ms"] >= LONG_MS:
                    yield _SENTENCES[wait["for"]].format(task=task, **wait) + f", for {wait['ms'] / 1000:.0f} s"


__all__ = ["ANSWERS", "BARRIER", "INPUT", "LONG_MS", "ROOM", "SAVEPOINT", "TRIGGER", "WAITS", "waiting_tasks"]
