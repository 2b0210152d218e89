"""Constants of types that a program says."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..conversion.element_columns import ElementColumns
from ..conversion.inferred_types import infer_type
from ..parsing.program_nodes import Value
from ..parsing.statements import Tree
from ..plan.typed import Literal
from ..types import DataType, DataTypes, Root, RowType
from .expression_text import call_tree, value_tree

if TYPE_CHECKING:
    import pyarrow

_NESTED = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW)


def constant_tree(value: UserValue, kind: DataType | None) -> Tree:
    """Return a value of Python as a constant; arrays, maps and rows of a type may be empty.

    Args:
        kind: its type; None: as the value says.

    Raises:
        TypeError: a value within an array, a map or a row is of another type; names the type.
        ValueError: such a value is None or out of range where its type has none.
        InvalidTypesError: there is no type for the value.
    """
    if kind is None and isinstance(value, array):
        kind = infer_type([value], "the literal").not_null()
    if kind is None:
        return value_tree(value)
    if value is not None and kind.root in _NESTED:
        column = ElementColumns(RowType([DataTypes.FIELD("literal", kind)])).table([(value,)]).column(0)
        return Value(this=Literal(kind, _hashable(column[0])))
    if isinstance(value, int) and kind.root is Root.INTERVAL_YEAR_MONTH:
        return Value(this=Literal(kind, value))
    return call_tree("CAST", value_tree(value), kind)


def _hashable(scalar: pyarrow.Scalar) -> Any:
    """Return the value of a scalar of Arrow, with tuples in the place of lists and dicts, from which Arrow makes it."""
    from pyarrow import types

    if not scalar.is_valid:
        return None
    if types.is_map(scalar.type):
        return tuple((_hashable(pair["key"]), _hashable(pair["value"])) for pair in scalar.values)
    if types.is_struct(scalar.type):
        return tuple(_hashable(field) for field in scalar.values())
    if types.is_list(scalar.type):
        return tuple(map(_hashable, scalar.values))
    return scalar.as_py()


__all__ = ["constant_tree"]
