"""The memory of a slot: its split, and the managed part, which the tasks of the slot share.

The runner that makes the tasks of a slot has one `SlotMemory`, gives its manager to each, and calls `free` when the
task is gone, however it ended.

Source: apache/flink TaskManagerServices, TaskExecutorMemoryConfiguration.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rayflink.common.managed_memory import MemoryManager
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options.option_types import MemorySize
from rayflink.common.text_output.logs import get_logger

from ..exchange.frames import TaskAddress
from ..messages.settings import MemorySplit

log = get_logger(__name__)


class SlotMemory:
    """The memory that the tasks of one slot share.

    Args:
        config: of the slot's job, option key -> value.
        place: the slot, for people.
    Raises: ConfigError: the parts do not fit the whole.
    """

    def __init__(self, config: Mapping[str, Any], place: str) -> None:
        self.split = MemorySplit.of(config)
        self.manager = MemoryManager(self.split.managed_bytes)
        split = self.split
        log.info(
            "Memory of %s: %s, of it %s managed and %s for user code and the network buffers in use, "
            "at most %d of %s each.",
            place,
            *map(MemorySize, (split.flink_bytes, split.managed_bytes, split.remaining_bytes)),
            split.network_buffers,
            MemorySize(split.buffer_bytes),
        )

    def free(self, attempt: TaskAddress) -> None:
        """Free the memory of a task that is gone."""
        left = self.manager.release_all(attempt)
        if left:
            log.info("Attempt %s ended with %d bytes of managed memory, which are free again.", attempt, left)

    def status(self) -> dict[str, int]:
        """Return the split and its use, in bytes, under the names of Flink's metrics where it has them."""
        split = self.split
        return {
            "Status.Shuffle.Netty.TotalMemorySegments": split.network_buffers,
            "Status.Shuffle.Netty.TotalMemory": split.network_buffers * split.buffer_bytes,
            "Status.Flink.Memory.Managed.Total": self.manager.total,
            "Status.Flink.Memory.Managed.Used": self.manager.used,
            "rayflink.Status.Memory.Remaining": split.remaining_bytes,
        }

    def report_in(self, group: MetricGroup) -> None:
        """Let a task's metric group report the status as it is then."""
        for name in self.status():
            group.gauge(name, partial(self._gauge, name))

    def _gauge(self, name: str) -> int:
        return self.status()[name]
