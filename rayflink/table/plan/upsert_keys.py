"""Upsert keys: the columns by which an update without the row before finds the row that it replaces.

Source: apache/flink FlinkRelMdUpsertKeys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import TypeAlias

from ..errors import SqlError
from .changelog import Change
from .groups import GroupAggregate
from .joins import JoinKind, StreamJoin
from .logical import Filter, Project, Relation, Scan, Sort, Union, Unnest, WatermarkAssigner, WindowAggregate
from .multi_joins import MultiJoin
from .process_tables import ProcessTable
from .ranks import Deduplicate, Rank
from .typed import Call, Column, Expr
from .upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize

Keys: TypeAlias = frozenset[frozenset[int]]
"""Sets of numbers of columns, each of which identifies a row; the empty set: there is one row at most."""
NO_KEYS: Keys = frozenset()
_MOST_KEYS = 16
"""Keys that a projection gives at most: one whose columns are selected several times has many forms."""


def upsert_names(scan: Scan) -> tuple[str, ...]:
    """Return the columns by which updates find the row that they replace; (): they include it, or none find it."""
    key: tuple[str, ...] = scan.primary_key if scan.is_duplicated else scan.source.key
    return key if set(key) <= set(scan.names) and not scan.produces_update_before else ()


def upsert_keys(relation: Relation) -> Keys:
    """Return the sets of columns each of which finds the row that a change replaces or deletes.

    The changes of a row with one key come in their order: it is the key by which rows were partitioned, or of their
    source. A union has none, since the rows of its inputs may have equal keys.
    """
    match relation:
        case Scan():
            names = upsert_names(relation) or relation.primary_key
            is_found = bool(names) and set(names) <= set(relation.names)
            return frozenset({frozenset(map(relation.names.index, names))}) if is_found else NO_KEYS
        case ChangelogNormalize() | UpsertMaterialize():
            return frozenset({frozenset(relation.key)})
        case NumberCopies():
            return frozenset({frozenset(range(len(relation.schema)))})
        case WatermarkAssigner() | Filter() | Sort():
            return upsert_keys(relation.input)
        case Project():
            return _of_columns(relation)
        case GroupAggregate():
            return frozenset({frozenset(range(len(relation.grouping)))})
        case WindowAggregate() if relation.emission is None:
            width = len(relation.grouping)
            bounds = {width + len(relation.calls), width + len(relation.calls) + 1} & set(range(len(relation.schema)))
            return frozenset({frozenset({*range(width), *bounds})}) if len(bounds) == 2 else NO_KEYS
        case Rank():
            return _of_rank(relation)
        case ProcessTable() if relation.mode.changes & ~Change.INSERT and not relation.mode.before:
            return frozenset({frozenset(range(len(relation.tables[0].partition)))})
        case StreamJoin():
            return _of_join(relation)
        case MultiJoin():
            return _of_multi_join(relation)
    return NO_KEYS


def _of_columns(relation: Project) -> Keys:
    places: dict[int, list[int]] = {}
    for number, expr in enumerate(relation.exprs):
        column = _faithful(expr)
        if column is not None:
            places.setdefault(column.index, []).append(number)
    keys: set[frozenset[int]] = set()
    for key in sorted(map(sorted, upsert_keys(relation.input))):
        if set(key) <= places.keys() and len(keys) < _MOST_KEYS:
            keys.update(map(frozenset, product(*(places[column][:2] for column in key))))
    return frozenset(keys)


def _faithful(expr: Expr) -> Column | None:
    """Return the column of which an expression has another value for each value; None: it is no such expression."""
    while isinstance(expr, Call) and expr.function.name == "CAST":
        source, target = expr.args[0].type, expr.type
        is_wider = source.is_text and target.is_text and (target.length or 0) >= (source.length or 0)
        if not (is_wider or source.nullable() == target.nullable()):
            return None
        expr = expr.args[0]
    return expr if isinstance(expr, Column) else None


def _of_rank(relation: Rank) -> Keys:
    """Return the partition, with the number unless there is one row each, and keys that have the partition."""
    partition = frozenset(relation.partition)
    own = partition if (relation.first, relation.last) == (1, 1) else partition | {relation.number}
    return frozenset({own, *(key for key in upsert_keys(relation.input) if partition <= key)})


def _of_join(join: StreamJoin) -> Keys:
    """Return keys of pairs: those of both sides together, and those of one where it matches one row of the other.

    A side's key must have the columns of the join's key: otherwise its changes may come in any order.
    """
    sides = [
        _with_columns(side, keys) for side, keys in zip(join.inputs, (join.keys.left, join.keys.right), strict=True)
    ]
    if join.kind.is_of_left:
        return sides[0]
    right = frozenset(frozenset(number + join.width for number in key) for key in sides[1])
    keys = {left | other for left, other in product(sorted(sides[0], key=sorted), sorted(right, key=sorted))}
    if join.has_key_as_unique(1) and not join.kind.keeps_right:
        keys |= sides[0]
    if join.has_key_as_unique(0) and not join.kind.keeps_left:
        keys |= right
    return _shortest(keys)


def _of_multi_join(join: MultiJoin) -> Keys:
    """Return the same of joins, one after the other; a side is one of the inputs, or the result before it."""
    keys, is_single = _with_columns(join.relations[0], join.keys[0]), join.has_key_as_unique(0)
    for number, step in enumerate(join.steps, start=1):
        start = join.starts[number]
        sources = _with_columns(join.relations[number], join.keys[number])
        further = frozenset(frozenset(start + column for column in key) for key in sources)
        both = {left | other for left, other in product(sorted(keys, key=sorted), sorted(further, key=sorted))}
        is_unique = join.has_key_as_unique(number)
        both |= keys if is_unique else NO_KEYS
        both |= further if is_single and step.kind is JoinKind.INNER else NO_KEYS
        keys, is_single = _shortest(both), is_single and is_unique
    return keys


def _with_columns(side: Relation, columns: Collection[int]) -> Keys:
    return frozenset(key for key in upsert_keys(side) if set(columns) <= key)


def _shortest(keys: Iterable[frozenset[int]]) -> Keys:
    return frozenset(sorted(keys, key=lambda key: (len(key), sorted(key)))[:_MOST_KEYS])


def upsert_key(relation: Relation) -> tuple[int, ...] | None:
    """Return numbers of the columns of the smallest upsert key; None: there is none."""
    return min((tuple(sorted(key)) for key in upsert_keys(relation)), key=lambda key: (len(key), key), default=None)


def has_upsert_key(relation: Relation, names: Collection[str]) -> bool:
    """Return whether the named columns are an upsert key of a relation."""
    columns = relation.names
    return any({columns[number] for number in key} == set(names) for key in upsert_keys(relation))


def needs_before(relation: Relation, key: Collection[str]) -> bool:
    """Return whether updates must include the row before, since the result has another key than the rows.

    Args:
        key: names of the columns by which the result has its rows; none: it is not by key.
    """
    is_keyed = any(
        (isinstance(below, GroupAggregate) and not below.is_whole)
        or (isinstance(below, Deduplicate) and below.keeps_last)
        or (isinstance(below, Scan) and upsert_names(below))
        for below in relation.walk()
    )
    return bool(key) and is_keyed and not has_upsert_key(relation, key)


def ensure_one_group(relation: Relation, wanted: Iterable[int]) -> None:
    """Check that no two groups of a stream replace the rows of each other, as one that goes deletes the other's row.

    Args:
        wanted: numbers of the columns of the result's key; none: it has none.

    Raises:
        SqlError: the key lacks a column of GROUP BY.
    """
    asked, indices = set(wanted), {number: number for number in range(len(relation.schema))}
    groups = relation
    while isinstance(groups, (Project, Filter)):
        if isinstance(groups, Project):
            exprs = [(number, _without_casts(groups.exprs[place])) for number, place in indices.items()]
            indices = {number: expr.index for number, expr in exprs if isinstance(expr, Column)}
        groups = groups.input
    if not asked or not isinstance(groups, GroupAggregate) or groups.is_whole or not groups.calls:
        return
    missing = set(range(len(groups.grouping))) - {indices[number] for number in asked if number in indices}
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


def ensure_key(relation: Relation) -> None:
    """Check that rows which replace others can be found by columns of a result that has no key.

    Raises:
        SqlError: those that find them are not among its columns.
    """
    for below in relation.inputs:
        ensure_key(below)
        key = upsert_key(below)
        scans = [node for node in below.walk() if isinstance(node, Scan) and upsert_names(node)]
        if isinstance(relation, (Project, Union, Unnest)) and scans and key is not None and not upsert_keys(relation):
            columns = ", ".join(below.names[number] for number in key)
            problem = f"rows of a stream replace others by {columns}, which finds them no more behind "
            problem += relation.explain_line()
            remedy = "give the result a key: primary_key(...) of its schema; or let it have UPDATE_BEFORE rows, too"
            raise SqlError(problem, remedy, "", relation.place)


__all__ = ["NO_KEYS", "Keys", "ensure_key", "ensure_one_group", "has_upsert_key", "needs_before", "upsert_key",
           "upsert_keys", "upsert_names"]  # fmt: skip
