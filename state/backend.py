"""The contract of keyed state backends: tables of entries (key, namespace) -> value, timers, and captures of both.

Operators work whole batches on a table: `load` gives a plain dict for the batch's keys, the hot loop reads and writes
that dict, `changed` names the keys it wrote. A backend that keeps objects hands out its own storage; one that keeps
bytes hands out a cache of decoded values and writes back what changed.

Keys are equal as Python has it (1 == True == 1.0), so the user's keys are the dict's keys; `canonical_key` makes all
NaN one and refuses what cannot be a key, and is due only for a key the dict does not hold. `load` and `changed` take
keys as they come, all else takes canonical ones. A namespace divides the entries of one key, most often by window; None
is the namespace of state that belongs to the key alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from rayflink.user_types import UserKey, UserValue

from .errors import StateError

if TYPE_CHECKING:
    from .descriptors import StateDescriptor
    from .expiry import Expiring
    from .schema.state_summary import StateSummary
    from .snapshots import DatabaseFiles, KeyedCapture, SnapshotReader


class _NoKey:
    def __repr__(self) -> str:
        return "<no key>"

    def __reduce__(self) -> str:
        return "NO_KEY"


Namespace: TypeAlias = Hashable
"""The second part of an entry's address, beside the key: most often a window; None for state of the key alone."""
NO_KEY: Final = _NoKey()
"""The current key where there is none: in `open`, in `finish`, on a stream that is not keyed."""


def _no_clock() -> int:
    raise StateError("state with a time to live was used where there is no clock; give the KeyContext one")


def _uncounted(state: str) -> Callable[[int], None]:
    return lambda entries: None


class KeyContext:
    """The current key (canonical) and namespace that the handles of one operator read and write.

    Args:
        now_ms: epoch milliseconds of the wall clock, for state that expires.
        counter_of: name of a state that expires -> a function that counts its expired entries.
    """

    __slots__ = ("counter_of", "key", "namespace", "now_ms", "restored_summaries", "swept")

    def __init__(
        self, now_ms: Callable[[], int] = _no_clock, counter_of: Callable[[str], Callable[[int], None]] = _uncounted
    ) -> None:
        self.key: UserKey = NO_KEY
        self.namespace: Namespace = None
        self.now_ms = now_ms
        self.counter_of = counter_of
        self.swept: list[Expiring[Any]] = []
        """The states to be swept in the background, as their handles were made."""
        self.restored_summaries: Mapping[str, StateSummary] = {}
        """Summaries of the restored states, by name."""


class Entries(Protocol):
    """The methods of a table that work on one entry at a time; see `KeyedTable`."""

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue: ...

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None: ...

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None: ...

    def remove(self, key: UserKey, namespace: Namespace = None) -> None: ...


