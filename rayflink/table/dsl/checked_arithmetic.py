"""Arithmetic of whole numbers that is an error beyond 64 bits, as a condition of a pattern needs it.

In SQL whole numbers wrap around. A condition of the Pattern API may also be a Python function, whose numbers have no
bounds, and a wrong sign would be a wrong match; so a sum that BIGINT cannot hold is an error there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow
import pyarrow.compute as pc

from ..functions.casts.number_casts import as_number
from ..functions.declaring import BIGINT
from ..plan.typed import Arguments, Call, Expr, RowError, Values
from ..types import Root

_CHECKED: dict[str, Callable[..., Values]] = {
    "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked, "negate": pc.negate_checked,
    "ABS": pc.abs_checked,
}  # fmt: skip
_REMEDY = "cast an operand to DECIMAL(38, 0) or DOUBLE, or pass a callable of the event instead"
_LEAST = -(2**63)


def check_whole_numbers(expr: Expr) -> Expr:
    """Return an expression of the same values, which is an error in rows where whole numbers exceed BIGINT."""
    return expr.mapped(_checked)


def _checked(expr: Expr) -> Expr:
    if not isinstance(expr, Call) or expr.type.root is not Root.BIGINT:
        return expr
    name = expr.function.name
    operation = _CHECKED.get(name)
    if operation is not None and all(arg.type.is_integer for arg in expr.args):
        return replace(expr, function=replace(expr.function, kernel=_kernel(name, operation), raises=True))
    if name == "/" and expr.function.kernel is not None:
        return replace(expr, function=replace(expr.function, kernel=_quotient(expr.function.kernel), raises=True))
    return expr


def _kernel(name: str, operation: Callable[..., Values]) -> Callable[[Arguments], Values]:
    def computed(arguments: Arguments) -> Values:
        try:
            return operation(*_operands(arguments))
        except pyarrow.ArrowInvalid as error:
            raise _beyond(name) from error

    return computed


def _quotient(kernel: Callable[[Arguments], Values]) -> Callable[[Arguments], Values]:
    def computed(arguments: Arguments) -> Values:
        left, right = _operands(arguments)
        if pc.any(pc.and_(pc.equal(left, _LEAST), pc.equal(right, -1))).as_py():
            raise _beyond("/")
        return kernel(arguments)

    return computed


def _operands(arguments: Arguments) -> list[Values]:
    pairs = zip(arguments.values, arguments.call.args, strict=True)
    return [as_number(value, arg.type, BIGINT) for value, arg in pairs]


def _beyond(name: str) -> RowError:
    return RowError(f"the result of {name} is beyond the 64 bits of BIGINT", _REMEDY)


__all__ = ["check_whole_numbers"]
