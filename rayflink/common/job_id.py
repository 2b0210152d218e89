"""The identity of a job, under PyFlink's module path."""

from __future__ import annotations

from .ids import JobID

__all__ = ["JobID"]
