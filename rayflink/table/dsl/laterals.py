"""Table functions beside the rows of a table, as FROM has them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rayflink.common.errors import InvalidTypesError

from ..parsing.program_nodes import MoreNames
from ..parsing.statements import Tree
from ..udf import UserTable
from .expression_text import Operand, Written, tree_of
from .row_functions import of_row


def called(func: Operand, columns: Sequence[str]) -> tuple[Tree, list[str]]:
    """Return the call of a table function, and the names that are given to its columns.

    Args:
        func: an expression, or what `udtf` made.
        columns: of the row that the latter is given.

    Raises:
        InvalidTypesError: it is neither.
    """
    if isinstance(func, UserTable):
        return of_row(func, columns), list(func.names)
    if not isinstance(func, Written):
        remedy = "pass a function made by udtf, or a call of it with columns"
        raise InvalidTypesError(f"{func!r} is not a table function", remedy)
    call = tree_of(func)
    if isinstance(call, MoreNames):
        return call.this, list(call.args["expressions"])
    if isinstance(call, exp.Alias):
        return call.this, [call.alias]
    return call, []


def renamed(call: Tree, names: Sequence[str]) -> Tree:
    """Return the call with names for its columns."""
    return MoreNames(this=call, expressions=list(names))


def tree(call: Tree, names: Sequence[str]) -> Tree:
    """Return the call as a part of FROM."""
    alias = exp.TableAlias(columns=[exp.to_identifier(name, quoted=True) for name in names]) if names else None
    if isinstance(call, exp.Anonymous):  # by its name in the catalog
        return exp.Lateral(this=call, alias=alias)
    return exp.Unnest(expressions=[call], alias=alias)


__all__ = ["called", "renamed", "tree"]
