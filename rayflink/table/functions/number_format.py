"""Numbers and truth values as Java writes them, and strings read as numbers."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.decimals import round_decimals
from rayflink.table.types import DataType, DataTypes, Root

_WHOLE = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]*)$"
_PLAIN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_FLOAT = r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
_SCIENTIFIC = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"
_SPACE = "".join(map(chr, range(33)))
"""The characters that Java's trim removes."""


def float_strings(values: pyarrow.Array) -> pyarrow.Array:
    """Floating points as Java's Double.toString and Float.toString write them.

    >>> float_strings(pyarrow.array([1.0, 0.001, 12345678.5, float("nan")])).to_pylist()
    ['1.0', '0.001', '1.23456785E7', 'NaN']
    """
    strings = pc.cast(values, pyarrow.string())
    sizes = pc.abs(values)
    plain = pc.or_(pc.and_(pc.greater_equal(sizes, 1e-3), pc.less(sizes, 1e7)), pc.equal(sizes, 0))
    plain = pc.fill_null(plain, True)
    pointless = pc.invert(pc.match_substring(strings, "."))
    result = pc.if_else(pointless, pc.binary_join_element_wise(strings, "0", "."), strings)
    if pc.all(plain).as_py() in (True, None):
        return result
    others = pc.invert(plain)
    return pc.replace_with_mask(result, others, _scientific(strings.filter(others), values.filter(others)))


def _scientific(strings: pyarrow.Array, values: pyarrow.Array) -> pyarrow.Array:
    """Format very large or small numbers with one digit before the point and an exponent."""
    parts = pc.extract_regex(strings, r"^(?P<sign>-?)(?P<whole>[0-9]*)\.?(?P<part>[0-9]*)(?:e(?P<power>[+-][0-9]+))?$")
    sign, whole, fraction = (pc.struct_field(parts, name) for name in ("sign", "whole", "part"))
    power = pc.struct_field(parts, "power")
    power = pc.if_else(pc.equal(power, ""), "0", pc.replace_substring(power, "+", ""))
    zeros = pc.subtract(pc.utf8_length(fraction), pc.utf8_length(pc.utf8_ltrim(fraction, "0")))
    shift = pc.if_else(pc.equal(whole, "0"), pc.subtract(-1, zeros), pc.subtract(pc.utf8_length(whole), 1))
    exponent = pc.cast(pc.add(pc.cast(power, pyarrow.int32()), shift), pyarrow.string())
    digits = pc.utf8_trim(pc.binary_join_element_wise(whole, fraction, ""), "0")
    first, other_digits = pc.utf8_slice_codeunits(digits, 0, 1), pc.utf8_slice_codeunits(digits, 1)
    other_digits = pc.if_else(pc.equal(other_digits, ""), "0", other_digits)
    result = pc.binary_join_element_wise(sign, first, ".", other_digits, "E", exponent, "")
    result = pc.if_else(pc.is_nan(values), "NaN", result)
    infinite = pc.if_else(pc.less(values, 0), "-Infinity", "Infinity")
    return pc.if_else(pc.is_inf(values), infinite, result)


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
