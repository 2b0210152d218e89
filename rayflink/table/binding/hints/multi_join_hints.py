"""The hint MULTI_JOIN of a SELECT: which tables of FROM are joined in one step, if they have a key in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...errors import SqlError, nearest
from ...parsing.hints import MULTI_JOINS
from ...parsing.statements import Tree
from ...plan.joins import Join
from ...plan.logical import Project, Relation
from ..expressions import place_of
from ..scope import Scope


def with_multi_joins(relation: Relation, tree: Tree, scope: Scope) -> Relation:
    """Return the joins of FROM, those marked whose tables a hint names: one on each side.

    Raises:
        SqlError: a hint names no table of FROM.
    """
    hint = tree.args.get("hint")
    names = [table.alias for table in scope.parts]
    for wanted in () if hint is None else hint.meta.get(MULTI_JOINS) or ():
        for name in wanted:
            if name not in names:
                problem = f"MULTI_JOIN of {name!r}, which is not a table of FROM{nearest(name, names)}"
                raise SqlError(problem, f"the tables are {', '.join(names)}", "", place_of(tree))
        relation = _marked(relation, [name for name in names if name], wanted)
    return relation


def _marked(relation: Relation, names: Sequence[str], wanted: Sequence[str]) -> Relation:
    """Return joins, the last of which joins the last of the named tables."""
    if isinstance(relation, Project):
        return replace(relation, input=_marked(relation.input, names, wanted))
    if not isinstance(relation, Join) or len(names) < 2:
        return relation
    *others, last = names
    is_hinted = relation.is_hinted or (last in wanted and not set(others).isdisjoint(wanted))
    return replace(relation, left=_marked(relation.left, others, wanted), is_hinted=is_hinted)


__all__ = ["with_multi_joins"]
