"""CASE, IF, COALESCE, NULLIF, IFNULL: a branch that is an error for some rows is evaluated only for those that take it.

A function that declares `raises` is given those rows only. Others are given all rows at once, and those that take the
branch alone where that was an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.declaring import Family, can_raise, column, is_nullable
from rayflink.table.functions.picking import Picked
from rayflink.table.plan.type_rules import are_comparable, common_type
from rayflink.table.plan.typed import Arguments, Call, Evaluation, Expr, RowError, Values, named
from rayflink.table.types import DataType, Root

conditional = Family("Conditional")


def _infer_case(args: Sequence[Expr]) -> DataType | str:
    conditions, results = args[:-1:2], [*args[1:-1:2], *args[-1:]]
    if len(args) < 3 or len(args) % 2 == 0:
        return "WHEN condition THEN value, and an ELSE"
    if not all(expr.type.root in (Root.BOOLEAN, Root.NULL) for expr in conditions):
        return "conditions that are true or false"
    kind = common_type([expr.type for expr in results])
    return "values of one kind" if kind is None else kind.as_nullable(is_nullable(results))


def _case(call: Call, evaluation: Evaluation) -> Values:
    if not any(map(can_raise, call.args[1:])):
        try:
            return _case_at_once(call, evaluation)
        except RowError:  # perhaps of a row that does not take the branch
            pass
    return _case_by_rows(call, evaluation)


def _case_at_once(call: Call, evaluation: Evaluation) -> Values:
    *pairs, other = call.args
    conditions = [_truths(evaluation.values(condition_expr)) for condition_expr in pairs[::2]]
    result = _branch(call, evaluation, other)
    for condition, value in reversed(list(zip(conditions, pairs[1::2], strict=True))):
        result = _chosen(condition, _branch(call, evaluation, value), result)
    return result


def _chosen(condition: Values, value: Values, other: Values) -> Values:
    if isinstance(condition, pyarrow.Scalar):
        return value if condition.as_py() else other
    return pc.if_else(condition, value, other)


def _truths(values: Values) -> Values:
    """Conditions without unknown."""
    return pc.fill_null(pc.cast(values, pyarrow.bool_()), False)


def _branch(call: Call, evaluation: Evaluation, expr: Expr) -> Values:
    return converted(evaluation.values(expr), expr.type, call.type, evaluation.session)


def _case_by_rows(call: Call, evaluation: Evaluation) -> Values:
    """Evaluate each condition and value only for the rows that reach it."""
    picked = Picked(evaluation)
    left = pyarrow.repeat(pyarrow.scalar(True), evaluation.rows)
    for condition, value in zip(call.args[:-1:2], call.args[1:-1:2], strict=True):
        if left.true_count == 0:
            break
        tested = Picked(evaluation)
        tested.add(left, partial(_truth_column, condition))
        is_true = pc.and_(left, pc.fill_null(tested.column(pyarrow.bool_()), False))
        _pick(picked, is_true, call, value)
        left = pc.and_not(left, is_true)
    _pick(picked, left, call, call.args[-1])
    return picked.column(call.type.to_arrow())


def _truth_column(expr: Expr, evaluation: Evaluation) -> pyarrow.Array:
    return column(_truths(evaluation.values(expr)), evaluation.rows)


def _pick(picked: Picked, mask: pyarrow.Array, call: Call, expr: Expr) -> None:
    picked.add(mask, lambda among: column(_branch(call, among, expr), among.rows))


conditional.add(
    "CASE WHEN condition THEN value [WHEN ...]* [ELSE value] END",
    "The value of the first condition that is true, else that of ELSE, else null.",
    _infer_case,
    None,
    name="CASE",
    lazily=_case,
)
conditional.add(
    "IF(condition, value1, value2)",
    "value1 where the condition is true, else value2.",
    lambda args: _infer_case(args) if len(args) == 3 else "a condition and two values of one kind",
    None,
    lazily=_case,
)


def _infer_coalesce(args: Sequence[Expr]) -> DataType | str:
    kind = common_type([arg.type for arg in args]) if args else None
    if kind is None:
        return "values of one kind"
    return kind.as_nullable(all(arg.type.is_nullable for arg in args))


def _coalesce_at_once(call: Call, evaluation: Evaluation) -> Values:
    values = [_branch(call, evaluation, arg) for arg in call.args]
    if all(isinstance(value, pyarrow.Scalar) for value in values):
        return next((value for value in values if value.is_valid), values[-1])
    return pc.coalesce(*values)


def _coalesce(call: Call, evaluation: Evaluation) -> Values:
    if not any(map(can_raise, call.args[1:])):
        try:
            return _coalesce_at_once(call, evaluation)
        except RowError:  # perhaps of a row that has an earlier value
            pass
    picked = Picked(evaluation)
    left = pyarrow.repeat(pyarrow.scalar(True), evaluation.rows)
    result: Any = None
    for arg in call.args:
        picked = Picked(evaluation)
        _pick(picked, left, call, arg)
        branch = picked.column(call.type.to_arrow())
        result = branch if result is None else pc.coalesce(result, branch)
        left = pc.is_null(result)
    return result


conditional.add(
    "COALESCE(value1 [, value2]*)", "The first value that is not null.", _infer_coalesce, None, lazily=_coalesce
)


def _infer_ifnull(args: Sequence[Expr]) -> DataType | str:
    if len(args) != 2:
        return "a value, and one of its kind for null"
    result = _infer_coalesce(args)
    return result if isinstance(result, str) else result.as_nullable(args[1].type.is_nullable)


conditional.add(
    "IFNULL(value, replacement)",
    "The value, or the replacement if the value is null.",
    _infer_ifnull,
    None,
    aliases=("NVL",),
    lazily=_coalesce,
)


def _infer_nullif(args: Sequence[Expr]) -> DataType | str:
    if len(args) != 2 or not are_comparable(args[0].type, args[1].type):
        return "two values of one kind"
    return args[0].type.nullable()


@conditional("NULLIF(value1, value2)", "Null where both are equal, else value1.", _infer_nullif)
def _nullif(arguments: Arguments) -> Values:
    equal = named("=").kernel
    assert equal is not None
    value = arguments.values[0]
    same = _truths(equal(arguments))
    if isinstance(same, pyarrow.Scalar):
        return pyarrow.scalar(None, value.type) if same.as_py() else value
    return pc.if_else(same, pyarrow.scalar(None, value.type), value)
