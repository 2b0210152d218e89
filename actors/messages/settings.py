"""The options of tasks and of the coordinator, parsed once into typed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.config_options import ConfigOption
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.option_types import MemorySize

from ..exchange.debloating import DebloatSettings


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings of a task; times in milliseconds, sizes in bytes."""

    buffers_per_channel: int = 2
    floating_buffers: int = 8
    max_buffers_per_channel: int = 10
    overdraft_buffers: int = 5
    max_rows: int = 1 << 20
    max_bytes: int = 1 << 20
    max_arrow_bytes: int = 4 << 20
    slice_ms: float = 10.0
    max_in_flight: int = 2
    gap_timeout_ms: int = 30_000
    memo_entries: int = 65536
    samples_keys: bool = True
    names_keys: bool = False
    blocking_memory_bytes: int = 4 << 20
    network_buffers: int = 2048
    request_backoff_ms: tuple[int, int] = (100, 10_000)
    at_least_once: bool = False
    copy_values: bool = False
    exit_on_out_of_memory: bool = False
    latency_interval_ms: int = 0
    watermark_interval_ms: int = 200
    advance_when_idle_ms: int | None = None
    in_batches: bool = False
    debloating: DebloatSettings | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> TaskSettings:
        """Parse the settings from option key -> value.

        Raises:
            ConfigError: a value does not parse.
        """
        get = Configuration.from_dict(config).get
        when_idle = get(options.IDLE_ADVANCE_DELAY)
        in_batches = get(options.RUNTIME_MODE).name == "BATCH"
        return cls(
            buffers_per_channel=get(options.BUFFERS_PER_CHANNEL),
            floating_buffers=get(options.FLOATING_BUFFERS_PER_GATE),
            max_buffers_per_channel=get(options.MAX_BUFFERS_PER_CHANNEL),
            overdraft_buffers=get(options.MAX_OVERDRAFT_BUFFERS),
            max_rows=get(options.BATCH_MAX_ROWS),
            max_bytes=get(options.BATCH_MAX_BYTES).bytes,
            max_arrow_bytes=get(options.BATCH_MAX_ARROW_BYTES).bytes,
            slice_ms=get(options.TIME_SLICE).to_nanos() / 1e6,
            max_in_flight=get(options.MAX_IN_FLIGHT_CALLS),
            gap_timeout_ms=get(options.MISSING_MESSAGE_TIMEOUT).to_millis(),
            memo_entries=get(options.KEY_CACHE_SIZE),
            samples_keys=get(options.SAMPLE_KEY_GROUPS),
            names_keys=get(options.NAME_HOT_KEYS),
            blocking_memory_bytes=get(options.BLOCKING_MEMORY).bytes,
            network_buffers=get(options.NUMBER_OF_BUFFERS),
            request_backoff_ms=(get(options.REQUEST_BACKOFF_INITIAL), get(options.REQUEST_BACKOFF_MAX)),
            at_least_once=get(options.CHECKPOINT_MODE).name == "AT_LEAST_ONCE",
            copy_values=options.OBJECT_REUSE.key in config and not get(options.OBJECT_REUSE),
            exit_on_out_of_memory=get(options.EXIT_ON_OUT_OF_MEMORY),
            latency_interval_ms=get(options.LATENCY_INTERVAL).to_millis(),
            watermark_interval_ms=get(options.AUTO_WATERMARK_INTERVAL).to_millis(),
            advance_when_idle_ms=None if when_idle is None else when_idle.to_millis(),
            in_batches=in_batches,
            debloating=None if in_batches else _debloating(get),
        )


def _debloating(get: Callable[[ConfigOption[Any]], Any]) -> DebloatSettings | None:
    if not get(options.BUFFER_DEBLOAT_ENABLED):
        return None
    return DebloatSettings(
        target_s=get(options.BUFFER_DEBLOAT_TARGET).to_nanos() / 1e9,
        period_s=get(options.BUFFER_DEBLOAT_PERIOD).to_nanos() / 1e9,
        threshold=get(options.BUFFER_DEBLOAT_THRESHOLD) / 100,
    )


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """The division of a slot's memory; nothing of it is allocated ahead.

    Args:
        flink_bytes: the whole (`taskmanager.memory.flink.size`).
        managed_bytes: what sorting and blocking partitions of batch jobs share; in [0, flink_bytes].
        network_buffers: how many there are at most in the slot; those that are filled count to the rest.
        buffer_bytes: size of one.
    """

    flink_bytes: int
    managed_bytes: int
    network_buffers: int
    buffer_bytes: int

    @property
    def remaining_bytes(self) -> int:
        """Return the memory left for user code and the network buffers in use; a planning number, which is not
        enforced.
        """
        return self.flink_bytes - self.managed_bytes

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> MemorySplit:
        """Parse the division from option key -> value.

        Raises:
            ConfigError: a value does not parse, or the managed memory exceeds the whole.
        """
        get = Configuration.from_dict(config).get
        whole, stated = get(options.FLINK_MEMORY).bytes, get(options.MANAGED_SIZE)
        managed = int(whole * get(options.MANAGED_FRACTION)) if stated is None else stated.bytes
        if managed > whole:
            limit = f"at most {MemorySize(whole)}, the memory of a slot"
            raise ConfigError(
                options.MANAGED_SIZE.key, str(stated), limit, f"lower it or raise {options.FLINK_MEMORY.key}"
            )
        return cls(whole, managed, get(options.NUMBER_OF_BUFFERS), get(options.BATCH_MAX_BYTES).bytes)


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The settings of the coordinator's decisions; times in milliseconds."""

    heartbeat_interval_ms: int = 10_000
    heartbeat_timeout_ms: int = 50_000
    slot_timeout_ms: int = 300_000
    cancellation_timeout_ms: int = 180_000
    ask_timeout_ms: int = 10_000
    idle_process_ms: int = 0
    slots_of_process: int = 1
    """The number of slots that share a process."""
    rescale_history: int = 10
    """The number of changes of parallelism that are remembered."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> JobSettings:
        """Parse the settings from option key -> value.

        Raises:
            ConfigError: a value does not parse.
        """
        get = Configuration.from_dict(config).get
        return cls(
            heartbeat_interval_ms=get(options.HEARTBEAT_INTERVAL).to_millis(),
            heartbeat_timeout_ms=get(options.HEARTBEAT_TIMEOUT).to_millis(),
            slot_timeout_ms=get(options.SLOT_REQUEST_TIMEOUT).to_millis(),
            cancellation_timeout_ms=get(options.CANCELLATION_TIMEOUT).to_millis(),
            ask_timeout_ms=get(options.ASK_TIMEOUT).to_millis(),
            idle_process_ms=get(options.IDLE_PROCESS_TIMEOUT).to_millis(),
            slots_of_process=get(options.SLOTS_PER_PROCESS),
            rescale_history=get(options.RESCALE_HISTORY),
        )
