"""Columns of which a source reads some fields only."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan.logical import Schema
from ..types import DataType, Root

NarrowTypes = tuple[tuple[str, DataType], ...]
"""(column, its type with some of the fields of its rows)."""


def narrower(schema: Schema, narrow: NarrowTypes, types: Mapping[str, DataType]) -> NarrowTypes:
    """Return the columns that are read in part, after another rule has said of some what is read of them.

    Args:
        schema: the whole columns of the table.
        narrow: what was said before.
        types: name of a column -> what is read of it, which replaces what was said before.
    """
    whole = {column.name: column.type for column in schema}
    return tuple((name, kind) for name, kind in {**dict(narrow), **types}.items() if kind != whole[name])


def paths_of(name: str, narrow: Mapping[str, DataType]) -> list[str]:
    """Return the paths of what is read of a column, as EXPLAIN shows them: its name, if it is read whole."""
    return _paths(name, narrow[name]) if name in narrow else [name]


def _paths(name: str, kind: DataType) -> list[str]:
    if kind.root is not Root.ROW:
        return [name]
    return [f"{name}.{path}" for field in kind.fields for path in _paths(field.name, field.type)]


__all__ = ["NarrowTypes", "narrower", "paths_of"]
