"""The choice of an operator's keyed state backend: that of `state.backend.type`, and in batch mode always memory."""

from __future__ import annotations

import tempfile
import uuid
from functools import partial
from pathlib import Path

from rayflink.common.configuration import Configuration, reading
from rayflink.common.errors import ConfigError
from rayflink.common.managed_memory import MemoryManager
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger
from rayflink.state.backend import KeyedBackend
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.memory import HashMapBackend
from rayflink.state.private_folders import make_private
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.rocksdb.rocksdb_store import RocksDBOptions

from ..base import OperatorContext

log = get_logger(__name__)

ALONE_BYTES = 64 << 20
"""Memory of an operator's state where no slot gives it any."""
_OWNER = "keyed state"


def keyed_backend(ctx: OperatorContext) -> KeyedBackend:
    """Return the backend of one subtask."""
    config = reading(ctx.config)
    in_batches = config.get(options.RUNTIME_MODE) is options.RuntimeMode.BATCH
    if in_batches or config.get(options.STATE_BACKEND) is options.StateBackendType.HASHMAP:
        return hashmap_backend(ctx)
    groups = key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
    if ctx.spill_folder:
        folder = Path(ctx.spill_folder, f"state-{ctx.operator_id}")
        if config.get(options.ROCKSDB_DIRS):
            _ensure_can_be_made(folder)
    else:
        folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
    if ctx.managed_memory is None:
        memory = _state_memory(config, MemoryManager(ALONE_BYTES))
    else:
        memory = ctx.managed_memory.shared(_OWNER, partial(_state_memory, config))
    return RocksDBBackend(groups, ctx.max_parallelism, ctx.label, folder, memory, rocksdb_options(config))


def _ensure_can_be_made(folder: Path) -> None:
    """Find out now what else would be found out when the cache is full, which may be days later.

    Raises:
        ConfigError: the folder of the attempt cannot be made where the program wants it.
    """
    wanted = folder.parent.parent
    try:
        make_private(folder, may_exist=False)
    except OSError as error:
        key, problem = options.ROCKSDB_DIRS.key, f"{str(wanted)!r} ({error.strerror or error})"
        remedy = "set it to folders that tasks may write to on every node, or leave it out"
        raise ConfigError(key, problem, "a folder in which a folder can be made", remedy) from None
    folder.rmdir()


def hashmap_backend(ctx: OperatorContext) -> KeyedBackend:
    """Return the hashmap backend of one subtask."""
    groups = key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
    return HashMapBackend(groups, ctx.max_parallelism, ctx.label)


def rocksdb_options(config: Configuration) -> RocksDBOptions:
    """Return the options for creating databases."""
    get = config.get
    buffer_size = get(options.ROCKSDB_BUFFER_SIZE)
    return RocksDBOptions(
        bloom_bits=int(get(options.ROCKSDB_BLOOM_BITS)) if get(options.ROCKSDB_BLOOM) else 0,
        block_bytes=get(options.ROCKSDB_BLOCK_SIZE).bytes,
        write_buffer_bytes=None if buffer_size is None else buffer_size.bytes,
        write_buffers=get(options.ROCKSDB_BUFFERS),
        max_open_files=get(options.ROCKSDB_FILES),
        background_jobs=get(options.ROCKSDB_THREADS),
        direct_io=get(options.ROCKSDB_DIRECT_IO),
        compaction=get(options.ROCKSDB_COMPACTION).value.lower(),
    )


def _state_memory(config: Configuration, slot: MemoryManager) -> StateMemory:
    """Return the memory that the operators of a slot share; opening it takes RocksDB's part from the managed memory."""
    stated = config.get(options.STATE_MEMORY)
    shape = (
        config.get(options.STATE_CACHE_RATIO),
        config.get(options.WRITE_BUFFER_RATIO),
        config.get(options.ROCKSDB_READERS),
    )
    if stated is not None:
        return StateMemory(stated.bytes, *shape)

    def reserve(size: int) -> None:
        if not slot.reserve(_OWNER, size):
            log.warning(
                "RocksDB takes %d bytes, of which the slot has only %d of managed memory left; raise %s",
                size,
                slot.available,
                options.MANAGED_SIZE.key,
            )

    def give_back() -> None:
        slot.release_all(_OWNER)

    return StateMemory(slot.total, *shape, on_open=reserve, on_empty=give_back)


__all__ = ["hashmap_backend", "keyed_backend", "rocksdb_options"]
