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
)
from . import (
    strings as texts,
)
from .casts import casts, nested_casts
from .times import date_format as date_texts
from .times import dates, time_casts

__all__ = [
    "arithmetic",
    "casts",
    "collections",
    "comparison",
    "conditional",
    "date_texts",
    "dates",
    "encodings",
    "logic",
    "maths",
]
__all__ += ["formats", "hash_code", "json_functions", "nested_casts", "objects", "regexes", "texts", "time_casts"]
