"""Things that are pushed into the source of a scan: columns, fields of them, conditions, a limit.

A scan lists it in its order, so that a source that is created anew, as for a compiled plan, is brought to the same.

Source: apache/flink SourceAbilitySpec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..types import DataType
from .typed import Expr


@dataclass(frozen=True)
class ColumnPushDown:
    """The source reads these columns alone, in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class NarrowColumn:
    """A column of which the source reads some fields.

    Args:
        type: with these fields alone.
    """

    name: str
    type: DataType


@dataclass(frozen=True)
class FieldPushDown:
    """The source reads some fields of the rows in these columns."""

    columns: tuple[NarrowColumn, ...]


@dataclass(frozen=True)
class FilterPushDown:
    """The source leaves out rows.

    Args:
        conditions: those that were offered to it.
        remaining: those that are checked behind it.
    """

    conditions: tuple[Expr, ...]
    remaining: tuple[Expr, ...]


@dataclass(frozen=True)
class LimitPushDown:
    """The source may stop behind this number of rows."""

    rows: int


ScanAbility: TypeAlias = ColumnPushDown | FieldPushDown | FilterPushDown | LimitPushDown
"""All that can be pushed into a source."""

__all__ = ["ColumnPushDown", "FieldPushDown", "FilterPushDown", "LimitPushDown", "NarrowColumn", "ScanAbility"]
