"""The content of one key group in a snapshot as bytes: one format, so each backend restores what any other wrote.

A content is {"tables": {state: (stored kind, rows)}, "timers": {queue: rows}}; a row of a table is (position,
namespace, key, value), one of a queue (position, namespace, key, timestamp). Positions give the order in the subtask
that wrote them; those of different key groups may be numbered each by itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from .errors import SerializationError, UnresolvedClassError, VersionMismatch

SNAPSHOT_FORMAT = 1
"""Version of the bytes of one key group; their first byte."""

Rows = list[tuple[int, Any, Any, Any]]
Content = dict[str, dict[str, Any]]


def encode_group(content: Content, backend: str) -> bytes:
    """Return the bytes of one key group.

    Args:
        backend: who writes, for the error.
    Raises:
        SerializationError: a value cannot be turned into bytes.
    """
    out = _Pieces()
    out.write(bytes((SNAPSHOT_FORMAT,)))
    try:
        pickle.Pickler(out, 5).dump(content)
    except Exception as error:  # a user's class may raise anything while it is pickled
        where, failure = _not_picklable(content) or ("its state", error)
        problem = f"{where} ({type(failure).__name__}: {failure})"
        raise SerializationError(backend, problem, "keep in state only values that can be pickled") from error
    return b"".join(out.pieces)


class _Pieces:
    """An in-memory file that gives other threads the interpreter at every `write`, of 64 KiB of a pickle."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes | memoryview) -> int:
        self.pieces.append(bytes(data))
        return len(self.pieces[-1])


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


__all__ = ["Content", "Rows", "SNAPSHOT_FORMAT", "decode_group", "encode_group"]
