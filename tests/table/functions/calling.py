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
    """A constant of the type that a literal in SQL has."""
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
    for at, one in enumerate(args):
        exprs.append(
            Literal(one.kind, one.values[0]) if one.is_constant and constants else Column(one.kind, at, f"c{at}")
        )
    return exprs


def resulting(name: str, *args: Any, to: DataType | None = None, options: tuple[Any, ...] = ()) -> DataType | str:
    """The type of a call's result, or what is wanted instead of the arguments."""
    return to or named(name).result(exprs([argument(arg) for arg in args]), options)


def result(
    name: str, *args: Any, to: DataType | None = None, options: tuple[Any, ...] = (), session: Session = SESSION
) -> list[Any]:
    """What a function gives for each row, `to` being the type of a CAST.

    Whatever is called, the result has its type; slices of rows give slices of it; constants give what columns give.
    """
    arguments = [argument(arg) for arg in args]
    rows = max([len(one.values) for one in arguments if not one.is_constant], default=1)
    columns = [pyarrow.array(one.values * (rows if one.is_constant else 1), one.kind.to_arrow()) for one in arguments]
    function = named(name)
    CALLED.add(function.name)
    call = _call(function, exprs(arguments), to, options)
    found = evaluated(call, columns, rows, session)
    if function.is_deterministic and rows:
        _check_slices(call, columns, found, session)
        _check_constants(function, arguments, found, (to, options, session))
    return list(found.to_pylist())


def one(name: str, *args: Any, **more: Any) -> Any:
    """What a function gives for constants."""
    (found,) = result(name, *args, **more)
    return found


def _call(function: Function, args: Sequence[Expr], to: DataType | None, options: tuple[Any, ...]) -> Call:
    kind = to or function.result(args, options)
    assert isinstance(kind, DataType), f"{function.name} requires {kind}"
    return Call(kind, function, tuple(args), options)


def evaluated(call: Call, columns: Sequence[Any], rows: int, session: Session = SESSION) -> Any:
    found = Evaluation(columns, rows, session).column(call)
    assert found.type == call.type.to_arrow(), f"{call} is {call.type}, yet comes as {found.type}"
    assert len(found) == rows
    found.validate(full=True)
    overflows = call.type.root is Root.DECIMAL  # gives null
    assert call.type.is_nullable or overflows or not found.null_count, f"{call} is {call.type}, yet has nulls"
    return found


def _check_slices(call: Call, columns: Sequence[Any], found: Any, session: Session) -> None:
    rows = len(found)
    cut = rows // 2
    parts = [
        evaluated(call, [column.slice(start, stop - start) for column in columns], stop - start, session)
        for start, stop in ((0, cut), (cut, rows))
    ]
    glued = [value for part in parts for value in part.to_pylist()]
    assert same(glued, found.to_pylist()), f"{call} in slices"


def _check_constants(function: Function, arguments: Sequence[Argument], found: Any, how: tuple[Any, ...]) -> None:
    """Each of the first rows as constants, and what was constant as a column."""
    to, options, session = how
    for row in range(min(len(found), 4)):
        row_of = [constant(one.kind, one.values[0 if one.is_constant else row]) for one in arguments]
        alone = evaluated(_call(function, exprs(row_of), to, options), [], 1, session)
        assert same(alone.to_pylist(), found.slice(row, 1).to_pylist()), f"{function.name} of constants in row {row}"


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same, NaN too."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return bool(left == right)


__all__ = ["RowError", "SESSION", "column", "constant", "one", "result", "resulting"]
