"""Values of Python in the forms that programs give and get them, and those that pyarrow does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rayflink.common.records.arrow_values import shaped
from rayflink.common.types import Row

from ..types import DataType, Root


def plain_of(kind: DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of a function's value to one that pyarrow accepts; None: it needs none."""
    if kind.root is Root.ROW:
        inner = [plain_of(field.type) for field in kind.fields]
        names = [field.name for field in kind.fields]

        def row(value: Any) -> Any:
            if isinstance(value, dict):
                value = [value.get(name) for name in names]
            values = value._values if isinstance(value, Row) else value
            if not isinstance(values, (tuple, list)) or len(values) != len(inner):
                return value  # pyarrow says what is wrong
            return {name: shaped(plain, element) for name, plain, element in zip(names, inner, values, strict=True)}

        return row
    if kind.root in (Root.MAP, Root.MULTISET):
        key, item = plain_of(kind.items[0]), plain_of(kind.items[1]) if kind.root is Root.MAP else None
        return lambda value: [(shaped(key, element), shaped(item, other)) for element, other in dict(value).items()]
    if kind.root is Root.ARRAY:
        plain = plain_of(kind.items[0])
        return None if plain is None else lambda value: [shaped(plain, element) for element in value]
    return None


def plain_rows(rows: Sequence[Any], names: Sequence[str], types: Sequence[DataType]) -> Sequence[Any]:
    """Records whose nested rows and maps are such as pyarrow takes; the records themselves where there are none.

    Args:
        rows: Rows, tuples, lists, dicts; another value stands for a row of one field.
        names: of the fields, in the order of the types.
    """
    plain = [(index, to_plain) for index, kind in enumerate(types) if (to_plain := plain_of(kind)) is not None]
    if not plain:
        return rows
    result = []
    for row in rows:
        values = _fields(row, names)
        for index, kind in plain:
            if index < len(values):
                values[index] = shaped(kind, values[index])
        result.append(tuple(values))
    return result


def _fields(row: Any, names: Sequence[str]) -> list[Any]:
    if isinstance(row, dict):
        return [row.get(name) for name in names]
    if isinstance(row, Row):
        return list(row._values if row._names is None else row.get_fields_by_names(list(names)))
    return list(row) if isinstance(row, (tuple, list)) else [row]


__all__ = ["plain_of", "plain_rows"]
