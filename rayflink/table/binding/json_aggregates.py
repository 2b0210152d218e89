"""JSON_ARRAYAGG and JSON_OBJECTAGG: the strings of values, joined by LISTAGG, in brackets."""

from __future__ import annotations

from sqlglot import exp

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.typed import Expr, Literal, Place
from ..types import DataTypes
from .expressions import ExpressionBinder, call, place_of

BRACKETS = {"JSON_ARRAYAGG": "[]", "JSON_OBJECTAGG": "{}"}
_TAKES = {"JSON_ARRAYAGG": (1, "ABSENT"), "JSON_OBJECTAGG": (2, "NULL")}
"""Name -> how many arguments there are, and what becomes of NULL where nothing is said."""


def element(binder: ExpressionBinder, tree: Tree) -> tuple[Expr, Expr | None]:
    """Return the string that a row adds and whether it adds one; None: it always does.

    Raises:
        SqlError: the arguments are others.
    """
    place, name = place_of(tree), str(tree.name).upper()
    count, default = _TAKES[name]
    arguments = [binder.bind(argument) for argument in tree.expressions if not isinstance(argument, exp.Var)]
    if len(arguments) != count:
        usage = "JSON_ARRAYAGG(value)" if count == 1 else "JSON_OBJECTAGG(KEY name VALUE value)"
        raise SqlError(f"{name} has {len(arguments)} arguments", f"write {usage}", "", place)
    if count == 2 and not arguments[0].type.is_text:
        raise SqlError(
            f"the key of {name} has type {arguments[0].type}", "cast it to STRING", "", place_of(tree.expressions[0])
        )
    on_null = next((argument.name for argument in tree.expressions if isinstance(argument, exp.Var)), default)
    strings = [_text(argument, place) for argument in arguments]
    colon = Literal(DataTypes.CHAR(1, False), ":")
    whole = strings[0] if count == 1 else call("||", [call("||", [strings[0], colon]), strings[1]])
    return whole, None if on_null == "NULL" else call("IS NOT NULL", arguments[-1:], place)


def _text(value: Expr, place: Place | None) -> Expr:
    """Return a value as JSON: an array of it without the brackets."""
    array = call("JSON_ARRAY", [value], place, ("NULL",))
    two, length = Literal(DataTypes.INT(False), 2), call("CHAR_LENGTH", [array], place)
    return call("SUBSTRING", [array, two, call("-", [length, two], place)], place)


def add_brackets(name: str, joined: Expr) -> Expr:
    """Return the elements as one text."""
    start, stop = (Literal(DataTypes.CHAR(1, False), bracket) for bracket in BRACKETS[name])
    elements = call("COALESCE", [joined, Literal(DataTypes.STRING().not_null(), "")], joined.place)
    return call("||", [call("||", [start, elements]), stop])


__all__ = ["BRACKETS", "add_brackets", "element"]
