"""The steps that read tables: scans, watermarks and constant rows."""

from __future__ import annotations

from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.graph.transformations import next_id

from ..connectors.in_memory import HeldTable
from ..conversion.arrow_columns import arrow_schema
from ..environment_settings import is_batch
from ..errors import SqlError
from ..optimizer.conditions import is_movable
from ..optimizer.rules.merge_projections_and_filters import inlined
from ..plan.logical import Attribute, Project, Scan, Values, WatermarkAssigner
from ..plan.typed import Column, Expr, Literal
from ..runtime.event_time import watermark_strategy
from .translation import Translation


def translate_scan(translation: Translation, plan: Scan, strategy: WatermarkStrategy | None = None) -> StreamBuilder:
    """Read a table.

    Args:
        strategy: generates watermarks in the source, for each split; None: the source generates its own, or none.

    Raises:
        SqlError: the table has no end, and the query runs in batch mode.
    """
    newest = next_id()
    source = plan.source.in_order() if plan in translation.ordered_changelogs else plan.source
    stream = StreamBuilder(source.stream(translation.env, strategy, plan.known_path[-1]))
    if is_batch(translation.env.get_configuration()) and stream.endless_source() is not None:
        problem = f"{plan.explain_line()} has no end, and in batch mode a query sees all rows of its tables"
        remedy = "run it in streaming mode, or give the table an end, as by 'number-of-rows' of datagen"
        raise SqlError(problem, remedy, "", plan.place)
    if len(plan.path) > 1 and plan.is_named:
        stream.set_source_identity(f"from {'.'.join(plan.path)}", newest)
    return stream.set_description(plan.explain_line())


def translate_watermarks(translation: Translation, plan: WatermarkAssigner) -> StreamBuilder:
    """Generate watermarks in the source, for each split: the expression is over the source's columns.

    Raises:
        SqlError: the relation below is no table.
    """
    below = plan.input
    expression: Expr = plan.expression
    time: Expr = below.column(plan.time)
    exprs: tuple[Expr, ...] | None = None
    if isinstance(below, Project):
        exprs = below.exprs
        expression, time, below = inlined(expression, exprs), inlined(time, exprs), below.input
    if not isinstance(below, Scan):
        raise SqlError("the watermark is not declared on a table", "declare it where the table is created")
    if not (is_movable(expression) and is_movable(time)):
        return _computed_watermarks(translation, plan)
    key = (below, expression, time)
    stream = translation.scans_with_watermarks.get(key)
    if stream is None:
        is_own = isinstance(expression, Literal)  # SOURCE_WATERMARK()
        strategy = None if is_own else _strategy(translation, expression, time)
        stream = translate_scan(translation, below, strategy)
        if translation.settings.reuses(below):
            translation.scans_with_watermarks[key] = stream
    if exprs is None:
        return stream
    return translation.keep_order(below, stream, translation.add_calc(stream, None, exprs, plan.schema, plan))


def _strategy(translation: Translation, expression: Expr, time: Expr) -> WatermarkStrategy:
    strategy = watermark_strategy(expression, time, translation.session)
    timeout_ms = translation.settings.idle_timeout_ms
    return strategy.with_idleness(Duration.of_millis(timeout_ms)) if timeout_ms else strategy


def _computed_watermarks(translation: Translation, plan: WatermarkAssigner) -> StreamBuilder:
    """Compute a time that differs at each evaluation once, so that rows and watermarks agree about it."""
    columns: tuple[Column, ...] = tuple(plan.input.column(index) for index in range(len(plan.schema)))
    schema = (*plan.schema, Attribute("$watermark", plan.expression.type))
    with_watermark = Project(schema, plan.input, (*columns, plan.expression))
    strategy = _strategy(translation, with_watermark.column(len(columns)), columns[plan.time])
    rows = translation.stream(with_watermark)
    timed = translation.keep_order(with_watermark, rows, rows.assign_watermarks(strategy))
    step = translation.add_calc(timed, None, columns, plan.schema, plan)
    return translation.keep_order(with_watermark, timed, step)


def translate_values(translation: Translation, plan: Values) -> StreamBuilder:
    """Read constant rows from memory."""
    import pyarrow

    schema = arrow_schema(plan.schema)
    if schema.names:
        columns = [pyarrow.array([row[index] for row in plan.rows], field.type) for index, field in enumerate(schema)]
        table = pyarrow.Table.from_arrays(columns, schema=schema)
    else:  # SELECT without FROM: one row
        table = pyarrow.table({"nothing": pyarrow.nulls(len(plan.rows), pyarrow.int8())})
    return StreamBuilder(HeldTable(table).stream(translation.env, None, "Values"))


__all__ = ["translate_scan", "translate_values", "translate_watermarks"]
