"""Errors that are raised before Spark runs."""

from __future__ import annotations

from rayflink.common.errors import RayflinkError


class SparkCannotStart(RayflinkError):
    """Spark cannot be started on Ray.

    Args:
        found: what stands in its way.
        wanted: what it needs.
        remedy: what to change.
    """

    def __init__(self, found: str, wanted: str, remedy: str) -> None:
        super().__init__(found, wanted, remedy)
        self.found, self.wanted, self.remedy = found, wanted, remedy

    def __str__(self) -> str:
        return f"Spark cannot start: found {self.found}, wanted {self.wanted}; {self.remedy}"


__all__ = ["SparkCannotStart"]
