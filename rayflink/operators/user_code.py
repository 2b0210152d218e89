"""What operators around one user function share: its life cycle and the naming of its failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..common.batches import ArrowBatch, Batch, RowBatch, rows_of
from ..common.functions import RuntimeContext, UserFunction, UserFunctionPair
from .base import Operator, UserCodeError, shortened


class FunctionOperator(Operator):
    """An operator around one user function.

    Args:
        function: the function with its life cycle.
    """

    def __init__(self, function: UserFunction | UserFunctionPair) -> None:
        self._user = function
        self._opened = False

    def open(self) -> None:
        self._opened = True
        self._guarded_call("open", self._user.open, self.runtime_context())

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._guarded_call("close", self._user.close)

    def runtime_context(self) -> RuntimeContext:
        """What the function's `open` is given."""
        return RuntimeContext(self.ctx)

    def failure(self, where: str, record: str = "") -> UserCodeError:
        """The error to raise from the exception of the user's function."""
        return UserCodeError(self.ctx.operator_name, self.ctx.call_site, record, where)

    def _guarded_call(self, where: str, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            call(*arguments)
        except Exception as error:
            raise self.failure(where) from error


def list_of(batch: Batch) -> list[Any]:
    """The batch's records as a list of Python values."""
    if type(batch) is RowBatch:
        return batch.values
    rows = rows_of(batch)
    return rows if isinstance(rows, list) else list(rows)


def timestamps_of(batch: Batch) -> list[int] | None:
    """The batch's timestamps as Python integers, or None."""
    if isinstance(batch, ArrowBatch):
        return None if batch.timestamps is None else [int(stamp) for stamp in batch.timestamps]
    return batch.timestamps


__all__ = ["FunctionOperator", "list_of", "shortened", "timestamps_of"]
