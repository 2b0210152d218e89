"""Expressions of columns and values, with PyFlink's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from .dsl.aggregates import Aggregates
from .dsl.collections import Collections
from .dsl.column_conditions import ExpressionCondition
from .dsl.expression_text import Operand, call_tree, to_expression, tree_of
from .dsl.json import Json
from .dsl.numbers import Numbers
from .dsl.strings import Strings
from .dsl.times import Times
from .dsl.units import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from .parsing.dialect import NamedArgument
from .parsing.program_nodes import MoreNames, sum_tree
from .types import DataType

if TYPE_CHECKING:
    from rayflink.cep.column_conditions import ColumnCondition

    from .table import Table

T = TypeVar("T")


class Expression(Numbers[T], Strings[T], Times[T], Collections[T], Json[T], Aggregates[T]):
    """A computation of a column: it is what the same text of SQL is, and is bound when a method of a `Table` takes it.

    Made by `rayflink.table.expressions.col`, `lit` and the like, by operators of Python and by the methods here.

    >>> from rayflink.table.expressions import col
    >>> (col("price") * 2).alias("twice")
    (price * 2) AS twice
    """

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is neither true nor false yet; write &, | and ~ instead of and, or and not")

    def __column_condition__(self) -> ColumnCondition:
        """Return the condition of a pattern that this is; see `rayflink.cep.column_conditions`."""
        return ExpressionCondition(self._tree)

    def __abs__(self) -> Expression[T]:
        return self._call("ABS")

    def __eq__(self, other: object) -> Expression[bool]:  # type: ignore[override]
        return to_expression(exp.EQ(this=self._tree, expression=tree_of(other)))

    def __ne__(self, other: object) -> Expression[bool]:  # type: ignore[override]
        return to_expression(exp.NEQ(this=self._tree, expression=tree_of(other)))

    def __lt__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.LT(this=self._tree, expression=tree_of(other)))

    def __le__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.LTE(this=self._tree, expression=tree_of(other)))

    def __gt__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.GT(this=self._tree, expression=tree_of(other)))

    def __ge__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.GTE(this=self._tree, expression=tree_of(other)))

    def __and__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.And(this=self._tree, expression=tree_of(other)))

    def __rand__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.And(this=tree_of(other), expression=self._tree))

    def __or__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.Or(this=self._tree, expression=tree_of(other)))

    def __ror__(self, other: Operand) -> Expression[bool]:
        return to_expression(exp.Or(this=tree_of(other), expression=self._tree))

    def __invert__(self) -> Expression[bool]:
        return to_expression(exp.Not(this=self._tree))

    def __neg__(self) -> Expression[T]:
        return to_expression(exp.Neg(this=self._tree))

    def __pos__(self) -> Expression[T]:
        return to_expression(self._tree)

    def __add__(self, other: Operand) -> Expression[Any]:
        return to_expression(sum_tree(self._tree, tree_of(other)))

    def __radd__(self, other: Operand) -> Expression[Any]:
        return to_expression(sum_tree(tree_of(other), self._tree))

    def __sub__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Sub(this=self._tree, expression=tree_of(other)))

    def __rsub__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Sub(this=tree_of(other), expression=self._tree))

    def __mul__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Mul(this=self._tree, expression=tree_of(other)))

    def __rmul__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Mul(this=tree_of(other), expression=self._tree))

    def __truediv__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Div(this=self._tree, expression=tree_of(other)))

    def __rtruediv__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Div(this=tree_of(other), expression=self._tree))

    def __mod__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Mod(this=self._tree, expression=tree_of(other)))

    def __rmod__(self, other: Operand) -> Expression[Any]:
        return to_expression(exp.Mod(this=tree_of(other), expression=self._tree))

    def __pow__(self, power: Operand) -> Expression[float]:
        return self._call("POWER", power)

    def __rpow__(self, base: Operand) -> Expression[float]:
        return to_expression(call_tree("POWER", base, self))

    # names and types

    def alias(self, name: str, *extra_names: str) -> Expression[T]:
        """Return the same under a name; further ones are for the columns of a table function."""
        if extra_names:
            return to_expression(MoreNames(this=self._tree, expressions=[name, *extra_names]))
        return to_expression(exp.Alias(this=self._tree, alias=exp.to_identifier(name, quoted=True)))

    def as_argument(self, name: str) -> Expression[T]:
        """Return the argument of this name of a function."""
        return to_expression(NamedArgument(this=name, expression=self._tree))

    def cast(self, data_type: DataType) -> Expression[Any]:
        """Convert to another type; a value that cannot be converted is an error."""
        return self._call("CAST", data_type)

    def try_cast(self, data_type: DataType) -> Expression[Any]:
        """Convert to another type; NULL for a value that cannot be converted."""
        return self._call("TRY_CAST", data_type)

    @property
    def asc(self) -> Expression[T]:
        """Order by this in `Table.order_by`, the smallest first."""
        return to_expression(exp.Ordered(this=self._tree, desc=False, nulls_first=True))

    @property
    def desc(self) -> Expression[T]:
        """Order by this in `Table.order_by`, the largest first."""
        return to_expression(exp.Ordered(this=self._tree, desc=True, nulls_first=False))

    # conditions

    def between(self, lower_bound: Operand, upper_bound: Operand) -> Expression[bool]:
        """Test whether it is between two values, or equal to one of them."""
        return to_expression(exp.Between(this=self._tree, low=tree_of(lower_bound), high=tree_of(upper_bound)))

    def not_between(self, lower_bound: Operand, upper_bound: Operand) -> Expression[bool]:
        """Test whether it is less than one value or more than another."""
        return ~self.between(lower_bound, upper_bound)

    def in_(self, first_element_or_table: Operand | Table, *remaining_elements: Operand) -> Expression[bool]:
        """Test whether it is one of these values."""
        from .table import Table  # which imports this module

        if isinstance(first_element_or_table, Table):
            query = exp.Subquery(this=first_element_or_table._tree())
            return to_expression(exp.In(this=self._tree, query=query))
        listed = [tree_of(element) for element in (first_element_or_table, *remaining_elements)]
        return to_expression(exp.In(this=self._tree, expressions=listed))

    def then(self, if_true: Operand, if_false: Operand) -> Expression[Any]:
        """Choose one value where this is true, else another."""
        return self._call("IF", tree_of(if_true), tree_of(if_false))

    def if_null(self, null_replacement: Operand) -> Expression[T]:
        """Replace NULL by another value."""
        return self._call("IFNULL", tree_of(null_replacement))

    @property
    def is_null(self) -> Expression[bool]:
        """Test whether it is NULL."""
        return self._is(exp.Null())

    @property
    def is_not_null(self) -> Expression[bool]:
        """Test whether it is not NULL."""
        return ~self._is(exp.Null())

    @property
    def is_true(self) -> Expression[bool]:
        """Test whether it is true; false where it is NULL."""
        return self._is(exp.Boolean(this=True))

    @property
    def is_false(self) -> Expression[bool]:
        """Test whether it is false; false where it is NULL."""
        return self._is(exp.Boolean(this=False))

    @property
    def is_not_true(self) -> Expression[bool]:
        """Test whether it is false or NULL."""
        return ~self._is(exp.Boolean(this=True))

    @property
    def is_not_false(self) -> Expression[bool]:
        """Test whether it is true or NULL."""
        return ~self._is(exp.Boolean(this=False))

    def _is(self, what: Operand) -> Expression[bool]:
        return to_expression(exp.Is(this=self._tree, expression=what))


__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]
