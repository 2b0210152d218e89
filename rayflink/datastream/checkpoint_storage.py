"""Storages of checkpoints, under PyFlink's module path. Each stands for options; see `CheckpointConfig`."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.option_types import MemorySize
from rayflink.state.storage.storage_schemes import without_slash


class CheckpointStorage:
    """The place to which checkpoints are written."""

    def apply(self, configuration: Configuration) -> None:
        """Set the options the storage stands for."""
        raise NotImplementedError(f"{type(self).__name__} stands for no options; use FileSystemCheckpointStorage")


class JobManagerCheckpointStorage(CheckpointStorage):
    """A storage in the coordinator's memory, to which state travels with the acknowledgement; for small state only.

    Args:
        checkpoint_path: directory of the metadata, or None for none.
        max_state_size: most bytes of one state, above 0; None for 5 MiB.
    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._path = None if checkpoint_path is None else without_slash(checkpoint_path)
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_checkpoint_path(self) -> str | None:
        """Return the directory of the metadata, or None."""
        return self._path

    def get_max_state_size(self) -> int:
        """Return the largest size of one state, in bytes."""
        return self._max_state_size

    def get_savepoint_path(self) -> str | None:
        """Return None: the directory of savepoints that name none is an option of the job."""
        return None

    def apply(self, configuration: Configuration) -> None:
        configuration.set(options.MAX_INLINE_STATE, MemorySize(self._max_state_size))
        for key in (options.CHECKPOINT_DIRECTORY.key, *options.CHECKPOINT_DIRECTORY.fallback_keys):
            configuration.remove_config(key)
        if self._path is not None:
            configuration.set(options.CHECKPOINT_DIRECTORY, self._path)

    def __str__(self) -> str:
        return f"JobManagerCheckpointStorage(path={self._path}, max state size={self._max_state_size})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """A storage that writes state to files.

    Args:
        checkpoint_path: directory, a path or URL every node reaches.
        file_state_size_threshold: bytes up to which state goes into the metadata instead, in [0, 1 MiB]; None for the
            default. Kept, and not heeded.
        write_buffer_size: bytes of the buffer in front of a file; -1 for the default. Kept, and not heeded.

    Raises:
        ValueError: there is no path, or the threshold is out of range.
    """

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if not checkpoint_path:
            raise ValueError(f"FileSystemCheckpointStorage needs the path of a directory, found {checkpoint_path!r}")
        threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        if not 0 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(f"file_state_size_threshold is in [0, {self.MAX_FILE_STATE_THRESHOLD}], found {threshold}")
        self._path = without_slash(str(checkpoint_path))
        self._threshold, self._buffer = threshold, write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Return the directory."""
        return self._path

    def get_savepoint_path(self) -> str | None:
        """Return None: the directory of savepoints that name none is an option of the job."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the number of bytes up to which state goes into the metadata."""
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """Return the bytes of the buffer in front of a file, at least the threshold; 4096 where none was set."""
        return max(self._buffer, self._threshold) if self._buffer >= 0 else max(4096, self._threshold)

    def apply(self, configuration: Configuration) -> None:
        configuration.set(options.CHECKPOINT_DIRECTORY, self._path)

    def __str__(self) -> str:
        return f"FileSystemCheckpointStorage(path={self._path})"


def checkpoint_storage_of(configuration: Configuration) -> CheckpointStorage | None:
    """Return the storage that the options ask for; None where they name no directory."""
    path = configuration.get(options.CHECKPOINT_DIRECTORY)
    return None if path is None else FileSystemCheckpointStorage(path)


__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]
