"""The step of a join that looks the rows of a table up by key."""

from __future__ import annotations

from dataclasses import replace

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.joins import JoinKind
from ..plan.lineage import rows_of
from ..plan.logical import Attribute
from ..plan.lookup_joins import LookupJoin
from ..plan.typed import Literal
from ..runtime.joins.join_rows import JoinSide, JoinSpec
from ..runtime.lookups.lookup_calls import LookupSettings
from ..runtime.lookups.lookup_function import TableLookup
from ..runtime.lookups.lookup_join import LookupJoinOperator, LookupSpec
from ..runtime.lookups.resolved_updates import ResolvedSpec, ResolveUpdatesOperator
from ..types import DataTypes
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl


def translate_lookup_join(translation: Translation, plan: LookupJoin) -> StreamBuilder:
    """Ask a table for the rows of each row's key.

    Raises:
        SqlError: rows change, and the options or the hint are for rows that stay.
    """
    rows, is_append = translation.stream(plan.input), _is_append_only(translation, plan)
    lookup = plan.table.source.lookup([key.name for key in plan.keys])
    assert isinstance(lookup, TableLookup), "the rule that made the plan has asked for it"
    distribution = plan.required_distribution(0)
    if distribution is not None:
        rows = hash_partition(rows, [plan.input.names[column] for column in distribution])
    asked = plan if plan.resolved_by is None else _with_misses(plan)
    factory = Factory(LookupJoinOperator, _spec(translation, asked, lookup, is_append))
    step = rows.add_operator("LookupJoin", factory).set_description(plan.explain_line())
    if plan.resolved_by is not None:
        return _resolve_updates(translation, plan, translation.keep_order(plan.input, rows, step))
    return step if distribution is not None else translation.keep_order(plan.input, rows, step)


def _with_misses(plan: LookupJoin) -> LookupJoin:
    """Return a left join with a last column that is NULL where nothing was found."""
    is_found = Literal(DataTypes.BOOLEAN(False), True)
    right = tuple(replace(column, type=column.type.nullable()) for column in plan.schema[plan.width :])
    schema = (*plan.schema[: plan.width], *right, Attribute("$found", DataTypes.BOOLEAN()))
    return replace(plan, schema=schema, kind=JoinKind.LEFT, exprs=(*plan.exprs, is_found))


def _resolve_updates(translation: Translation, plan: LookupJoin, rows: StreamBuilder) -> StreamBuilder:
    """Let a row that is taken back take back what was found when it came."""
    assert plan.resolved_by is not None, "the rows are stored by a key"
    names = [plan.names[column] for column in plan.resolved_by]
    ttl_ms = translation.settings.state_ttl_ms
    table = ".".join(plan.table.known_path)
    identity = f"found rows of {table} for {rows_of(plan.input, plan.resolved_by)}"
    spec = ResolvedSpec(plan.resolved_by, plan.kind is JoinKind.LEFT, ttl_ms, identity)
    factory = Factory(ResolveUpdatesOperator, spec, arrow_schema(plan.schema))
    step = add_keyed_operator(hash_partition(rows, names), "LookupMaterialize", factory, names, identity)
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _is_append_only(translation: Translation, plan: LookupJoin) -> bool:
    """Return whether rows of the input stay; check what is asked for where they do not.

    Raises:
        SqlError: changes of a row would lose their order.
    """
    if not translation.changes(plan.input) & (Change.UPDATE | Change.DELETE):
        return True
    if plan.hint.is_shuffled:
        table = ".".join(plan.table.known_path)
        problem = f"the hint LOOKUP of {table} has 'shuffle' = 'true', and the rows of the input change"
        raise SqlError(problem, "leave it out: changes of a row would lose their order", "", plan.place)
    return False


def _spec(translation: Translation, plan: LookupJoin, lookup: TableLookup, is_append: bool) -> LookupSpec:
    scan = plan.table
    keys = arrow_schema(tuple(Attribute(key.name, key.value.type) for key in plan.keys))
    right = tuple(
        Attribute(column.name, expr.type) for column, expr in zip(plan.schema[plan.width :], plan.exprs, strict=True)
    )
    own, other = (JoinSide(arrow_schema(schema), (), ()) for schema in (plan.input.schema, right))
    join = JoinSpec(plan.kind, own, other, (), plan.condition, arrow_schema(plan.schema), translation.session)
    settings = _settings(translation, plan, lookup, is_append)
    values = tuple(key.value for key in plan.keys)
    table = ".".join(scan.known_path)
    return LookupSpec(table, lookup, settings, keys, values, arrow_schema(scan.schema), plan.where, plan.exprs, join)


def _settings(translation: Translation, plan: LookupJoin, lookup: TableLookup, is_append: bool) -> LookupSettings:
    """Return how the table is asked, by the hint and else by the options."""
    hint, options = plan.hint, translation.settings.lookups
    is_async = lookup.function.is_async if hint.is_async is None else hint.is_async
    is_unordered = options.is_unordered if hint.is_unordered is None else hint.is_unordered
    timeout_ms = hint.timeout_ms
    if timeout_ms is None:
        timeout_ms = 0 if lookup.is_whole else options.timeout_ms
    return LookupSettings(
        (hint.capacity or options.capacity) if is_async else 1,
        not (is_unordered and is_async and is_append),
        timeout_ms,
        hint.most_attempts if hint.retries_misses else 0,
        hint.delay_ms,
    )


__all__ = ["translate_lookup_join"]
