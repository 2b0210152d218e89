"""ON CONFLICT: what is written where rows with different keys of a query have one PRIMARY KEY of a table."""

from __future__ import annotations

from enum import Enum


class OnConflict(Enum):
    """The treatment of several rows with one primary key.

    Source: apache/flink InsertConflictStrategy, FLIP-558.
    """

    NOTHING = "DO NOTHING"
    """The first row stays, and the others are dropped."""
    ERROR = "DO ERROR"
    """The job fails."""
    DEDUPLICATE = "DO DEDUPLICATE"
    """The last row is written, and the one before it when that goes."""

    @property
    def waits(self) -> bool:
        """Return whether changes wait for the watermark, and cancel each other before it is known what conflicts."""
        return self is not OnConflict.DEDUPLICATE


__all__ = ["OnConflict"]
