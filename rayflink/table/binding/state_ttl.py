"""The hint STATE_TTL of a SELECT: how long its groups are known, in the place of `table.exec.state.ttl`."""

from __future__ import annotations

from dataclasses import replace

from rayflink.common.options.option_types import DURATION

from ..errors import SqlError, nearest
from ..parsing.statements import Tree
from ..plan.groups import GroupAggregate
from ..plan.logical import Relation
from .expressions import place_of
from .scope import Scope


def hinted_ttl(tree: Tree, scope: Scope) -> tuple[str, str] | None:
    """(the table, how long) in the hint of a SELECT that reads one table; of several it says nothing yet.

    Raises:
        SqlError: it names another table, or no length of time.
    """
    hint = tree.args.get("hint")
    if hint is None or not hint.expressions:
        return None
    names, name, text = [table.alias for table in scope.parts], "", ""
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
    return (name, text) if len(names) == 1 else None


def _no_length(text: str, tree: Tree) -> SqlError:
    return SqlError(
        f"{text!r} is not a duration", "write for example '36 h', or '0 s' to keep state for ever", "", place_of(tree)
    )


def with_ttl(relation: Relation, ttl: tuple[str, str] | None) -> Relation:
    """Groups of a stream that are known for so long; other relations as they are."""
    if ttl is None or not isinstance(relation, GroupAggregate) or relation.is_whole:
        return relation
    return replace(relation, ttl=ttl)


__all__ = ["hinted_ttl", "with_ttl"]
