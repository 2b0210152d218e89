"""Maps keys to channels: a key's hash gives its key group, whose owner is the channel.

Keys seen lately are remembered. Those of a batch that are not are hashed together, which costs a tenth of hashing each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from rayflink.state.keys import hash_column, hash_columns, hash_keys, key_hash
from rayflink.state.keys.key_groups import key_group, key_groups_of, subtask_of
from rayflink.user_types import UserKey

from .exchange_statistics import KeyCacheStatistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_REMEMBERED = 1024
"""Bytes of a key that is worth remembering."""


class KeyChannels:
    """The channels of keys, with a bounded cache of keys.

    Args:
        channels: how many consumers, in [1, max_parallelism].
        max_parallelism: key groups in all.
        entries: bound on remembered keys; keys of more than 1 KB are not remembered.
    """

    def __init__(self, channels: int, max_parallelism: int, entries: int) -> None:
        self._max_parallelism, self._entries = max_parallelism, entries
        self._owners = [subtask_of(group, channels, max_parallelism) for group in range(max_parallelism)]
        self._table: NDArray[np.uint16] | None = None
        self._memo: dict[UserKey, int] = {}

    @property
    def remembered(self) -> int:
        """Return the number of cached keys."""
        return len(self._memo)

    def statistics(self) -> KeyCacheStatistics:
        """Return the present counts."""
        return KeyCacheStatistics(self.remembered, self._entries)

    def key(self, key: UserKey) -> int:
        """Return the channel of one key, whether or not it is hashable in Python.

        Raises:
            InvalidKeyError: it cannot be a key.
        """

        return self._owners[key_group(key_hash(key), self._max_parallelism)]

    def keys(self, keys: Sequence[UserKey]) -> list[int]:
        """Return the channels of many keys.

        Raises:
            TypeError: one of them cannot be looked up in a dict, or (`InvalidKeyError`) cannot be a key.
        """
        try:
            return list(map(self._memo.__getitem__, keys))
        except KeyError:
            pass  # not all of them are remembered
        known = list(map(self._memo.get, keys))
        fresh = list(dict.fromkeys([key for key, channel in zip(keys, known, strict=True) if channel is None]))
        fresh_channels = dict(zip(fresh, self._hash_all(fresh), strict=True))
        self._remember(fresh_channels)
        return [fresh_channels[key] if channel is None else channel for key, channel in zip(keys, known, strict=True)]

    def columns(self, columns: Sequence[Any]) -> NDArray[np.uint16]:
        """Return uint16[n], the channel of each row, keyed by these Arrow columns.

        Raises:
            InvalidKeyError: a column's type, or a value in it, cannot be a key.
        """

        return self._channels_of_hashes(hash_columns(columns))

    def strings(self, keys: list[str]) -> NDArray[np.uint16]:
        """Return uint16[n], the channels of string keys, which are not added to the cache."""

        return self._channels_of_hashes(hash_keys(keys))

    def numbers(self, keys: NDArray[np.int64]) -> NDArray[np.uint16]:
        """Return uint16[n], the channel of each integer."""
        import pyarrow as pa

        return self._channels_of_hashes(hash_column(pa.array(keys)))

    def _hash_all(self, keys: list[UserKey]) -> list[int]:
        channels: list[int] = self._channels_of_hashes(hash_keys(keys)).tolist()
        return channels

    def _channels_of_hashes(self, hashes: NDArray[np.uint32]) -> NDArray[np.uint16]:
        if self._table is None:
            import numpy as np

            self._table = np.array(self._owners, dtype=np.uint16)
        return self._table[key_groups_of(hashes, self._max_parallelism)]

    def _remember(self, channels: dict[UserKey, int]) -> None:
        if len(self._memo) + len(channels) > self._entries:
            self._memo.clear()
        small = ((key, channel) for key, channel in channels.items() if _size(key) <= LARGEST_REMEMBERED)
        self._memo.update(islice(small, self._entries))


def _size(key: UserKey) -> int:
    """Return the bytes of a key; a tuple counts with its elements."""
    return getsizeof(key) + sum(map(_size, key)) if isinstance(key, tuple) else getsizeof(key)
