"""State on its way from a snapshot into an operator, whose classes may have changed since it was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rayflink.common.options.registry import MOVED_CLASSES
from rayflink.state.backend import KeyedBackend
from rayflink.state.rocksdb.rocksdb_files import database_groups
from rayflink.state.schema.evolution import Evolution, moved_classes
from rayflink.state.snapshots import DatabaseFiles, OperatorSnapshot, SnapshotReader

from .base import OperatorContext


def evolution_of(ctx: OperatorContext, snapshots: Sequence[OperatorSnapshot]) -> Evolution:
    """Return the rules by which restored state becomes state of the current classes.

    Raises:
        SnapshotMismatch: it cannot.
    """
    written = [state for snapshot in snapshots for state in snapshot.states]
    if not written:
        return Evolution((), {}, ctx.label)
    return Evolution(written, moved_in(ctx.config), ctx.label)


def moved_in(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a mapping from names of classes to their current names, as the options of a job specify."""
    value = config.get(MOVED_CLASSES.key)
    return {} if value is None else moved_classes(MOVED_CLASSES.read(value))


def restore_keyed(
    backend: KeyedBackend, snapshots: Sequence[OperatorSnapshot], evolution: Evolution, ctx: OperatorContext
) -> None:
    """Give a backend the keyed state of snapshots that may come from several subtasks.

    Where classes have changed all of it is read, and written anew: files of databases are used no further.

    Raises:
        StorageError, DamagedFileError, VersionMismatch, SnapshotMismatch: it cannot be restored.
    """
    in_files = [snapshot for snapshot in snapshots if snapshot.databases]
    databases = [database for snapshot in in_files for database in snapshot.databases]
    reader = in_files[0].reader if in_files else None
    if not evolution.is_needed:
        if reader is not None:
            backend.restore_databases(databases, reader, all(snapshot.reusable for snapshot in in_files))
        backend.restore([snapshot.keyed for snapshot in snapshots])
        return
    if reader is not None:
        backend.restore(_of_databases(databases, reader, backend.key_groups, evolution, ctx))
    backend.restore([_Evolved(snapshot.keyed, evolution) for snapshot in snapshots])


def _of_databases(
    databases: Sequence[DatabaseFiles],
    reader: SnapshotReader,
    owned: range,
    evolution: Evolution,
    ctx: OperatorContext,
) -> Iterator[Mapping[int, bytes]]:
    """Yield the owned key groups, one by one."""
    whose = ctx.max_parallelism, ctx.label
    for group, content in database_groups(databases, reader, owned, whose, evolution.stood_for):
        yield {group: evolution.encoded(content)}


class _Evolved(Mapping[int, bytes]):
    """Key groups with objects of the classes of now; each is made when it is asked for."""

    def __init__(self, written: Mapping[int, bytes], evolution: Evolution) -> None:
        self._written, self._evolution = written, evolution

    def __getitem__(self, group: int) -> bytes:
        return self._evolution.part(self._written[group])

    def __iter__(self) -> Iterator[int]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)


__all__ = ["evolution_of", "moved_in", "restore_keyed"]
