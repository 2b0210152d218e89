"""The content of one key group in a snapshot as bytes: one format, so each backend restores what any other wrote.

A content is {"tables": {state: (stored kind, rows)}, "timers": {queue: rows}}; a row of a table is (position,
namespace, key, value), one of a queue (position, namespace, key, timestamp). Positions give the order in the subtask
that wrote them; those of different key groups may be numbered each by itself.

The bytes are one pickle of that content, which is put together from one of each state: so the size of each state is
known when a snapshot is written. All of them share the memo of one pickler, and each ends with the instruction that
sets an item of a dict where a pickle by itself would end with the one that stops.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .errors import SerializationError, UnresolvedClassError, VersionMismatch

SNAPSHOT_FORMAT = 1
"""Version of the bytes of one key group; their first byte."""

Rows = list[tuple[int, Any, Any, Any]]
Content = dict[str, dict[str, Any]]


_TIMERS = "timers"


class EncodedState(NamedTuple):
    """The size of one state in the bytes of a key group."""

    name: str
    kind: str
    size_bytes: int
    entries: int


def encode_group(content: Content, backend: str) -> bytes:
    """Return the bytes of one key group.

    Args:
        backend: who writes, for the error.
    Raises:
        SerializationError: a value cannot be turned into bytes.
    """
    return encode_states(content, backend)[0]


def encode_states(content: Content, backend: str) -> tuple[bytes, list[EncodedState]]:
    """Return the bytes of one key group, and how many of them are each state's.

    Args:
        backend: who writes, for the error.
    Raises:
        SerializationError: a value cannot be turned into bytes.
    """
    out = _ContentPickle()
    try:
        with out.section("tables"):
            tables = [EncodedState(name, kind, out.item(name, (kind, rows)), _entries(kind, rows))
                      for name, (kind, rows) in content["tables"].items()]  # fmt: skip
        with out.section("timers"):
            timers = [
                EncodedState(name, _TIMERS, out.item(name, rows), len(rows)) for name, rows in content["timers"].items()
            ]
    except Exception as error:  # a user's class may raise anything while it is pickled
        where, failure = _not_picklable(content) or ("its state", error)
        problem = f"{where} ({type(failure).__name__}: {failure})"
        raise SerializationError(backend, problem, "keep in state only values that can be pickled") from error
    return out.end(), [*tables, *timers]


def _entries(kind: str, rows: Rows) -> int:
    """Return the number of values, elements of lists or entries of maps in rows."""
    return sum(len(row[3]) for row in rows) if kind.endswith(("list", "map")) else len(rows)


class _ContentPickle:
    """The pickle of a dict of dicts, item by item.

    It is an in-memory file for the pickler, and gives other threads the interpreter at every `write`, of 64 KiB.
    """

    def __init__(self) -> None:
        self._pieces = [bytes((SNAPSHOT_FORMAT,)) + pickle.PROTO + b"\x05" + pickle.EMPTY_DICT]
        self._pickler = pickle.Pickler(self, 5)

    def write(self, data: bytes | memoryview) -> int:
        self._pieces.append(bytes(data))
        return len(self._pieces[-1])

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Add an item of the outer dict; those that are added in the `with` block are its items."""
        self._pieces += _key(name), pickle.EMPTY_DICT
        yield
        self._pieces.append(pickle.SETITEM)

    def item(self, name: str, value: object) -> int:
        """Add an item of the inner dict, and return how many bytes it takes."""
        first = len(self._pieces)
        self._pieces.append(_key(name))
        self._pickler.dump(value)
        self._pieces[-1] = self._pieces[-1][:-1] + pickle.SETITEM  # in place of STOP
        return sum(map(len, self._pieces[first:]))

    def end(self) -> bytes:
        """Return the whole; this is the last call."""
        del self._pickler  # it refers back to this object, and its memo to all values: else they wait for the collector
        self._pieces.append(pickle.STOP)
        return b"".join(self._pieces)


def _key(name: str) -> bytes:
    """Return the pickled key of an item."""
    encoded = name.encode("utf-8", "surrogatepass")
    return pickle.BINUNICODE + len(encoded).to_bytes(4, "little") + encoded


def decode_group(data: bytes, operator_uid: str, loads: Callable[[Any], Any] = pickle.loads) -> Content:
    """Decode the content that `encode_group` wrote.

    Args:
        operator_uid: who owns the state, for errors.
        loads: reads the pickle.

    Raises:
        VersionMismatch: it is of a format that is not read here.
        UnresolvedClassError: the class of a value is not there.
    """
    if data[:1] != bytes((SNAPSHOT_FORMAT,)):
        written = f"key group format {data[0]}" if data else "no bytes"
        raise VersionMismatch(written, f"key group format {SNAPSHOT_FORMAT}", "(all)", operator_uid)
    try:
        content: Content = loads(memoryview(data)[1:])
    except (AttributeError, ImportError) as error:  # what pickle raises where a name leads nowhere
        name = getattr(error, "name", None) or f"of a value of operator {operator_uid or '(unknown)'}"
        raise UnresolvedClassError(str(name), str(error)) from error
    return content


def _not_picklable(content: Content) -> tuple[str, Exception] | None:
    """Return an error that names the state and key for which a key group cannot be written, and why."""
    for name, (_, rows) in content["tables"].items():
        for _, _, key, value in rows:
            try:
                pickle.dumps(value, protocol=5)
            except Exception as error:  # as in `encode_group`
                return f"a value of state {name!r} of key {key!r:.100}", error
    return None


__all__ = ["Content", "EncodedState", "Rows", "SNAPSHOT_FORMAT", "decode_group", "encode_group", "encode_states"]
