"""Types of columns in the JSON of Flink's gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rayflink.table.types import DataType, Root

__all__ = ["type_document"]

TypeDocument = dict[str, Any]


def type_document(data_type: DataType) -> TypeDocument:
    """Return a type as Flink's clients read it; a type that they do not know is one of text.

    Source: apache/flink LogicalTypeJsonSerializer.

    >>> from rayflink.table.types import DataTypes
    >>> type_document(DataTypes.ARRAY(DataTypes.DECIMAL(5, 2, False)))["elementType"]
    {'type': 'DECIMAL', 'nullable': False, 'precision': 5, 'scale': 2}
    """
    if data_type.root is Root.NULL:
        return {"type": "NULL"}
    name = _NAMES.get(data_type.root, "VARCHAR")
    parameters = _PARAMETERS.get(name)
    return {"type": name, "nullable": data_type.is_nullable, **(parameters(data_type) if parameters else {})}


_NAMES = {
    **{root: root.value for root in (
        Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.BIGINT, Root.FLOAT, Root.DOUBLE, Root.DECIMAL, Root.CHAR,
        Root.VARCHAR, Root.BINARY, Root.VARBINARY, Root.DATE, Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW)},
    Root.INT: "INTEGER",
    Root.TIME: "TIME_WITHOUT_TIME_ZONE",
    Root.TIMESTAMP: "TIMESTAMP_WITHOUT_TIME_ZONE",
    Root.TIMESTAMP_LTZ: "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    Root.INTERVAL_DAY_TIME: "INTERVAL_DAY_TIME",
    Root.INTERVAL_YEAR_MONTH: "INTERVAL_YEAR_MONTH",
}  # fmt: skip
_LONGEST = 2**31 - 1


def _length(data_type: DataType) -> TypeDocument:
    return {"length": getattr(data_type, "length", _LONGEST)}  # a type that Flink lacks is text without a limit


def _precision(data_type: DataType) -> TypeDocument:
    return {"precision": data_type.precision}


def _row(data_type: DataType) -> TypeDocument:
    fields = []
    for field in data_type.fields:
        document: TypeDocument = {"name": field.name, "fieldType": type_document(field.type)}
        if field.description is not None:
            document["description"] = field.description
        fields.append(document)
    return {"fields": fields}


_PARAMETERS: dict[str, Callable[[DataType], TypeDocument]] = {
    "CHAR": _length,
    "VARCHAR": _length,
    "BINARY": _length,
    "VARBINARY": _length,
    "DECIMAL": lambda known: {"precision": known.precision, "scale": known.scale},
    "TIME_WITHOUT_TIME_ZONE": _precision,
    "TIMESTAMP_WITHOUT_TIME_ZONE": _precision,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": _precision,
    # Values are milliseconds, and months, whatever units they were written in.
    "INTERVAL_DAY_TIME": lambda known: {"precision": 2, "fractionalPrecision": 3, "resolution": "SECOND"},
    "INTERVAL_YEAR_MONTH": lambda known: {"precision": 2, "resolution": "MONTH"},
    "ARRAY": lambda known: {"elementType": type_document(known.items[0])},
    "MULTISET": lambda known: {"elementType": type_document(known.items[0])},
    "MAP": lambda known: {"keyType": type_document(known.items[0]), "valueType": type_document(known.items[1])},
    "ROW": _row,
}
