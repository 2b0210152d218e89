"""`rayflink savepoint`, `stop` and `checkpoints`: savepoints of the cluster's jobs, and what checkpoints took."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from rayflink import launch
from rayflink.actors.checkpoints.history import IN_PROGRESS
from rayflink.common.job_client import JobClient
from rayflink.common.metrics.job_report import moment
from rayflink.common.metrics.live_table import lag_text
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.common.text_output.plain_table import table
from rayflink.state_processor import dispose_savepoint

from .given_options import configuration_of
from .jobs import end_job, one_job
from .script import FAILED, OK, USAGE

CHECK = "check"
"""The word behind `savepoint` that is no job; a job of that name is meant by its id."""


def savepoint(chosen: argparse.Namespace) -> int:
    """Take a savepoint of a job, dispose of one, or check a program against one, and return the exit code."""
    words = list(chosen.words)
    if chosen.dispose is not None:
        return USAGE if _too_many(words, 0) else _dispose(chosen)
    if words[:1] == [CHECK]:
        from .compatibility import check  # it loads the API of programs, which no other savepoint command needs

        return check(chosen, words[1:])
    if not words or _too_many(words, 2):
        if not words:
            print("rayflink: the job is missing; give its id or name, or --dispose PATH", file=sys.stderr)
        return USAGE
    chosen.job = words[0]
    job_status = one_job(chosen)
    if job_status is None:
        return FAILED
    directory = words[1] if len(words) > 1 else None
    path = launch.attach(job_status["jid"], configuration_of(chosen)).trigger_savepoint(directory).result()
    print(_completed(path))
    return OK


def stop(chosen: argparse.Namespace) -> int:
    """Stop a job with a savepoint and return the exit code."""
    if chosen.no_savepoint:
        if chosen.drain or chosen.savepoint_path is not None:
            print("rayflink: --no-savepoint cannot be combined with --drain or --savepoint-path", file=sys.stderr)
            return USAGE
        return end_job(chosen, lambda job: job.stop())

    def ask(job: JobClient) -> None:
        print(_completed(job.stop_with_savepoint(chosen.drain, chosen.savepoint_path).result()))

    return end_job(chosen, ask)


def checkpoints(chosen: argparse.Namespace) -> int:
    """Show the statistics of a job's checkpoints and return the exit code."""
    if chosen.subtasks and chosen.checkpoint is None:
        print("rayflink: the number is missing; use checkpoints JOB NUMBER --subtasks", file=sys.stderr)
        return USAGE
    configuration = configuration_of(chosen)
    job_status = one_job(chosen, ended=configuration.get(options.TARGET) is options.Target.REMOTE)
    if job_status is None:
        return FAILED
    now_ms = int(time.time() * 1000)
    statistics = launch.attach(job_status["jid"], configuration).checkpoints(chosen.checkpoint)
    if chosen.json:
        print(json.dumps(statistics, indent=2))
    elif chosen.checkpoint is not None:
        show = checkpoint_by_subtask if chosen.subtasks else one_checkpoint
        print(show(statistics, {vertex["id"]: vertex["name"] for vertex in job_status["vertices"]}, now_ms))
    else:
        print(checkpoint_tables(statistics, now_ms))
    return OK


def one_checkpoint(checkpoint: dict[str, Any], names: dict[str, str], now_ms: int) -> str:
    """Return a table of one checkpoint in each vertex: the longest of each time among its subtasks, and total sizes.

    Only subtasks that have acknowledged count; a vertex without one has no figures.

    Args:
        names: of the vertices, by id.
        now_ms: the time, epoch milliseconds.
    """
    rows = []
    for vertex, task in checkpoint["tasks"].items():
        spread = task["summary"]
        times = (
            task["end_to_end_duration"], spread["start_delay"]["max"], spread["alignment"]["duration"]["max"],
            spread["checkpoint_duration"]["sync"]["max"], spread["checkpoint_duration"]["async"]["max"],
        )  # fmt: skip
        sizes = (task["state_size"], task["checkpointed_size"], task["persisted_data"])
        done = f"{task['num_acknowledged_subtasks']}/{task['num_subtasks']}"
        amounts = (int(amount) for amount in (*times, *sizes))
        cells = amounts if task["num_acknowledged_subtasks"] else [None] * len((*times, *sizes))
        rows.append((names.get(vertex, vertex), done, *cells))
    columns = ("vertex", "acknowledged", "ms", "delay ms", "alignment ms", "sync ms", "async ms", *_SIZES)
    return f"{_head(checkpoint, now_ms)}\n\n{table(columns, rows)}"


