"""The steps that follow the last row of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.errors import assert_never
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.lineage import all_of, lineage, rows_of
from ..plan.logical import Relation
from ..plan.ranks import Deduplicate
from ..plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize
from ..runtime.upserts.compact_operator import CompactOperator, StampOperator
from ..runtime.upserts.compacted_rows import CompactSpec
from ..runtime.upserts.copy_numbers import CopyNumberOperator, CopySpec
from ..runtime.upserts.last_row_operators import LastRowOperator, MiniBatchLastRowOperator
from ..runtime.upserts.last_rows import LastRowSpec
from ..runtime.upserts.materialize_operator import MaterializeOperator
from ..runtime.upserts.materialized_rows import MaterializeSpec
from ..types import Root
from .physical_groups import mini_batch_limits
from .physical_top_rows import ensure_rows_can_be_found
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl

if TYPE_CHECKING:
    import pyarrow


def translate_upserts(
    translation: Translation, plan: ChangelogNormalize | UpsertMaterialize | NumberCopies
) -> StreamBuilder:
    """Add the step that makes a changelog of rows by their keys.

    Raises:
        SqlError: rows cannot be compared.
    """
    match plan:
        case ChangelogNormalize():
            return _translate_normalize(translation, plan)
        case UpsertMaterialize():
            return _translate_materialize(translation, plan)
        case NumberCopies():
            return _translate_copies(translation, plan)
        case _:
            assert_never(plan)


def _translate_normalize(translation: Translation, plan: ChangelogNormalize) -> StreamBuilder:
    """Remember the last row of each key, and emit what changes it."""
    identity = f"last of {rows_of(plan.input, plan.key)}"
    spec = LastRowSpec(_types(plan.input), plan.key, translation.ttl_ms(plan), translation.wants_before(plan), identity)
    return _add_last_rows(translation, plan, plan.input, spec)


def translate_last_rows(translation: Translation, plan: Deduplicate) -> StreamBuilder:
    """Emit the last row of each key, and each later one in its place."""
    below, time = plan.input, plan.keys[0][0]
    order = f", in the order of {lineage(below, time)}" if plan.is_event_time else ""
    spec = LastRowSpec(
        _types(below), plan.partition, translation.ttl_ms(plan), translation.wants_before(plan),
        f"last of {rows_of(below, plan.partition)}{order}", time if plan.is_event_time else None,
        None if plan.is_event_time else time,
    )  # fmt: skip
    return _add_last_rows(translation, plan, below, spec)


def _translate_copies(translation: Translation, plan: NumberCopies) -> StreamBuilder:
    """Number equal rows of a changelog.

    Raises:
        SqlError: rows cannot be compared.
    """
    below, ttl_ms = plan.input, translation.ttl_ms(plan)
    for column in below.schema:
        if column.type.items or column.type.root is Root.ROW:
            problem = "rows change and have no key, so that what a lookup join finds is stored by all their columns, "
            problem += f"and {column.name!r} is of type {column.type}, which cannot be compared"
            remedy = "CAST it to STRING; select a part of it; or let the rows have a key"
            raise SqlError(problem, remedy, "", plan.place)
    identity = f"numbers of {rows_of(below)}"
    factory = Factory(CopyNumberOperator, CopySpec(_types(below), ttl_ms, identity), arrow_schema(plan.schema))
    step = add_keyed_operator(
        hash_partition(translation.stream(below), below.names), "NumberCopies", factory, below.names, identity
    )
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _translate_materialize(translation: Translation, plan: UpsertMaterialize) -> StreamBuilder:
    """Store the rows of each key of a table, and emit the last one; or one when the watermark has passed its changes.

    Raises:
        SqlError: rows cannot be compared.
    """
    below, ttl_ms = plan.input, translation.ttl_ms(plan)
    if not plan.table:
        ensure_rows_can_be_found(below, plan.compared, plan.place)
    for column in plan.compared:
        kind = below.schema[column].type
        if kind.items or kind.root is Root.ROW:
            problem = f"rows are stored by the key of the table, and {below.names[column]!r} is of type {kind}"
            remedy = "let the query have the same key as the table, or CAST the column to STRING, as it is compared"
            raise SqlError(problem, remedy, "", plan.place)
    identity = f"of {rows_of(below, plan.key)}, compared by {all_of(below, plan.compared)}"
    rows, schema = translation.stream(below), arrow_schema(plan.schema)
    factory = Factory(
        MaterializeOperator, MaterializeSpec(_types(below), plan.key, plan.compared, ttl_ms, identity), schema
    )
    if plan.on_conflict.waits:
        row_key = plan.compared if plan.has_row_key else ()
        spec = CompactSpec(
            _types(below), tuple(below.names), plan.key, row_key, plan.on_conflict, ttl_ms, plan.table, identity
        )  # fmt: skip
        factory, identity = Factory(CompactOperator, spec, schema), f"{identity}, {plan.on_conflict.value}"
        rows = translation.keep_order(below, rows, rows.add_operator("WatermarkStamp", Factory(StampOperator)))
    names = [below.names[column] for column in plan.key]
    step = add_keyed_operator(hash_partition(rows, names), "UpsertMaterialize", factory, names, identity)
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _types(relation: Relation) -> tuple[pyarrow.DataType, ...]:
    return tuple(column.type.to_arrow() for column in relation.schema)


def _add_last_rows(translation: Translation, plan: Relation, below: Relation, spec: LastRowSpec) -> StreamBuilder:
    names: Sequence[str] = [below.names[column] for column in spec.keys]
    limits, schema = mini_batch_limits(translation), arrow_schema(plan.schema)
    factory = Factory(LastRowOperator, spec, schema)
    if limits is not None and spec.event_time is None:
        factory = Factory(MiniBatchLastRowOperator, spec, schema, limits)
    rows = hash_partition(translation.stream(below), names)
    step = add_keyed_operator(rows, type(plan).__name__, factory, names, spec.state_identity)
    return step.set_description(line_with_ttl(plan.explain_line(), spec.ttl_ms))


__all__ = ["translate_last_rows", "translate_upserts"]
