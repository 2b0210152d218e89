"""The constraint on when a task may start, in Flink before 1.13."""

from __future__ import annotations

from enum import Enum


class InputDependencyConstraint(Enum):
    """The inputs, any or all, that a task needs before it starts; Flink's scheduler has not read it since 1.13."""

    ANY = 0
    ALL = 1


__all__ = ["InputDependencyConstraint"]
