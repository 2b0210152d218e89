"""The rows that are known not to be on disk, so that they are neither looked up nor deleted there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserKey

from ..backend import Namespace
from .cache_generation import KeySets

if TYPE_CHECKING:
    from .column_family import ColumnFamily


class MissingRows:
    """The knowledge of a cache about rows that are not on disk, from coarse to fine.

    - A namespace of which nothing was ever written has no rows.
    - A complete namespace has no rows but those whose entries are in memory, and those of its tombstones.
    - A known-missing key was looked up in vain. It and completeness last until the next rotation.
    - A tombstone is a deleted key, whose row is deleted later, together with others.

    Args:
        column: the rows.
        max_stored_namespaces: number of namespaces up to which those with rows are remembered; beyond it each may have.
    """

    def __init__(self, column: ColumnFamily, max_stored_namespaces: int) -> None:
        self._column, self._max_stored = column, max_stored_namespaces
        self._stored: set[Any] | None = set()  # namespaces with rows; None: any may have rows
        self._complete: set[Any] = set()
        self._known_missing: KeySets = {}
        self.buried: KeySets = {}
        """The keys of the tombstones."""
        self.tombstones = 0
        """Number of tombstones."""

    @property
    def known_missing(self) -> int:
        """Return the number of keys that are known to be missing."""
        return sum(map(len, self._known_missing.values()))

    @property
    def complete_namespaces(self) -> int:
        """Return the number of namespaces that were read or dropped as a whole."""
        return len(self._complete)

    # questions

    def may_have_rows(self, namespace: Namespace) -> bool:
        """Return whether a namespace may have rows on disk."""
        return not self._column.is_empty and (self._stored is None or namespace in self._stored)

    def is_complete(self, namespace: Namespace) -> bool:
        """Return whether a key of the namespace that is not in memory is not on disk either."""
        return namespace in self._complete or not self.may_have_rows(namespace)

    def is_missing(self, namespace: Namespace, key: UserKey) -> bool:
        """Return whether a key that is not in memory is known not to be on disk either."""
        if self._column.is_empty or namespace in self._complete:
            return True
        if self._stored is not None and namespace not in self._stored:
            return True
        return key in self.buried.get(namespace, ()) or key in self._known_missing.get(namespace, ())

    def without_missing(self, namespace: Namespace, keys: set[UserKey]) -> list[Any]:
        """Return those of some keys that have to be looked up on disk."""
        if self.is_complete(namespace):
            return []
        return list(keys.difference(self.buried.get(namespace, ()), self._known_missing.get(namespace, ())))

    def buried_keys(self, namespace: Namespace) -> list[Any] | None:
        """Return the keys that have a row on disk and no entry in memory; None where they are not known."""
        return list(self.buried.get(namespace, ())) if namespace in self._complete else None

    # facts

    def add(self, namespace: Namespace, keys: Iterable[UserKey]) -> None:
        """Remember keys that were looked up in vain."""
        self._known_missing.setdefault(namespace, set()).update(keys)

    def discard(self, namespace: Namespace, keys: Iterable[UserKey]) -> None:
        """Forget that keys are missing: their rows are being written."""
        if self._stored is not None:
            self._stored.add(namespace)
            if len(self._stored) > self._max_stored:
                self._stored = None
        known = self._known_missing.get(namespace)
        if known:
            known.difference_update(keys)

    def complete(self, namespace: Namespace) -> None:
        """Remember that a namespace has no rows but those whose entries are in memory."""
        self._complete.add(namespace)

    def bury(self, namespace: Namespace, keys: Iterable[UserKey]) -> None:
        """Add tombstones of deleted keys, as far as they may have rows."""
        if not self.may_have_rows(namespace):
            return
        known = self._known_missing.get(namespace)
        if known:
            keys = [key for key in keys if key not in known]
        tombstones = self.buried.get(namespace, set())
        before = len(tombstones)
        tombstones.update(keys)
        if tombstones:
            self.buried[namespace] = tombstones
            self.tombstones += len(tombstones) - before

    def clear_tombstones(self) -> None:
        """Forget all tombstones: their rows are deleted."""
        self.buried, self.tombstones = {}, 0

    def take_tombstones(self, namespace: Namespace) -> list[Any]:
        """Return the tombstones of a namespace, and forget them: their rows are being deleted."""
        keys = list(self.buried.pop(namespace, ()))
        self.tombstones -= len(keys)
        return keys

    def drop(self, namespace: Namespace) -> None:
        """Forget the keys of a namespace, all rows of which are being deleted."""
        self._known_missing.pop(namespace, None)
        self.take_tombstones(namespace)

    def rotate(self) -> None:
        """Forget what took memory of the hot generation: known-missing keys and completeness."""
        self._known_missing = {}
        self._complete.clear()

    def assume_any_stored(self) -> None:
        """Assume rows of every namespace: the column has come with some."""
        self._stored = None

    def clear(self) -> None:
        """Forget everything: there are no rows."""
        self.rotate()
        self.clear_tombstones()
        self._stored = set()


__all__ = ["MissingRows"]
