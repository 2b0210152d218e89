"""Conditions on a partial match as Python functions of raw values.

A kernel costs the same for one row as for a thousand, so conditions that are evaluated for one partial match at a time
are computed in Python where that gives what the kernel gives: comparisons of equal types, logic of three values, and
arithmetic of whole numbers and doubles. Of everything else a function calls the kernel on columns of one row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from rayflink.cep.nfa.raw_values import raw_column, raw_values

from ...plan.typed import Call, Column, Evaluation, Expr, Literal, Session
from ...types import INTEGERS, DataType, Root

Scalar: TypeAlias = Callable[[Sequence[Any]], Any]
"""The raw values of the columns -> the raw value of an expression; None for NULL."""
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
_TEXT = (Root.CHAR, Root.VARCHAR)


def scalar(expr: Expr, session: Session) -> Scalar:
    """Return a function that computes an expression."""
    return _in_python(expr, session) or _by_kernel(expr, session)


def _in_python(expr: Expr, session: Session) -> Scalar | None:
    if isinstance(expr, Column):
        return operator.itemgetter(expr.index)
    if isinstance(expr, Literal):
        value = raw_values(pa.array([expr.value], expr.type.to_arrow()))[0]
        return lambda values: value
    assert isinstance(expr, Call), expr
    if not expr.function.is_built_in:
        return None
    name, args = expr.function.name, expr.args
    if name in ("AND", "OR") and len(args) == 2:
        return _logic(name == "AND", *(scalar(arg, session) for arg in args))
    if name in ("NOT", "IS NULL", "IS NOT NULL") and len(args) == 1:
        return _UNARY[name](scalar(args[0], session))
    if name in _COMPARED and len(args) == 2 and _is_comparable(args[0].type, args[1].type):
        return _strict(_COMPARED[name], *(scalar(arg, session) for arg in args))
    if name in _COMPUTED and len(args) == 2:
        return _arithmetic(name, expr, session)
    if name == "CAST" and not expr.options and _is_widening(args[0].type, expr.type):
        return scalar(args[0], session)
    return None


def _is_comparable(left: DataType, right: DataType) -> bool:
    """Return whether raw values of the types compare as the types do."""
    exact = (*INTEGERS, Root.DECIMAL)
    if left.root in exact and right.root in exact or left.root in _TEXT and right.root in _TEXT:
        return True
    if left.root is Root.DOUBLE and right.root is Root.DOUBLE:
        return True
    plain = (Root.BOOLEAN, Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.TIME)
    return left.root in plain and left.to_arrow() == right.to_arrow()


def _is_widening(source: DataType, target: DataType) -> bool:
    if source.root in INTEGERS and target.root in INTEGERS:
        return INTEGERS.index(source.root) <= INTEGERS.index(target.root)
    return source.nullable() == target.nullable()


def _strict(function: Callable[[Any, Any], Any], left: Scalar, right: Scalar) -> Scalar:
    """Return the function of two values, which is NULL where one of them is."""

    def compute(values: Sequence[Any]) -> Any:
        first = left(values)
        if first is None:
            return None
        second = right(values)
        return None if second is None else function(first, second)

    return compute


def _arithmetic(name: str, call: Call, session: Session) -> Scalar | None:
    roots = [arg.type.root for arg in call.args]
    compute = _strict(_COMPUTED[name], *(scalar(arg, session) for arg in call.args))
    if call.type.root is Root.DOUBLE and all(root is Root.DOUBLE for root in roots):
        return compute
    if call.type.root not in INTEGERS or not all(root in INTEGERS for root in roots):
        return None
    bits = _BITS[call.type.root]
    half, span = 1 << (bits - 1), 1 << bits

    def wrap(values: Sequence[Any]) -> Any:
        result = compute(values)
        return None if result is None else (result + half) % span - half

    return wrap


def _logic(is_and: bool, left: Scalar, right: Scalar) -> Scalar:
    def decide(values: Sequence[Any]) -> bool | None:
        first = left(values)
        if first is not None and first is not is_and:
            return not is_and
        second = right(values)
        if second is not None and second is not is_and:
            return not is_and
        return None if first is None or second is None else is_and

    return decide


def _negation(inner: Scalar) -> Scalar:
    def negate(values: Sequence[Any]) -> bool | None:
        value = inner(values)
        return None if value is None else not value

    return negate


_UNARY: dict[str, Callable[[Scalar], Scalar]] = {
    "NOT": _negation,
    "IS NULL": lambda inner: lambda values: inner(values) is None,
    "IS NOT NULL": lambda inner: lambda values: inner(values) is not None,
}


def _by_kernel(expr: Expr, session: Session) -> Scalar:
    """Return a function that evaluates an expression on columns of one row."""
    kinds = {part.index: part.type.to_arrow() for part in expr.walk() if isinstance(part, Column)}
    width = max(kinds, default=-1) + 1
    missing = pa.nulls(1)

    def evaluate(values: Sequence[Any]) -> Any:
        columns = [raw_column([values[index]], kinds[index]) if index in kinds else missing for index in range(width)]
        return raw_values(Evaluation(columns, 1, session).column(expr))[0]

    return evaluate


__all__ = ["Scalar", "scalar"]
