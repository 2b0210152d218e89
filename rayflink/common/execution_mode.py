"""The exchange of data in a batch program, in Flink 1.x."""

from __future__ import annotations

from enum import Enum


class ExecutionMode(Enum):
    """Exchange of data in the DataSet API of Flink 1.x: pipelined or batched; `RuntimeExecutionMode` has its place."""

    PIPELINED = 0
    PIPELINED_FORCED = 1
    BATCH = 2
    BATCH_FORCED = 3


__all__ = ["ExecutionMode"]
