"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions import decimals
from rayflink.table.functions.arithmetic import nulls_like
from rayflink.table.functions.casts.number_casts import as_number
from rayflink.table.functions.declaring import (
    BYTES,
    DOUBLE,
    INT,
    INTEGER,
    NUMBER,
    STRING,
    TEXT,
    TIME_POINT,
    Columns,
    Family,
    Kind,
    by_columns,
    by_values,
    constant,
    either,
    like_argument,
    takes,
)
from rayflink.table.functions.times.dates import rounded_time
from rayflink.table.plan.type_rules import as_decimal
from rayflink.table.plan.typed import Arguments, Expr, Values
from rayflink.table.types import DataType, DataTypes, Root

maths = Family("Mathematics")


def _doubles(arguments: Arguments) -> list[Values]:
    pairs = zip(arguments.values, arguments.call.args, strict=True)
    return [as_number(value, arg.type, DOUBLE) for value, arg in pairs]


def _of_doubles(kernel: Callable[..., Any]) -> Callable[[Arguments], Values]:
    return lambda arguments: kernel(*_doubles(arguments))


def _cotangent(value: Any) -> Any:
    return pc.divide(1.0, pc.tan(value))


def _logarithm(first: Any, second: Any = None) -> Any:
    return pc.ln(first) if second is None else pc.divide(pc.ln(second), pc.ln(first))


for _usage, _about, _kernel in (
    ("SQRT(number)", "The square root, NaN of a negative number.", pc.sqrt),
    ("EXP(number)", "e to the power of the number.", pc.exp),
    ("LN(number)", "The natural logarithm.", pc.ln),
    ("LOG10(number)", "The logarithm to base 10.", pc.log10),
    ("LOG2(number)", "The logarithm to base 2.", lambda column: pc.divide(pc.ln(column), math.log(2))),
    ("SIN(number)", "The sine.", pc.sin),
    ("COS(number)", "The cosine.", pc.cos),
    ("TAN(number)", "The tangent.", pc.tan),
    ("COT(number)", "The cotangent.", _cotangent),
    ("ASIN(number)", "The arc sine.", pc.asin),
    ("ACOS(number)", "The arc cosine.", pc.acos),
    ("ATAN(number)", "The arc tangent.", pc.atan),
    ("SINH(number)", "The hyperbolic sine.", pc.sinh),
    ("COSH(number)", "The hyperbolic cosine.", pc.cosh),
    ("TANH(number)", "The hyperbolic tangent.", pc.tanh),
    (
        "DEGREES(number)",
        "The degrees of an angle in radians.",
        lambda column: pc.multiply(pc.divide(column, math.pi), 180.0),
    ),
    (
        "RADIANS(number)",
        "The radians of an angle in degrees.",
        lambda column: pc.multiply(pc.divide(column, 180.0), math.pi),
    ),
):
    maths.add(_usage, _about, takes(NUMBER, gives=DOUBLE), _of_doubles(_kernel))
maths.add("POWER(base, exponent)", "The base to the power of the exponent.", takes(NUMBER, NUMBER, gives=DOUBLE),
          _of_doubles(pc.power))  # fmt: skip
maths.add("ATAN2(y, x)", "The arc tangent of y / x, in the quadrant of (x, y).", takes(NUMBER, NUMBER, gives=DOUBLE),
          _of_doubles(pc.atan2))  # fmt: skip
maths.add("LOG([base, ]number)", "The logarithm to the base; without a base the natural logarithm.",
          takes(NUMBER, NUMBER, gives=DOUBLE, least=1), _of_doubles(_logarithm))  # fmt: skip
for _usage, _about, _value in (("PI()", "The number pi.", math.pi), ("E()", "The number e.", math.e)):

    def _constant(arguments: Arguments, value: float = _value) -> Values:
        return pyarrow.scalar(value)

    maths.add(_usage, _about, takes(gives=DOUBLE, null=False), _constant)


@maths("ABS(number)", "The number without its sign.", takes(NUMBER, gives=like_argument(0)))
def _absolute(arguments: Arguments) -> Values:
    (value,) = arguments.values
    return nulls_like(arguments) if pyarrow.types.is_null(value.type) else pc.abs(value)


