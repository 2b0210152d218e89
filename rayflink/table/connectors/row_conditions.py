"""Conditions of a query as what a file's statistics can answer."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from rayflink.connectors.formats.parquet_pruning import Wanted

from ..plan.typed import Call, Column, Expr, Literal
from ..types import DataType, Root

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


def wanted(condition: Expr) -> Wanted | None:
    """Return a comparison of a column with constants; None: it is something else, or not as Python compares."""
    if not isinstance(condition, Call):
        return None
    name, args = condition.function.name, list(condition.args)
    if name in _MIRRORED and isinstance(args[0], Literal):
        args, name = args[::-1], _MIRRORED[name]
    column = args[0]
    if not isinstance(column, Column):
        return None
    if name in ("IS NULL", "IS NOT NULL"):
        return Wanted(column.name, name)
    if name not in _MIRRORED and name != "IN":
        return None
    constants = [*args[1:], *(value for listed in condition.options for value in listed)] if name == "IN" else args[1:]
    values = [_value(column.type, value) for value in constants]
    return None if None in values else Wanted(column.name, name, tuple(values))


def _value(kind: DataType, expr: Expr) -> Any:
    """Return a constant as a value of a column's type; None: it is none."""
    value: Any = expr.value if isinstance(expr, Literal) else None
    if kind.is_text:
        return value if isinstance(value, str) else None
    if kind.is_integer:
        return value if type(value) in (int, Decimal) else None
    if kind.root is Root.DOUBLE:
        return float(value) if type(value) in (int, float, Decimal) else None
    if kind.root is Root.DATE:
        return value if type(value) is datetime.date else None
    is_time = kind.root is Root.TIMESTAMP and expr.type.root is Root.TIMESTAMP and type(value) is datetime.datetime
    return value if is_time else None


__all__ = ["wanted"]
