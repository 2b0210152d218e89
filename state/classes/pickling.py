"""Any value as bytes by pickle protocol 5, with classes by module and qualified name, never by their code.

A class or function of the job's own script is written as a name in ``__main__`` and read from the module that
``set_main_module`` names, so that what the driver wrote a worker reads, and the other way round.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..errors import MalformedBytesError, RayflinkError, SerializationError, VersionMismatch
from .class_names import main_attribute, main_module
from .moved_modules import current_module

PICKLE_VERSION = 1
"""Version of the layout: one byte version, then pickle protocol 5."""
_PROTOCOL = 5


def pickled(value: object) -> bytes:
    """Return a value as version byte and pickle.

    Raises: SerializationError: the value, or a part of it, has no name another process could find, or refuses.
    """
    out = io.BytesIO()
    out.write(bytes((PICKLE_VERSION,)))
    try:
        _Pickler(out, _PROTOCOL).dump(value)
    except RayflinkError:
        raise
    except Exception as cause:  # a user's __reduce__ may raise anything
        raise SerializationError(
            "PickleSerializer",
            f"a {type(value).__qualname__} ({type(cause).__name__}: {cause})",
            "define its class at the top level of a module, or keep a value made of plain types",
        ) from cause
    return out.getvalue()


def unpickled(data: bytes) -> Any:
    """Return the value that ``pickled`` wrote.

    Raises:
        VersionMismatch: another version wrote it.
        UnresolvedClassError: a class of the job's script is missing.
        MalformedBytesError: the bytes are no pickle, or a class cannot be imported.
    """
    if not data:
        raise MalformedBytesError("a pickled value", "no bytes")
    if data[0] != PICKLE_VERSION:
        raise VersionMismatch(f"pickle v{data[0]}", f"pickle v{PICKLE_VERSION}", "a pickled value", "")
    source = io.BytesIO(data)
    source.seek(1)
    try:
        return _Unpickler(source).load()
    except RayflinkError:
        raise
    except Exception as cause:  # damaged bytes and users' __setstate__ may raise anything
        raise MalformedBytesError("a pickled value", f"{type(cause).__name__}: {cause}") from cause


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> tuple[Callable[[str], object], tuple[str]] | Any:
        if isinstance(obj, (type, FunctionType)) and obj.__module__ == main_module().__name__ != "__main__":
            if main_attribute(obj.__qualname__) is not obj:
                raise pickle.PicklingError(f"__main__.{obj.__qualname__} is now another object")
            return main_attribute, (obj.__qualname__,)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":
            return main_attribute(name)
        return super().find_class(current_module(module), name)
