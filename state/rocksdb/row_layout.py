"""The layout of rows in a sorted store: the row of an entry (key, namespace), and the bytes of its value.

A row is the key group (2 bytes, most significant first), the canonical bytes of the key, those of the namespace, and
for maps the canonical bytes of the map key. Rows of a key group are neighbours, and so are those of one map.

Canonical bytes tell keys apart as Python's `==` does, and forget what it forgets: True reads back as 1, a namedtuple as
a tuple. Where that would show, the key itself is stored with the value (`ValueWithKeys`).
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from rayflink.user_types import UserKey, UserValue

from ..backend import Namespace
from ..binary import read_varint, take, write_varint
from ..errors import InvalidKeyError, SerializationError, UnresolvedClassError
from ..keys.key_columns import hash_keys
from ..keys.key_encoding import canonical_key, encode_key, key_end, read_key
from ..keys.key_forms import INT64_MIN, INT64_STOP
from ..keys.key_groups import MAX_MAX_PARALLELISM, key_group, key_groups_of
from ..keys.key_hash import key_hash
from ..keys.list_key import ListKey

_BIAS = 1 << 63
_NO_NAMESPACE, _INTEGERS, _PICKLED = b"\0", 1, 2
_MEMO = 4096

EXACT_TYPES: frozenset[type] = frozenset({str, bytes, type(None), date, timedelta, UUID})
"""Types all whose values read back from their canonical bytes as they were."""

prefixes: list[bytes] = []
"""Key group -> its two bytes; made when the first layout is."""


class ValueWithKeys:
    """A value with the keys that could not be read back from its row."""

    __slots__ = ("keys", "value")

    def __init__(self, keys: UserKey, value: UserValue) -> None:
        self.keys, self.value = canonical_if_key(keys), value

    def __reduce__(self) -> tuple[type[ValueWithKeys], tuple[Any, Any]]:
        return ValueWithKeys, (self.keys, self.value)


Kept = ValueWithKeys
"""The name of the class in pickles: rows and savepoints refer to it, so it never changes."""
ValueWithKeys.__qualname__ = "Kept"


def canonical_if_key(key: UserKey) -> Any:
    """Return the canonical form of an unpickled key; a stand-in for a missing class stays as it is."""
    try:
        return canonical_key(key)
    except InvalidKeyError:
        return key


def reads_back(key: UserKey) -> bool:
    """Return whether a key read from its canonical bytes is the same in every respect.

    >>> reads_back(("a", 1)), reads_back(True), reads_back(1.0)
    (True, False, False)
    """
    kind = type(key)
    if kind is int:
        return bool(INT64_MIN <= key < INT64_STOP)  # beyond, some are read as floats
    if kind in EXACT_TYPES:
        return True
    if kind is tuple or kind is ListKey:
        return all(map(reads_back, key))
    return kind is float and not key.is_integer() and key == key


def has_stored_keys(data: bytes) -> bool:
    """Return whether the bytes of a row are those of a value with its keys.

    >>> has_stored_keys(to_pickle(ValueWithKeys(True, 5))), has_stored_keys(to_pickle("a string as long as that"))
    (True, False)
    """
    return data.startswith(_VALUE_WITH_KEYS, _FRAME)


def to_pickle(value: UserValue) -> bytes:
    """Pickle a value."""
    return pickle.dumps(value, protocol=5)


_FRAME = 11
"""Bytes before what a pickle of protocol 5 holds."""
_VALUE_WITH_KEYS = to_pickle(ValueWithKeys)[_FRAME:-1]


class Namespaces:
    """An encoding of namespaces as self-delimiting bytes: within one instance equal ones give equal bytes.

    None is one byte. A tuple of whole numbers, such as a TimeWindow, is its class and its numbers, and sorts by them;
    anything else is pickled, without references inside the pickle, which would depend on how the object came about.
    Several threads may use it.

    Args:
        classes: of windows, by the number they have in the bytes.
        loads: reads the pickles.
    """

    def __init__(self, classes: Iterable[type] = (), loads: Callable[[bytes], Any] = pickle.loads) -> None:
        self._classes, self._loads = list(classes), loads
        self._memo: dict[Any, bytes] = {}
        self._adding = threading.Lock()

    @property
    def classes(self) -> tuple[type, ...]:
        """Return the classes of windows by their number in the bytes; more may be appended."""
        return tuple(self._classes)

    def numbers_of(self, classes: Iterable[type]) -> dict[int, int]:
        """Return, for classes whose numbers differ, their number in another instance's bytes -> their number here.

        Raises:
            SerializationError: there are more than 256 together.
        """
        numbers = {}
        for there, kind in enumerate(classes):
            if kind not in self._classes:
                self._classes.append(kind)
            here = self._classes.index(kind)
            if here != there:
                numbers[there] = here
        if len(self._classes) > 256:
            raise SerializationError("keyed state", f"{len(self._classes)} classes of windows", "use 256 at most")
        return numbers

    def encode(self, namespace: Namespace) -> bytes:
        """Encode a namespace.

        Raises:
            SerializationError: it cannot be pickled.
        """
        if namespace is None:
            return _NO_NAMESPACE
        data = self._memo.get(namespace)
        if data is None:
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            data = self._memo[namespace] = self._encode(namespace)
        return data

    def read(self, data: bytes, position: int) -> tuple[Any, int]:
        """Return the namespace that begins at `position`, and where it ends."""
        tag, position = data[position], position + 1
        if tag == 0:
            return None, position
        if tag == _INTEGERS:
            kind, count = self._classes[data[position]], data[position + 1]
            position += 2
            end = position + 8 * count
            numbers = [int.from_bytes(data[i : i + 8], "big") - _BIAS for i in range(position, end, 8)]
            return tuple.__new__(kind, numbers) if issubclass(kind, tuple) else kind(*numbers), end  # else a stand-in
        size, position = read_varint(data, position)
        body, position = take(data, position, size)
        return self._loads(body), position

    def _encode(self, namespace: Namespace) -> bytes:
        kind = type(namespace)
        if isinstance(namespace, tuple) and len(namespace) < 256 and all(map(_is_long, namespace)):
            with self._adding:  # twice in the list, it would move the numbers of those behind it
                if kind not in self._classes and len(self._classes) < 256:
                    self._classes.append(kind)
            if kind in self._classes:
                head = bytes((_INTEGERS, self._classes.index(kind), len(namespace)))
                return head + b"".join((number + _BIAS).to_bytes(8, "big") for number in namespace)
        out = io.BytesIO()
        pickler = pickle.Pickler(out, 5)
        pickler.fast = True
        try:
            pickler.dump(namespace)
        except Exception as error:  # a user's window may raise anything while it is pickled
            problem = f"a namespace ({type(error).__name__}: {error})"
            raise SerializationError("keyed state", problem, "use windows that can be pickled") from error
        pickled = bytearray((_PICKLED,))
        write_varint(pickled, len(out.getvalue()))
        return bytes(pickled) + out.getvalue()


def _is_long(number: object) -> bool:
    return type(number) is int and -_BIAS <= number < _BIAS


class RowLayout:
    """The encoder and decoder of the rows of one backend.

    Args:
        max_parallelism: key groups in all.
        check_groups: is given keys and their groups, and raises where one is another subtask's.
        classes: of windows, as in `Namespaces`.
        loads: reads the pickles in rows.
    """

    def __init__(
        self,
        max_parallelism: int,
        check_groups: Callable[[Sequence[UserKey], list[int]], None],
        classes: Iterable[type] = (),
        loads: Callable[[bytes], Any] = pickle.loads,
    ) -> None:
        self.namespaces, self.loads = Namespaces(classes, loads), loads
        self._max_parallelism = max_parallelism
        self._check_groups = check_groups
        if not prefixes:
            prefixes.extend(group.to_bytes(2, "big") for group in range(MAX_MAX_PARALLELISM))

    def groups_of(self, keys: Sequence[UserKey]) -> list[int]:
        """Return the key groups of canonical keys.

        Raises:
            ForeignKeyError: one is another subtask's.
        """
        if not keys:
            return []
        groups: list[int] = key_groups_of(hash_keys(keys), self._max_parallelism).tolist()
        self._check_groups(keys, groups)
        return groups

    def group_of(self, key: UserKey) -> int:
        """Return the key group of one canonical key.

        Raises:
            ForeignKeyError: it is another subtask's.
        """
        group = key_group(key_hash(key), self._max_parallelism)
        self._check_groups([key], [group])
        return group

    def row(self, key: UserKey, namespace: Namespace) -> bytes:
        """Return the row of one entry; for a map the prefix of its rows."""
        return prefixes[self.group_of(key)] + encode_key(key) + self.namespaces.encode(namespace)

    def rows(self, keys: Sequence[UserKey], namespace: Namespace) -> list[bytes]:
        """Return the rows of several keys in one namespace."""
        end = self.namespaces.encode(namespace)
        return [prefixes[group] + encode_key(key) + end for group, key in zip(self.groups_of(keys), keys, strict=True)]

    def read(self, row: bytes) -> tuple[Any, Any, int]:
        """Return key and namespace of a row, and where the namespace ends.

        Where `loads` does without classes, the bytes stand for a key whose class is missing; the key itself is then
        in the `ValueWithKeys`.
        """
        try:
            key, position = read_key(row, 2)
        except UnresolvedClassError:
            if self.loads is pickle.loads:
                raise
            position = key_end(row, 2)
            key = row[2:position]
        key = canonical_key(key)  # all NaN are one
        namespace, position = self.namespaces.read(row, position)
        return key, namespace, position


__all__ = [
    "EXACT_TYPES",
    "Namespaces",
    "RowLayout",
    "ValueWithKeys",
    "to_pickle",
    "has_stored_keys",
    "prefixes",
    "reads_back",
    "canonical_if_key",
]
