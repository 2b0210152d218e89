"""Remainders of divisions: pyarrow has them from release 26 on, and Python 3.10 has release 25 at most."""

from __future__ import annotations

from typing import Any

import pyarrow
import pyarrow.compute as pc
from pyarrow import types


def remainder(left: Any, right: Any) -> Any:
    """Return the remainder of a truncating division; it has the sign of `left`.

    >>> remainder(pyarrow.array([7, -7]), 3).to_pylist()
    [1, -1]
    """
    if hasattr(pc, "remainder"):
        return pc.remainder(left, right)
    if types.is_decimal(left.type) or (
        isinstance(right, pyarrow.Scalar | pyarrow.Array) and types.is_decimal(right.type)
    ):
        return _of_decimals(left, right)
    quotient = pc.divide(left, right)
    if types.is_floating(quotient.type):
        quotient = pc.trunc(quotient)
    return pc.subtract(left, pc.multiply(quotient, right))


def _of_decimals(left: Any, right: Any) -> Any:
    """Compute row by row: a quotient may have more digits than Arrow's widest decimal."""
    rows = (
        max(len(side) for side in (left, right) if isinstance(side, pyarrow.Array)) if _has_column(left, right) else 1
    )
    pairs = zip(_values(left, rows), _values(right, rows), strict=True)
    try:
        remainders = [None if a is None or b is None else a % b for a, b in pairs]
    except ArithmeticError as error:
        raise pyarrow.ArrowInvalid("divide by zero") from error
    decimals = pyarrow.array(remainders, pyarrow.decimal256(76, max(left.type.scale, right.type.scale)))
    return decimals if _has_column(left, right) else decimals[0]


def _has_column(left: Any, right: Any) -> bool:
    return isinstance(left, pyarrow.Array) or isinstance(right, pyarrow.Array)


def _values(operand: Any, rows: int) -> list[Any]:
    return operand.to_pylist() if isinstance(operand, pyarrow.Array) else [operand.as_py()] * rows


def modulo(left: Any, right: Any) -> Any:
    """Return the same for a divisor above 0 and never below 0.

    >>> modulo(pyarrow.array([7, -7]), 3).to_pylist()
    [1, 2]
    """
    if hasattr(pc, "modulo"):
        return pc.modulo(left, right)
    result = remainder(left, right)
    return pc.if_else(pc.less(result, 0), pc.add(result, right), result)
