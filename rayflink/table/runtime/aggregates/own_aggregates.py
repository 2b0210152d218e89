"""The user's aggregate functions of an operator: they live as long as it does."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.operators.base import OperatorContext

from ...user_functions.user_kernels import UserKernel
from ..function_calls import OpenFunctions
from .aggregates import Aggregate


class OwnAggregates(OpenFunctions):
    """Opens the function of each aggregate once, and closes those that were opened.

    Args:
        functions: all functions of the operator; those that are not the user's own are left alone.
    """

    def __init__(self, functions: Iterable[object]) -> None:
        super().__init__()
        self._aggregates = [function for function in functions if isinstance(function, Aggregate)]

    def kernels(self) -> Iterable[UserKernel]:
        return (aggregate.user.kernel for aggregate in self._aggregates if aggregate.user is not None)

    def open_in(self, ctx: OperatorContext) -> None:
        """Call their `open`."""
        self.ctx = ctx
        self.open()


__all__ = ["OwnAggregates"]
