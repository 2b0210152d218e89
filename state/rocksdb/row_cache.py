"""A bounded write-back cache of decoded values in front of sorted rows.

Entries live in spaces (a namespace, or the map of one key), so that a batch works on one plain dict. There are two
generations: what is used is in the hot one. When that has most of the budget it becomes the cold one, and while a new
hot one grows, what nobody uses of the cold one is written back, where it was changed, and dropped. So an entry that is
used again and again is neither read nor written, and no call has to wait until many are.

What is known not to be on disk is neither looked for nor deleted there: a space nothing was ever written of, and names
that were looked for in vain. A window that begins and ends within the cache never touches the disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Any

from ..errors import InvalidKeyError
from ..keys.key_encoding import canonical_key
from .cache_budget import CacheBudget
from .column_family import ColumnFamily
from .dirty_rows import DirtyRows, Rows, encoded
from .memory_estimate import estimate_bytes

_ABSENT: Any = object()
ENTRY_BYTES = 110
"""Memory of an entry beside its name and value: places in dicts and sets. Measured: 84 bytes, with whole numbers."""
SPACE_BYTES = 400
_LARGE_BYTES = 4096
_GONE_ROWS = 4096
_EVICTED = 4096
_PLAIN = frozenset({str, int, bytes})
"""Types of names that are canonical as they are."""
MAX_STORED_SPACES = 100_000
"""Most spaces of which is known whether anything of them is on disk."""

Names = dict[Any, set[Any]]
"""Space -> names in it."""


class RowCache:
    """Entries (space, name) -> value over the rows of a column.

    Args:
        column: the rows.
        rows: where entries lie there.
        budget: how much may be kept in memory.
        state: name of the state, for errors.
    """

    def __init__(self, column: ColumnFamily, rows: Rows, budget: CacheBudget, state: str) -> None:
        self.column, self._rows, self._budget, self._state = column, rows, budget, state
        self._hot: dict[Any, dict[Any, Any]] = {}
        self._cold: dict[Any, dict[Any, Any]] = {}
        self._changed: Names = {}
        self._cold_changed: Names = {}
        self._unwritten: Names = {}  # of the newest capture: another thread writes them
        self._until: Future[Any] | None = None
        self._absent: Names = {}
        self._gone: Names = {}
        self._gone_count = 0
        self._stored: set[Any] | None = set()
        self._count = 0
        self._grown_from = 0
        self._touched = 0
        self._average = 64.0
        self._renames = False
        self.lent = False
        """Whether a caller may hold a dict of the hot generation."""
        self.misses = 0
        """Entries that were looked for on disk."""
        self.complete: set[Any] = set()
        """Spaces all of whose entries are in memory; they are until the next rotation."""
        self.on_rotate: Callable[[], None] = _nothing
        """Called when the hot generation has become the cold one."""
        self._look_after = budget.entries_between_looks()
        budget.add(self)

    @property
    def entry_bytes(self) -> float:
        """Memory of one entry, estimated from samples."""
        return self._average + ENTRY_BYTES

    @property
    def estimated_bytes(self) -> float:
        """Bytes of the hot generation."""
        spaces = len(self._hot) + len(self.complete)
        return self._count * self.entry_bytes + spaces * SPACE_BYTES

    # one entry

    def get(self, name: Any, space: Any = None, default: Any = None) -> Any:
        """The value, or `default`."""
        entries = self._hot.get(space)
        if entries is not None:
            value = entries.get(name, _ABSENT)
            if value is not _ABSENT:
                return value
        return self._found(space, name, default)

    def put(self, name: Any, value: Any, space: Any = None) -> None:
        """Set the value."""
        self.lent = False
        entries = self._hot.get(space)
        if entries is None:
            entries = self._hot[space] = {}
        if name not in entries:
            self._count += 1
            if self._cold and (cold := self._cold.get(space)) is not None:
                cold.pop(name, None)
        entries[name] = value
        changed = self._changed.get(space)
        if changed is None:
            changed = self._changed[space] = set()
        changed.add(name)
        self._touched += 1
        if self._touched >= self._look_after:
            self._sample(name, value)

    def mark(self, space: Any, name: Any, added: Any) -> None:
        """The value of a hot entry has grown by a part."""
        self.lent = False
        self._changed.setdefault(space, set()).add(name)
        self._count += 1
        self._touched += 1
        if self._touched >= self._look_after:
            self._sample(name, added)

    def remove_all(self, names: Iterable[Any], space: Any = None) -> None:
        """Delete the entries that are there."""
        self.lent = False
        hot, cold = self._hot.get(space), self._cold.get(space)
        changed = self._changed.get(space)
        may_be_stored = self._may_be_stored(space)
        absent = self._absent.get(space, ())
        for name in names:
            if hot is not None and hot.pop(name, _ABSENT) is not _ABSENT:
                self._count -= 1
                if changed is not None:
                    changed.discard(name)
            if cold is not None:
                cold.pop(name, None)
            if may_be_stored and name not in absent:
                self._gone.setdefault(space, set()).add(name)
                self._gone_count += 1
        if hot is not None and not hot:
            del self._hot[space]
            self._changed.pop(space, None)
        if cold is not None and not cold:
            del self._cold[space]
            self._cold_changed.pop(space, None)
        if self._gone_count > _GONE_ROWS:
            self._delete_gone()

    # many entries of a space

    def load(self, names: Iterable[Any], space: Any = None) -> dict[Any, Any]:
        """The hot dict of the space, with at least those of `names` that there are."""
        self.make_room()
        self.lent = True
        entries = self._hot.get(space)
        if entries is None:
            entries = self._hot[space] = {}
        try:
            missing = set(names).difference(entries)
        except TypeError:  # one of them cannot be a key: whoever uses it says so
            missing = {name for name in names if is_hashable(name)}.difference(entries)
        if missing:
            self._fetch(space, entries, missing)
        return entries

    def changed(self, names: Iterable[Any], space: Any = None) -> None:
        """The values of these names in the loaded dict were set."""
        if self._renames:
            names = [canonical_key(name) for name in names]
        marks, entries = self._changed, self._hot.get(space)
        if entries is None:
            marks, entries = self._cold_changed, self._cold.get(space, {})
        marked = marks.get(space, set())
        before = len(marked)
        marked.update(names)
        if marked:
            marks[space] = marked
        self._count += len(marked) - before
        self.lent = False
        for name in islice(names, 1):
            if name in entries:
                self._sample_bytes(name, entries[name])

    # what is in memory

    def space(self, space: Any) -> dict[Any, Any]:
        """Name -> value of the entries of a space that are in memory."""
        return {**self._cold.get(space, {}), **self._hot.get(space, {})}

    def is_only_here(self, space: Any) -> bool:
        """Whether all entries of the space are in memory."""
        return space in self.complete or not self._may_be_stored(space)

    def gather(self, space: Any) -> None:
        """All entries of the space are in memory: keep them in the hot generation."""
        cold = self._cold.get(space)
        if cold:
            for name in list(cold):
                self._warmed(space, name, cold)
        self.complete.add(space)

    def known_names(self, space: Any) -> list[Any] | None:
        """The names of all rows that a space may have on disk; None where they are not known."""
        return [*self.space(space), *self._gone.get(space, ())] if space in self.complete else None

    def drop_space(self, space: Any) -> bool:
        """Forget a space in memory, where it is then complete; whether there may be rows of it on disk to delete."""
        self.lent = False
        stored = self._may_be_stored(space)
        for generation in (self._hot, self._cold):
            dropped = generation.pop(space, None)
            if dropped is not None and generation is self._hot:
                self._count -= len(dropped)
        for names in (self._changed, self._cold_changed, self._unwritten, self._absent):
            names.pop(space, None)
        self._gone_count -= len(self._gone.pop(space, ()))
        if stored:
            self.complete.add(space)
            self._touch()
        return stored

    def in_memory(self) -> Iterator[tuple[Any, Any, Any]]:
        """(space, name, value) of all entries in memory."""
        for generation in (self._cold, self._hot):
            for space, entries in generation.items():
                for name, value in entries.items():
                    yield space, name, value

    def spaces(self) -> list[Any]:
        """The spaces of which entries are in memory."""
        return list({**self._cold, **self._hot})

    def admit(self, space: Any, name: Any, value: Any) -> None:
        """Take in an entry as it is on disk."""
        self._hot.setdefault(space, {})[name] = value
        self._count += 1
        self._touched += 1
        if self._touched >= self._look_after:
            self._sample(name, value)

    # both generations

    def make_room(self) -> None:
        """Keep to the budget, unless a caller holds a dict."""
        if not self.lent:
            self._budget.keep()

    def rotate(self) -> None:
        """The hot generation becomes the cold one; what was left of that is written back and dropped."""
        self._delete_gone()
        self._evict(sys.maxsize)
        self._cold, self._cold_changed = self._hot, self._changed
        self._hot, self._changed, self._absent = {}, {}, {}
        self._count = self._grown_from = 0
        self.complete.clear()
        self.on_rotate()

    @property
    def grown(self) -> int:
        """Entries that came into the cache since this was set to 0; less those that went."""
        return self._count - self._grown_from

    @grown.setter
    def grown(self, entries: int) -> None:
        self._grown_from = self._count - entries

    def shrink(self, surplus: float) -> float:
        """Drop cold entries of so many bytes, as far as there are; how many those were."""
        if surplus <= 0 or not self._cold:
            return 0.0
        return self._evict(int(surplus / self.entry_bytes) + 1) * self.entry_bytes

    def has_changed_more_than(self, entries: int) -> bool:
        """Whether more entries than that were changed and are not written yet."""
        left = entries - self._gone_count
        for changed in (self._cold_changed, self._changed):
            for names in changed.values():
                left -= len(names)
                if left < 0:
                    return True
        return left < 0

    def write_some(self, most: int) -> None:
        """Write back so many of the entries that changed, at most, and delete what was deleted."""
        self._forget_written()
        self._delete_gone()
        for generation, changed in ((self._cold, self._cold_changed), (self._hot, self._changed)):
            chosen: list[tuple[Any, set[Any]]] = []
            for space, names in changed.items():
                if most <= 0:
                    break
                chosen.append((space, set(islice(names, most))))
                most -= len(chosen[-1][1])
            self.column.write(
                pair for space, names in chosen for pair in self._encoded(space, generation.get(space, {}), names)
            )
            for space, names in chosen:
                changed[space] -= names
                if not changed[space]:
                    del changed[space]

    def recount(self) -> None:
        """Entries that are changed again after they were written were counted twice."""
        counted = sum(map(len, self._hot.values())) + sum(map(len, self._absent.values()))
        self._grown_from += counted - self._count
        self._count = counted

    def forget_stored(self) -> None:
        """The column has come with rows: what is stored is not known."""
        self._stored = None

    def flush(self) -> None:
        """Write back all that changed; nothing is dropped."""
        self._change_unwritten(list(self._unwritten))
        self._delete_gone()
        for generation, changed in ((self._cold, self._cold_changed), (self._hot, self._changed)):
            self.column.write(
                pair for space in changed for pair in self._encoded(space, generation.get(space, {}), changed[space])
            )
            changed.clear()

    def take_changed(self) -> DirtyRows | None:
        """All that changed, as it is now, for another thread to write; None: nothing. What was deleted is written here.

        Until `written_with` it counts as changed only where it is evicted, or all of a space is read.
        """
        self._forget_written()
        self._delete_gone()
        entries: list[tuple[Any, list[Any], list[Any]]] = []
        for generation, changed in ((self._cold, self._cold_changed), (self._hot, self._changed)):
            for space, names in changed.items():
                held = generation.get(space, {})
                there = [name for name in names if name in held]
                if there:
                    self._will_be_stored(space, there)
                    self._unwritten.setdefault(space, set()).update(there)
                    entries.append((space, there, [held[name] for name in there]))
            changed.clear()
        return DirtyRows(self._rows, self._state, entries) if entries else None

    def written_with(self, until: Future[Any]) -> None:
        """What was taken is written when that is done, unless it failed."""
        self._until = until

    def flush_space(self, space: Any) -> None:
        """Write back what changed of one space, and delete what was deleted of it."""
        gone = self._gone.pop(space, None)
        if gone is not None:
            self._gone_count -= len(gone)
            self.column.write((), self._rows.rows(space, list(gone)))
        self._change_unwritten([space])
        for generation, changed in ((self._cold, self._cold_changed), (self._hot, self._changed)):
            if space in changed:
                self.column.write(self._encoded(space, generation.get(space, {}), changed.pop(space)))

    def clear_all(self) -> None:
        """Forget everything, also on disk."""
        for kept in (self._hot, self._cold, self._absent, self._gone):
            kept.clear()
        for names in (self._changed, self._cold_changed, self._unwritten):
            names.clear()
        self._count = self._grown_from = self._gone_count = 0
        self._stored = set()
        self.complete.clear()
        self.lent = False
        self.on_rotate()
        self.column.delete_range(b"", b"\xff" * 64)

    # inside

    def _may_be_stored(self, space: Any) -> bool:
        return not self.column.is_empty and (self._stored is None or space in self._stored)

    def _found(self, space: Any, name: Any, default: Any) -> Any:
        cold = self._cold.get(space)
        if cold is not None and name in cold:
            return self._warmed(space, name, cold)
        if not self._may_be_stored(space) or space in self.complete:
            return default
        if name in self._gone.get(space, ()) or name in self._absent.get(space, ()):
            return default
        self.misses += 1
        data = self.column.read(self._rows.row(space, name))
        if data is None:
            self._absent.setdefault(space, set()).add(name)
            self._count += 1
            self._touch()
            return default
        value = self._rows.decode(data)
        self.admit(space, name, value)
        return value

    def _warmed(self, space: Any, name: Any, cold: dict[Any, Any]) -> Any:
        """Move an entry of the cold generation to the hot one."""
        value = cold.pop(name)
        changed = self._cold_changed.get(space)
        if changed is not None and name in changed:
            changed.discard(name)
            self._changed.setdefault(space, set()).add(name)
        self._hot.setdefault(space, {})[name] = value
        self._count += 1
        self._grown_from += 1  # both generations together have not grown
        return value

    def _fetch(self, space: Any, entries: dict[Any, Any], missing: set[Any]) -> None:
        if not _PLAIN.issuperset(map(type, missing)):
            missing = self._canonical(missing).difference(entries)
        cold = self._cold.get(space)
        if cold:
            warm = [name for name in missing if name in cold]  # `intersection` would go through all that are cold
            missing = missing.difference(warm)
            for name in warm:
                self._warmed(space, name, cold)
        if missing and self._may_be_stored(space) and space not in self.complete:
            unknown = list(missing.difference(self._gone.get(space, ()), self._absent.get(space, ())))
            if unknown:
                self._read(space, entries, unknown)

    def _canonical(self, names: set[Any]) -> set[Any]:
        canonical = set()
        for given in names:
            try:
                name = canonical_key(given)
            except InvalidKeyError:
                continue  # whoever uses it says so
            if name is not given:
                self._renames = True
            canonical.add(name)
        return canonical

    def _read(self, space: Any, entries: dict[Any, Any], names: list[Any]) -> None:
        self.misses += len(names)
        self._count += len(names)
        rows = self._rows.rows(space, names)
        order = sorted(range(len(names)), key=rows.__getitem__)
        found = self.column.read_all([rows[at] for at in order])
        nowhere = self._absent.setdefault(space, set())
        largest = 0
        for at, data, value in zip(order, found, self._rows.decode_all(found), strict=True):
            if data is None:
                nowhere.add(names[at])
                continue
            entries[names[at]] = value
            if len(data) > largest:
                largest = len(data)
                if largest > _LARGE_BYTES:
                    self._sample_bytes(names[at], value)

    def _evict(self, most: int) -> int:
        """Write back and drop entries of the cold generation; how many those were."""
        self._forget_written()
        dropped = 0
        while most > 0 and self._cold:
            chosen: list[tuple[Any, list[Any]]] = []
            wanted = min(most, _EVICTED)
            most -= wanted
            for space, entries in self._cold.items():
                names = list(islice(entries, wanted))
                chosen.append((space, names))
                wanted -= len(names)
                if wanted <= 0:
                    break
            self.column.write(self._evicted(chosen))
            dropped += sum(len(names) for _, names in chosen)
        return dropped

    def _evicted(self, chosen: list[tuple[Any, list[Any]]]) -> Iterator[tuple[bytes, bytes]]:
        for space, names in chosen:
            entries = self._cold[space]
            for changed in filter(None, (self._cold_changed.get(space), self._unwritten.get(space))):
                dirty = changed.intersection(names)
                yield from self._encoded(space, entries, dirty)
                changed -= dirty
            for name in names:
                del entries[name]
            if not entries:
                del self._cold[space]
                self._cold_changed.pop(space, None)

    def _encoded(self, space: Any, entries: dict[Any, Any], names: set[Any]) -> Iterable[tuple[bytes, bytes]]:
        """The rows of those names that there are."""
        there = [name for name in names if name in entries]
        if not there:
            return ()
        self._will_be_stored(space, there)
        return encoded(self._rows, self._state, space, there, [entries[name] for name in there])

    def _will_be_stored(self, space: Any, there: list[Any]) -> None:
        if self._stored is not None:
            self._stored.add(space)
            if len(self._stored) > MAX_STORED_SPACES:
                self._stored = None
        absent = self._absent.get(space)
        if absent:
            absent.difference_update(there)

    def _forget_written(self) -> None:
        """What another thread has written has not changed any more."""
        until = self._until
        if until is not None and until.done():
            self._until = None
            if until.exception() is not None:
                self._change_unwritten(list(self._unwritten))
            self._unwritten = {}

    def _change_unwritten(self, spaces: list[Any]) -> None:
        """What another thread is to write counts as changed: it is written twice."""
        self._forget_written()
        for space in spaces:
            names = self._unwritten.pop(space, ())
            for generation, changed in ((self._cold, self._cold_changed), (self._hot, self._changed)):
                there = generation.get(space, {}).keys() & names
                if there:
                    changed.setdefault(space, set()).update(there)

    def _delete_gone(self) -> None:
        if not self._gone_count:
            return
        rows: list[bytes] = []
        for space, names in self._gone.items():
            hot, cold = self._hot.get(space, ()), self._cold.get(space, ())
            rows += self._rows.rows(space, [name for name in names if name not in hot and name not in cold])
        rows.sort()
        self.column.write((), rows)
        self._gone, self._gone_count = {}, 0

    def _touch(self) -> None:
        """Memory was taken for what is known, not for a value."""
        self._touched += 1
        if self._touched >= self._look_after:
            self._touched = 0
            self.make_room()

    def _sample(self, name: Any, value: Any) -> None:
        self._touched = 0
        self._sample_bytes(name, value)
        self.make_room()

    def _sample_bytes(self, name: Any, value: Any) -> None:
        size = estimate_bytes(name) + estimate_bytes(value)
        if size > 64 * _LARGE_BYTES:
            self._count += int(size / self.entry_bytes)
        else:
            self._average += (size - self._average) / 8


def _nothing() -> None:
    """What happens at a rotation where nobody asked for more."""


def is_hashable(name: Any) -> bool:
    """Whether it can be looked for in a dict."""
    try:
        hash(name)
    except TypeError:
        return False
    return True


__all__ = ["RowCache", "is_hashable"]
