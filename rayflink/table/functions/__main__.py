"""Prints docs/sql-functions.md."""

from __future__ import annotations

from itertools import groupby

from rayflink.table.plan.typed import Function, all_functions

_HEAD = """# SQL functions

<!-- Made by `python -m rayflink.table.functions`; do not edit. -->

Scalar functions and operators. Their meaning is that of Apache Flink 2.3: whole numbers wrap around, decimals are
rounded half up and null where they have too many digits, null makes most results null. Positions in strings (in
characters) and in arrays are counted from 1. An error in a row fails the query. CASE protects from errors: a branch is
evaluated only for the rows that take it.
"""
_TAIL = """## What differs from Flink

- Additions, which Flink does not have: the names LCASE, NVL and UCASE. HASH_CODE is in Flink, too, but not documented
  there, and gives other numbers.
- Regular expressions are those of RE2, which has most of Java's. One with look-around or back-references is matched by
  Python's `re`.
- Parts of times before 1970 are right: Flink gives EXTRACT(HOUR ...) negative numbers there.
- NaN is equal to nothing; Flink's planner takes `x = x` for true where it sees both.
- A key of a map cannot be null.
- JSON paths have no filters, such as `[?(@.a == 1)]`.
- Patterns of dates have no optional sections, and names are English.
- `RAND(seed)` gives other numbers than Flink, and CAST makes no intervals of numbers.
- CURRENT_WATERMARK works in projections and filters, and is NULL in conditions of joins.
- OBJECT_OF gives a ROW, because there are no structured types, and OBJECT_UPDATE takes any ROW.
- Missing: PARSE_JSON and functions of VARIANT, and those of bitmaps.
"""


def markdown() -> str:
    """Return the page with a table for each family."""
    parts = [_HEAD]
    for family, functions in groupby(all_functions(), key=lambda function: function.family):
        rows = "\n".join(map(_row, functions))
        parts.append(f"## {family}\n\n| Function | Gives |\n|---|---|\n{rows}\n")
    return "\n".join([*parts, _TAIL])


def _row(function: Function) -> str:
    usage = f"`` {function.usage} ``" if "`" in function.usage else f"`{function.usage}`"
    also = f" Also: {', '.join(f'`{name}`' for name in function.aliases)}." if function.aliases else ""
    return f"| {_cell(usage)} | {_cell(function.about + also)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
