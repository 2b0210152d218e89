"""Shares the network buffers of a slot among its tasks, then among the partitions and gates of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..exchange.gate import ChannelSpec
from ..exchange.partition import output_pool, share_out
from ..messages.messages import OutputSpec
from ..messages.settings import TaskSettings

Demand = tuple[int, int]
"""Buffers wanted at least, and at most."""


def demands(inputs: Sequence[ChannelSpec], outputs: Sequence[OutputSpec], settings: TaskSettings) -> list[Demand]:
    """Return the (minimum, maximum) demands of a task's pipelined partitions, then of its gates, in order."""
    wanted = []
    for spec in outputs:
        if not spec.blocking:
            pool = output_pool(
                spec.subpartitions,
                settings.buffers_per_channel,
                settings.floating_buffers,
                settings.max_buffers_per_channel,
            )
            wanted.append((spec.subpartitions, pool.total))
    for channels in Counter(spec.gate for spec in inputs).values():
        exclusive = channels * settings.buffers_per_channel
        wanted.append((exclusive, exclusive + settings.floating_buffers))
    return wanted


def shares_of_tasks(total: int, wanted: Mapping[Any, Iterable[Demand]]) -> dict[Any, int]:
    """Return the buffers of each task of a slot that has `total`; if there are too few, some get less than their
    minimum.
    """
    sums = [(sum(low for low, _ in each), sum(high for _, high in each)) for each in map(list, wanted.values())]
    least = sum(low for low, _ in sums)
    if least > total:
        return {task: total * low // least for task, (low, _) in zip(wanted, sums, strict=True)}
    return dict(zip(wanted, share_out(total, sums), strict=True))


__all__ = ["Demand", "demands", "shares_of_tasks"]
