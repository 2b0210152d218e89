"""Dirty rows: cache entries that had changed at a barrier and are written by the thread that makes the checkpoint's
files.

They are taken as they are at the barrier, as the hashmap backend's capture takes all of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from rayflink.user_types import UserKey, UserValue

from ..errors import SerializationError
from ..snapshot_copies import copy_values, read_copy

MAX_VALUE_BYTES = 2**31 - 1
"""Most bytes of one row."""
LIST_PART = 256
"""Elements of a list in one row."""
ENCODED_AT_ONCE = 4096
"""Entries whose bytes are in memory at a time."""


Space = TypeVar("Space", contravariant=True)
"""Type of the namespaces of a cache; see `rocksdb_rows`."""
Name = TypeVar("Name", contravariant=True)
"""Type of the names within a namespace."""


class Rows(Protocol[Space, Name]):
    """The rows and bytes of the entries of a cache; may be used by several threads."""

    def row(self, space: Space, name: Name) -> bytes: ...

    def rows(self, space: Space, names: Sequence[Name]) -> list[bytes]: ...

    def encode(self, space: Space, name: Name, value: Any) -> bytes: ...

    def encode_all(self, space: Space, names: Sequence[Name], values: list[UserValue]) -> list[bytes]: ...

    def decode(self, data: bytes) -> UserValue: ...

    def decode_all(self, rows: list[bytes | None]) -> list[UserValue]: ...

    def key_of(self, space: Space, name: Name) -> UserKey: ...


class DirtyRows:
    """Copies of dirty cache entries, as they were when this was created.

    Args:
        rows: where they lie.
        state: name of the state, for errors.
        entries: (space, names, values).
    """

    def __init__(self, rows: Rows[Any, Any], state: str, entries: list[tuple[Any, list[Any], list[UserValue]]]) -> None:
        self._rows, self._state = rows, state
        self._spaces = [(space, names) for space, names, _ in entries]
        self._values = copy_values([value for _, _, values in entries for value in values])

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (row, its bytes) of all entries; iterate once only.

        Raises:
            SerializationError: a value cannot be turned into bytes.
        """
        values = map(read_copy, self._values)
        for space, names in self._spaces:
            yield from encoded(self._rows, self._state, space, names, list(islice(values, len(names))))


def encoded(
    rows: Rows[Space, Name], state: str, space: Space, names: Sequence[Name], values: list[UserValue]
) -> Iterable[tuple[bytes, bytes]]:
    """Yield (row, its bytes) of some entries of one namespace.

    Raises:
        SerializationError: a value cannot be turned into bytes.
    """
    if len(names) <= ENCODED_AT_ONCE:
        return zip(rows.rows(space, names), _bytes(rows, state, space, names, values), strict=True)
    parts = (slice(start, start + ENCODED_AT_ONCE) for start in range(0, len(names), ENCODED_AT_ONCE))
    return chain.from_iterable(encoded(rows, state, space, names[part], values[part]) for part in parts)


def _bytes(
    rows: Rows[Space, Name], state: str, space: Space, names: Sequence[Name], values: list[UserValue]
) -> list[bytes]:
    try:
        encoded_values = rows.encode_all(space, names, values)
    except Exception as error:  # a user's class may raise anything while it is pickled
        for name, value in zip(names, values, strict=True):
            try:
                rows.encode(space, name, value)
            except Exception as failure:  # this one
                where = f"a value of state {state!r} of key {rows.key_of(space, name)!r:.100}"
                what = f"{where} ({type(failure).__name__}: {failure})"
                remedy = "keep in state only values that can be pickled"
                raise SerializationError("the RocksDB backend", what, remedy) from failure
        raise error
    if max(map(len, encoded_values)) > MAX_VALUE_BYTES:
        index = next(index for index, data in enumerate(encoded_values) if len(data) > MAX_VALUE_BYTES)
        key = rows.key_of(space, names[index])
        what = f"{len(encoded_values[index])} bytes of state {state!r} of key {key!r:.100}"
        remedy = f"keep at most {MAX_VALUE_BYTES} bytes in one value, one map entry or {LIST_PART} list elements"
        raise SerializationError("the RocksDB backend", what, remedy)
    return encoded_values


__all__ = ["LIST_PART", "Rows", "DirtyRows", "encoded"]
