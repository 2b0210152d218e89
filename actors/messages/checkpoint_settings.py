"""The options of checkpoints, parsed once into typed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.configuration import reading
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.registry import CheckpointingMode, ExternalizedCheckpointRetention

_NONE_RETAINED = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """The settings of a job's checkpoints; times in milliseconds, sizes in bytes.

    Args:
        interval_ms: between two triggers; None: none but those that are asked for.
        min_pause_ms: from the end of one to the trigger of the next; the interval is never shorter.
        max_concurrent: most that are under way when one is triggered by the interval; at least 1.
        tolerable_failures: in a row, before the job fails.
        aligned_timeout_ms: with `unaligned`, how long a barrier stays aligned; 0: not at all.
        retained: complete ones that are kept; at least 1.
        directory: where they are stored; "": in the coordinator's memory.
        savepoint_directory: of savepoints that name none; "": they have to name one.
        inline_threshold_bytes: parts up to this size are kept in the metadata and not in files.
        history: how many the statistics remember; 0: none.
        ignore_unclaimed: state in a checkpoint that no operator claims is left out when the job starts from it.
    """

    interval_ms: int | None = None
    min_pause_ms: int = 0
    timeout_ms: int = 600_000
    max_concurrent: int = 1
    tolerable_failures: int = 0
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    unaligned: bool = False
    aligned_timeout_ms: int = 0
    retained: int = 1
    retention: ExternalizedCheckpointRetention = _NONE_RETAINED
    directory: str = ""
    savepoint_directory: str = ""
    inline_threshold_bytes: int = 20 * 1024
    history: int = 10
    ignore_unclaimed: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> CheckpointSettings:
        """Parse the settings from option key -> value.

        Raises:
            ConfigError: a value does not parse, or unaligned checkpoints should run at the same time.
        """
        get = reading(config).get
        interval, min_pause = get(options.CHECKPOINT_INTERVAL), get(options.CHECKPOINT_MIN_PAUSE).to_millis()
        mode, concurrent = get(options.CHECKPOINT_MODE), get(options.CHECKPOINT_MAX_CONCURRENT)
        unaligned = get(options.CHECKPOINT_UNALIGNED) and mode is CheckpointingMode.EXACTLY_ONCE
        if unaligned and concurrent > 1:
            remedy = f"leave it out, or turn {options.CHECKPOINT_UNALIGNED.key} off"
            wanted = "1: of unaligned checkpoints one at a time is taken"
            raise ConfigError(options.CHECKPOINT_MAX_CONCURRENT.key, str(concurrent), wanted, remedy)
        return cls(
            interval_ms=None if interval is None else max(interval.to_millis(), min_pause),
            min_pause_ms=min_pause,
            timeout_ms=get(options.CHECKPOINT_TIMEOUT).to_millis(),
            max_concurrent=concurrent,
            tolerable_failures=get(options.CHECKPOINT_TOLERABLE_FAILURES),
            mode=mode,
            unaligned=unaligned,
            aligned_timeout_ms=get(options.CHECKPOINT_ALIGNED_TIMEOUT).to_millis(),
            retained=get(options.CHECKPOINTS_RETAINED),
            retention=get(options.CHECKPOINT_RETENTION),
            directory=get(options.CHECKPOINT_DIRECTORY) or "",
            savepoint_directory=get(options.SAVEPOINT_DIRECTORY) or "",
            inline_threshold_bytes=get(options.CHECKPOINT_INLINE_THRESHOLD).bytes,
            history=get(options.CHECKPOINT_HISTORY),
            ignore_unclaimed=get(options.IGNORE_UNCLAIMED_STATE),
        )

    def base(self, job_id: str) -> str:
        """Return the address to which the paths of a job's checkpoints are relative; "" where they have no files."""
        return f"{self.directory.rstrip('/')}/{job_id}" if self.directory else ""


__all__ = ["CheckpointSettings"]
