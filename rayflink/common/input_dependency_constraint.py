"""When a task may start, in Flink before 1.13."""

from __future__ import annotations

from enum import Enum


class InputDependencyConstraint(Enum):
    """Whether a task starts with any or all of its inputs; Flink's scheduler has not read it since 1.13."""

    ANY = 0
    ALL = 1


__all__ = ["InputDependencyConstraint"]
