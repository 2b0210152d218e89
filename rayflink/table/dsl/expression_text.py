"""The tree of an expression, not yet bound to a table."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError
from rayflink.common.types import Row

from ..binding import literals
from ..parsing.dialect import Typed
from ..parsing.program_nodes import Value
from ..parsing.statements import Tree
from ..plan.typed import Literal
from ..types import DataType, DataTypes

if TYPE_CHECKING:
    from ..expression import Expression

T = TypeVar("T")

Operand: TypeAlias = object
"""An expression, or a value of Python, which becomes a constant."""


class Written(Generic[T]):
    """An expression; columns and types are looked up when a method of a Table takes it.

    Args:
        tree: as the parser would make it of a text.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def _call(self, name: str, *args: Operand) -> Expression[Any]:
        """Return a function of this and other values; those that are None are left out."""
        return to_expression(call_tree(name, self, *args))

    def __str__(self) -> str:
        return shown(self._tree)

    __repr__ = __str__


class Property:
    """A function of an expression alone, which is written without parentheses.

    Args:
        name: of the function in SQL.
        about: what it gives.
    """

    def __init__(self, name: str, about: str) -> None:
        self._name, self.__doc__ = name, about

    def __get__(self, owner: Written[Any] | None, kind: type) -> Any:
        return self if owner is None else owner._call(self._name)


class Function:
    """The same, written with parentheses."""

    def __init__(self, name: str, about: str) -> None:
        self._name, self.__doc__ = name, about

    def __get__(self, owner: Written[Any] | None, kind: type) -> Any:
        name = self._name

        def function(self: Written[Any]) -> Expression[Any]:
            return self._call(name)

        function.__doc__ = self.__doc__
        return function if owner is None else function.__get__(owner)


def to_expression(tree: Tree) -> Expression[Any]:
    """Return an expression of a tree."""
    from ..expression import Expression  # which imports this module

    return Expression(tree)


def call_tree(name: str, *args: Operand) -> Tree:
    """Return a call of a function by its name; arguments that are None are left out."""
    return exp.Anonymous(this=name, expressions=[tree_of(arg) for arg in args if arg is not None])


def column_tree(name: str) -> Tree:
    """Return a column; its name is taken as it is."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def tree_of(value: Operand) -> Tree:
    """Return the tree of an expression or of a value of Python.

    Raises:
        InvalidTypesError: it is neither.
    """
    if isinstance(value, Written):
        return value._tree
    if isinstance(value, exp.Expression):
        return value
    if isinstance(value, DataType):
        return Typed(this=value)
    return value_tree(value)


def field_tree(value: Operand) -> Tree:
    """Return the tree of what is selected, grouped by or ordered by, where a string is the name of a column.

    Raises:
        InvalidTypesError: it is neither an expression nor a value of Python.
    """
    if isinstance(value, str):
        return exp.Star() if value == "*" else column_tree(value)
    return tree_of(value)


def value_tree(value: Operand) -> Tree:
    """Return a value of Python as a constant.

    Raises:
        InvalidTypesError: there is no type for it.
    """
    if value is None:
        return exp.Null()
    if isinstance(value, (list, tuple)) and not isinstance(value, Row):
        return call_tree("ARRAY", *map(value_tree, value))
    if isinstance(value, dict):
        return call_tree("MAP", *(tree for pair in value.items() for tree in map(value_tree, pair)))
    if isinstance(value, Row):
        return call_tree("ROW", *map(value_tree, value))
    return Value(this=literal(value))


def literal(value: Operand) -> Literal:
    """Return a typed constant of a single value.

    Raises:
        InvalidTypesError: there is no type for it.
    """
    if isinstance(value, bool):
        return Literal(DataTypes.BOOLEAN(False), value)
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return Literal(DataTypes.INT(False), value)
        if -(2**63) <= value < 2**63:
            return Literal(DataTypes.BIGINT(False), value)
        return _decimal(Decimal(value))
    if isinstance(value, float):
        return Literal(DataTypes.DOUBLE(False), value)
    if isinstance(value, str):
        return literals.text(value, None)
    if isinstance(value, (bytes, bytearray)):
        return literals.binary(bytes(value).hex(), None)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime.datetime):
        return _timestamp(value)
    if isinstance(value, datetime.date):
        return Literal(DataTypes.DATE(False), value)
    if isinstance(value, datetime.time):
        return Literal(DataTypes.TIME(_digits(value.microsecond), False), value)
    if isinstance(value, datetime.timedelta):
        return Literal(DataTypes.INTERVAL_DAY_TIME(3, False), value // datetime.timedelta(milliseconds=1))
    remedy = "give an expression, such as col('name'), or a value of a type that tables have"
    raise InvalidTypesError(f"{value!r} of type {type(value).__name__} is not an expression", remedy)


def _timestamp(moment: datetime.datetime) -> Literal:
    digits = _digits(moment.microsecond)
    if moment.tzinfo is None:
        return Literal(DataTypes.TIMESTAMP(digits, False), moment)
    return Literal(DataTypes.TIMESTAMP_LTZ(digits, False), moment.astimezone(datetime.timezone.utc))


def _digits(microseconds: int) -> int:
    return 0 if not microseconds else 3 if microseconds % 1000 == 0 else 6


def _decimal(number: Decimal) -> Literal:
    if not number.is_finite():
        raise InvalidTypesError(f"{number} is not a DECIMAL", "give a finite number")
    scale = max(0, -int(number.as_tuple().exponent))
    precision = max(len(number.as_tuple().digits) + max(0, int(number.as_tuple().exponent)), scale, 1)
    return Literal(DataTypes.DECIMAL(precision, scale, False), number)


def shown(tree: Tree) -> str:
    """Return a tree as a person reads it."""
    if isinstance(tree, exp.Column):
        return str(tree.name)
    if isinstance(tree, Value):
        return str(tree.this)
    if isinstance(tree, Typed):
        return str(tree.this)
    if isinstance(tree, exp.Alias):
        return f"{shown(tree.this)} AS {tree.alias}"
    if isinstance(tree, exp.Anonymous):
        return f"{tree.name}({', '.join(map(shown, tree.expressions))})"
    if isinstance(tree, exp.Binary):
        return f"({shown(tree.this)} {_SIGNS.get(type(tree), type(tree).__name__.upper())} {shown(tree.expression)})"
    parts = [part for value in tree.args.values() for part in (value if isinstance(value, list) else [value])]
    described = [
        shown(part) if isinstance(part, exp.Expression) else str(part) for part in parts if part not in (None, False)
    ]
    return f"{type(tree).__name__}({', '.join(described)})" if described else type(tree).__name__


_SIGNS: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<",
    exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
