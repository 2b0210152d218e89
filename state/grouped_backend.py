"""The base of the keyed state backends: the key groups of a subtask, the names of its states, snapshot filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from rayflink.user_types import UserKey

from .backend import ForeignKeyError
from .descriptors import StateDescriptor
from .errors import SnapshotMismatch
from .group_capture import GroupCapture
from .group_content import Content, decode_group
from .keys.key_columns import hash_keys
from .keys.key_groups import key_groups_of
from .schema.state_summary import SAMPLES, StateSummary, summary_of


class _Queue(Protocol):
    refused: int

    def refuse(self) -> None: ...

    def end_captures(self) -> None: ...

    def clear(self) -> None: ...


class _Table(Protocol):
    def clear_all(self) -> None: ...


T = TypeVar("T", bound=_Table)
Q = TypeVar("Q", bound=_Queue)


class GroupedBackend(Generic[T, Q]):
    """The part of a `KeyedBackend` that does not depend on where entries are stored.

    Args:
        key_groups: the groups this subtask owns.
        max_parallelism: key groups in all.
        operator_uid: who owns the state, for errors.
    """

    def __init__(self, key_groups: range, max_parallelism: int, operator_uid: str) -> None:
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._operator_uid = operator_uid
        self._tables: dict[str, tuple[str, T]] = {}
        self._timers: dict[str, Q] = {}
        self._snapshot_filters: dict[str, Callable[[Any], Any]] = {}
        self._captures: list[GroupCapture] = []
        self._declared: dict[str, StateDescriptor] = {}
        self._summaries: dict[str, StateSummary] = {}

    @property
    def key_groups(self) -> range:
        """Return the key groups this subtask owns."""
        return self._key_groups

    def filter_snapshots(self, descriptor: StateDescriptor, snapshot_filter: Callable[[Any], Any]) -> None:
        """Store in snapshots, from now on, `snapshot_filter(entry)` for each entry of the state, and nothing where it
        is None.
        """
        self._snapshot_filters[descriptor.name] = snapshot_filter

    def timers(self, name: str) -> Q:
        """Return the queue of timers of this name."""
        if name not in self._timers:
            self._timers[name] = self._new_queue(name)
        return self._timers[name]

    def summaries(self) -> tuple[StateSummary, ...]:
        """Return a summary of each state; its values are sampled until enough were seen."""
        known = dict(self._summaries)
        for name, descriptor in self._declared.items():
            if name in known:
                continue
            kind, samples = self._tables[name][0], self._samples(name, SAMPLES)
            values = [value[1] for value in samples] if kind.startswith("expiring") else samples
            known[name] = summary_of(descriptor, kind, values)
            if len(samples) == SAMPLES:
                self._summaries[name] = known[name]
        queues = (StateSummary(name, "timers", "") for name in self._timers)
        return (*known.values(), *queues)

    def refuse_timers(self) -> None:
        """Refuse new timers until `clear`."""
        for queue in self._timers.values():
            queue.refuse()

    @property
    def refused_timers(self) -> int:
        """Return the number of timers refused since `refuse_timers`."""
        return sum(queue.refused for queue in self._timers.values())

    def confirm(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete."""
        self._end_captures()

    def abort(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete."""
        self._end_captures()

    def clear(self) -> None:
        """Delete all entries and timers."""
        for _, table in self._tables.values():
            table.clear_all()
        for queue in self._timers.values():
            queue.clear()

    def _table(self, name: str, kind: str) -> T:
        if name not in self._tables:
            self._tables[name] = kind, self._new_table(name, kind)
        stored_kind, table = self._tables[name]
        if stored_kind != kind:
            raise SnapshotMismatch(
                name, self._operator_uid, f"{stored_kind} state", f"{kind} state", "the kinds differ"
            )
        return table

    def _track_capture(self, capture: GroupCapture) -> GroupCapture:
        self._captures = [earlier for earlier in self._captures if not earlier.is_released]
        self._captures.append(capture)
        return capture

    def _end_captures(self) -> None:
        """Stop copying timers as they change, once no capture is read."""
        self._captures = [capture for capture in self._captures if not capture.is_released]
        if not self._captures:
            for queue in self._timers.values():
                queue.end_captures()

    def _declared_table(self, descriptor: StateDescriptor) -> T:
        table = self._table(descriptor.name, descriptor.stored_kind)
        self._declared[descriptor.name] = descriptor
        return table

    def _samples(self, state: str, most: int) -> list[Any]:
        """Return some stored values of a state; for lists and maps, some of their elements."""
        raise NotImplementedError

    def _new_table(self, name: str, kind: str) -> T:
        raise NotImplementedError

    def _new_queue(self, name: str) -> Q:
        raise NotImplementedError

    def _owned(self, parts: Iterable[Mapping[int, bytes]]) -> Iterable[Content]:
        """Yield the contents of the owned key groups in snapshots of several subtasks, one after the other."""
        for part in parts:
            for group in self._key_groups:
                if group in part:
                    yield decode_group(part[group], self._operator_uid)

    def _groups_of(self, keys: list[Any]) -> list[int]:
        """Return the key groups of canonical keys.

        Raises:
            ForeignKeyError: one is another subtask's.
        """
        if not keys:
            return []
        groups: list[int] = key_groups_of(hash_keys(keys), self._max_parallelism).tolist()
        self._check_groups(keys, groups)
        return groups

    def _check_groups(self, keys: Sequence[UserKey], groups: list[int]) -> None:
        owned = self._key_groups
        if min(groups) < owned.start or max(groups) >= owned.stop:
            stray = next(i for i, group in enumerate(groups) if group not in owned)
            raise ForeignKeyError(repr(keys[stray]), groups[stray], f"[{owned.start}, {owned.stop})")


__all__ = ["GroupedBackend"]
