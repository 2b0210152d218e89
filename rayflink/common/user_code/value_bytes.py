"""Values as bytes for another process or for a file: pickled with classes by name, by value where a name finds none."""

from __future__ import annotations

import pickle
from typing import Any

from ..errors import NotSerializable
from . import code_pickler
from .unpicklable import cause


def to_bytes(value: object) -> bytes:
    """Pickle a value between processes of one job, or for disk: classes by name, so that a process has one of each.

    Ray's own serializer would send a class of the job's script by value with each value, and make another class of it.

    Raises:
        NotSerializable: something in it cannot be pickled; it names the way there.

    >>> from_bytes(to_bytes([("a", 1)]))
    [('a', 1)]
    """
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # a class or function that has no name to be found by, or what a user's __reduce__ raises
        try:
            return code_pickler.dumps(value)
        except Exception as error:
            raise NotSerializable(f"a {type(value).__name__}", cause(value, error)) from error


def from_bytes(data: bytes) -> Any:
    """Return the value that `to_bytes` wrote."""
    return pickle.loads(data)


__all__ = ["from_bytes", "to_bytes"]
