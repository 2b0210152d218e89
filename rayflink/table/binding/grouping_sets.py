"""GROUPING SETS, ROLLUP and CUBE: the sets of keys that a GROUP BY names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress, product

from sqlglot import exp

from ..parsing.statements import Tree


@dataclass(frozen=True)
class GroupingSet:
    """The keys of one grouping set.

    Args:
        keys: the keys outside of GROUPING SETS, followed by those of this set.
        absent: keys of other sets that are not in this one; they are NULL in its rows.
        number: the result of GROUP_ID: a bit for each key of GROUP BY, the last key in the lowest bit, 1 where the
            key is absent.
    """

    keys: list[Tree]
    absent: list[Tree]
    number: int = 0


def grouping_sets(group: Tree | None) -> list[GroupingSet]:
    """Return the grouping sets of a GROUP BY clause.

    Several clauses of sets are combined, each set of one with each set of another. A GROUP BY of plain keys is one
    set; so is a SELECT without GROUP BY.
    """
    if group is None:
        return [GroupingSet([], [])]
    plain_keys: list[Tree] = []
    combinations: list[list[Tree]] = [[]]
    for item in group.expressions:
        sets = _sets_of(item)
        if sets is None:
            plain_keys.append(item)
        else:
            combinations = [[*combination, *keys] for combination, keys in product(combinations, sets)]
    all_keys = _without_repeats([*plain_keys, *chain.from_iterable(combinations)])
    return [_grouping_set([*plain_keys, *combination], all_keys) for combination in combinations]


def _grouping_set(keys: list[Tree], all_keys: Sequence[Tree]) -> GroupingSet:
    is_absent = [key not in keys for key in all_keys]
    return GroupingSet(keys, list(compress(all_keys, is_absent)), bits_of(is_absent))


def _sets_of(tree: Tree) -> list[list[Tree]] | None:
    """Return the sets for which an item of GROUP BY stands; None: it is a plain key."""
    if isinstance(tree, exp.GroupingSets):
        return [keys for item in tree.expressions for keys in _sets_of(item) or [_keys_of(item)]]
    if isinstance(tree, exp.Rollup):
        items = [_keys_of(item) for item in tree.expressions]
        return [list(chain.from_iterable(items[:count])) for count in range(len(items), -1, -1)]
    if isinstance(tree, exp.Cube):
        items = [_keys_of(item) for item in tree.expressions]
        return [
            list(chain.from_iterable(compress(items, is_chosen)))
            for is_chosen in product((True, False), repeat=len(items))
        ]
    return None


def _keys_of(item: Tree) -> list[Tree]:
    """Return the keys of an item of ROLLUP, CUBE or GROUPING SETS: several in parentheses, or one."""
    if isinstance(item, exp.Tuple):
        return list(item.expressions)
    return [item.this] if isinstance(item, exp.Paren) else [item]


def _without_repeats(trees: Iterable[Tree]) -> list[Tree]:
    distinct: list[Tree] = []
    for tree in trees:
        if tree not in distinct:
            distinct.append(tree)
    return distinct


def bits_of(flags: Iterable[bool]) -> int:
    """Return a number with one bit for each flag, the last flag in the lowest bit.

    >>> bits_of([True, False, True])
    5
    """
    number = 0
    for flag in flags:
        number = number * 2 + flag
    return number


__all__ = ["GroupingSet", "bits_of", "grouping_sets"]
