"""Operators on numbers: + - * / % and the sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions import decimals
from rayflink.table.functions.casts.number_casts import as_number, exact_decimal
from rayflink.table.functions.declaring import BIGINT, NUMBER, Family, Kernel, constant, either, like_argument, takes
from rayflink.table.functions.remainders import remainder
from rayflink.table.functions.times.time_sums import (
    INTERVAL,
    difference_of_times,
    infer_difference,
    infer_scaled,
    infer_sum,
    negated,
    sum_of_times,
)
from rayflink.table.plan.type_rules import product_type, quotient_type, remainder_type, sum_type
from rayflink.table.plan.typed import Arguments, Call, Expr, Values
from rayflink.table.types import DataType, Root

arithmetic = Family("Arithmetic")


def _of_two(rule: Callable[[DataType, DataType], DataType]) -> Callable[[Sequence[Expr]], DataType]:
    def gives(args: Sequence[Expr]) -> DataType:
        left, right = (arg.type for arg in args)
        if left.root is Root.NULL or right.root is Root.NULL:
            return right if left.root is Root.NULL else left
        return rule(left, right)

    return gives


def _numeric(exact: Callable[[Values, Values, DataType], Values], plain: Callable[[Values, Values], Values]) -> Kernel:
    """Return a kernel of one operation on decimals and one on machine numbers."""

    def computed(arguments: Arguments) -> Values:
        kind = arguments.call.type
        left, right = arguments.call.args
        a, b = arguments.values
        if pyarrow.types.is_null(a.type) or pyarrow.types.is_null(b.type):
            return nulls_like(arguments)
        if kind.root is Root.DECIMAL:
            return exact(exact_decimal(a, left.type), exact_decimal(b, right.type), kind)
        return plain(as_number(a, left.type, kind), as_number(b, right.type, kind))

    return computed


def nulls_like(arguments: Arguments) -> Values:
    """Nulls of the result's type, one where all arguments are constants."""
    if all(isinstance(value, pyarrow.Scalar) for value in arguments.values):
        return pyarrow.scalar(None, arguments.result)
    return pyarrow.nulls(arguments.rows, arguments.result)


def _quotient(left: Values, right: Values) -> Values:
    """Whole numbers are cut towards zero; the smallest one by -1 is itself, as in Java, where Arrow gives 0."""
    if not pyarrow.types.is_integer(left.type):
        return pc.divide(left, right)
    try:
        quotient = pc.divide(left, right)
    except pyarrow.ArrowInvalid as error:
        raise decimals.division_by_zero() from error
    least = pyarrow.scalar(-(2 ** (left.type.bit_width - 1)), left.type)
    if isinstance(right, pyarrow.Scalar) and right.as_py() != -1:
        return quotient
    if isinstance(left, pyarrow.Scalar) and left.as_py() != least.as_py():
        return quotient
    beyond = pc.and_(pc.equal(left, least), pc.equal(right, pyarrow.scalar(-1, right.type)))
    return pc.if_else(pc.fill_null(beyond, False), least, quotient)


def _remainder(left: Values, right: Values) -> Values:
    try:
        return remainder(left, right)
    except pyarrow.ArrowInvalid as error:
        raise decimals.division_by_zero() from error


def _remainder_kernel(arguments: Arguments) -> Values:
    """Compute the remainder of whole numbers in the wider type; the result has the type of the divisor."""
    kind, (left, right) = arguments.call.type, arguments.call.args
    if not (left.type.is_integer and right.type.is_integer):
        return _numeric(decimals.remaining, _remainder)(arguments)
    both = sum_type(left.type, right.type)
    a, b = arguments.values
    remainder = _remainder(as_number(a, left.type, both), as_number(b, right.type, both))
    return as_number(remainder, both, kind)


def _may_divide_by_zero(call: Call) -> bool:
    divisor = constant(call.args[1])
    return not call.type.is_approximate and (divisor is None or divisor == 0)


def _by_types(on_numbers: Kernel, on_times: Kernel) -> Kernel:
    def computed(arguments: Arguments) -> Values:
        timely = any(not (arg.type.is_numeric or arg.type.root is Root.NULL) for arg in arguments.call.args)
        return on_times(arguments) if timely else on_numbers(arguments)

    return computed


def _scaled(arguments: Arguments) -> Values:
    """Return an interval times a number."""
    interval, number = arguments.values
    kind, factor = arguments.call.type, arguments.call.args[1].type
    if not arguments.call.args[0].type.is_interval:
        interval, number = number, interval
        factor = arguments.call.args[0].type
    whole = as_number(number, factor, BIGINT)
    product = pc.multiply(pc.cast(interval, pyarrow.int64()), whole)
    return pc.cast(product, kind.to_arrow(), safe=False)


arithmetic.add(
    "number1 + number2",
    "The sum; whole numbers wrap around. Also a time plus an interval, and the sum of two intervals.",
    either(takes(NUMBER, NUMBER, gives=_of_two(sum_type)), infer_sum),
    _by_types(_numeric(decimals.add, pc.add), sum_of_times),
    name="+",
    symbol="+",
)
arithmetic.add(
    "number1 - number2",
    "The difference; whole numbers wrap around. Also a time minus an interval, and the difference of two intervals.",
    either(takes(NUMBER, NUMBER, gives=_of_two(sum_type)), infer_difference),
    _by_types(_numeric(decimals.subtract, pc.subtract), difference_of_times),
    name="-",
    symbol="-",
)
arithmetic.add(
    "number1 * number2",
    "The product; whole numbers wrap around. Also an interval times a number.",
    either(takes(NUMBER, NUMBER, gives=_of_two(product_type)), infer_scaled),
    _by_types(_numeric(decimals.multiply, pc.multiply), _scaled),
    name="*",
    symbol="*",
)
arithmetic.add(
    "number1 / number2",
    "The quotient; of whole numbers a whole number, cut towards zero. Division by zero is an error, for FLOAT and "
    "DOUBLE infinite.",
    takes(NUMBER, NUMBER, gives=_of_two(quotient_type)),
    _numeric(decimals.divide, _quotient),
    name="/",
    symbol="/",
    raises=_may_divide_by_zero,
)
arithmetic.add(
    "number1 % number2",
    "The remainder of number1 / number2, with the sign of number1.",
    takes(NUMBER, NUMBER, gives=_of_two(remainder_type)),
    _remainder_kernel,
    name="%",
    aliases=("MOD",),
    symbol="%",
    raises=_may_divide_by_zero,
)


@arithmetic(
    "- number",
    "The number with the other sign; also of an interval.",
    either(takes(NUMBER, gives=like_argument(0)), takes(INTERVAL, gives=like_argument(0))),
    name="negate",
)
def _negated(arguments: Arguments) -> Any:
    (value,) = arguments.values
    if pyarrow.types.is_null(value.type):
        return nulls_like(arguments)
    return negated(value)
