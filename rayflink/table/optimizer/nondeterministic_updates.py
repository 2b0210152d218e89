"""Lets a row which is taken back have the values with which it came, or refuses the query.

What a lookup join finds is stored by the key of its input's rows, where they change. Where they have no key, equal rows
are numbered first, and all columns are their key.

A function such as UUID() or NOW() gives another value when a row is deleted or replaced than when it came. A step that
finds the earlier row by such a value does not find it, and the result keeps rows that are gone.

Source: apache/flink StreamNonDeterministicUpdatePlanVisitor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import SqlError
from ..plan.changelog import Change, changes_of
from ..plan.groups import GroupAggregate
from ..plan.logical import Attribute, Filter, Project, Relation, Sink, Sort, WatermarkAssigner
from ..plan.lookup_joins import LookupJoin
from ..plan.op_columns import ToChangelog
from ..plan.typed import Call, Expr
from ..plan.upsert_keys import has_upsert_key, upsert_key
from ..plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize
from ..types import DataTypes
from .rules.push_projection_into_scan import columns_of, moved, used_by

_COPY = "$copy"
_REMEDY = (
    "compute it before rows change, or where they no longer do; use a function that always gives the same result; or "
    "set 'table.optimizer.non-deterministic-update.strategy' = 'IGNORE'"
)


def resolve_lookups(plans: Iterable[Relation]) -> list[Relation]:
    """Return plans whose lookup joins store what they found, where their input's rows change."""
    return [plan.mapped(_resolved) for plan in plans]


def _resolved(relation: Relation) -> Relation:
    if not isinstance(relation, LookupJoin) or not changes_of(relation.input) & (Change.UPDATE | Change.DELETE):
        return relation
    key = upsert_key(relation.input)
    return _by_all_columns(relation) if key is None else replace(relation, resolved_by=key)


def _by_all_columns(join: LookupJoin) -> Relation:
    """Return a join whose input's rows, which have no key, are found by all columns and their numbers among equals."""
    width, number = join.width, Attribute(_COPY, DataTypes.BIGINT(False))
    numbered = NumberCopies((*join.input.schema, number), join.input, place=join.place)
    places = {index: index + (index >= width) for index in range(len(join.schema))}
    condition = None if join.condition is None else moved(join.condition, places)
    schema = (*join.schema[:width], number, *join.schema[width:])
    resolved = replace(
        join, schema=schema, input=numbered, condition=condition, resolved_by=tuple(range(len(numbered.schema)))
    )
    exprs = tuple(resolved.column(index) for index in range(len(schema)) if index != width)
    return Project(join.schema, resolved, exprs, place=join.place)


def ensure_deterministic_updates(plans: Iterable[Relation]) -> None:
    """Check that no value by which an earlier row is found differs each time it is computed.

    Raises:
        SqlError: a function over rows that change gives such a value.
    """
    for plan in plans:
        _check(plan, range(len(plan.schema)))


def _check(relation: Relation, needed: Sequence[int]) -> Change:
    """Check a relation, of which these columns must be the same when a row is taken back; return its changes."""
    inputs = [_check(below, _needed_of(relation, below, needed)) for below in relation.inputs]
    if any(changes & (Change.UPDATE | Change.DELETE) for changes in inputs):
        match relation:
            case Project():
                for column in needed:
                    _ensure_deterministic(relation.exprs[column], f"column {relation.names[column]!r}", relation)
            case Filter():
                _ensure_deterministic(relation.condition, "a condition", relation)
            case _:
                for expr in relation.exprs_of_rows:
                    _ensure_deterministic(expr, "a column", relation)
    return relation.gives_changes(inputs)


def _needed_of(relation: Relation, below: Relation, needed: Sequence[int]) -> Sequence[int]:
    match relation:
        case ToChangelog():
            return ()
        case Sink():
            is_by_key = not relation.sink.requires_update_before and has_upsert_key(below, relation.sink.key)
            return [below.names.index(name) for name in relation.sink.key] if is_by_key else range(len(below.schema))
        case Project():
            return columns_of(*(relation.exprs[column] for column in needed))
        case Filter() | WatermarkAssigner() | Sort():
            return needed
        case GroupAggregate():
            return sorted({*relation.grouping, *(column for call in relation.calls for column in used_by(call))})
        case ChangelogNormalize():
            return relation.key
        case UpsertMaterialize():
            return sorted({*relation.key, *relation.compared})
    return range(len(below.schema))


def _ensure_deterministic(expr: Expr, what: str, relation: Relation) -> None:
    for call in expr.walk():
        if isinstance(call, Call) and not call.function.is_deterministic:
            problem = f"{what} is computed by {call.function.name}, which gives another value each time, of rows that "
            problem += f"change, in {relation.explain_line()}: a row could not be found when it is replaced or deleted"
            raise SqlError(problem, _REMEDY, "", relation.place)


__all__ = ["ensure_deterministic_updates", "resolve_lookups"]
