"""Exact arithmetic on decimals: rounded half up, and null where the digits do not suffice."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.remainders import remainder
from rayflink.table.plan.typed import RowError, Values
from rayflink.table.types import DataType

_MOST = 76
"""Digits of Arrow's widest decimal."""


def decimal_type(precision: int, scale: int) -> pyarrow.DataType:
    """Arrow's decimal of this many digits, up to 76."""
    return pyarrow.decimal128(precision, scale) if precision <= 38 else pyarrow.decimal256(precision, scale)


def round_decimals(values: Values, kind: DataType) -> Values:
    """Decimals as another DECIMAL: rounded half up, null where they do not fit.

    >>> from rayflink.table.types import DataTypes
    >>> numbers = pyarrow.array([decimal.Decimal("9.95"), decimal.Decimal("0.25")])
    >>> round_decimals(numbers, DataTypes.DECIMAL(2, 1)).to_pylist()
    [None, Decimal('0.3')]
    """
    target, source = kind.to_arrow(), values.type
    if source == target:
        return values
    if source.scale > kind.scale:
        wide = decimal_type(min(source.precision + 1, _MOST), source.scale)
        values = pc.round(pc.cast(values, wide), kind.scale, "half_towards_infinity")
    try:
        return pc.cast(values, target)
    except pyarrow.ArrowInvalid:  # some do not fit
        return pc.cast(_fitting(values, kind.precision - kind.scale), target)


def _fitting(values: Values, whole: int) -> Values:
    """Return the same with null where there are more digits before the point."""
    source = values.type
    if whole + 1 + source.scale > source.precision:
        values = pc.cast(values, decimal_type(min(whole + 1 + source.scale, _MOST), source.scale))
    limit = pyarrow.scalar(decimal.Decimal(10) ** whole, values.type)
    return pc.if_else(pc.less(pc.abs(values), limit), values, pyarrow.scalar(None, values.type))


def add(left: Values, right: Values, kind: DataType) -> Values:
    """left + right."""
    return round_decimals(pc.add(*_same_scale(left, right)), kind)


def subtract(left: Values, right: Values, kind: DataType) -> Values:
    """left - right."""
    return round_decimals(pc.subtract(*_same_scale(left, right)), kind)


def compare(kernel: Callable[[Any, Any], Any], left: Values, right: Values) -> Values:
    """Compare two numbers after bringing them to one type."""
    return kernel(*_same_scale(left, right))


def _same_scale(left: Values, right: Values) -> tuple[Values, Values]:
    a, b = left.type, right.type
    if a == b and a.precision < 38:
        return left, right
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale  # of a sum there is one more
    both = decimal_type(digits, scale) if digits < 38 else pyarrow.decimal256(min(digits, _MOST - 1), scale)
    return pc.cast(left, both), pc.cast(right, both)


def multiply(left: Values, right: Values, kind: DataType) -> Values:
    """left * right."""
    digits = left.type.precision + right.type.precision + 1
    if digits > _MOST:
        right = _narrowed(right)
        digits = left.type.precision + right.type.precision + 1
    if digits > _MOST:
        return _one_by_one(lambda a, b: a * b, left, right, kind)
    return round_decimals(pc.multiply(_wide(left, digits), _wide(right, digits)), kind)


def divide(left: Values, right: Values, kind: DataType) -> Values:
    """left / right.

    Raises:
        RowError: a divisor is zero.
    """
    if _quotient_digits(left.type, right.type, kind.scale) > _MOST:
        left, right = _narrowed(left), _narrowed(right)
    a, b = left.type, right.type
    digits = _quotient_digits(a, b, kind.scale)
    if digits > _MOST:
        return _one_by_one(lambda x, y: x / y, left, right, kind)
    more = _more_digits(a, b, kind.scale)
    left = pc.cast(left, decimal_type(min(a.precision + more, _MOST), a.scale + more))
    try:
        quotient = pc.divide(_wide(left, digits), _wide(right, digits))
    except pyarrow.ArrowInvalid as error:
        raise division_by_zero() from error
    return round_decimals(quotient, kind)


def remaining(left: Values, right: Values, kind: DataType) -> Values:
    """Return the remainder of left / right, with the sign of left.

    Raises:
        RowError: a divisor is zero.
    """
    left, right = _same_scale(left, right)
    try:
        return round_decimals(remainder(left, right), kind)
    except pyarrow.ArrowInvalid as error:
        raise division_by_zero() from error


def division_by_zero() -> RowError:
    """Return the error of a division of exact numbers by zero."""
    return RowError("division by zero", "divide by NULLIF(divisor, 0) to get null")


def _more_digits(a: Any, b: Any, scale: int) -> int:
    """Digits to give the dividend, so that the quotient, which Arrow cuts, has one more than is wanted."""
    return int(max(0, scale - (a.scale + b.precision - b.scale)))


def _quotient_digits(a: Any, b: Any, scale: int) -> int:
    behind = max(4, a.scale + _more_digits(a, b, scale) + b.precision - b.scale + 1)
    return int(a.precision - a.scale + b.scale + behind)


def _wide(values: Values, digits: int) -> Values:
    """Return the same in a decimal of 256 bits, where this many digits come out."""
    source = values.type
    return pc.cast(values, pyarrow.decimal256(source.precision, source.scale)) if digits > 38 else values


def _narrowed(values: Values) -> Values:
    """Narrow decimals to the digits that their values have."""
    source = values.type
    most = values.as_py() if isinstance(values, pyarrow.Scalar) else pc.max(pc.abs(values)).as_py()
    digits = 1 if most is None else len(str(int(abs(most).scaleb(source.scale, _EXACT))))
    return pc.cast(values, decimal_type(max(digits, source.scale, 1), source.scale))


_EXACT = decimal.Context(prec=_MOST)


def _one_by_one(operation: Callable[[Any, Any], Any], left: Values, right: Values, kind: DataType) -> Values:
    """Compute row by row where the result has more digits than Arrow's widest decimal."""
    digits = decimal.Context(prec=2 * _MOST, rounding=decimal.ROUND_HALF_UP)
    quantum, limit = decimal.Decimal(1).scaleb(-kind.scale), decimal.Decimal(10) ** (kind.precision - kind.scale)

    def computed(a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        with decimal.localcontext(digits):
            try:
                result = operation(a, b).quantize(quantum)
            except decimal.DivisionByZero as error:
                raise division_by_zero() from error
            except decimal.InvalidOperation as error:
                if b == 0:
                    raise division_by_zero() from error
                return None
            return result if abs(result) < limit else None

    if isinstance(left, pyarrow.Scalar) and isinstance(right, pyarrow.Scalar):
        return pyarrow.scalar(computed(left.as_py(), right.as_py()), kind.to_arrow())
    rows = len(right) if isinstance(left, pyarrow.Scalar) else len(left)
    sides = [
        pyarrow.repeat(operand, rows) if isinstance(operand, pyarrow.Scalar) else operand for operand in (left, right)
    ]
    result = numpy.frompyfunc(computed, 2, 1)(*[side.to_numpy(zero_copy_only=False) for side in sides])
    return pyarrow.array(result, kind.to_arrow())
