"""Completes the changelogs of upsert sources where a plan needs them whole.

A source whose updates lack the row before has a key. As long as its rows only pass on to a table with the same key,
they may stay as they are. A filter, a group, a result without that key and a table of complete changes need the row
before an update, and all columns of a deleted row: there a ChangelogNormalize stands behind the source.

Source: apache/flink StreamPhysicalTableSourceScanRule, WatermarkAssignerChangelogNormalizeTransposeRule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum

from rayflink.common.options.registry import UpsertMaterialize as Strategy

from ..plan.changelog import Change
from ..plan.logical import Project, Relation, Scan, Sink, WatermarkAssigner
from ..plan.op_columns import ToChangelog
from ..plan.temporal_joins import TemporalJoin
from ..plan.typed import Column
from ..plan.upsert_keys import has_upsert_key, needs_before, upsert_key, upsert_keys, upsert_names
from ..plan.upserts import ChangelogNormalize, UpsertMaterialize


class _Need(Enum):
    """The completeness that is wanted of the changes of a step."""

    NOTHING = "each change is a row by itself"
    KEY = "the key finds the row that is replaced"
    WHOLE = "updates and deletions include the whole row before"


def normalize_upserts(plans: Iterable[Relation], strategy: Strategy) -> list[Relation]:
    """Return the plans with a ChangelogNormalize behind each upsert source of which more than the key is needed.

    Before a table whose key is not that of the rows which are written to it the rows of each key are stored, or the
    table wants the rows before updates.

    Args:
        strategy: before which tables rows are stored.
    """
    return [_completed(_by_its_key(plan, strategy), _Need.WHOLE) for plan in plans]


def _by_its_key(plan: Relation, strategy: Strategy) -> Relation:
    if not isinstance(plan, Sink):
        return plan
    if _is_materialized(plan, strategy):
        below = plan.input
        key = tuple(below.names.index(name) for name in plan.sink.key)
        compared = upsert_key(below) or tuple(range(len(below.schema)))
        stored = UpsertMaterialize(below.schema, below, key, compared, place=plan.place)
        return replace(plan, input=stored)
    return replace(plan, needs_before=needs_before(plan.input, plan.sink.key))


def _is_materialized(plan: Sink, strategy: Strategy) -> bool:
    if strategy is Strategy.NONE or not plan.sink.key or plan.sink.requires_update_before or plan.sink.is_append_only:
        return False
    names, key = plan.input.names, set(plan.sink.key)
    is_found = any({names[number] for number in columns} <= key for columns in upsert_keys(plan.input))
    changes = _changes(plan.input) & (Change.UPDATE | Change.DELETE)
    return strategy is Strategy.FORCE or (bool(changes) and not is_found)


def _changes(relation: Relation) -> Change:
    return relation.gives_changes([_changes(below) for below in relation.inputs])


def _completed(relation: Relation, need: _Need) -> Relation:
    scan = _source_of(relation)
    if scan is not None:
        is_whole = need is _Need.WHOLE or scan.is_duplicated
        return _normalized(relation, scan) if is_whole and upsert_names(scan) else relation
    below = tuple(_completed(lower, _need_below(relation, need)) for lower in relation.inputs)
    is_same = all(new is old for new, old in zip(below, relation.inputs, strict=True))
    return relation if is_same else relation.with_inputs(below)


def _need_below(relation: Relation, need: _Need) -> _Need:
    match relation:
        case ToChangelog():
            return _Need.NOTHING
        case TemporalJoin():  # whose right side has the key, and wants the time of a deletion, not that of its row
            return _Need.KEY
        case Sink():
            if relation.requires_update_before(False) or relation.sink.is_append_only:
                return _Need.WHOLE
            key = relation.sink.key
            return _Need.KEY if not key or has_upsert_key(relation.input, key) else _Need.WHOLE
    if relation.requires_update_before(need is _Need.WHOLE):
        return _Need.WHOLE
    return _Need.WHOLE if need is _Need.KEY and not upsert_keys(relation) else need


def _source_of(relation: Relation) -> Scan | None:
    """Return the table of which a relation has the rows, with their watermarks; None: it is more than that."""
    if isinstance(relation, WatermarkAssigner):
        relation = relation.input.input if isinstance(relation.input, Project) else relation.input
    return relation if isinstance(relation, Scan) else None


def _normalized(relation: Relation, scan: Scan) -> Relation:
    wide = _with_columns(relation, [scan.names.index(name) for name in upsert_names(scan)])
    numbers = _places(wide)
    key = tuple(numbers[scan.names.index(name)] for name in upsert_names(scan))
    whole = ChangelogNormalize(wide.schema, wide, key, place=relation.place)
    if len(wide.schema) == len(relation.schema):
        return whole
    columns = tuple(whole.column(number) for number in range(len(relation.schema)))
    return Project(relation.schema, whole, columns)


def _with_columns(relation: Relation, columns: Sequence[int]) -> Relation:
    """Return rows of a source with these columns of the scan, which stand at the end where a projection left them out.

    Args:
        columns: numbers of columns of the scan.
    """
    match relation:
        case WatermarkAssigner():
            below = _with_columns(relation.input, columns)
            schema = (*relation.schema, *below.schema[len(relation.schema) :])
            return replace(relation, schema=schema, input=below)
        case Project():
            missing = [number for number in columns if number not in _places(relation)]
            exprs = tuple(relation.input.column(number) for number in missing)
            schema = (*relation.schema, *(relation.input.schema[number] for number in missing))
            return replace(relation, schema=schema, exprs=(*relation.exprs, *exprs))
    return relation


def _places(relation: Relation) -> dict[int, int]:
    """Return the numbers of columns of the scan below, with their numbers here."""
    if isinstance(relation, WatermarkAssigner):
        return _places(relation.input)
    if isinstance(relation, Project):
        return {expr.index: number for number, expr in enumerate(relation.exprs) if isinstance(expr, Column)}
    return {number: number for number in range(len(relation.schema))}


__all__ = ["normalize_upserts"]
