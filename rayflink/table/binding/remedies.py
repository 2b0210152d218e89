"""Remedies for unsupported clauses; they differ between streams and whole tables."""

from __future__ import annotations

REMEDY_FOR_VERSIONS = (
    "JOIN all versions up to each row, ON v.k = o.k AND v.ts <= o.ts, and keep the newest of each row by "
    "ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY v.ts DESC) = 1"
)
"""The remedy for FOR SYSTEM_TIME AS OF an event time in batch mode."""


__all__ = ["REMEDY_FOR_VERSIONS"]
