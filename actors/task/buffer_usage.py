"""Gauges of a task's network buffers, in [0, 1]: input received and not processed, output not sent yet.

Source: apache/flink InputBufferPoolUsageGauge, OutputBufferPoolUsageGauge.
"""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.metrics import metric_names as names

from ..exchange.gate import InputGate
from ..exchange.writer import RecordWriter


def buffer_gauges(gate: InputGate, writers: list[RecordWriter]) -> dict[str, Callable[[], float]]:
    """Return ``Input.<name>`` and ``Output.<name>`` -> gauge; without inputs or outputs a gauge is 0."""
    credits = [channel.credit for channel in gate.channels]
    pools = list({id(credit.pool): credit.pool for credit in credits}.values())
    partitions = [writer.partition for writer in writers]
    bounded = [partition for partition in partitions if not partition.blocking]

    def exclusive_used() -> int:
        return sum(credit.initial - credit.statistics().exclusive for credit in credits)

    def floating_used() -> int:
        return sum(pool.size - pool.available for pool in pools)

    def exclusive() -> int:
        return sum(credit.initial for credit in credits)

    def floating() -> int:
        return sum(pool.size for pool in pools)

    def taken() -> int:
        return sum(credit.statistics().taken for credit in credits)

    def waiting() -> int:
        return sum(sub.backlog for partition in bounded for sub in partition.subpartitions)

    return {
        f"Input.{names.INPUT_QUEUE_LENGTH}": lambda: gate.queued,
        f"Input.{names.IN_POOL_USAGE}": lambda: _part(taken(), exclusive() + floating()),
        f"Input.{names.INPUT_EXCLUSIVE_BUFFERS_USAGE}": lambda: _part(exclusive_used(), exclusive()),
        f"Input.{names.INPUT_FLOATING_BUFFERS_USAGE}": lambda: _part(floating_used(), floating()),
        f"Output.{names.OUTPUT_QUEUE_LENGTH}": lambda: sum(
            sub.backlog for partition in partitions for sub in partition.subpartitions
        ),
        f"Output.{names.OUT_POOL_USAGE}": lambda: _part(waiting(), sum(p.limits.total for p in bounded)),
    }


def _part(used: int, whole: int) -> float:
    return round(used / whole, 4) if whole else 0.0
