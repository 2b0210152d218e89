"""Computes expressions that do not depend on rows once, while planning.

A call that is an error stays as it is, and is one when a row comes to it. Functions of the user's own and those of
random numbers and clocks are not called.

Source: apache/flink ExpressionReducer, and Calcite's simplification of AND, OR and CASE.

Example:

    SELECT id FROM orders WHERE price > 2 * 50

Without the rule:

    Calc(select=[id], where=[price > (2 * 50)])
    +- TableSourceScan(table=[[orders, project=[id, price]]], fields=[id, price])

With the rule:

    Calc(select=[id], where=[price > 100])
    +- TableSourceScan(table=[[orders, filter=[price > 100], project=[id, price]]], fields=[id, price])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...plan.logical import Relation
from ...plan.typed import Call, Evaluation, Expr, Literal, RowError, Session, named
from ...types import DataType, DataTypes, Root

_NESTED = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW, Root.NULL)


def fold_constants(plan: Relation, session: Session) -> Relation:
    """Replace calls on literals by literals, and simplify AND, OR, NOT, CASE and IF."""
    return plan.mapped(lambda relation: relation.with_exprs(lambda expr: folded(expr, session)))


def folded(expr: Expr, session: Session) -> Expr:
    """Return an expression with literals in place of calls on literals, and without branches that are never taken."""
    return expr.mapped(lambda part: _simplified(part, session) if isinstance(part, Call) else part)


def _simplified(call: Call, session: Session) -> Expr:
    if call.function.is_built_in and call.function.is_deterministic:
        if all(isinstance(arg, Literal) for arg in call.args):
            return _computed(call, session)
        simplify = _SIMPLIFIED.get(call.function.name)
        if simplify is not None:
            return simplify(call)
    return call


_LONGEST_TEXT = 1 << 20
"""Bytes of a text that is put into a plan, which is compared, printed and sent."""


def _computed(call: Call, session: Session) -> Expr:
    """Return the literal that a call gives; the call itself where it is an error, or its value has no literal."""
    import pyarrow

    if call.type.root in _NESTED:
        return call
    wanted = call.type.to_arrow()
    try:
        scalar = Evaluation([], 1, session).column(call)[0].cast(wanted)
        if isinstance(scalar, pyarrow.StringScalar) and scalar.is_valid and scalar.as_buffer().size > _LONGEST_TEXT:
            return call
        value: Any = scalar.cast(pyarrow.int64()).as_py() if pyarrow.types.is_duration(wanted) else scalar.as_py()
        same = not scalar.is_valid or pyarrow.scalar(value, wanted) == scalar
    except (RowError, pyarrow.ArrowException, ValueError, ArithmeticError):
        return call
    return Literal(call.type, value, place=call.place) if same else call


def _truth(value: bool) -> Literal:
    return Literal(DataTypes.BOOLEAN(False), value)


def _decided(decided: bool) -> Callable[[Call], Expr]:
    """Simplify AND and OR with a constant operand.

    Args:
        decided: the argument that decides; the opposite changes nothing.
    """

    def simplify(call: Call) -> Expr:
        left: list[Expr] = []
        for arg in call.args:
            value = arg.value if isinstance(arg, Literal) else None
            if value is decided:
                return _truth(decided)
            if value is not (not decided):
                left.append(arg)
        if len(left) == len(call.args):
            return call
        return _truth(not decided) if not left else left[0] if len(left) == 1 else call.with_inputs(left)

    return simplify


def _negated(call: Call) -> Expr:
    inner = call.args[0]
    is_twice = isinstance(inner, Call) and inner.function.name == "NOT"
    return inner.inputs[0] if is_twice else call


def _chosen(call: Call) -> Expr:
    """CASE and IF without the branches that are never taken."""
    args: list[Expr] = []
    other = call.args[-1]
    for condition, value in zip(call.args[:-1:2], call.args[1:-1:2], strict=True):
        if isinstance(condition, Literal):
            if condition.value is not True:
                continue
            other = value
            break
        args += [condition, value]
    if not args:
        return _as(other, call.type)
    return call if len(args) + 1 == len(call.args) and other is call.args[-1] else call.with_inputs([*args, other])


def _as(expr: Expr, wanted: DataType) -> Expr:
    if expr.type.nullable() == wanted.nullable():
        return expr
    return Call(wanted, named("CAST"), (expr,), place=expr.place)


_SIMPLIFIED: dict[str, Callable[[Call], Expr]] = {
    "AND": _decided(False),
    "OR": _decided(True),
    "NOT": _negated,
    "CASE": _chosen,
    "IF": _chosen,
}