@maths("SIGN(number)", "-1, 0 or 1, in the number's type.", takes(NUMBER, gives=like_argument(0)))
def _sign(arguments: Arguments) -> Values:
    (value,), kind = arguments.values, arguments.call.args[0].type
    if pyarrow.types.is_null(value.type):
        return nulls_like(arguments)
    if kind.root is not Root.DECIMAL:
        return pc.cast(pc.sign(value), arguments.result)
    return as_number(pc.cast(pc.sign(value), pyarrow.int8()), DataTypes.TINYINT(), kind)


# FLOOR, CEIL, ROUND, TRUNCATE.


def _infer_whole(args: Sequence[Expr]) -> DataType:
    kind = args[0].type
    return DataTypes.DECIMAL(kind.precision, 0) if kind.root is Root.DECIMAL else kind


def _to_whole(up: bool) -> Callable[[Arguments], Values]:
    kernel = pc.ceil if up else pc.floor

    def computed(arguments: Arguments) -> Values:
        if arguments.call.options:
            return rounded_time(arguments, up)
        (value,), kind = arguments.values, arguments.call.args[0].type
        if pyarrow.types.is_null(value.type):
            return nulls_like(arguments)
        if kind.is_integer:
            return value
        if kind.is_approximate:
            return kernel(value)
        wide = decimals.decimal_type(kind.precision + 1, kind.scale)
        return decimals.round_decimals(kernel(pc.cast(value, wide)), arguments.call.type)

    return computed


_INFER_TIME = takes(TIME_POINT, gives=like_argument(0))
_INFER_EITHER = either(takes(NUMBER, gives=_infer_whole), _INFER_TIME)
for _name, _up, _meaning in (
    ("CEIL", True, "least whole number that is not less"),
    ("FLOOR", False, "greatest whole number that is not greater"),
):
    maths.add(
        f"{_name}(number) or {_name}(time TO unit)",
        f"The {_meaning}; of a time the {'end' if _up else 'start'} of its YEAR, MONTH, WEEK, DAY, HOUR and so on.",
        _INFER_EITHER,
        _to_whole(_up),
        by_options=lambda args, options: (_INFER_TIME if options else _INFER_EITHER)(args),
        aliases=("CEILING",) if _up else (),
        name=_name,
    )


def _infer_cut(grows: int) -> Callable[[Sequence[Expr]], DataType]:
    """Infer the type of a decimal that is cut to a constant number of fractional digits."""

    def infer(args: Sequence[Expr]) -> DataType:
        kind = args[0].type
        digits = constant(args[1]) if len(args) > 1 else 0
        if kind.root is not Root.DECIMAL or digits is None or digits >= kind.scale:
            return kind
        scale = max(digits, 0)
        return DataTypes.DECIMAL(min(38, max(1, kind.precision - kind.scale + scale + grows)), scale)

    return infer


def _rounding(mode: str) -> Callable[..., Any]:
    @by_values(1)
    def computed(arguments: Arguments, columns: Columns, digits: int = 0) -> Any:
        values, kind = columns[0], arguments.call.args[0].type
        if kind.root is Root.NULL or (kind.is_integer and digits >= 0):
            return pc.cast(values, arguments.result)
        if kind.is_approximate:
            return _rounded_floats(values, digits, mode)
        exact = values if kind.root is Root.DECIMAL else pc.cast(values, as_decimal(kind).to_arrow())
        wide = pc.cast(exact, decimals.decimal_type(exact.type.precision + 1, exact.type.scale))
        rounded_values = (
            wide if digits >= exact.type.scale else pc.round(wide, max(digits, -exact.type.precision), mode)
        )
        if kind.is_integer:
            return as_number(
                rounded_values, DataTypes.DECIMAL(min(rounded_values.type.precision, 38), 0), arguments.call.type
            )
        return decimals.round_decimals(rounded_values, arguments.call.type)

    return computed


