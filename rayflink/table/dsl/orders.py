"""Rows in order, and how many of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ..parsing.program_nodes import await_limit
from ..parsing.statements import Tree
from .expression_text import Operand, field_tree


def order_of(fields: Sequence[Operand]) -> exp.Order:
    """Return an ORDER BY of expressions and names of columns; those that say no direction ascend, with nulls first."""
    keys = [field_tree(field) for field in fields]
    ordered = (
        key if isinstance(key, exp.Ordered) else exp.Ordered(this=key, desc=False, nulls_first=True) for key in keys
    )
    return await_limit(exp.Order(expressions=list(ordered)))


def limit_rows(query: Tree, fetch: int, offset: int) -> Tree:
    """Return a query that gives `fetch` rows at most, after skipping the first ones."""
    query.set("limit", exp.Limit(expression=exp.Literal.number(fetch)))
    if offset:
        query.set("offset", exp.Offset(expression=exp.Literal.number(offset)))
    return query


__all__ = ["limit_rows", "order_of"]
