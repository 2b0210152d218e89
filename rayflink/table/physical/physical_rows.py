"""The steps that work each row by itself: projections, filters, unions, collections and changelogs as columns."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.logical import Filter, Project, Relation, Sort, Union, Unnest
from ..plan.op_columns import FromChangelog, ToChangelog
from ..plan.typed import Column, Expr
from ..runtime.op_columns import KindsToStrings, StringsToKinds
from ..runtime.unnest import UnnestOperator
from ..types import Root
from .translation import Translation, hash_partition


def translate_calc(translation: Translation, plan: Project | Filter) -> StreamBuilder:
    """Translate a Project over a Filter, or one of them, to one step."""
    condition: Expr | None = None
    exprs: Sequence[Expr] = ()
    below: Relation = plan
    if isinstance(below, Project):
        exprs, below = below.exprs, below.input
    if isinstance(below, Filter):
        condition, below = below.condition, below.input
    rows = translation.stream(below)
    step = translation.keep_order(below, rows, translation.add_calc(rows, condition, exprs, plan.schema, plan))
    return step.set_parallelism(1) if isinstance(below, Sort) else step  # several subtasks would mix the order up


def translate_union(translation: Translation, plan: Union) -> StreamBuilder:
    """Merge streams, each of them first cast to the types of the union where they differ."""
    schema = arrow_schema(plan.schema)
    streams = []
    for source in plan.sources:
        stream = translation.stream(source)
        if arrow_schema(source.schema) != schema:
            columns = tuple(Column(column.type, index, column.name) for index, column in enumerate(source.schema))
            step = translation.add_calc(stream, None, columns, plan.schema, plan)
            stream = translation.keep_order(source, stream, step)
        streams.append(stream)
    if translation.is_order_kept(plan) and len({stream.parallelism for stream in streams}) > 1:
        streams = [_by_value(stream, plan) for stream in streams]
    return streams[0].union(*streams[1:])


def _by_value(stream: StreamBuilder, plan: Union) -> StreamBuilder:
    """Send equal rows to one subtask, so that one that comes stays before its end, unless all steps are so wide."""
    if stream.parallelism is None:
        return stream
    nested = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW)
    return hash_partition(stream, [column.name for column in plan.schema if column.type.root not in nested])


def translate_unnest(translation: Translation, plan: Unnest) -> StreamBuilder:
    """Pair each row with the elements of a collection."""
    is_multiset = plan.collection.type.root is Root.MULTISET
    factory = Factory(
        UnnestOperator, plan.collection, plan.row_columns, plan.is_left, is_multiset, plan.has_ordinality,
        arrow_schema(plan.schema), translation.session, plan.without_updates,
    )  # fmt: skip
    return _add_operator(translation, plan, plan.input, "Correlate", factory)


def translate_changelog_column(translation: Translation, plan: ToChangelog | FromChangelog) -> StreamBuilder:
    """Translate the kinds of rows to strings in a column, or back; rows keep the order of their source until then."""
    if isinstance(plan, ToChangelog):
        factory = Factory(KindsToStrings, plan.codes, arrow_schema(plan.schema))
        return _add_operator(translation, plan, plan.input, "ToChangelog", factory)
    factory = Factory(StringsToKinds, plan.op, plan.codes, arrow_schema(plan.schema))
    return _add_operator(translation, plan, plan.input, "FromChangelog", factory)


def _add_operator(
    translation: Translation, plan: Relation, below: Relation, name: str, factory: Factory
) -> StreamBuilder:
    rows = translation.stream(below)
    step = rows.add_operator(name, factory).set_description(plan.explain_line())
    return translation.keep_order(below, rows, step)


__all__ = ["translate_calc", "translate_changelog_column", "translate_union", "translate_unnest"]