def _rounded_floats(values: Values, digits: int, mode: str) -> Any:
    """Round by the decimal number that names the float, as Java's BigDecimal.valueOf does.

    Only where the float is so near to where it tips over that it matters; else by multiplication.
    """
    if digits > 15:
        return values
    floats = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(numpy.float64)
    step, up = 10.0 ** abs(digits), mode != "towards_zero"
    with numpy.errstate(over="ignore", invalid="ignore"):
        scaled = numpy.abs(floats) * step if digits >= 0 else numpy.abs(floats) / step
        far = scaled - numpy.floor(scaled) - (0.5 if up else 0.0)
        plain = (scaled < 2.0**40) & (numpy.abs(far) > 1e-3) & (numpy.abs(far) < 0.999)
        whole = numpy.copysign(numpy.floor(scaled + (0.5 if up else 0.0)), floats)
        rounded = whole / step if digits >= 0 else whole * step
    result = pyarrow.array(numpy.where(plain, rounded, floats)).cast(values.type)
    result = pc.if_else(pc.is_valid(values), result, pyarrow.scalar(None, values.type))
    others = pyarrow.array(~plain & (numpy.abs(floats) < 1e15))
    if not others.true_count:
        return result
    return pc.replace_with_mask(result, others, _rounded_exactly(values.filter(others), digits, mode))


def _rounded_exactly(values: Values, digits: int, mode: str) -> Any:
    kind, wide = DOUBLE if values.type == pyarrow.float64() else DataTypes.FLOAT(), DataTypes.DECIMAL(38, 18)
    exact = pc.cast(as_number(values, kind, wide), decimals.decimal_type(39, 18))
    return pc.cast(as_number(pc.round(exact, digits, mode), wide, DOUBLE), values.type)


maths.add(
    "ROUND(number[, digits])",
    "The number rounded half up to this many fractional digits, by default 0; a negative number rounds before "
    "the point.",
    takes(NUMBER, INTEGER, gives=_infer_cut(1), least=1),
    _rounding("half_towards_infinity"),
)
maths.add(
    "TRUNCATE(number[, digits])",
    "The number cut off after this many fractional digits, by default 0.",
    takes(NUMBER, INTEGER, gives=_infer_cut(1), least=1),
    _rounding("towards_zero"),
)


# Other bases.


def _digits(values: Values, bits: int) -> Any:
    """Return the digits of 64 bits, from the last: strings of one byte each, uint8[n, 64 / bits]."""
    numbers = pc.fill_null(pc.cast(values, pyarrow.int64()), 0).to_numpy(zero_copy_only=False).astype(numpy.uint64)
    steps = numpy.arange(64 - bits, -1, -bits, dtype=numpy.uint64)
    digits = (numbers[:, None] >> steps) & numpy.uint64(2**bits - 1)
    return numpy.frombuffer(b"0123456789ABCDEF", numpy.uint8)[digits.astype(numpy.int64)]


def _in_base(values: Values, bits: int) -> Any:
    width = 64 // bits
    data = pyarrow.py_buffer(_digits(values, bits).tobytes())
    offsets = pyarrow.py_buffer((numpy.arange(len(values) + 1) * width).astype(numpy.int32).tobytes())
    strings = pyarrow.Array.from_buffers(pyarrow.string(), len(values), [None, offsets, data])
    strings = pc.utf8_ltrim(strings, "0")
    strings = pc.if_else(pc.equal(strings, ""), "0", strings)
    return pc.if_else(pc.is_valid(values), strings, pyarrow.scalar(None, pyarrow.string()))


@maths("BIN(number)", "A whole number in binary digits.", takes(INTEGER, gives=STRING))
@by_columns
def _binary(arguments: Arguments, columns: Columns) -> Any:
    return _in_base(columns[0], 1)


_NUMBER_OR_TEXT = Kind("a whole number or a text", lambda kind: kind.is_integer or kind.is_text, STRING)


@maths("HEX(number) or HEX(text)", "A whole number, or the bytes of a text, in hexadecimal digits.",
       takes(_NUMBER_OR_TEXT, gives=STRING), name="HEX")  # fmt: skip
@by_columns
def _hexadecimal(arguments: Arguments, columns: Columns) -> Any:
    (values,) = columns
    if arguments.call.args[0].type.is_integer:
        return _in_base(values, 4)
    return hex_strings(pc.cast(values, pyarrow.binary()))


def hex_digits(values: Values) -> Any:
    """Whole numbers in hexadecimal digits, of negative ones those of 64 bits."""
    return _in_base(values, 4)


