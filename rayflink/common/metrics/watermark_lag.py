"""The partition that holds back the watermark of a job: a split of a source, or a subtask that makes watermarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..records.batches import MAX_TIMESTAMP
from .job_report import moment
from .metric_names import CURRENT_OUTPUT_WATERMARK, CURRENT_WATERMARK, IS_IDLE, SPLIT

Status = Mapping[str, Any]
_BEGIN, _END = f"{SPLIT}.", f".watermark.{CURRENT_WATERMARK}"


@dataclass(frozen=True)
class HeldBack:
    """The slowest partition of a job.

    Args:
        partition: the split, or "" where the operator does not tell splits apart.
        operator: name of the source, or of the operator that makes the watermarks.
        subtask: its number, from 0.
        watermark: epoch milliseconds; None: it has none yet.
        behind_ms: the next slowest is ahead by so much; None where one of both has no watermark.
    """

    partition: str
    operator: str
    subtask: int
    watermark: int | None
    behind_ms: int | None

    def __str__(self) -> str:
        whose = f"split {self.partition!r} of " if self.partition else ""
        where = f"watermark held back by {whose}{self.operator!r} (subtask {self.subtask})"
        if self.watermark is None:
            return f"{where}, which has none yet"
        behind = "" if self.behind_ms is None else f", {self.behind_ms / 1000:,.1f} s behind the others"
        return f"{where} at {moment(self.watermark)}{behind}"


def held_back(status: Status) -> HeldBack | None:
    """Return the partition whose watermark is the lowest, of those that are neither idle nor at their end.

    The result is None where no two can be distinguished, or the lowest two are equal.

    >>> split = {"split.a.txt.watermark.currentWatermark": 1_000, "split.b.txt.watermark.currentWatermark": 31_000}
    >>> source = {"name": "Source: in", "currentOutputWatermark": 1_000, "metrics": split}
    >>> subtask = {"subtask": 0, "state": "RUNNING", "metrics": {"operators": [source]}}
    >>> print(held_back({"vertices": [{"subtasks": [subtask]}]}))
    watermark held back by split 'a.txt' of 'Source: in' (subtask 0) at 1970-01-01 00:00:01, 30.0 s behind the others
    """
    partitions = sorted(
        _partitions(status), key=lambda partition: (partition.watermark is not None, partition.watermark or 0)
    )
    if len(partitions) < 2 or partitions[0].watermark == partitions[1].watermark:
        return None
    slowest, following = partitions[0], partitions[1].watermark
    if slowest.watermark is None or following is None:
        return slowest
    behind_ms = following - slowest.watermark
    return HeldBack(slowest.partition, slowest.operator, slowest.subtask, slowest.watermark, behind_ms)


def _partitions(status: Status) -> Iterator[HeldBack]:
    for vertex in status["vertices"]:
        for subtask in vertex["subtasks"]:
            if subtask["state"] == "RUNNING":
                for operator in subtask["metrics"].get("operators", ()):
                    for name, mark in _marks(operator):
                        if mark != MAX_TIMESTAMP:
                            yield HeldBack(name, operator["name"], subtask["subtask"], mark, None)


def _marks(operator: Status) -> Iterator[tuple[str, int | None]]:
    """Return (split, watermark) of an operator that makes watermarks; the split is "" where there are none."""
    metrics = operator["metrics"]
    splits = [name[len(_BEGIN) : -len(_END)] for name in metrics if name.startswith(_BEGIN) and name.endswith(_END)]
    for split in splits:
        if not metrics.get(f"{_BEGIN}{split}.watermark.{IS_IDLE}"):
            yield split, metrics[f"{_BEGIN}{split}{_END}"]
    if not splits and metrics.get(IS_IDLE) is False:
        yield "", operator[CURRENT_OUTPUT_WATERMARK]


__all__ = ["HeldBack", "held_back"]
