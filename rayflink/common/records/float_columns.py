"""Floating points as Java writes them, by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow


def float_strings(values: pyarrow.Array) -> pyarrow.Array:
    """Return floating points as Java's Double.toString and Float.toString write them.

    >>> import pyarrow
    >>> float_strings(pyarrow.array([1.0, 0.001, 12345678.5, float("nan")])).to_pylist()
    ['1.0', '0.001', '1.23456785E7', 'NaN']
    """
    import pyarrow
    import pyarrow.compute as pc

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
    import pyarrow
    import pyarrow.compute as pc

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


__all__ = ["float_strings"]
