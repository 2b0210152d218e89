"""Scalar functions by family; importing this makes all of them known."""

from . import (
    arithmetic,
    casts,
    collections,
    comparison,
    conditional,
    date_texts,
    dates,
    encodings,
    formats,
    hash_code,
    json_functions,
    logic,
    maths,
    nested_casts,
    objects,
    regexes,
    texts,
    time_casts,
)

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
