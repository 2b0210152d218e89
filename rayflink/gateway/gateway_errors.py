"""Errors of the gateway."""

from __future__ import annotations

from rayflink.common.errors import RayflinkError

__all__ = ["GatewayError"]


class GatewayError(RayflinkError):
    """A request to the gateway cannot be done.

    Args:
        problem: what was found, and what was wanted.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem.rstrip('.')}; {self.remedy}"
