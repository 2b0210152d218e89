"""The user's functions in the expressions of an operator: they live as long as it does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from rayflink.operators.base import OperatorContext
from rayflink.operators.user_function import UserCode

from ..plan.typed import Call, Expr, Session
from ..user_functions.function_classes import FunctionContext
from ..user_functions.user_kernels import UserKernel


class OwnFunctions:
    """Opens each function once, and closes those that were opened.

    Args:
        exprs: all expressions of the operator.
    """

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self._exprs = tuple(exprs)
        self._opened: list[UserKernel] = []
        self._ctx: OperatorContext | None = None

    def set_up(self, ctx: OperatorContext, session: Session) -> Session:
        """Return the session with the operator's clock."""
        self._ctx = ctx
        clock: Any = ctx.clock
        return replace(session, now_ms=lambda: int(clock.now_ms()))

    def open(self) -> None:
        """Call their `open`."""
        assert self._ctx is not None
        kernels = {
            id(part.function.kernel): part.function.kernel
            for expr in self._exprs
            for part in expr.walk()
            if isinstance(part, Call) and isinstance(part.function.kernel, UserKernel)
        }
        for kernel in kernels.values():
            with UserCode(self._ctx, "open of a function"):
                kernel.open(FunctionContext.of(self._ctx))
            self._opened.append(kernel)

    def close(self) -> None:
        """Call their `close`."""
        with ExitStack() as each:  # also those behind one that raises
            while self._opened:
                each.callback(self._close, self._opened.pop(0))

    def _close(self, kernel: UserKernel) -> None:
        assert self._ctx is not None
        with UserCode(self._ctx, "close of a function"):
            kernel.close()


__all__ = ["OwnFunctions"]
