"""The key by which rows of columns are partitioned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class KeyColumns:
    """The key of a row of columns: the named ones."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns = tuple(names)

    def __call__(self, row: Any) -> Any:
        values = tuple(row[name] for name in self.columns)
        return values[0] if len(values) == 1 else values


__all__ = ["KeyColumns"]
