"""The text of SQL that an expression stands for, where a definition keeps text."""

from __future__ import annotations

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..parsing.dialect import Interval, Typed
from ..parsing.program_nodes import Value, sql_text
from ..parsing.statements import Tree
from ..types import Root
from .expression_text import Operand, Written, shown, tree_of

_SIGNS: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<",
    exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "AND", exp.Or: "OR",
}  # fmt: skip


def text_of(value: Operand) -> str:
    """Return a text as it is, or that of an expression.

    >>> from rayflink.table.expressions import col, lit
    >>> text_of(col("ts") - lit(5).seconds)
    "(`ts` - INTERVAL '5' SECOND)"

    Raises:
        InvalidTypesError: the expression has something that is written in another way.
    """
    if not isinstance(value, Written):
        return str(value)
    tree = tree_of(value)
    return sql_text(tree) or _text(tree)


def _text(tree: Tree) -> str:
    if text := sql_text(tree):
        return f"({text})"
    if isinstance(tree, exp.Column):
        return "`" + str(tree.name).replace("`", "``") + "`"
    if isinstance(tree, Value):
        return _constant(tree)
    if isinstance(tree, Interval):
        return f"INTERVAL '{tree.this}' {tree.args['unit']}"
    if type(tree) in _SIGNS:
        return f"({_text(tree.this)} {_SIGNS[type(tree)]} {_text(tree.expression)})"
    if isinstance(tree, exp.Paren):
        return f"({_text(tree.this)})"
    if isinstance(tree, exp.Neg):
        return f"(-{_text(tree.this)})"
    if isinstance(tree, exp.Not):
        return f"(NOT {_text(tree.this)})"
    if isinstance(tree, exp.Anonymous):
        parts = list(tree.expressions)
        if parts and isinstance(parts[-1], Typed):
            return f"{tree.name}({_text(parts[0])} AS {parts[-1].this})"
        return f"{tree.name}({', '.join(map(_text, parts))})"
    raise InvalidTypesError(f"{shown(tree)} cannot be stored in a definition", "write it as a string of SQL")


def _constant(tree: Tree) -> str:
    literal = tree.this
    if literal.type.is_text or literal.type.is_numeric or literal.type.root is Root.BOOLEAN:
        return str(literal)
    raise InvalidTypesError(f"{literal} cannot be stored in a definition", "write it as a string of SQL")


__all__ = ["text_of"]
