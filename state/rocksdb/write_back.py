"""Write-back of the dirty entries of a row cache to their rows: regularly, on eviction, or captured at a barrier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ..backend import Namespace
from .cache_generation import Generation, KeySets
from .dirty_rows import DirtyRows, Rows, encoded
from .missing_rows import MissingRows

if TYPE_CHECKING:
    from .column_family import ColumnFamily


class WriteBack:
    """Writes the dirty entries of both generations of a cache, and deletes the rows of its tombstones.

    What is captured at a barrier is clean at once, but for as long as another thread writes it an entry that leaves
    memory is written here too: the other thread may not have come to it yet, and a read must find the row.

    Args:
        column, rows: the rows, and how entries are laid out in them.
        state: name of the state, for errors.
        generations: the cold one and the hot one of the cache.
        missing: what is known of rows that are not on disk.
        evict_entries: number of cold entries written and dropped at a time.
    """

    def __init__(
        self,
        column: ColumnFamily,
        rows: Rows[Any, Any],
        state: str,
        generations: tuple[Generation, Generation],
        missing: MissingRows,
        evict_entries: int,
    ) -> None:
        self._column, self._rows, self._state = column, rows, state
        self._missing = missing
        self._generations = self._cold, self._hot = generations
        self._evict_entries = evict_entries
        self._captured: KeySets = {}  # dirty at the newest barrier; another thread writes them
        self._capture_written: Future[Any] | None = None

    def has_more_dirty_than(self, entries: int) -> bool:
        """Return whether more entries than that are dirty or deleted, and not written yet."""
        left = entries - self._missing.tombstones
        for generation in self._generations:
            for keys in generation.dirty.values():
                left -= len(keys)
                if left < 0:
                    return True
        return left < 0

    # writing

    def flush(self) -> None:
        """Write all dirty entries, and delete the rows of tombstones; nothing is dropped."""
        self._mark_captured_dirty(list(self._captured))
        self.delete_tombstones()
        for generation in self._generations:
            dirty = generation.dirty
            self._column.write(
                pair for namespace in dirty for pair in self._encoded(generation, namespace, dirty[namespace])
            )
            dirty.clear()

    def write_some(self, limit: int) -> None:
        """Write up to `limit` dirty entries, and delete the rows of tombstones."""
        self._finish_capture()
        self.delete_tombstones()
        for generation in self._generations:
            chosen = generation.first_dirty(limit)
            limit -= sum(len(keys) for _, keys in chosen)
            self._column.write(
                pair for namespace, keys in chosen for pair in self._encoded(generation, namespace, keys)
            )
            for namespace, keys in chosen:
                generation.mark_clean(namespace, keys)

    def flush_namespace(self, namespace: Namespace) -> None:
        """Write the dirty entries of one namespace, and delete the rows of its tombstones."""
        buried = self._missing.take_tombstones(namespace)
        if buried:
            self._column.write((), self._rows.rows(namespace, buried))
        self._mark_captured_dirty([namespace])
        for generation in self._generations:
            if namespace in generation.dirty:
                self._column.write(self._encoded(generation, namespace, generation.dirty.pop(namespace)))

    def delete_tombstones(self) -> None:
        """Delete the rows of all tombstones whose keys have no new entry."""
        if not self._missing.tombstones:
            return
        rows: list[bytes] = []
        for namespace, keys in self._missing.buried.items():
            hot, cold = self._hot.namespace(namespace), self._cold.namespace(namespace)
            rows += self._rows.rows(namespace, [key for key in keys if key not in hot and key not in cold])
        rows.sort()
        self._column.write((), rows)
        self._missing.clear_tombstones()

    def evict(self, limit: int) -> int:
        """Write and drop up to `limit` entries of the cold generation, and return how many those were."""
        self._finish_capture()
        evicted = 0
        while evicted < limit and self._cold.entries:
            chosen = self._cold.first_entries(min(limit - evicted, self._evict_entries))
            self._column.write(self._evict(chosen))
            evicted += sum(len(keys) for _, keys in chosen)
        return evicted

    # capturing

    def capture(self) -> DirtyRows | None:
        """Return all dirty entries as they are now, for another thread to write, or None where there are none.

        The rows of tombstones are deleted here. `capture_written_by` must follow.
        """
        self._finish_capture()
        self.delete_tombstones()
        captured: list[tuple[Any, list[Any], list[Any]]] = []
        for generation in self._generations:
            for namespace, dirty in generation.dirty.items():
                keys, values = generation.dirty_entries(namespace, dirty)
                if keys:
                    self._missing.discard(namespace, keys)
                    self._captured.setdefault(namespace, set()).update(keys)
                    captured.append((namespace, keys, values))
            generation.dirty.clear()
        return DirtyRows(self._rows, self._state, captured) if captured else None

    def capture_written_by(self, written: Future[Any]) -> None:
        """Take the captured entries as written when `written` is done, or as dirty again when it has failed."""
        self._capture_written = written

    def drop(self, namespace: Namespace) -> None:
        """Forget what was captured of a namespace, all rows of which are being deleted."""
        self._captured.pop(namespace, None)

    def clear(self) -> None:
        """Forget what was captured: all rows are being deleted."""
        self._captured.clear()

    def _finish_capture(self) -> None:
        written = self._capture_written
        if written is not None and written.done():
            self._capture_written = None
            if written.exception() is not None:
                self._mark_captured_dirty(list(self._captured))
            self._captured = {}

    def _mark_captured_dirty(self, namespaces: list[Any]) -> None:
        """Let captured entries be written once more."""
        self._finish_capture()
        for namespace in namespaces:
            keys = self._captured.pop(namespace, ())
            for generation in self._generations:
                generation.mark_dirty(namespace, generation.namespace(namespace).keys() & keys)

    # rows

    def _evict(self, chosen: list[tuple[Any, list[Any]]]) -> Iterator[tuple[bytes, bytes]]:
        """Drop cold entries, and give the rows of those that are not on disk yet."""
        cold = self._cold
        for namespace, keys in chosen:
            for marked in filter(None, (cold.dirty.get(namespace), self._captured.get(namespace))):
                unwritten = marked.intersection(keys)
                yield from self._encoded(cold, namespace, unwritten)
                marked -= unwritten
            cold.remove(namespace, keys)

    def _encoded(self, generation: Generation, namespace: Namespace, dirty: set[Any]) -> Iterable[tuple[bytes, bytes]]:
        """Return the rows of those dirty keys that have an entry in the generation."""
        keys, values = generation.dirty_entries(namespace, dirty)
        if not keys:
            return ()
        self._missing.discard(namespace, keys)
        return encoded(self._rows, self._state, namespace, keys, values)


__all__ = ["WriteBack"]
