"""Completes the changelogs of upsert sources where a plan needs them whole.

A source whose updates lack the row before has a key. As long as its rows only pass on to a table with the same key,
they may stay as they are. A filter, a group, a result without that key and a table of complete changes need the row
before an update, and all columns of a deleted row: there a ChangelogNormalize stands behind the source.

Source: apache/flink StreamPhysicalTableSourceScanRule, WatermarkAssignerChangelogNormalizeTransposeRule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from rayflink.common.options.registry import UpsertMaterialize as Strategy

from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.conflicts import OnConflict
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


def normalize_upserts(
    plans: Iterable[Relation], strategy: Strategy, requires_on_conflict: bool = False
) -> list[Relation]:
    """Return the plans with a ChangelogNormalize behind each upsert source of which more than the key is needed.

    Before a table whose key is not that of the rows which are written to it the rows of each key are stored, or the
    table wants the rows before updates.

    Args:
        strategy: before which tables rows are stored.
        requires_on_conflict: an INSERT has to say what happens where rows may have one primary key.

    Raises:
        SqlError: it does not say, or what it says cannot be done.
    """
    if requires_on_conflict and strategy is Strategy.AUTO:
        for plan in plans:
            _ensure_conflict_clause(plan)
    return [_completed(_by_its_key(plan, strategy), _Need.WHOLE) for plan in plans]


def _by_its_key(plan: Relation, strategy: Strategy) -> Relation:
    if not isinstance(plan, Sink):
        return plan
    if plan.on_conflict is not None:
        _ensure_conflicts_are_handled(plan, plan.on_conflict, strategy)
    if _is_materialized(plan, strategy):
        below = plan.input
        key, row_key = tuple(below.names.index(name) for name in plan.sink.key), upsert_key(below)
        stored = UpsertMaterialize(
            below.schema, below, key, row_key or tuple(range(len(below.schema))),
            plan.on_conflict or OnConflict.DEDUPLICATE, row_key is not None, ".".join(plan.path), place=plan.place,
        )  # fmt: skip
        return replace(plan, input=stored)
    return replace(plan, needs_before=needs_before(plan.input, plan.sink.key))


def _is_materialized(plan: Sink, strategy: Strategy) -> bool:
    if strategy is Strategy.NONE or not plan.sink.key or plan.sink.requires_update_before or plan.sink.is_append_only:
        return False
    is_found = _is_found_by_key(plan)
    changes = _changes(plan.input) & (Change.UPDATE | Change.DELETE)
    waits = plan.on_conflict is not None and plan.on_conflict.waits
    return strategy is Strategy.FORCE or ((bool(changes) or waits) and not is_found)


def _is_found_by_key(plan: Sink) -> bool:
    """Return whether rows with one primary key of the table are one row of the query."""
    names, key = plan.input.names, set(plan.sink.key)
    return any({names[number] for number in columns} <= key for columns in upsert_keys(plan.input))


def _ensure_conflict_clause(plan: Relation) -> None:
    """Check that an INSERT says what happens to several rows with one primary key, where there may be some.

    Raises:
        SqlError: it does not.
    """
    if not isinstance(plan, Sink) or plan.on_conflict is not None or not plan.sink.key:
        return
    if plan.sink.requires_update_before or plan.sink.is_append_only or _is_found_by_key(plan):
        return
    problem = f"{'.'.join(plan.path)} has the primary key {', '.join(plan.sink.key)}, and the query no such key"
    remedy = "write ON CONFLICT DO DEDUPLICATE, DO ERROR or DO NOTHING behind it"
    raise SqlError(problem, f"{remedy}, or set 'table.exec.sink.require-on-conflict' to false", "", plan.place)


def _ensure_conflicts_are_handled(plan: Sink, on_conflict: OnConflict, strategy: Strategy) -> None:
    """Check that a table takes ON CONFLICT, and that it would not be ignored.

    Raises:
        SqlError: it does not, or it would.
    """
    name, written = ".".join(plan.path), f"ON CONFLICT {on_conflict.value}"
    reason = ""
    if not plan.sink.key or plan.sink.is_append_only:
        reason = "has no PRIMARY KEY by which rows replace others"
    elif plan.sink.requires_update_before:
        reason = "takes the row before an update"
    if reason:
        remedy = "leave the clause out, or write into a table of upserts, with a PRIMARY KEY"
        raise SqlError(f"{written}, and {name} {reason}", remedy, "", plan.place)
    if strategy is Strategy.NONE:
        problem = f"{written} would be ignored, since 'table.exec.sink.upsert-materialize' is NONE"
        raise SqlError(problem, "set it to AUTO, or leave the clause out", "", plan.place)
    if on_conflict.waits:
        for scan in _without_watermark(plan):
            problem = f"{written} waits for the watermark, and {scan.known_path[-1]!r} has none"
            raise SqlError(problem, "declare WATERMARK FOR a column of it, or write DO DEDUPLICATE", "", scan.place)


def _without_watermark(relation: Relation) -> Iterator[Scan]:
    """Yield the tables whose rows get there without watermarks."""
    match relation:
        case WatermarkAssigner():
            return
        case Scan():
            yield relation
        case _:
            for below in relation.inputs:
                yield from _without_watermark(below)


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
