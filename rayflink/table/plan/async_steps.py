"""A filter and a projection whose functions are awaited, as the steps in which they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .typed import Call, Expr


@dataclass(frozen=True)
class AsyncCall:
    """A call whose results are awaited; they become a column behind those that are there.

    Args:
        call: over the columns that are there.
        guard: the call is made for the rows for which it is true, and is NULL for the others; None: for all rows.
    """

    call: Call
    guard: Expr | None = None


@dataclass(frozen=True)
class AsyncStage:
    """Calls that are made at the same time.

    Args:
        calls: each adds a column.
        condition: over the columns that are there then: rows for which it is not true leave; None: all rows stay.
    """

    calls: tuple[AsyncCall, ...]
    condition: Expr | None = None


@dataclass(frozen=True)
class AsyncSteps:
    """The steps of a filter and a projection.

    Args:
        width: number of columns of the input.
        first: a condition that awaits nothing, before all else; None: there is none.
        stages: one after the other.
        exprs: the columns of the result, over those of the input and of all stages.
    """

    width: int
    first: Expr | None
    stages: tuple[AsyncStage, ...]
    exprs: tuple[Expr, ...]

    def calls(self) -> Iterator[AsyncCall]:
        """Yield the calls of all stages."""
        for stage in self.stages:
            yield from stage.calls

    def sync_exprs(self) -> Iterator[Expr]:
        """Yield all expressions that are computed at once: arguments of calls, conditions, and the result."""
        yield from self.exprs
        conditions = [self.first, *(stage.condition for stage in self.stages), *(call.guard for call in self.calls())]
        yield from (condition for condition in conditions if condition is not None)
        for call in self.calls():
            yield from call.call.args


def awaits(expr: Expr | None) -> bool:
    """Return whether an expression contains a function whose results are awaited."""
    return expr is not None and any(isinstance(part, Call) and part.function.is_async for part in expr.walk())


__all__ = ["AsyncCall", "AsyncStage", "AsyncSteps", "awaits"]
