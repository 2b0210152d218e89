"""Errors that are raised before Spark runs."""

from __future__ import annotations

from rayflink.common.errors import RayflinkError


class SparkCannotStart(RayflinkError):
    """Spark cannot be started on Ray.

    Args:
        actual: what stands in its way.
        wanted: what it needs.
        remedy: what to change.
    """

    def __init__(self, actual: str, wanted: str, remedy: str) -> None:
        super().__init__(actual, wanted, remedy)
        self.actual, self.wanted, self.remedy = actual, wanted, remedy

    def __str__(self) -> str:
        return f"Spark cannot start: found {self.actual}, wanted {self.wanted}; {self.remedy}"


__all__ = ["SparkCannotStart"]
