"""Scalar functions by family; importing this makes all of them known."""

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