def hex_strings(values: Values, upper: bool = True) -> Any:
    """Bytes in hexadecimal digits."""
    values = pyarrow.concat_arrays([values])  # its offsets begin where its bytes do
    offsets = numpy.frombuffer(values.buffers()[1], numpy.int32, values.offset + len(values) + 1)[values.offset :]
    data = numpy.frombuffer(values.buffers()[2] or b"", numpy.uint8)[offsets[0] : offsets[-1]]
    digits = numpy.frombuffer(b"0123456789ABCDEF" if upper else b"0123456789abcdef", numpy.uint8)
    text = numpy.empty(2 * len(data), numpy.uint8)
    text[::2], text[1::2] = digits[data >> 4], digits[data & 15]
    places = pyarrow.py_buffer(((offsets - offsets[0]) * 2).astype(numpy.int32).tobytes())
    strings = pyarrow.Array.from_buffers(
        pyarrow.string(), len(values), [None, places, pyarrow.py_buffer(text.tobytes())]
    )
    return pc.if_else(pc.is_valid(values), strings, pyarrow.scalar(None, pyarrow.string()))


@maths(
    "UNHEX(text)",
    "The bytes that hexadecimal digits show; null if there are other characters.",
    takes(TEXT, gives=BYTES, null=True),
)
@by_columns
def _bytes_of_hex(arguments: Arguments, columns: Columns) -> Any:
    import polars

    strings = pc.cast(columns[0], pyarrow.string())
    odd = pc.equal(pc.bit_wise_and(pc.binary_length(strings), 1), 1)
    good = pc.match_substring_regex(strings, "^[0-9a-fA-F]*$")
    padded = pc.binary_join_element_wise("00", pc.utf8_slice_codeunits(strings, 1), "")
    strings = pc.if_else(odd, padded, strings)  # the first digit is dropped
    strings = pc.if_else(good, strings, pyarrow.scalar(None, pyarrow.string()))
    series: Any = polars.from_arrow(strings)
    return series.str.decode("hex", strict=False).to_arrow().cast(pyarrow.binary())


# Chance.


def _random(seed: int | None, rows: int) -> Any:
    return numpy.random.default_rng(seed).random(rows)


def _rand(arguments: Arguments) -> Values:
    seed = arguments.values[0].as_py() if arguments.values and isinstance(arguments.values[0], pyarrow.Scalar) else None
    return pyarrow.array(_random(seed, arguments.rows))


def _rand_integer(arguments: Arguments) -> Values:
    values = arguments.values
    bound = values[-1]
    limits: Any = (
        bound.as_py() if isinstance(bound, pyarrow.Scalar) else pc.fill_null(bound, 0).to_numpy(zero_copy_only=False)
    )
    seed = values[0].as_py() if len(values) == 2 and isinstance(values[0], pyarrow.Scalar) else None
    if limits is None:
        return pyarrow.nulls(arguments.rows, arguments.result)
    numbers = pyarrow.array(numpy.floor(_random(seed, arguments.rows) * limits)).cast(arguments.result)
    return (
        numbers
        if isinstance(bound, pyarrow.Scalar)
        else pc.if_else(pc.is_valid(bound), numbers, pyarrow.scalar(None, numbers.type))
    )


maths.add("RAND([seed])", "A random number in [0, 1).", takes(INTEGER, gives=DOUBLE, least=0, null=False), _rand,
          name="RAND", is_deterministic=False)  # fmt: skip
maths.add("RAND_INTEGER([seed, ]bound)", "A random whole number in [0, bound).",
          takes(INTEGER, INTEGER, gives=INT, least=1), _rand_integer, is_deterministic=False)  # fmt: skip


@maths("UUID()", "A random UUID of type 4.", takes(gives=DataTypes.CHAR(36), null=False),
       is_deterministic=False)  # fmt: skip
def _uuid(arguments: Arguments) -> Values:
    import secrets

    raw = numpy.frombuffer(secrets.token_bytes(16 * arguments.rows), numpy.uint8).reshape(-1, 16).copy()
    raw[:, 6] = (raw[:, 6] & 0x0F) | 0x40
    raw[:, 8] = (raw[:, 8] & 0x3F) | 0x80
    digits = hex_strings(pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(16), arguments.rows,
                       [None, pyarrow.py_buffer(raw.tobytes())]).cast(pyarrow.binary()), upper=False)  # fmt: skip
    parts = [
        pc.utf8_slice_codeunits(digits, start, stop) for start, stop in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    ]
    return pc.binary_join_element_wise(*parts, "-")
