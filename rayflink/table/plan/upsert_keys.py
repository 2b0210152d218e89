"""Upsert keys: the columns by which an update without the row before finds the row that it replaces.

Source: apache/flink FlinkRelMdUpsertKeys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..errors import SqlError
from .groups import GroupAggregate
from .logical import Filter, Project, Relation, Scan, Union, WatermarkAssigner
from .typed import Call, Column, Expr


def upsert_key(relation: Relation) -> tuple[int, ...] | None:
    """Return numbers of these columns; None: updates include the row before, or no columns find it."""
    match relation:
        case Scan():
            key = relation.source.key
            is_found = bool(key) and not relation.produces_update_before and set(key) <= set(relation.names)
            return tuple(map(relation.names.index, key)) if is_found else None
        case WatermarkAssigner():
            return upsert_key(relation.input)
        case Project():
            below = upsert_key(relation.input)
            kept = {one.index: at for at, one in enumerate(relation.exprs) if isinstance(one, Column)}
            return tuple(kept[one] for one in below) if below is not None and kept.keys() >= set(below) else None
    return None


def group_key(relation: Relation) -> tuple[int, ...] | None:
    """Return numbers of the columns that are the key of groups of a stream, in a result that has each group once.

    None: the rows are not those of groups, or the columns are not there.
    """
    match relation:
        case GroupAggregate() if not relation.is_whole:
            return tuple(range(len(relation.grouping)))
        case Project():
            below = group_key(relation.input)
            places = {expr.index: number for number, expr in enumerate(relation.exprs) if isinstance(expr, Column)}
            return tuple(places[one] for one in below) if below is not None and places.keys() >= set(below) else None
    return None


def needs_before(relation: Relation, key: Collection[str]) -> bool:
    """Return whether updates of groups must include the row before, since the result has another key than the groups.

    Args:
        key: names of the columns by which the result has its rows; none: it is not by key.
    """
    has_groups = any(isinstance(below, GroupAggregate) and not below.is_whole for below in relation.walk())
    columns = group_key(relation)
    is_same = columns is not None and {relation.names[index] for index in columns} == set(key)
    return bool(key) and has_groups and not is_same


def ensure_one_group(relation: Relation, wanted: Iterable[int]) -> None:
    """Check that no two groups of a stream replace the rows of each other, as one that goes deletes the other's row.

    Args:
        wanted: numbers of the columns of the result's key; none: it has none.

    Raises:
        SqlError: the key lacks a column of GROUP BY.
    """
    asked, at = set(wanted), {number: number for number in range(len(relation.schema))}
    groups = relation
    while isinstance(groups, (Project, Filter)):
        if isinstance(groups, Project):
            exprs = [(number, _without_casts(groups.exprs[place])) for number, place in at.items()]
            at = {number: expr.index for number, expr in exprs if isinstance(expr, Column)}
        groups = groups.input
    if not asked or not isinstance(groups, GroupAggregate) or groups.is_whole or not groups.calls:
        return
    missing = set(range(len(groups.grouping))) - {at[number] for number in asked if number in at}
    if missing:
        lacking = ", ".join(groups.names[number] for number in sorted(missing))
        problem = f"the key of the result is {', '.join(relation.names[number] for number in sorted(asked))}"
        problem += f", and lacks {lacking}, which GROUP BY has: several groups may have one key"
        remedy = "let the PRIMARY KEY have the columns of GROUP BY, or group once more by the key"
        raise SqlError(problem, remedy, "", relation.place)


def _without_casts(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.function.name == "CAST":
        expr = expr.args[0]
    return expr


def ensure_key(relation: Relation, wanted: Iterable[int] = ()) -> None:
    """Check that rows which replace others can be found by columns of the result.

    Args:
        wanted: numbers of the columns of the result's key; none: they may be any.

    Raises:
        SqlError: those that find them are not among its columns, or are not its key.
    """
    found, asked = upsert_key(relation), set(wanted)
    if found is not None and asked and asked != set(found):
        described, other = (", ".join(relation.names[at] for at in key) for key in (found, sorted(asked)))
        problem = f"rows replace others by {described}, and the key of the result is {other}"
        raise SqlError(problem, "give it the same key, or let the stream have UPDATE_BEFORE rows, too")
    if not isinstance(relation, (Project, Union, WatermarkAssigner)):
        return
    for below in relation.inputs:
        key = upsert_key(below)
        if key is not None and found is None:
            columns = ", ".join(below.names[at] for at in key)
            behind = relation.explain_line()
            problem = f"rows of a stream replace others by {columns}, which finds them no more behind {behind}"
            remedy = "select these columns as they are, of one stream, or let the stream have UPDATE_BEFORE rows, too"
            raise SqlError(problem, remedy, "", relation.place)
        ensure_key(below)


__all__ = ["ensure_key", "ensure_one_group", "needs_before", "upsert_key"]
