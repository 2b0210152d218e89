"""The hint STATE_TTL of a SELECT: how long groups and rows of joins are known, in place of `table.exec.state.ttl`."""

from __future__ import annotations

from dataclasses import replace

from rayflink.common.options.option_types import DURATION

from ...errors import SqlError, nearest
from ...parsing.statements import Tree
from ...plan.groups import GroupAggregate
from ...plan.joins import Join
from ...plan.logical import Project, Relation
from ..expressions import place_of
from ..scope import Scope


def hinted_ttl(tree: Tree, scope: Scope) -> tuple[str, str] | None:
    """(the table, how long) in the hint of a SELECT that reads one table; of several it is that of their joins.

    Raises:
        SqlError: it names another table, or no length of time.
    """
    ttls = _ttls(tree, scope)
    return ttls.popitem() if len(scope.parts) == 1 and ttls else None


def _ttls(tree: Tree, scope: Scope) -> dict[str, str]:
    """Return the length of time for each table in the hint of a SELECT."""
    hint = tree.args.get("hint")
    ttls: dict[str, str] = {}
    if hint is None or not hint.expressions:
        return ttls
    names = [table.alias for table in scope.parts]
    for pair in hint.expressions:
        name, text = pair.this.this, pair.expression.this
        if name not in names:
            problem = f"STATE_TTL of {name!r}, which is not a table of FROM{nearest(name, names)}"
            raise SqlError(problem, f"the tables are {', '.join(names)}", "", place_of(tree))
        try:
            is_negative = DURATION.read(text).to_millis() < 0
        except ValueError as error:
            raise _no_length(text, tree) from error
        if is_negative:
            raise _no_length(text, tree)
        ttls[name] = text
    return ttls


def with_side_ttls(relation: Relation, tree: Tree, scope: Scope) -> Relation:
    """Return the joins of FROM with the times of the tables that they join, as the hint of their SELECT says."""
    ttls = _ttls(tree, scope)
    if not ttls or len(scope.parts) == 1:
        return relation
    names = [table.alias for table in scope.parts if table.alias]
    return _joined(relation, names, ttls)


def _joined(relation: Relation, names: list[str], ttls: dict[str, str]) -> Relation:
    """Return joins, the last of which joins the last of the named tables."""
    if isinstance(relation, Project):
        return replace(relation, input=_joined(relation.input, names, ttls))
    if not isinstance(relation, Join) or len(names) < 2:
        return relation
    name, others = names[-1], names[:-1]
    left = (others[0], ttls[others[0]]) if len(others) == 1 and others[0] in ttls else None
    right = (name, ttls[name]) if name in ttls else None
    return replace(relation, left=_joined(relation.left, others, ttls), ttls=(left, right))


def _no_length(text: str, tree: Tree) -> SqlError:
    return SqlError(
        f"{text!r} is not a duration", "write for example '36 h', or '0 s' to keep state for ever", "", place_of(tree)
    )


def with_ttl(relation: Relation, ttl: tuple[str, str] | None) -> Relation:
    """Groups of a stream that are known for so long; other relations as they are."""
    if ttl is None or not isinstance(relation, GroupAggregate) or relation.is_whole:
        return relation
    return replace(relation, ttl=ttl)


__all__ = ["hinted_ttl", "with_side_ttls", "with_ttl"]
