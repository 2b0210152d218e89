"""Values as JSON text, as Flink's `JsonRowSerializationSchema` writes those of a type."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from rayflink.user_types import UserValue

from ..data_types.composite_types import ElementsTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from ..data_types.type_base import TypeInformation
from ..time import Instant
from .print_form import number_text
from .time_strings import instant_text, utc_time_text, utc_timestamp_text

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: UserValue, kind: TypeInformation) -> str:
    """Return the JSON of a value of a type: numbers as Java writes them, times by RFC 3339 in UTC, bytes as base64.

    >>> from rayflink.common.typeinfo import Types
    >>> json_text(time(7, 5), Types.SQL_TIME()), json_text(1e10, Types.DOUBLE())
    ('"07:05:00Z"', '1.0E10')

    Raises:
        TypeError: JSON has no form of it.
    """
    if value is None:
        return "null"
    if isinstance(kind, RowTypeInfo):
        fields = zip(kind.get_field_names(), kind.get_field_types(), value, strict=True)
        return "{" + ",".join(f"{dumped(name)}:{json_text(item, field)}" for name, field, item in fields) + "}"
    if isinstance(kind, TupleTypeInfo):
        return "[" + ",".join(map(json_text, value, kind.get_field_types())) + "]"
    if isinstance(kind, MapTypeInfo):
        value_kind = kind.value_type
        return "{" + ",".join(f"{dumped(str(key))}:{json_text(item, value_kind)}" for key, item in value.items()) + "}"
    if isinstance(value, bytes):
        return dumped(base64.b64encode(value).decode("ascii"))
    if isinstance(kind, ElementsTypeInfo):
        return "[" + ",".join(json_text(item, kind.element_type) for item in value) + "]"
    return _scalar_text(value, kind)


def _scalar_text(value: UserValue, kind: TypeInformation) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return number_text(value, kind)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, datetime):
        return f'"{utc_timestamp_text(value)}"'
    if isinstance(value, time):
        return f'"{utc_time_text(value)}"'
    if isinstance(value, Instant):
        return f'"{instant_text(value)}"'
    return dumped(plain_value(value))


def dumped(value: UserValue, default: Callable[[Any], Any] | None = None) -> str:
    """Return a value as `json` writes it; half of a surrogate pair, which UTF-8 lacks, as an escape.

    >>> dumped("a\\ud800")
    '"a\\\\uD800"'

    Args:
        default: makes a value that JSON has of another.
    """
    text = json.dumps(value, default=default, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04X}", text)


def without_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair in a string by `?`, as Java does in UTF-8.

    >>> without_surrogates("a\\udc00b")
    'a?b'
    """
    return text if text.isascii() else _SURROGATE.sub("?", text)


def plain_value(value: UserValue) -> Any:
    """Return a value as `json` writes it: dates as ISO strings, decimals as numbers, NaN as a string, others unchanged.

    Raises:
        TypeError: a decimal has more digits than a float.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value)
        number = int(value) if value == value.to_integral_value() else float(value)
        if Decimal(repr(number)) != value:
            raise TypeError(f"{value} has more digits than a float")
        return number
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Instant):
        return value.to_datetime().isoformat()
    return value


__all__ = ["dumped", "json_text", "plain_value", "without_surrogates"]
