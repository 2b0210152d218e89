"""Nodes of the trees that a program builds with expressions, which no text has."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

_JOINS_STRINGS = "joins strings"


def sum_tree(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """Return the sum of two values as a program writes it: a string is joined with the other value's."""
    result = exp.Add(this=left, expression=right)
    result.meta[_JOINS_STRINGS] = True
    return result


def joins_strings(tree: exp.Expression) -> bool:
    """Return whether a tree is such a sum; that of a text of SQL is one of numbers and times alone."""
    return bool(tree.meta.get(_JOINS_STRINGS))


_WRITTEN = "written"


def keep_text(tree: exp.Expression, text: str) -> exp.Expression:
    """Return a tree that knows the text of SQL of which it was made."""
    tree.meta[_WRITTEN] = text
    return tree


def sql_text(tree: exp.Expression) -> str | None:
    """Return the text of SQL of which a tree was made; None: a program built it."""
    text: str | None = tree.meta.get(_WRITTEN)
    return text


_AWAITS_LIMIT = "awaits limit"


def await_limit(order: exp.Order) -> exp.Order:
    """Return an ORDER BY of which the program may say later how many rows are wanted."""
    order.meta[_AWAITS_LIMIT] = True
    return order


def awaits_limit(order: exp.Expression) -> bool:
    """Return whether an ORDER BY is such a one."""
    return bool(order.meta.get(_AWAITS_LIMIT))


class BoundTable(exp.Expression):
    """A table whose plan is known; `this` is the `Relation`, `scope` the `Scope` of several tables."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "scope": False}


class Value(exp.Expression):
    """A value of Python; `this` is the typed `Literal`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Applied(exp.Expression):
    """A call of a function that has no name in the catalog; `this` is the `Function`.

    `gives_rows` is true where rows of a table aggregate function are wanted.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "gives_rows": False}


class FieldAt(exp.Expression):
    """A field of a row by its number, from 0."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "index": True}


class WindowPart(exp.Expression):
    """START, END, ROWTIME or PROCTIME of the group window that has the name of a column."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "part": True}


class OverWindow(exp.Expression):
    """An aggregate over the rows around each row; `window` names the over window."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": True}


class RowInterval(exp.Expression):
    """A length in rows."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class ColumnRange(exp.Expression):
    """The columns from one to another, both by name or by number from 1."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class ColumnChoice(exp.Expression):
    """Some columns, or all but these."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True, "inverted": False}


class Flattened(exp.Expression):
    """All fields of a row, each as a column."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class MoreNames(exp.Expression):
    """Several names for the columns that a table function gives."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}
