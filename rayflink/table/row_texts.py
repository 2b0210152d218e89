"""Values of tables as Flink prints them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rayflink.common.print_form import floating_text
from rayflink.common.types import Row, RowKind

from .types import DataType, Root

SHORT_KINDS = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}


class RowText:
    """The text of a row: its kind, and its values by their types.

    >>> from rayflink.table.types import DataTypes
    >>> RowText([DataTypes.INT(), DataTypes.STRING()])(Row(1, None))
    '+I[1, null]'

    Args:
        types: of the fields.
    """

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = tuple(types)
        self._texts = [text_of(kind) for kind in self._types]

    def __call__(self, row: Row) -> str:
        values = ", ".join(text(value) for text, value in zip(self._texts, row._values, strict=True))
        return f"{SHORT_KINDS[row.get_row_kind()]}[{values}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return RowText, (self._types,)


def text_of(kind: DataType) -> Callable[[Any], str]:
    """What gives the text of a value of a type."""
    inner = _TEXTS.get(kind.root)
    if kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.TIME):
        inner = _timed(kind)
    elif kind.root is Root.ARRAY:
        inner = _array(text_of(kind.items[0]))
    elif kind.root in (Root.MAP, Root.MULTISET):
        inner = _map(kind)
    elif kind.root is Root.ROW:
        inner = _row([text_of(field.type) for field in kind.fields], [field.name for field in kind.fields])
    shown = inner or str
    return lambda value: "null" if value is None else shown(value)


_TEXTS: dict[Root, Callable[[Any], str]] = {
    Root.BOOLEAN: lambda value: "true" if value else "false",
    Root.BINARY: lambda value: str(list(value)),
    Root.VARBINARY: lambda value: str(list(value)),
    Root.DECIMAL: lambda value: format(value, "f"),
    Root.DOUBLE: lambda value: floating_text(np.float64(value)),
    Root.FLOAT: lambda value: floating_text(np.float32(value)),
}


def _timed(kind: DataType) -> Callable[[Any], str]:
    """ISO 8601 with as many digits of a second as the type has; instants in UTC, with a Z."""
    digits = kind.precision

    def text(value: Any) -> str:
        moment = value.time() if isinstance(value, datetime.datetime) else value
        clock = moment.strftime("%H:%M:%S") if kind.root is not Root.TIME else value.strftime("%H:%M:%S")
        fraction = f".{moment.microsecond:06d}"[: 1 + digits] if digits else ""
        if kind.root is Root.TIME:
            return clock + fraction
        ending = "Z" if kind.root is Root.TIMESTAMP_LTZ else ""
        return f"{value.date().isoformat()}T{clock}{fraction}{ending}"

    return text


def _array(item: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "[" + ", ".join(map(item, value)) + "]"


def _map(kind: DataType) -> Callable[[Any], str]:
    key = text_of(kind.items[0])
    value_text = text_of(kind.items[1]) if kind.root is Root.MAP else str

    def text(value: Any) -> str:
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ", ".join(f"{key(one)}={value_text(other)}" for one, other in pairs) + "}"

    return text


def _row(texts: list[Callable[[Any], str]], names: list[str]) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        values = [value[name] for name in names] if isinstance(value, dict) else list(value)
        return "+I[" + ", ".join(one(item) for one, item in zip(texts, values, strict=True)) + "]"

    return text
