"""Divides a filter and a projection into steps: what is computed at once, and the calls that are awaited between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..optimizer.conditions import all_of, parts_of
from ..plan.async_steps import AsyncCall, AsyncStage, AsyncSteps, awaits
from ..plan.typed import Call, Column, Expr, Literal, named, with_common_parts
from ..types import DataTypes

_TRUE, _FALSE = Literal(DataTypes.BOOLEAN(False), True), Literal(DataTypes.BOOLEAN(False), False)


def async_steps(condition: Expr | None, exprs: Sequence[Expr], width: int) -> AsyncSteps:
    """Return the steps of a filter and a projection that call asynchronous functions.

    Conditions that await nothing come first. Then the calls of the other conditions are made, and for the rows that
    pass those of the projection. A call whose argument is awaited follows the call of its argument. A branch of CASE,
    IF, COALESCE or IFNULL, and what stands behind AND and OR, is asked for the rows that need it.

    Args:
        condition: None: all rows pass.
        exprs: the columns of the result.
        width: number of columns of the input.
    """
    parts = [] if condition is None else parts_of(condition)
    first = all_of([part for part in parts if not awaits(part)])
    shared = with_common_parts([*exprs, *(part for part in parts if awaits(part))])
    columns = _Columns(width)
    conditions, stages = columns.resolve(shared[len(exprs) :])
    if conditions:
        stages[-1] = AsyncStage(stages[-1].calls, all_of(conditions))
    results, more = columns.resolve(shared[: len(exprs)])
    return AsyncSteps(width, first, (*stages, *more), tuple(results))


class _Columns:
    """The columns of calls that are awaited, by call and guard."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._known: dict[object, Column] = {}
        self._added: list[AsyncCall] = []

    def resolve(self, exprs: Sequence[Expr]) -> tuple[list[Expr], list[AsyncStage]]:
        """Return the expressions with a column for each call, and the stages in which the columns come."""
        results, stages = list(exprs), list[AsyncStage]()
        while any(map(awaits, results)):
            self._added = []
            self._add_unconditional(results)
            results = [self._resolved(expr, None) for expr in results]
            if self._added:
                stages.append(AsyncStage(tuple(self._added)))
        return results, stages

    def _add_unconditional(self, exprs: Iterable[Expr]) -> None:
        """Add the calls that all rows need, so that the same call in a branch reads their column."""
        for expr in exprs:
            for part in _unconditional(expr):
                if _is_ready(part, None):
                    assert isinstance(part, Call)
                    self._column(part, None)

    def _resolved(self, expr: Expr, guard: Expr | None) -> Expr:
        """Return the expression with a column for each call that can be made now; others wait for those."""
        if not awaits(expr):
            return expr
        if _is_ready(expr, guard) or self._key(expr, None) in self._known:
            assert isinstance(expr, Call)
            return self._column(expr, guard)
        guards = _guards(expr)
        inputs = [
            self._resolved(operand, _both(guard, own)) for operand, own in zip(expr.inputs, guards, strict=True)
        ]
        return expr.with_inputs(inputs)

    def _column(self, call: Call, guard: Expr | None) -> Column:
        column = self._known.get(self._key(call, None)) or self._known.get(self._key(call, guard))
        if column is None:
            kind = call.type if guard is None else call.type.nullable()
            column = Column(kind, self._width + len(self._known), str(call))
            self._known[self._key(call, guard)] = column
            self._added.append(AsyncCall(call, guard))
        return column

    @staticmethod
    def _key(call: Expr, guard: Expr | None) -> object:
        calls = (part for part in call.walk() if isinstance(part, Call))
        is_same = all(part.function.is_deterministic for part in calls)
        return str(call), call if is_same else id(call), guard


def _is_ready(expr: Expr, guard: Expr | None) -> bool:
    """Return whether it is a call that can be made now: neither its arguments nor its guard await anything."""
    if not isinstance(expr, Call) or not expr.function.is_async:
        return False
    return not awaits(guard) and not any(map(awaits, expr.args))


def _unconditional(expr: Expr) -> Iterable[Expr]:
    """Yield the parts of an expression that all rows need."""
    yield expr
    for operand, guard in zip(expr.inputs, _guards(expr), strict=True):
        if guard is None:
            yield from _unconditional(operand)


def _guards(expr: Expr) -> list[Expr | None]:
    """Return for each operand the condition of the rows that need it; None: all do, or chance decides."""
    name = expr.function.name if isinstance(expr, Call) else ""
    operands = expr.inputs
    guards: list[Expr | None] = [None] * len(operands)
    if name in ("CASE", "IF"):
        for index in range(1, len(operands)):
            conditions = operands[0:index:2]
            guards[index] = _reaches(conditions, takes_last=index % 2 == 1 and index < len(operands) - 1)
    elif name in ("COALESCE", "IFNULL"):
        for index in range(1, len(operands)):
            nulls = [Call(DataTypes.BOOLEAN(False), named("IS NULL"), (operand,)) for operand in operands[:index]]
            guards[index] = all_of(nulls)
    elif name in ("AND", "OR"):
        for index in range(1, len(operands)):
            guards[index] = _undecided([operand for operand in operands[:index] if not awaits(operand)], name)
    return [None if guard is None or _is_random(guard) else guard for guard in guards]


def _is_random(expr: Expr) -> bool:
    """Return whether it gives something else each time; a call that is awaited is made once, and then a column."""
    if not isinstance(expr, Call) or expr.function.is_async:
        return False
    return not expr.function.is_deterministic or any(map(_is_random, expr.args))


def _reaches(conditions: Sequence[Expr], takes_last: bool) -> Expr:
    """Return whether none of the conditions is true, but for the last where that is taken."""
    *before, last = conditions
    branches = [argument for condition in before for argument in (condition, _FALSE)]
    branches += (last, _TRUE, _FALSE) if takes_last else (last, _FALSE, _TRUE)
    return Call(DataTypes.BOOLEAN(False), named("CASE"), tuple(branches))


def _undecided(operands: Sequence[Expr], name: str) -> Expr | None:
    """Return whether operands of AND or OR leave the result open; None: there are none that say so at once."""
    if not operands:
        return None
    if name == "AND":
        operands = [Call(operand.type, named("NOT"), (operand,)) for operand in operands]
    branches = [argument for operand in operands for argument in (operand, _FALSE)]
    return Call(DataTypes.BOOLEAN(False), named("CASE"), (*branches, _TRUE))


def _both(outer: Expr | None, own: Expr | None) -> Expr | None:
    return all_of([guard for guard in (outer, own) if guard is not None])


__all__ = ["async_steps"]
