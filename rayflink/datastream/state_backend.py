"""Backends that store keyed state between records, under PyFlink's module path.

Each backend stands for options.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.option_types import MemorySize
from rayflink.state.storage.local_storage import folder_of
from rayflink.state.storage.storage_schemes import without_slash


class StateBackend:
    """A backend that stores keyed state between records."""

    _type: options.StateBackendType

    def apply(self, configuration: Configuration) -> None:
        """Set the options the backend stands for."""
        configuration.set(options.STATE_BACKEND, self._type)


class HashMapStateBackend(StateBackend):
    """Keyed state as Python objects in the task's memory."""

    _type = options.StateBackendType.HASHMAP

    def __str__(self) -> str:
        return "HashMapStateBackend"


class PredefinedOptions(Enum):
    """Settings of RocksDB for a kind of disk."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keyed state as bytes in RocksDB, on the task's disk.

    Values are decoded into a cache of a bounded size, and nothing is written to disk before that is full.

    Args:
        enable_incremental_checkpointing: store only what changed since the last checkpoint; None for what the option
            `execution.checkpointing.incremental` says.
    """

    _type = options.StateBackendType.ROCKSDB

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        self._incremental = enable_incremental_checkpointing
        self._paths: list[str] = []
        self._predefined = PredefinedOptions.DEFAULT
        self._transfer_threads = 4

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the directories of the tasks' databases, paths or `file://` URLs; none at all for the system's.

        Raises:
            StorageNotSupported: one names no directory of a disk, such as an `s3://` URL.
        """
        self._paths = [str(folder_of(path)) for path in paths]

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the directories of the tasks' databases, or None."""
        return list(self._paths) or None

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return whether only what changed is stored."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set the settings for a kind of disk."""
        self._predefined = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the settings for a kind of disk."""
        return self._predefined

    def set_options(self, options_factory_class_name: str) -> NoReturn:
        """Refuse the options factory, which is a Java class.

        Raises:
            ConfigError: always.
        """
        remedy = "use set_predefined_options(), or leave it out"
        raise ConfigError("state.backend.rocksdb.options-factory", options_factory_class_name, "no Java class", remedy)

    def get_options(self) -> str | None:
        """Return the name of the Java class of an options factory, which is always None."""
        return None

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads that carry files to and from the checkpoint storage."""
        return self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that carry files to and from the checkpoint storage, at least 1.

        Raises:
            ValueError: it is below 1.
        """
        if number_of_transfering_threads < 1:
            raise ValueError(f"at least 1 thread carries the files, found {number_of_transfering_threads}")
        self._transfer_threads = number_of_transfering_threads

    def apply(self, configuration: Configuration) -> None:
        super().apply(configuration)
        if self._incremental is not None:
            configuration.set(options.CHECKPOINT_INCREMENTAL, self._incremental)
        if self._paths:
            configuration.set(options.ROCKSDB_DIRS, self._paths)
        if self._predefined is not PredefinedOptions.DEFAULT:
            configuration.set(options.ROCKSDB_THREADS, 4)
        if self._predefined is PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM:
            configuration.set(options.ROCKSDB_BLOCK_SIZE, MemorySize(128 << 10))

    def __str__(self) -> str:
        return f"EmbeddedRocksDBStateBackend(incremental={self._incremental}, local paths={self._paths})"


class MemoryStateBackend(StateBackend):
    """State in memory, checkpoints in the coordinator's memory; a backend of PyFlink 1.20.

    Args:
        checkpoint_path: directory of checkpoints' metadata, or None.
        savepoint_path: directory of savepoints that name none, or None.
        max_state_size: most bytes of one state, above 0; None for 5 MiB.
        using_asynchronous_snapshots: snapshots are always asynchronous; accepted.
    """

    _type = options.StateBackendType.HASHMAP
    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self._path, self._savepoint_path = checkpoint_path, savepoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size

    def get_max_state_size(self) -> int:
        """Return the largest size of one state, in bytes."""
        return self._max_state_size

    def is_using_asynchronous_snapshots(self) -> bool:
        """Return True: snapshots are always asynchronous."""
        return True

    def apply(self, configuration: Configuration) -> None:
        super().apply(configuration)
        configuration.set(options.MAX_INLINE_STATE, MemorySize(self._max_state_size))
        _set_if_given(configuration, options.CHECKPOINT_DIRECTORY, self._path)
        _set_if_given(configuration, options.SAVEPOINT_DIRECTORY, self._savepoint_path)

    def __str__(self) -> str:
        return f"MemoryStateBackend(path={self._path}, max state size={self._max_state_size})"


class FsStateBackend(StateBackend):
    """State in memory, checkpoints in files; a backend of PyFlink 1.20.

    Args:
        checkpoint_directory_uri: directory, a path or URL every node reaches.
        default_savepoint_directory_uri: directory of savepoints that name none, or None.
        file_state_size_threshold: bytes up to which state goes into the metadata; kept.
        write_buffer_size: bytes of the buffer in front of a file; kept.
        using_asynchronous_snapshots: snapshots are always asynchronous; accepted.

    Raises:
        ValueError: there is no directory.
    """

    _type = options.StateBackendType.HASHMAP

    def __init__(
        self,
        checkpoint_directory_uri: str | None = None,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        if not checkpoint_directory_uri:
            raise ValueError(f"FsStateBackend needs the path of a directory, found {checkpoint_directory_uri!r}")
        self._path = without_slash(str(checkpoint_directory_uri))
        self._savepoint_path = default_savepoint_directory_uri
        self._threshold = 20 * 1024 if file_state_size_threshold is None else file_state_size_threshold
        self._buffer = 4096 if write_buffer_size is None else write_buffer_size

    def get_checkpoint_path(self) -> str:
        """Return the directory."""
        return self._path

    def get_min_file_size_threshold(self) -> int:
        """Return the number of bytes up to which state goes into the metadata."""
        return self._threshold

    def is_using_asynchronous_snapshots(self) -> bool:
        """Return True: snapshots are always asynchronous."""
        return True

    def get_write_buffer_size(self) -> int:
        """Return the bytes of the buffer in front of a file, at least the threshold."""
        return max(self._buffer, self._threshold)

    def apply(self, configuration: Configuration) -> None:
        super().apply(configuration)
        configuration.set(options.CHECKPOINT_DIRECTORY, self._path)
        _set_if_given(configuration, options.SAVEPOINT_DIRECTORY, self._savepoint_path)


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """State in RocksDB, checkpoints where another backend writes them; a backend of PyFlink 1.20.

    Args:
        checkpoint_data_uri: directory of checkpoints, or None where `checkpoint_stream_backend` says it.
        enable_incremental_checkpointing: store only what changed since the last checkpoint.
        checkpoint_stream_backend: the other backend.

    Raises:
        ValueError: neither of the two is given.
    """

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if checkpoint_data_uri is None and checkpoint_stream_backend is None:
            raise ValueError(
                "RocksDBStateBackend needs checkpoint_data_uri or checkpoint_stream_backend, found neither"
            )
        self._checkpoint_backend = checkpoint_stream_backend or FsStateBackend(checkpoint_data_uri)

    def get_checkpoint_backend(self) -> StateBackend:
        """Return the backend that says where checkpoints go."""
        return self._checkpoint_backend

    def get_number_of_transfering_threads(self) -> int:
        """Return the number of threads that carry files to and from the checkpoint storage."""
        return self.get_number_of_transfer_threads()

    def set_number_of_transfering_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that carry files to and from the checkpoint storage, at least 1."""
        self.set_number_of_transfer_threads(number_of_transfering_threads)

    def apply(self, configuration: Configuration) -> None:
        self._checkpoint_backend.apply(configuration)
        super().apply(configuration)


def _set_if_given(configuration: Configuration, option: Any, value: str | None) -> None:
    if value is not None:
        configuration.set(option, value)


def state_backend_of(configuration: Configuration) -> StateBackend | None:
    """Return the backend that the options name; None where they name none."""
    keys = {options.STATE_BACKEND.key, *options.STATE_BACKEND.fallback_keys}
    if not keys & configuration.key_set():
        return None
    if configuration.get(options.STATE_BACKEND) is options.StateBackendType.HASHMAP:
        return HashMapStateBackend()
    return EmbeddedRocksDBStateBackend(configuration.get(options.CHECKPOINT_INCREMENTAL))


__all__ = [
    "EmbeddedRocksDBStateBackend", "FsStateBackend", "HashMapStateBackend", "MemoryStateBackend", "PredefinedOptions",
    "RocksDBStateBackend", "StateBackend",
]  # fmt: skip
