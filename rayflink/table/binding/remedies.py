"""Remedies for unsupported clauses; they differ between streams and whole tables."""

from __future__ import annotations

from .expressions import AGGREGATES

_STATE = "take the rows to a stream by to_data_stream(), key_by() columns and keep {} as state of a process function"
_WHOLE = {
    "LAG": "number the rows by ROW_NUMBER() AS rn, and LEFT JOIN each with the one of b.rn = a.rn - 1",
    "LEAD": "number the rows by ROW_NUMBER() AS rn, and LEFT JOIN each with the one of b.rn = a.rn + 1",
}
_RANKS = ("RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE")


def remedy_for_over(name: str, is_whole: bool) -> str:
    """Return the remedy for a function with OVER other than ROW_NUMBER().

    Args:
        name: of the function.
        is_whole: the rows are those of whole tables, in batch mode.
    """
    if name in _RANKS:
        return "ROW_NUMBER() is, which numbers rows of equal order one after another"
    if not is_whole:
        state = "the rows before" if name in ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE") else "the value so far"
        windows = "; or GROUP BY a window where a value for each window will do" if name in AGGREGATES else ""
        return f"{_STATE.format(state)}{windows}"
    if name in AGGREGATES:
        return (
            f"compute it in a query of its own, as (SELECT k, {name}(v) AS total FROM t GROUP BY k), and JOIN that by "
            "the columns of PARTITION BY; for rows up to each row JOIN the table with itself ON b.k = a.k AND b.ts <= "
            f"a.ts, and take {name}(b.v) GROUP BY the columns of a"
        )
    return _WHOLE.get(name, "number the rows by ROW_NUMBER() AS rn, and JOIN each with the rows it needs by rn")


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


__all__ = ["remedy_for_over", "remedy_for_versions"]
