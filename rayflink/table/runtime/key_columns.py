"""The key by which rows of columns are partitioned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.common.functions.function_classes import KeyBy
from rayflink.common.user_code.call_sites import call_site


class KeyColumns:
    """The key of a row of columns: the named ones."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns = tuple(names)

    def __call__(self, row: Any) -> Any:
        values = tuple(row[name] for name in self.columns)
        return values[0] if len(values) == 1 else values


def columns_key(names: Sequence[str]) -> KeyBy:
    """Return the key of the named columns as the partitioning of a stream takes it, with the user's line of code."""
    return KeyBy(KeyColumns(names), call_site(), None)


__all__ = ["KeyColumns", "columns_key"]
