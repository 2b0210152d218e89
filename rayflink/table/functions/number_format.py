"""Numbers and truth values as Java writes them, and strings read as numbers."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.common.records.float_columns import float_strings
from rayflink.table.functions.decimals import round_decimals
from rayflink.table.types import DataType, DataTypes, Root

_WHOLE = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]*)$"
_PLAIN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_FLOAT = r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
_SCIENTIFIC = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"
_SPACE = "".join(map(chr, range(33)))
"""The characters that Java's trim removes."""


def number_strings(values: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Return numbers and truth values as strings."""
    if kind.is_approximate:
        return float_strings(values)
    if kind.root is Root.BOOLEAN:
        return pc.if_else(values, "TRUE", "FALSE")
    return pc.cast(values, pyarrow.string())


def trimmed(strings: pyarrow.Array) -> pyarrow.Array:
    """Remove blanks at both ends as Java's trim does."""
    return pc.utf8_trim(strings, _SPACE)


def parse_integers(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse strings to whole numbers, cutting fractions; null where a string is no number or too large.

    >>> parse_integers(pyarrow.array([" 12", "-1.9", "300", "x"]), DataTypes.TINYINT()).to_pylist()
    [12, -1, None, None]
    """
    quickly = _quickly(strings, kind.to_arrow(), "xX")
    if quickly is not None:
        return quickly
    strings = trimmed(strings)
    strings = _where(pc.match_substring_regex(strings, _WHOLE), strings)
    strings = pc.replace_substring_regex(strings, r"^\+|\..*$", "")
    strings = pc.if_else(pc.is_in(strings, pyarrow.array(["", "-"])), "0", strings)
    if (pc.max(pc.binary_length(strings)).as_py() or 0) > 18:
        strings = pc.replace_substring_regex(strings, r"^(-?)0+([0-9])", r"\1\2")
        strings = _where(pc.less_equal(pc.binary_length(strings), 20), strings)
        longs = _bounded(pc.cast(strings, pyarrow.decimal128(38, 0)), DataTypes.BIGINT())
        longs = pc.cast(longs, pyarrow.int64())
    else:
        longs = pc.cast(strings, pyarrow.int64())
    return longs if kind.root is Root.BIGINT else pc.cast(_bounded(longs, kind), kind.to_arrow())


_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}


def _quickly(strings: pyarrow.Array, kind: pyarrow.DataType, otherwise: str) -> pyarrow.Array | None:
    """Parse by Arrow; None where it cannot read a string, or reads some letters differently from Java."""
    try:
        decimals = pc.cast(strings, kind)
    except pyarrow.ArrowInvalid:
        return None
    return None if any(pc.any(pc.match_substring(strings, letter)).as_py() for letter in otherwise) else decimals


def _bounded(values: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    half = 2 ** (_BITS[kind.root] - 1)
    low, high = (pyarrow.scalar(bound, values.type) for bound in (-half, half - 1))
    return _where(pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high)), values)


def parse_floats(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse strings to floats; null where a string is no number."""
    strings = trimmed(strings)
    strings = _where(pc.match_substring_regex(strings, _FLOAT), strings)
    named = pc.match_substring(strings, "n")
    digits = pc.utf8_rtrim(strings, "fFdD")
    strings = pc.if_else(named, strings, digits)
    strings = pc.replace_substring_regex(strings, r"^([+-]?)0+([0-9])", r"\1\2")
    strings = pc.replace_substring_regex(strings, r"^\+", "")
    return pc.cast(strings, kind.to_arrow())


def parse_decimals(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse strings to decimals, rounded half up; null where a string is no number or too large.

    >>> parse_decimals(pyarrow.array(["2.675", "1e2", "x"]), DataTypes.DECIMAL(5, 2)).to_pylist()
    [Decimal('2.68'), Decimal('100.00'), None]
    """
    quickly = _quickly(strings, kind.to_arrow(), "")
    if quickly is not None:
        return quickly
    strings = trimmed(strings)
    plain = pc.fill_null(pc.match_substring_regex(strings, _PLAIN), False)
    result = _parsed_plain(_where(plain, strings), kind)
    others = pc.and_(pc.invert(plain), pc.fill_null(pc.match_substring_regex(strings, _SCIENTIFIC), False))
    if others.true_count:
        result = pc.replace_with_mask(result, others, _parsed_scientific(strings.filter(others), kind))
    return result


def _parsed_plain(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse digits with a point; digits after the one that decides on the rounding are cut off."""
    more = kind.scale + 1
    strings = pc.replace_substring_regex(strings, rf"^(.*\.[0-9]{{{more}}}).*$", r"\1")
    strings = pc.replace_substring_regex(strings, r"^([+-]?)0+([0-9])", r"\1\2")
    strings = pc.replace_substring_regex(strings, r"\.$", "")
    strings = _where(pc.less_equal(pc.binary_length(strings), 38 + 3 + more), strings)
    wide = pyarrow.decimal256(76, more) if more < 38 else pyarrow.decimal256(76, 38)
    small = 36 - more
    if small > 0 and (pc.max(pc.binary_length(strings)).as_py() or 0) <= small:
        wide = pyarrow.decimal128(38, more)
    return round_decimals(pc.cast(_whole_digits(strings, 76 - more), wide), kind)


def _whole_digits(strings: pyarrow.Array, most: int) -> pyarrow.Array:
    """Null where there are more digits before the point; they would not fit anyway."""
    return _where(pc.invert(pc.match_substring_regex(strings, rf"^[+-]?[0-9]{{{min(most, 38) + 1},}}")), strings)


def _parsed_scientific(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse numbers with an exponent, each distinct string once: Arrow reads at most 76 digits of them."""
    coded = pc.dictionary_encode(strings)
    quantum = decimal.Decimal(1).scaleb(-kind.scale)
    limit = decimal.Decimal(10) ** (kind.precision - kind.scale)
    with decimal.localcontext(decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)):
        values = [_fitting(decimal.Decimal(text), quantum, limit) for text in coded.dictionary.to_pylist()]
    return pyarrow.array(values, kind.to_arrow()).take(coded.indices)


def _fitting(value: decimal.Decimal, quantum: decimal.Decimal, limit: decimal.Decimal) -> decimal.Decimal | None:
    if abs(value) >= limit:
        return None
    value = value.quantize(quantum) if value.adjusted() > -100 else decimal.Decimal(0)
    return value if abs(value) < limit else None


def parse_truths(strings: pyarrow.Array) -> pyarrow.Array:
    """Parse strings to truth values; null where a string is none."""
    strings = pc.utf8_lower(strings)
    yes = pc.is_in(strings, pyarrow.array(["t", "true", "y", "yes", "1"]))
    is_truth = pc.or_(yes, pc.is_in(strings, pyarrow.array(["f", "false", "n", "no", "0"])))
    return _where(is_truth, yes)


def _where(mask: Any, values: pyarrow.Array) -> pyarrow.Array:
    return pc.if_else(mask, values, pyarrow.scalar(None, values.type))
