"""Calls functions in tests, and checks on the way what holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow

from rayflink.table.plan.typed import Call, Column, Evaluation, Expr, Function, Literal, RowError, Session, named
from rayflink.table.types import DataType, DataTypes, Root

SESSION = Session("Asia/Shanghai", lambda: 1_577_934_245_678)
"""It is 2020-01-02 03:04:05.678 UTC."""
INT, BIGINT, STRING, DOUBLE = DataTypes.INT(), DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.DOUBLE()
BOOLEAN = DataTypes.BOOLEAN()
CALLED: set[str] = set()
"""Names of the functions that tests have called."""


class Argument:
    """An argument of a call: a column or a constant.

    Args:
        kind: its type.
        values: one for each row; a constant has one.
    """

    def __init__(self, kind: DataType, values: Sequence[Any], is_constant: bool = False) -> None:
        self.kind, self.values, self.is_constant = kind, list(values), is_constant


def column(kind: DataType, *values: Any) -> Argument:
    return Argument(kind, values)


def constant(kind: DataType, value: Any) -> Argument:
    return Argument(kind if value is None else kind.not_null(), [value], True)


def argument(value: Any) -> Argument:
    """Return a constant of the type that a literal in SQL has."""
    if isinstance(value, Argument):
        return value
    if value is None:
        return constant(DataTypes.NULL(), None)
    if isinstance(value, bool):
        return constant(BOOLEAN, value)
    if isinstance(value, int):
        return constant(INT if abs(value) < 2**31 else BIGINT, value)
    if isinstance(value, float):
        return constant(DOUBLE, value)
    if isinstance(value, bytes):
        return constant(DataTypes.BINARY(max(1, len(value))), value)
    assert isinstance(value, str), value
    return constant(DataTypes.CHAR(max(1, len(value))), value)


def exprs(args: Sequence[Argument], constants: bool = True) -> list[Expr]:
    exprs: list[Expr] = []
    for index, arg in enumerate(args):
        is_literal = arg.is_constant and constants
        exprs.append(Literal(arg.kind, arg.values[0]) if is_literal else Column(arg.kind, index, f"c{index}"))
    return exprs


def resulting(name: str, *args: Any, to: DataType | None = None, options: tuple[Any, ...] = ()) -> DataType | str:
    """Return the type of a call's result, or a description of the arguments that are wanted instead."""
    return to or named(name).result(exprs([argument(arg) for arg in args]), options)


def result(
    name: str, *args: Any, to: DataType | None = None, options: tuple[Any, ...] = (), session: Session = SESSION
) -> list[Any]:
    """Return the result of a function for each row, `to` being the type of a CAST.

    It is checked that the result has its type, that slices of the rows give slices of it, and that constants give what
    columns give.
    """
    arguments = [argument(arg) for arg in args]
    rows = max([len(arg.values) for arg in arguments if not arg.is_constant], default=1)
    columns = [pyarrow.array(arg.values * (rows if arg.is_constant else 1), arg.kind.to_arrow()) for arg in arguments]
    function = named(name)
    CALLED.add(function.name)
    call = _call(function, exprs(arguments), to, options)
    values = evaluated(call, columns, rows, session)
    if function.is_deterministic and rows:
        _check_slices(call, columns, values, session)
        _check_constants(function, arguments, values, (to, options, session))
    return list(values.to_pylist())


def one(name: str, *args: Any, **more: Any) -> Any:
    """Return the result of a function for constants."""
    (value,) = result(name, *args, **more)
    return value


def _call(function: Function, args: Sequence[Expr], to: DataType | None, options: tuple[Any, ...]) -> Call:
    kind = to or function.result(args, options)
    assert isinstance(kind, DataType), f"{function.name} requires {kind}"
    return Call(kind, function, tuple(args), options)


def evaluated(call: Call, columns: Sequence[Any], rows: int, session: Session = SESSION) -> Any:
    values = Evaluation(columns, rows, session).column(call)
    assert values.type == call.type.to_arrow(), f"{call} is {call.type}, yet comes as {values.type}"
    assert len(values) == rows
    values.validate(full=True)
    overflows = call.type.root is Root.DECIMAL  # gives null
    assert call.type.is_nullable or overflows or not values.null_count, f"{call} is {call.type}, yet has nulls"
    return values


def _check_slices(call: Call, columns: Sequence[Any], whole: Any, session: Session) -> None:
    rows = len(whole)
    cut = rows // 2
    parts = [
        evaluated(call, [column.slice(start, stop - start) for column in columns], stop - start, session)
        for start, stop in ((0, cut), (cut, rows))
    ]
    joined = [value for part in parts for value in part.to_pylist()]
    assert same(joined, whole.to_pylist()), f"{call} in slices"


def _check_constants(function: Function, arguments: Sequence[Argument], values: Any, settings: tuple[Any, ...]) -> None:
    """Check that each of the first rows gives the same as constants.

    Args:
        settings: type of a CAST, options and session of the call.
    """
    to, options, session = settings
    for row in range(min(len(values), 4)):
        constants = [constant(arg.kind, arg.values[0 if arg.is_constant else row]) for arg in arguments]
        alone = evaluated(_call(function, exprs(constants), to, options), [], 1, session)
        assert same(alone.to_pylist(), values.slice(row, 1).to_pylist()), f"{function.name} of constants in row {row}"


def same(left: Any, right: Any) -> bool:
    """Return whether two values are the same, NaN too."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return bool(left == right)


__all__ = ["RowError", "SESSION", "column", "constant", "one", "result", "resulting"]
