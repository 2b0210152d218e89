"""A worker of a pool as a Ray actor: it holds a function on batches and calls it."""

from __future__ import annotations

import pickle
from typing import Any

from rayflink.operators.async_io.workers import BatchFunction
from rayflink.user_types import UserValue

from .driver.user_program import unpack


class ModelActor:
    """Shell around a `BatchFunction`.

    Args:
        packed: the function, with the code of the job's script that it needs.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._function: BatchFunction | None = None

    def ready(self) -> None:
        """Make the function; its exceptions go through."""
        if self._function is None:
            self._function = unpack(self._packed)
            self._packed = b""
        self._function.open()

    def call(self, data: UserValue) -> Any:
        """Return the result for columns; for packed rows, pickled rows."""
        self.ready()
        assert self._function is not None
        if isinstance(data, bytes):
            return pickle.dumps(self._function(unpack(data)), protocol=5)
        return self._function(data)


__all__ = ["ModelActor"]