class KeyedTable(Protocol):
    """The entries of one named state. A returned value belongs to the table: user code gets `isolated` ones."""

    @property
    def tracks_changes(self) -> bool:
        """Return False where `load` returns the storage itself: callers may then pass no keys, and skip `changed`."""
        ...

    def load(self, keys: Iterable[UserKey], namespace: Namespace = None) -> dict[UserKey, UserValue]:
        """Return a dict with at least the present entries of `keys`; it may be read, written, and mutated in its
        values.

        It is valid until the table is used by another method than `load`. Entries may be added and replaced, not
        deleted.
        """
        ...

    def changed(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Note that the loaded dict's values of these keys were set or mutated; naming more keys is allowed."""
        ...

    def get(self, key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the entry's value, or `default`."""
        ...

    def put(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the entry."""
        ...

    def append(self, key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Add `value` to the end of the entry's list, which begins empty."""
        ...

    def remove(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the entry, if it is there."""
        ...

    def remove_all(self, keys: Iterable[UserKey], namespace: Namespace = None) -> None:
        """Delete the entries of these keys that are there."""
        ...

    def entries(self, groups: Collection[int]) -> Iterator[tuple[UserKey, Namespace, UserValue]]:
        """Yield (key, namespace, value) of the entries in these key groups, oldest first; nothing may change now."""
        ...

    def walk(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the entries, lazily and in any order; the table may change in any way meanwhile.

        Each entry that is there from the first step to the last is given, once or more; what comes or goes meanwhile
        may be given or not. A place may also be given though its entry has gone: the caller looks. The walk ends,
        however much is added to the table. It holds a small part of the places, and may be left or kept unfinished for
        any time at no cost: a store that would keep old files for an open cursor opens it anew for each part.
        """
        ...

    def __len__(self) -> int:
        """Return the number of entries."""
        ...


class MapEntries(Protocol):
    """The methods of a map state's table that work on the map of one key: (key, namespace, map key) -> value."""

    def get(self, key: UserKey, map_key: UserKey, namespace: Namespace = None, default: UserValue = None) -> UserValue:
        """Return the value at `map_key`, or `default`."""
        ...

    def put(self, key: UserKey, map_key: UserKey, value: UserValue, namespace: Namespace = None) -> None:
        """Set the value at `map_key`."""
        ...

    def remove(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> None:
        """Delete the value at `map_key`, if there is one."""
        ...

    def contains(self, key: UserKey, map_key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether there is a value at `map_key`."""
        ...

    def items(self, key: UserKey, namespace: Namespace = None) -> list[tuple[UserKey, UserValue]]:
        """Return all (map key, value) of one key as of now; the map may change while the list is read."""
        ...

    def clear(self, key: UserKey, namespace: Namespace = None) -> None:
        """Delete the whole map of one key."""
        ...


class KeyedMapTable(MapEntries, Protocol):
    """The entries of one named map state."""

    def walk(self) -> Iterator[tuple[UserKey, Namespace]]:
        """Yield (key, namespace) of the maps, as `KeyedTable.walk` does for entries."""
        ...


class KeysAt(Protocol):
    """The keys with a timer at one timestamp and namespace; setting a key sets its timer."""

    def __setitem__(self, key: UserKey, value: None, /) -> None: ...

    def update(self, keys: dict[UserKey, None], /) -> None: ...


class Timers(Protocol):
    """The timers of one name: (timestamp, key, namespace), each at most once; see `timers.TimerQueue`."""

    def register(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> None:
        """Set a timer; one that is set already stays as it is. `key` must be canonical."""
        ...

    def keys_at(self, timestamp: int, namespace: Namespace = None) -> KeysAt:
        """Return the keys with a timer at that timestamp and namespace; setting a key sets its timer.

        It is good until a timer of the queue is deleted or fires, or the backend is captured; a key must be put in
        before that.
        """
        ...

    def delete(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> None:
        """Forget a timer, if it is set."""
        ...

    def contains(self, timestamp: int, key: UserKey, namespace: Namespace = None) -> bool:
        """Return whether the timer is set."""
        ...

    def next_timestamp(self) -> int | None:
        """Return the timestamp of the earliest timer, or None when there is none."""
        ...

    def due(self, until: int) -> Iterator[tuple[int, UserKey, Namespace]]:
        """Remove and yield one by one the timers up to and including `until`: (timestamp, key, namespace)."""
        ...

    def due_keys(self, until: int, limit: int) -> Iterator[tuple[int, Any, list[Any]]]:
        """Remove and yield timers up to and including `until`: (timestamp, namespace, at most `limit` of its keys)."""
        ...

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """Yield all timers in the order in which they would fire."""
        ...

    def __len__(self) -> int:
        """Return the number of timers set."""
        ...


class KeyedBackend(Protocol):
    """All keyed state and timers of one operator in one subtask.

    Life: create tables and timer queues at any time; `restore_databases` and `restore` before the first write.
    """

    @property
    def key_groups(self) -> range:
        """Return the key groups this subtask owns."""
        ...

    def table(self, descriptor: StateDescriptor) -> KeyedTable:
        """Return the table of a value, list, reducing or aggregating state; the same table for the same name.

        Raises:
            SnapshotMismatch: a state of this name is of another kind.
        """
        ...

    def map_table(self, descriptor: StateDescriptor) -> KeyedMapTable:
        """Return the table of a map state.

        Raises:
            SnapshotMismatch: a state of this name is of another kind.
        """
        ...

    def filter_snapshots(self, descriptor: StateDescriptor, snapshot_filter: Callable[[Any], Any]) -> None:
        """Store in snapshots, from now on, `snapshot_filter(entry)` for each entry of the state, and nothing where it
        is None.
        """
        ...

    def timers(self, name: str) -> Timers:
        """Return the queue of timers of this name; the same queue for the same name."""
        ...

    def summaries(self) -> tuple[StateSummary, ...]:
        """Return a summary of each state that was asked for; only values in memory are sampled."""
        ...

    @property
    def reads_ahead(self) -> int:
        """Return for how many keys at a time `prefetch` would save time now; 0 for none."""
        ...

    def prefetch(self, keys: list[UserKey], namespace: Namespace = None) -> None:
        """Read ahead the values of these keys, given as they arrive, because they are about to be used."""
        ...

    def announce(self, checkpoint_id: int) -> None:
        """Announce that a checkpoint will come soon: `prepare` may begin to write what its capture would have to."""
        ...

    def prepare(self, may_continue: Callable[[], bool]) -> int | None:
        """Do a little of the work of an announced capture; called between two records.

        Args:
            may_continue: asked now and then; on False this call ends.

        Returns: milliseconds after which to call again; None: there is nothing to do before the next announcement.
        """
        ...

    def capture(self, checkpoint_id: int) -> KeyedCapture:
        """Capture all state and timers as of now, between two records; later changes do not affect what is written.

        It may come without an announcement, and several may be under way. Filters are asked when it is written.

        Raises:
            ForeignKeyError: a key belongs to another subtask; or the writing says it.
            SerializationError: a value cannot be turned into bytes; or the writing says it.
        """
        ...

    def confirm(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete, so later ones may refer to its files; unknown ones are ignored."""
        ...

    def abort(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete; unknown ones are ignored."""
        ...

    def restore(self, parts: Iterable[Mapping[int, bytes]]) -> None:
        """Restore the owned key groups from snapshots that may come from several subtasks.

        Raises:
            VersionMismatch: a part was written in a format this backend does not read.
        """
        ...

    def restore_databases(
        self, databases: Sequence[DatabaseFiles], reader: SnapshotReader, reusable: bool = False
    ) -> None:
        """Restore the owned key groups from databases that may come from several subtasks; call it before `restore`.

        Args:
            databases: each key group is in one of them at most.
            reader: of their files.
            reusable: checkpoints of this backend may refer to their shared files: they are of the same storage.

        Raises:
            VersionMismatch: a database was written in a format that is not read here.
            SnapshotMismatch: it is of another max parallelism.
            StorageError, DamagedFileError: a file is missing or not what was written.
        """
        ...

    def refuse_timers(self) -> None:
        """Refuse new timers until `clear`."""
        ...

    @property
    def refused_timers(self) -> int:
        """Return the number of timers refused since `refuse_timers`."""
        ...

    def clear(self) -> None:
        """Delete all entries and timers; tables and queues that were given out stay in use."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class ForeignKeyError(StateError):
    """Raised when an operator holds state for a key that another subtask owns.

    Args:
        key: the key, as text.
        group: its key group.
        owned: the subtask's key groups, as text.
    """

    def __init__(self, key: str, group: int, owned: str) -> None:
        super().__init__(key, group, owned)
        self.key, self.group, self.owned = key, group, owned

    def __str__(self) -> str:
        return (
            f"key {self.key} belongs to key group {self.group}, but this subtask owns {self.owned}; the key selector "
            "gave another key here than at the shuffle: make it deterministic, and its keys immutable"
        )
