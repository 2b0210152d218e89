"""Predicates that choose which outcomes of async calls are tried again, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.functions.async_retries import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]
