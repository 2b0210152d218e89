"""The common part of operators around one user function: its life cycle and the naming of its failures."""

from __future__ import annotations

from typing import Any

from rayflink.common.functions.function_classes import RuntimeContext, UserFunction, UserFunctionPair
from rayflink.common.functions.runtime_context import KeyedStateStore
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of

from .base import Operator, OperatorContext, OperatorSnapshot, UserCodeError
from .function_state import FunctionState


class UserCode:
    """A with-block around user or connector code: what that raises becomes a UserCodeError that names the operator.

    Args:
        ctx: of the operator.
        where: method of the user's code.
    """

    __slots__ = ("_ctx", "_where")

    def __init__(self, ctx: OperatorContext, where: str) -> None:
        self._ctx, self._where = ctx, where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, UserCodeError):
            raise UserCodeError(self._ctx.operator_name, self._ctx.call_site, "", self._where) from error


class FunctionOperator(Operator):
    """An operator around one user function.

    Args:
        function: the function with its life cycle.
    """

    def __init__(self, function: UserFunction | UserFunctionPair) -> None:
        self._user = function
        self._opened = False

    keyed_state: KeyedStateStore | None = None
    """State of the current key, set before the state of functions is initialized; None where there is none."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.function_state = FunctionState(self.ctx, snapshots, self._user.checkpointed, self.keyed_state)
        self.function_state.initialize()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        return self.function_state.snapshot(checkpoint_id)

    def open(self) -> None:
        self._opened = True
        with UserCode(self.ctx, "open"):
            self._user.open(self.runtime_context())

    def close(self) -> None:
        if self._opened:
            self._opened = False
            with UserCode(self.ctx, "close"):
                self._user.close()

    def runtime_context(self) -> RuntimeContext:
        """Return the context that the function's `open` gets."""
        return RuntimeContext(self.ctx, self.keyed_state)

    def failure(self, where: str, record: str = "") -> UserCodeError:
        """Return the error to raise from the exception of the user's function."""
        return UserCodeError(self.ctx.operator_name, self.ctx.call_site, record, where)


def list_of(batch: Batch) -> list[Any]:
    """Return the batch's records as a list of Python values."""
    if type(batch) is RowBatch:
        return batch.values
    rows = rows_of(batch)
    return rows if isinstance(rows, list) else list(rows)


def timestamps_of(batch: Batch) -> list[int] | None:
    """Return the batch's timestamps as Python integers, or None."""
    if isinstance(batch, ArrowBatch):
        return None if batch.timestamps is None else [int(stamp) for stamp in batch.timestamps]
    return batch.timestamps
