"""Numbers of 32 bits for writers that know no types: Python's float of one shows digits that it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayflink.user_types import UserRecord, UserValue

from ..data_types.basic_types import BasicType, BasicTypeInfo
from ..data_types.composite_types import ElementsTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from ..data_types.type_base import TypeInformation
from ..types import Row, _create_row
from .print_form import single_text


def shortest_floats(kind: TypeInformation | None) -> Callable[[Any], Any] | None:
    """Return the function that gives each FLOAT of a record its shortest decimal number; None: there is none.

    >>> from rayflink.common.typeinfo import Types
    >>> replace = shortest_floats(Types.TUPLE([Types.INT(), Types.LIST(Types.FLOAT())]))
    >>> replace((1, [1.100000023841858, None]))
    (1, [1.1, None])
    """
    replacement = _replacement(kind)
    return None if replacement is None else lambda value: None if value is None else replacement(value)


def _replacement(kind: TypeInformation | None) -> Callable[[Any], Any] | None:
    if isinstance(kind, BasicTypeInfo):
        return _shortest if kind.basic_type is BasicType.FLOAT else None
    if isinstance(kind, RowTypeInfo | TupleTypeInfo):
        parts = [
            (index, replacement)
            for index, field_kind in enumerate(kind.get_field_types())
            if (replacement := shortest_floats(field_kind))
        ]
        return _of_fields(parts) if parts else None
    if isinstance(kind, ElementsTypeInfo):
        element = shortest_floats(kind.element_type)
        return None if element is None else lambda values: [element(value) for value in values]
    if isinstance(kind, MapTypeInfo):
        of_value = shortest_floats(kind.value_type)
        return None if of_value is None else lambda pairs: {key: of_value(value) for key, value in pairs.items()}
    return None


def _of_fields(parts: list[tuple[int, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    def replace(record: UserRecord) -> Any:
        values = list(record)
        for index, replacement in parts:
            values[index] = replacement(values[index])
        return _create_row(record._names, values, record.get_row_kind()) if isinstance(record, Row) else tuple(values)

    return replace


def _shortest(value: UserValue) -> Any:
    return float(single_text(value))


__all__ = ["shortest_floats"]