def checkpoint_by_subtask(checkpoint: dict[str, Any], names: dict[str, str], now_ms: int) -> str:
    """Return a table of one checkpoint in each subtask; a subtask that has not acknowledged has no figures.

    Args:
        names: of the vertices, by id.
        now_ms: the time, epoch milliseconds.
    """
    rows = []
    for vertex, task in checkpoint["tasks"].items():
        no_figures = [None] * (6 + len(_SIZES))
        figures: dict[int, Sequence[int | None]] = dict.fromkeys(task["pending_subtasks"], no_figures)
        figures |= {subtask["index"]: _figures(subtask) for subtask in task["subtasks"]}
        rows += [(names.get(vertex, vertex), index, *cells) for index, cells in sorted(figures.items())]
    columns = ("vertex", "subtask", "ms", "delay ms", "alignment ms", "sync ms", "async ms", "rest ms", *_SIZES)
    return f"{_head(checkpoint, now_ms)}\n\n{table(columns, rows)}"


_SIZES = ("state bytes", "new bytes", "in-flight bytes")


def _figures(subtask: dict[str, Any]) -> list[int]:
    """Return the times and sizes of a subtask that has acknowledged a checkpoint."""
    alignment, parts = subtask["alignment"], subtask["checkpoint"]
    times = [subtask["start_delay"], alignment["duration"], parts["sync"], parts["async"]]
    rest = max(0, subtask["end_to_end_duration"] - sum(times))
    sizes = [subtask["state_size"], subtask["checkpointed_size"], alignment["persisted"]]
    return [int(figure) for figure in (subtask["end_to_end_duration"], *times, rest, *sizes)]


def _head(checkpoint: dict[str, Any], now_ms: int) -> str:
    """Return the lines above the table of a checkpoint: what it is, and its path or why it failed."""
    head = f"{checkpoint['checkpoint_type'].lower()} {checkpoint['id']}  {checkpoint['status'].lower()}  "
    head += f"triggered {moment(checkpoint['trigger_timestamp'])}, {checkpoint['end_to_end_duration']:,} ms"
    if age := _age(checkpoint, now_ms):
        head += f" to the last acknowledgement; in progress for {age}"
    where = checkpoint.get("failure_message") or checkpoint.get("external_path") or ""
    return f"{head}\n{where}" if where else head


def _age(checkpoint: dict[str, Any], now_ms: int) -> str:
    """Return how long a checkpoint has been in progress, by this computer's clock; "" when it has ended."""
    if checkpoint["status"] != IN_PROGRESS:
        return ""
    return lag_text(min(checkpoint["trigger_timestamp"], now_ms), now_ms)


def checkpoint_tables(statistics: dict[str, Any], now_ms: int) -> str:
    """Return tables of counts, spreads and the newest checkpoints, for people.

    Args:
        statistics: of the job's checkpoints, as `JobClient.checkpoints()` returns them.
        now_ms: the time, epoch milliseconds.
    """
    counts = statistics["counts"]
    parts = [
        f"{counts['completed']:,} completed, {counts['failed']:,} failed, {counts['in_progress']:,} in progress, "
        f"{counts['restored']:,} restored"
    ]
    if statistics["not_triggered"]:
        parts[0] += f"\nno checkpoint is triggered: {statistics['not_triggered']}"
    if counts["completed"]:
        names = {"end_to_end_duration": "duration ms", "state_size": "state bytes", "checkpointed_size": "new bytes"}
        shown = ("min", "avg", "p50", "p99", "max")
        rows = [
            (title, *(int(statistics["summary"][name][figure]) for figure in shown)) for name, title in names.items()
        ]
        parts.append(table(("of completed ones", *shown), rows))
    rows = [
        (
            str(checkpoint["id"]), checkpoint["checkpoint_type"].lower(), checkpoint["status"].lower(),
            moment(checkpoint["trigger_timestamp"]), _age(checkpoint, now_ms),
            checkpoint["end_to_end_duration"], checkpoint["state_size"], checkpoint["checkpointed_size"],
            f"{checkpoint['num_acknowledged_subtasks']}/{checkpoint['num_subtasks']}",
            checkpoint.get("failure_message") or checkpoint.get("external_path") or "",
        )
        for checkpoint in statistics["history"]
    ]  # fmt: skip
    head = (
        "id", "kind", "status", "triggered", "age", "duration ms", "state bytes", "new bytes", "acknowledged", "where",
    )  # fmt: skip
    if rows:
        parts.append(table(head, rows))
    restored = statistics["latest"]["restored"]
    if restored is not None:
        parts.append(
            f"restored from {restored['external_path'] or restored['id']} {moment(restored['restore_timestamp'])}"
        )
    return "\n\n".join(parts)


def _dispose(chosen: argparse.Namespace) -> int:
    files = dispose_savepoint(chosen.dispose, storage_options(configuration_of(chosen).to_dict()))
    print(f"Savepoint {chosen.dispose} disposed of: {files} {'file' if files == 1 else 'files'} deleted")
    return OK


def _completed(path: str) -> str:
    return f"Savepoint completed. Path: {path}"


def _too_many(words: list[str], most: int) -> bool:
    if len(words) > most:
        print(f"rayflink: unexpected arguments: {' '.join(words[most:])}", file=sys.stderr)
    return len(words) > most


__all__ = [
    "CHECK", "checkpoint_by_subtask", "checkpoint_tables", "checkpoints", "one_checkpoint", "savepoint", "stop",
]  # fmt: skip
