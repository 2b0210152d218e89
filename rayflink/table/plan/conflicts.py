"""ON CONFLICT: what is written where rows with different keys of a query have one PRIMARY KEY of a table."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class InsertConflictStrategy:
    """The treatment of several rows with one primary key, for `insert_into` and `execute_insert` of a Table.

    It is the clause ON CONFLICT of INSERT in the Table API, with the names of Flink's Java API.

    >>> InsertConflictStrategy.nothing()
    InsertConflictStrategy(behavior=<OnConflict.NOTHING: 'DO NOTHING'>)

    Args:
        behavior: see `OnConflict`.

    Source: apache/flink InsertConflictStrategy, FLIP-558.
    """

    behavior: OnConflict

    @staticmethod
    def nothing() -> InsertConflictStrategy:
        """Write the first row of a key, and drop the others, which are counted in `numConflictsDropped`."""
        return InsertConflictStrategy(OnConflict.NOTHING)

    @staticmethod
    def error() -> InsertConflictStrategy:
        """Fail the job where two rows have one key."""
        return InsertConflictStrategy(OnConflict.ERROR)

    @staticmethod
    def deduplicate() -> InsertConflictStrategy:
        """Write the last row of a key, and the one before it when that goes."""
        return InsertConflictStrategy(OnConflict.DEDUPLICATE)


__all__ = ["InsertConflictStrategy", "OnConflict"]
