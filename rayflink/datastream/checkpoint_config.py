"""Settings of checkpoints, under PyFlink's module path: a view of the options `execution.checkpointing.*`."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.registry import CheckpointingMode, ExternalizedCheckpointRetention
from rayflink.common.time import Duration, Length, to_millis

from .checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage, checkpoint_storage_of

ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
"""The name of `ExternalizedCheckpointRetention` in Flink 1.x."""
_UNLIMITED_FAILURES = 2**31 - 1


class CheckpointConfig:
    """Settings of checkpoints; each setter sets an option and returns the object.

    >>> config = CheckpointConfig(Configuration()).set_checkpoint_interval(5_000)
    >>> config.is_checkpointing_enabled(), config.get_checkpoint_interval(), config.get_checkpoint_timeout()
    (True, 5000, 600000)

    Args:
        configuration: the environment's options, which are read and set.
    """

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def is_checkpointing_enabled(self) -> bool:
        """Return whether there is an interval."""
        return self._configuration.get(options.CHECKPOINT_INTERVAL) is not None

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee that a restore gives about state."""
        return self._configuration.get(options.CHECKPOINT_MODE)

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the guarantee that a restore gives about state."""
        self._configuration.set(options.CHECKPOINT_MODE, checkpointing_mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds between two checkpoints; -1 for none."""
        interval = self._configuration.get(options.CHECKPOINT_INTERVAL)
        return -1 if interval is None else interval.to_millis()

    def set_checkpoint_interval(self, checkpoint_interval: Length) -> CheckpointConfig:
        """Set the milliseconds, or a duration, between two checkpoints; above 0."""
        self._configuration.set(options.CHECKPOINT_INTERVAL, to_millis(checkpoint_interval))
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return the milliseconds after which a checkpoint is given up."""
        return self._configuration.get(options.CHECKPOINT_TIMEOUT).to_millis()

    def set_checkpoint_timeout(self, checkpoint_timeout: Length) -> CheckpointConfig:
        """Set the milliseconds, or a duration, after which a checkpoint is given up; above 0."""
        self._configuration.set(options.CHECKPOINT_TIMEOUT, to_millis(checkpoint_timeout))
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the least milliseconds from the end of one checkpoint to the start of the next."""
        return self._configuration.get(options.CHECKPOINT_MIN_PAUSE).to_millis()

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: Length) -> CheckpointConfig:
        """Set the least pause between the end of a checkpoint and the next: milliseconds or a duration, at least 0."""
        self._configuration.set(options.CHECKPOINT_MIN_PAUSE, to_millis(min_pause_between_checkpoints))
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the number of checkpoints that may be under way at the same time."""
        return self._configuration.get(options.CHECKPOINT_MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the number of checkpoints that may be under way at the same time, at least 1."""
        self._configuration.set(options.CHECKPOINT_MAX_CONCURRENT, max_concurrent_checkpoints)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether the first checkpoint that fails fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Let the first checkpoint that fails fail the job, or let none do so."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _UNLIMITED_FAILURES)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return the number of checkpoint failures in a row that the job tolerates before it fails."""
        return self._configuration.get(options.CHECKPOINT_TOLERABLE_FAILURES)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set the number of checkpoint failures in a row that the job tolerates before it fails, at least 0."""
        self._configuration.set(options.CHECKPOINT_TOLERABLE_FAILURES, tolerable_checkpoint_failure_number)
        return self

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set what happens to checkpoints when the job is cancelled."""
        self._configuration.set(options.CHECKPOINT_RETENTION, retention_mode)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints outlive the job."""
        retention = self.get_externalized_checkpoint_retention()
        return retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return what happens to checkpoints when the job is cancelled."""
        return self._configuration.get(options.CHECKPOINT_RETENTION)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether barriers overtake data."""
        return self._configuration.get(options.CHECKPOINT_UNALIGNED)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Let barriers overtake data, or not."""
        self._configuration.set(options.CHECKPOINT_UNALIGNED, enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Keep barriers in line with data."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Length) -> CheckpointConfig:
        """Set the time for which a checkpoint stays aligned: milliseconds or a duration, at least 0.

        It matters where barriers may overtake.
        """
        self._configuration.set(options.CHECKPOINT_ALIGNED_TIMEOUT, to_millis(alignment_timeout))
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return the time a checkpoint stays aligned where barriers may overtake."""
        return self._configuration.get(options.CHECKPOINT_ALIGNED_TIMEOUT)

    def set_alignment_timeout(self, alignment_timeout: Length) -> CheckpointConfig:
        """Set the time a checkpoint stays aligned, in milliseconds or as a duration.

        It is the older name of `set_aligned_checkpoint_timeout`.
        """
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """Return the time a checkpoint stays aligned; the older name of `get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Let barriers overtake data in iterations too."""
        self._configuration.set(options.CHECKPOINT_FORCE_UNALIGNED, force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether barriers overtake data in iterations too."""
        return self._configuration.get(options.CHECKPOINT_FORCE_UNALIGNED)

    # of PyFlink 1.20

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Set what happens to checkpoints when the job is cancelled; see `set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Set what happens to checkpoints when the job is cancelled; see `set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        """Return what happens to checkpoints when the job is cancelled; see `get_externalized_checkpoint_retention`."""
        return self.get_externalized_checkpoint_retention()

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set the storage to which checkpoints are written.

        Raises:
            TypeError: it is no storage.
        """
        if not isinstance(storage, CheckpointStorage):
            raise TypeError(f"a CheckpointStorage is wanted, found {storage!r:.100}; for a path use "
                            "set_checkpoint_storage_dir()")  # fmt: skip
        storage.apply(self._configuration)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Write checkpoints to this directory, a path or URL every node reaches."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the storage to which checkpoints are written; None where no directory is set."""
        return checkpoint_storage_of(self._configuration)


__all__ = ["CheckpointConfig", "ExternalizedCheckpointCleanup"]
