"""The user's functions in the expressions of an operator: they live as long as it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from rayflink.operators.base import OperatorContext
from rayflink.operators.user_function import UserCode

from ..plan.typed import Call, Expr, Session
from ..user_functions.function_classes import FunctionContext
from ..user_functions.user_kernels import UserKernel


class OpenFunctions(ABC):
    """Opens each function once, and closes those that were opened."""

    def __init__(self) -> None:
        self._opened: list[UserKernel] = []
        self.ctx: OperatorContext | None = None
        """Of the operator; it is there before functions are opened."""

    @abstractmethod
    def kernels(self) -> Iterable[UserKernel]:
        """Return the functions of the operator."""

    def open(self) -> None:
        """Call their `open`."""
        assert self.ctx is not None
        for kernel in {id(kernel): kernel for kernel in self.kernels()}.values():
            with UserCode(self.ctx, "open of a function"):
                kernel.open(FunctionContext.of(self.ctx))
            self._opened.append(kernel)

    def close(self) -> None:
        """Call their `close`."""
        with ExitStack() as each:  # also those behind one that raises
            while self._opened:
                each.callback(self._close, self._opened.pop(0))

    def _close(self, kernel: UserKernel) -> None:
        assert self.ctx is not None
        with UserCode(self.ctx, "close of a function"):
            kernel.close()


class OwnFunctions(OpenFunctions):
    """The functions in expressions.

    Args:
        exprs: all expressions of the operator.
    """

    def __init__(self, exprs: Sequence[Expr]) -> None:
        super().__init__()
        self._exprs = tuple(exprs)

    def kernels(self) -> Iterable[UserKernel]:
        calls = (part for expr in self._exprs for part in expr.walk() if isinstance(part, Call))
        return (call.function.kernel for call in calls if isinstance(call.function.kernel, UserKernel))

    def set_up(self, ctx: OperatorContext, session: Session) -> Session:
        """Return the session with the operator's clock."""
        self.ctx = ctx
        clock: Any = ctx.clock
        return replace(session, now_ms=lambda: int(clock.now_ms()))


__all__ = ["OpenFunctions", "OwnFunctions"]
