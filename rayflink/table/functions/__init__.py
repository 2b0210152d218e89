"""Scalar functions by family; importing this makes all of them known.

`declaring` has the decorators by which a function declares its arguments and result; the other modules hold a family
each, with `casts` and `times` as rooms. Columns of Arrow enter a kernel, and a column of as many rows leaves; none
has state, a clock or a loop over rows where Arrow or polars has one. `python -m rayflink.table.functions` prints
docs/sql-functions.md. Aggregates are in `rayflink.table.runtime.aggregates`, functions of users in
`rayflink.table.user_functions`.
"""

from . import (
    arithmetic,
    collections,
    comparison,
    conditional,
    encodings,
    formats,
    hash_code,
    json_functions,
    logic,
    maths,
    objects,
    regexes,
    strings,
)
from .casts import casts, nested_casts
from .times import date_format, dates, time_casts

__all__ = [
    "arithmetic",
    "casts",
    "collections",
    "comparison",
    "conditional",
    "date_format",
    "dates",
    "encodings",
    "logic",
    "maths",
]
__all__ += ["formats", "hash_code", "json_functions", "nested_casts", "objects", "regexes", "strings", "time_casts"]
