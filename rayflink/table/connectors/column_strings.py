"""Columns as the strings that Flink's formats of files write, by columns."""

from __future__ import annotations

from decimal import Decimal

import pyarrow
from pyarrow import compute as pc

from rayflink.common.records.number_strings import stripped_decimal

from ..functions.regexes import each_distinct

_EXPONENT = r"E|^-?[0-9]*[1-9][0-9]*0(\.0*)?$"
"""Decimals with an exponent, and those that have one when the zeros at their end are taken away."""


def decimal_strings(column: pyarrow.Array, is_plain: bool = False) -> pyarrow.Array:
    """Decimals without the zeros at their end, so that 100 is 1E+2; plain: with all digits and without exponents.

    >>> from decimal import Decimal
    >>> numbers = pyarrow.array([Decimal("227.00"), Decimal("1.10"), Decimal("100"), None])
    >>> decimal_strings(numbers).to_pylist(), decimal_strings(numbers, is_plain=True).to_pylist()
    (['227', '1.1', '1E+2', None], ['227.00', '1.10', '100.00', None])
    """
    strings = column.cast(pyarrow.string())
    if is_plain:
        return each_distinct(strings, _plain, pyarrow.string())
    special = pc.fill_null(pc.match_substring_regex(strings, _EXPONENT), False)
    result = strings
    if column.type.scale > 0:
        result = pc.replace_substring_regex(strings, r"(\.[0-9]*?)0+$", r"\1")
        result = pc.utf8_rtrim(result, ".")
    if not pc.any(special).as_py():
        return result
    return pc.replace_with_mask(result, special, each_distinct(strings.filter(special), _stripped, pyarrow.string()))


def timestamp_strings(column: pyarrow.Array, iso: bool = False) -> pyarrow.Array:
    """Timestamps with as many digits behind the second as they need; those with a zone in UTC, with a Z.

    Args:
        iso: with a T instead of a blank.
    """
    strings = time_strings(column.cast(pyarrow.timestamp(column.type.unit)))
    if iso:
        strings = pc.replace_substring(strings, " ", "T")
    return strings if column.type.tz is None else pc.binary_join_element_wise(strings, "Z", "")


def time_strings(column: pyarrow.Array) -> pyarrow.Array:
    """Times without the zeros at the end of the second's fraction, and without its point where nothing is left."""
    strings = column.cast(pyarrow.string())
    if column.type.unit == "s":
        return strings
    return pc.ascii_rtrim(pc.ascii_rtrim(strings, "0"), ".")


def _stripped(text: str) -> str:
    return text if text is None else stripped_decimal(Decimal(text))


def _plain(text: str) -> str:
    return text if text is None or "E" not in text else format(Decimal(text), "f")


__all__ = ["decimal_strings", "time_strings", "timestamp_strings"]
