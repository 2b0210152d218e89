"""The verdict on what Flink SQL and rayflink give for a query: equal, a known difference, or another one."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from rayflink.common.errors import JobFailed
from rayflink.table import SqlError, TableEnvironment

Answer = dict[str, Any]
"""`rows`, each a list of strings, numbers and nulls, or `error`."""

REFUSED, FAILED = "refused: ", "failed: "
"""How an error of ours begins: of a query that is not taken, and of one that fails while it runs."""
_MISS = "Could not skip"
_GREEDY_END = "PATTERN may end with"
_ONLY_HERE = {
    "Optional pattern cannot be preceded by greedy pattern": "an optional variable behind a greedy one",
    "All rows per match mode is not supported": "ALL ROWS PER MATCH",
    "Table 'MOVE' not found": "SUBSET",
}
"""Parts of Flink's errors, and what it does not have."""


def our_answer(t_env: TableEnvironment, query: str) -> Answer:
    """Return what rayflink gives for a query, in the form of Flink's answers."""
    try:
        rows = list(t_env.execute_sql(query).collect())
    except SqlError as refused:
        return {"error": f"{REFUSED}{refused}"}
    except JobFailed as failed:
        return {"error": f"{FAILED}{failed}"}
    return {"rows": [[_plain(value) for value in row] for row in rows]}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03}"
    return f"{value:f}" if isinstance(value, Decimal) else value


def verdict_on(flink: Answer, ours: Answer) -> str:
    """Return the verdict on two answers; it begins with DIFFERENT where the difference is not known."""
    error, our_error = flink.get("error", ""), ours.get("error", "")
    if _MISS in error and our_error.startswith(FAILED) and "skip" in our_error:
        return "equal: both fail where there is no row to skip to"
    if error and our_error:
        is_refused = _MISS not in error and our_error.startswith(REFUSED)
        return "equal: both refuse the query" if is_refused else f"DIFFERENT errors: {error!r} and {our_error!r}"
    if error:
        reasons = [reason for part, reason in _ONLY_HERE.items() if part in error]
        return f"known: Flink does not have {reasons[0]}" if reasons else f"DIFFERENT: Flink has {error!r}"
    if our_error.startswith(REFUSED) and _GREEDY_END in our_error:
        return "known: Flink takes a greedy variable behind which all may be missing"
    if our_error:
        return f"DIFFERENT: here {our_error!r}"
    if sorted(map(repr, flink["rows"])) != sorted(map(repr, ours["rows"])):  # 0.0 and -0.0 are equal, but not here
        return "DIFFERENT rows"
    return "equal: some rows" if ours["rows"] else "equal: no rows"


__all__ = ["Answer", "our_answer", "verdict_on"]
