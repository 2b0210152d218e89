"""Remedies for unsupported clauses; they differ between streams and whole tables."""

from __future__ import annotations


def remedy_for_versions(is_whole: bool) -> str:
    """Return the remedy for FOR SYSTEM_TIME AS OF.

    Args:
        is_whole: the rows are those of whole tables, in batch mode.
    """
    if is_whole:
        return (
            "JOIN all versions up to each row, ON v.k = o.k AND v.ts <= o.ts, and keep the newest of each row by "
            "ROW_NUMBER() OVER (PARTITION BY o.id ORDER BY v.ts DESC) = 1"
        )
    return (
        "take both tables to streams by to_data_stream(), connect() them, key_by() the columns of ON, and keep the "
        "versions of each key as state of a KeyedCoProcessFunction, see docs/joins.md; of a table outside the job ask "
        "for each row by AsyncDataStream, see docs/async.md"
    )


__all__ = ["remedy_for_versions"]
