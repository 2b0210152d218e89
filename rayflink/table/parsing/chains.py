"""Long chains of AND and OR as trees of little depth: a OR b OR c OR d as (a OR b) OR (c OR d)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlglot import exp

T = TypeVar("T")
_LONG = 32
"""Conditions of a chain from which on it is not left as it is written."""


def chain_of(tree: Any) -> list[Any] | None:
    """Return the conditions that a long chain joins, in their order; None: it is no chain, or a short one."""
    kind = type(tree)
    if kind not in (exp.And, exp.Or):
        return None
    operands = []
    while type(tree) is kind:
        operands.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(operands)] if len(operands) >= _LONG else None


def join_in_pairs(parts: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Join all parts, neighbours first.

    >>> join_in_pairs("abcde", lambda left, right: f"({left}{right})")
    '(((ab)(cd))e)'
    """
    left = list(parts)
    while len(left) > 1:
        pairs = [join(left[index], left[index + 1]) for index in range(0, len(left) - 1, 2)]
        left = pairs if len(left) % 2 == 0 else [*pairs, left[-1]]
    return left[0]


def balance(tree: Any) -> Any:
    """Return a tree of conditions, where it is a long chain of little depth."""
    parts = chain_of(tree)
    kind = type(tree)
    return tree if parts is None else join_in_pairs(parts, lambda a, b: kind(this=a, expression=b))


__all__ = ["balance", "chain_of", "join_in_pairs"]
