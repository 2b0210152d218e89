"""Converts numbers from one type to another, as Java's narrowing conversions do it."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.decimals import round_decimals
from rayflink.table.plan.type_rules import as_decimal
from rayflink.table.plan.typed import Values
from rayflink.table.types import DataType, Root


def as_number(values: Values, source: DataType, target: DataType) -> Values:
    """Return numbers of one type as those of another.

    Whole numbers keep their low bits; floating points are cut and stay within the bounds of a whole number, NaN is 0;
    decimals are rounded half up and null where they do not fit.
    """
    arrow = target.to_arrow()
    if values.type == arrow:
        return values
    if pyarrow.types.is_null(values.type):
        return pc.cast(values, arrow)
    if target.root is Root.DECIMAL:
        if source.is_approximate:
            return _decimals_of_floats(values, target)
        return round_decimals(exact_decimal(values, source), target)
    if source.root is Root.DECIMAL and target.is_integer:
        whole = pc.cast(values, pyarrow.decimal128(38, 0), safe=False)
        return pc.cast(pc.cast(whole, pyarrow.int64(), safe=False), arrow, safe=False)
    if source.root is Root.DECIMAL and target.is_approximate:
        return pc.cast(_doubles(values), arrow)
    if source.is_approximate and target.is_integer:
        return _whole(values, target)
    return pc.cast(values, arrow, safe=False)


def exact_decimal(values: Values, source: DataType) -> Values:
    """Exact numbers as decimals of just as many digits."""
    return values if source.root is Root.DECIMAL else pc.cast(values, as_decimal(source).to_arrow())


def _whole(values: Values, target: DataType) -> Values:
    if isinstance(values, pyarrow.Scalar):
        return _whole(pyarrow.array([values.as_py()], values.type), target)[0]
    arrow = target.to_arrow()
    steps = pyarrow.int64() if target.root is Root.BIGINT else pyarrow.int32()
    bounds = numpy.iinfo(steps.to_pandas_dtype())
    floats = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(numpy.float64)
    inside = (floats > float(bounds.min)) & (floats < float(bounds.max))
    cut = numpy.where(inside, floats, 0).astype(bounds.dtype)
    cut[floats >= float(bounds.max)] = bounds.max
    cut[floats <= float(bounds.min)] = bounds.min
    return pc.cast(pyarrow.array(cut, mask=_nulls(values)), arrow, safe=False)


def _doubles(values: Values) -> Values:
    """Decimals as the nearest floating points; Arrow's own cast is less exact."""
    if isinstance(values, pyarrow.Scalar):
        return _doubles(pyarrow.array([values.as_py()], values.type))[0]
    kind = values.type
    if kind.precision > 18 or kind.bit_width != 128:
        return pc.cast(pc.cast(values, pyarrow.string()), pyarrow.float64())
    buffer = values.buffers()[1]
    words = numpy.frombuffer(buffer, numpy.int64, 2 * (values.offset + len(values)))[2 * values.offset :: 2]
    return pyarrow.array(words / 10.0**kind.scale, mask=_nulls(values))


def _nulls(values: pyarrow.Array) -> Any:
    return None if not values.null_count else pc.is_null(values).to_numpy(zero_copy_only=False)


def _decimals_of_floats(values: Values, target: DataType) -> Values:
    """Convert by the shortest string that names the float, as BigDecimal.valueOf does.

    Only where the float is so large, or so near to the middle of two decimals that it matters; else by multiplication.
    """
    if isinstance(values, pyarrow.Scalar):
        return _decimals_of_floats(pyarrow.array([values.as_py()], values.type), target)[0]
    floats = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(numpy.float64)
    with numpy.errstate(over="ignore", invalid="ignore"):
        scaled = numpy.abs(floats) * 10.0**target.scale
        plain = scaled < min(2.0**40, 10.0**target.precision - 1)
        plain &= numpy.abs(scaled - numpy.floor(scaled) - 0.5) > 1e-3
        units = numpy.where(plain, numpy.copysign(numpy.floor(scaled + 0.5), floats), 0).astype(numpy.int64)
    words = numpy.stack([units, units >> 63], axis=1)  # 128 bits
    decimals = pyarrow.Array.from_buffers(target.to_arrow(), len(units), [None, pyarrow.py_buffer(words.tobytes())])
    decimals = pc.if_else(pc.is_valid(values), decimals, pyarrow.scalar(None, decimals.type))
    if plain.all():
        return decimals
    others = pyarrow.array(~plain)
    return pc.replace_with_mask(decimals, others, _decimals_of_strings(values.filter(others), target))


def _decimals_of_strings(values: pyarrow.Array, target: DataType) -> pyarrow.Array:
    from rayflink.table.functions.number_format import parse_decimals  # which imports this module

    finite = pc.if_else(pc.is_finite(values), values, pyarrow.scalar(None, values.type))
    return parse_decimals(pc.cast(pc.cast(finite, pyarrow.float64()), pyarrow.string()), target)
