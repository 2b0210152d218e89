"""Comparisons of columns with constants, as conditions of a query to the server."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.user_types import UserValue

from .postgres_cdc_tables import CapturedColumn
from .postgres_session import driver

if TYPE_CHECKING:
    import psycopg
    import pyarrow

_WHOLE = ("int2", "int4", "int8")
_TEXT = ("text", "varchar", "bpchar")
_SIGNS = ("=", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL")


@dataclass(frozen=True)
class Comparison:
    """A comparison of a column with constants.

    Args:
        column: its name.
        sign: one of = < <= > >= IN, IS NULL and IS NOT NULL.
        values: the constant; of IN several; of the last two none.
        target: the type in which the column is read.
    """

    column: str
    sign: str
    values: tuple[UserValue, ...]
    target: pyarrow.DataType

    def __post_init__(self) -> None:
        if self.sign not in _SIGNS:
            raise ValueError(f"sign {self.sign!r} is unknown; use one of {', '.join(_SIGNS)}")

    def __str__(self) -> str:
        literals = [f"'{value}'" if isinstance(value, str) else str(value) for value in self.values]
        shown = f"({', '.join(literals)})" if self.sign == "IN" else "".join(literals)
        return f"{self.column} {self.sign} {shown}".rstrip()


def rendered(
    comparison: Comparison, columns: Iterable[CapturedColumn], cursor: psycopg.Cursor[tuple[object, ...]]
) -> str:
    """Return a condition in SQL that is true for all rows for which the comparison is; "": there is none.

    The server may have other rules than the query that asks: text has another order, and a FLOAT4 is another number
    as a DOUBLE. Such comparisons are left to the query.

    Args:
        columns: of the table.
    """
    sql = driver().sql
    column = next((column for column in columns if column.name == comparison.column), None)
    if column is None:
        return ""
    name = sql.Identifier(column.name)
    if comparison.sign.startswith("IS"):
        return str(sql.SQL("{} " + comparison.sign).format(name).as_string(cursor))
    operand = _operand(column, comparison)
    if not operand:
        return ""
    values = [sql.Literal(value) for value in comparison.values]
    shown = sql.SQL("({})").format(sql.SQL(", ").join(values)) if comparison.sign == "IN" else values[0]
    return str(sql.SQL(operand + " " + comparison.sign + " {}").format(name, shown).as_string(cursor))


def _operand(column: CapturedColumn, comparison: Comparison) -> str:
    """Return what is compared, with a place for the column's name; "": the server would compare in another way."""
    import pyarrow.types as types

    kind, target = column.kind, comparison.target
    if types.is_string(target):
        if comparison.sign not in ("=", "IN"):
            return ""
        return "{}" if kind in _TEXT else "{}::text"
    if types.is_signed_integer(target):
        return "{}" if kind in _WHOLE else ""
    if types.is_float64(target):
        return "{}" if kind == "float8" or kind in _WHOLE[:2] else ""
    if types.is_date(target):
        return "{}" if kind == "date" else ""
    if types.is_timestamp(target):
        is_exact = target.unit in ("us", "ns") and target.tz is None
        is_known = all(isinstance(value, datetime.datetime) and value.tzinfo is None for value in comparison.values)
        return "{}" if kind == "timestamp" and is_exact and is_known else ""
    return ""


__all__ = ["Comparison", "rendered"]
