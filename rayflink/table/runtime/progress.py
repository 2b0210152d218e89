"""Progress of time as a part of a snapshot: rows that were late before a failure are late after it.

The last watermark of all is left out, for a job that was drained may be fed again.
"""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from rayflink.operators.base import OperatorContext, OperatorSnapshot

_ENTRY = "_watermark"


def progress_entry(progress: int, ctx: OperatorContext) -> dict[str, tuple[str, tuple[bytes, ...]]]:
    """Return the list of a snapshot that holds it; subtasks may differ."""
    return {_ENTRY: ("union", (progress.to_bytes(8, "big", signed=True) + _seat(ctx),))}


def restored_progress(snapshots: Iterable[OperatorSnapshot], ctx: OperatorContext) -> int:
    """Return the subtask's own, else the least of all."""
    known = [entry for snapshot in snapshots for entry in snapshot.lists.get(_ENTRY, ("union", ()))[1]]
    own = [entry for entry in known if entry[8:] == _seat(ctx)]
    least = min((int.from_bytes(entry[:8], "big", signed=True) for entry in own or known), default=MIN_TIMESTAMP)
    return MIN_TIMESTAMP if least == MAX_TIMESTAMP else least


def _seat(ctx: OperatorContext) -> bytes:
    return ctx.subtask.to_bytes(4, "big") + ctx.parallelism.to_bytes(4, "big")


__all__ = ["progress_entry", "restored_progress"]
