"""The steps that sort and number rows, and the error for numbers that are never final."""

from __future__ import annotations

from dataclasses import replace

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..environment_settings import is_batch
from ..errors import SqlError
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Sort, order_text
from ..plan.ranks import ENDLESS_ORDER, Rank, WindowRank, is_by_time
from ..runtime.ranks.arrival_sort import ArrivalSortOperator
from ..runtime.ranks.bounded_rank import bounded_rank, row_numbers
from ..runtime.ranks.limits import LimitOperator, LocalLimitOperator
from ..runtime.ranks.ranking import Ranking
from ..runtime.ranks.sorting import sort
from ..runtime.ranks.window_rank import local_rank, window_rank
from ..types import DataTypes
from .physical_top_rows import translate_top_rows
from .physical_windows import attached_windows
from .time_sort import time_sort
from .translation import Translation, add_keyed_operator, hash_partition, row_type


def translate_sort(translation: Translation, plan: Sort) -> StreamBuilder:
    """Sort in one subtask; with a limit, each subtask before it forwards at most that many rows.

    Raises:
        SqlError: the rows are those of a stream, and it is not said how many are wanted.
    """
    if plan.keys and not is_batch(translation.env.get_configuration()):
        return _sort_by_time(translation, plan)
    rows, name, line = translation.stream(plan.input), "Sort" if plan.keys else "Limit", plan.explain_line()
    if plan.limit is not None:  # each subtask drops rows that cannot be in the result
        most = plan.offset + plan.limit
        local = Factory(sort, plan.keys, 0, most) if plan.keys else Factory(LocalLimitOperator, 0, most)
        rows = rows.add_operator(f"Local{name}", local).set_description(line)
    partitioned = rows.single_partition()
    if plan.keys:
        factory = Factory(sort, plan.keys, plan.offset, plan.limit)
        return partitioned.add_operator(name, factory).set_parallelism(1).set_description(line)
    factory, identity = Factory(LimitOperator, plan.offset, plan.limit), f"first of {rows_of(plan.input)}"
    step = partitioned.add_operator(name, factory, identity=identity).set_parallelism(1).set_description(line)
    if plan.limit is not None:
        translation.limits.add(step.step_id)
    return step


def _sort_by_time(translation: Translation, plan: Sort) -> StreamBuilder:
    """Sort the rows of a stream in one subtask: by event time as the watermark passes, or as they come.

    Raises:
        SqlError: the order does not begin with a time attribute.
    """
    if not is_by_time(plan):
        raise SqlError(*ENDLESS_ORDER, "", plan.place)
    rows, line = translation.stream(plan.input), f"TemporalSort(orderBy=[{order_text(plan.names, plan.keys)}])"
    if not plan.input.schema[plan.keys[0][0]].is_event_time:
        step = rows.single_partition().add_operator("TemporalSort", Factory(ArrivalSortOperator, plan.keys[1:]))
        return step.set_parallelism(1).set_description(line)
    sorted_rows = time_sort(rows, plan.input, (), plan.keys, rows_of(plan.input))
    return sorted_rows.set_parallelism(1).set_description(line)


def translate_rank(translation: Translation, plan: Rank) -> StreamBuilder:
    """Number the rows of whole tables: all of them, or the first ones of each key.

    Raises:
        SqlError: the rows are those of a stream.
    """
    if plan.is_top:
        return translate_top_rows(translation, plan)
    if not plan.is_whole:
        raise _unsupported_rank(plan)
    if plan.last is not None:
        ranking = Ranking(row_type(plan.input), plan.partition, plan.keys, plan.first, plan.last)
        return _top_rows(translation, plan, ranking, Factory(bounded_rank, ranking, arrow_schema(plan.schema)))
    names = [f"c{index}" for index in range(len(plan.input.schema))]
    columns = [plan.input.column(index) for index in range(len(names))]
    schema = tuple(replace(column, name=name) for column, name in zip(plan.input.schema, names, strict=True))
    keys = [names[key] for key in plan.partition]
    rows = translation.add_calc(translation.stream(plan.input), None, columns, schema, plan)
    factory = Factory(row_numbers, plan.partition, plan.keys, arrow_schema(plan.schema))
    return add_keyed_operator(hash_partition(rows, keys), "Rank", factory, keys).set_description(plan.explain_line())


def translate_window_rank(translation: Translation, plan: WindowRank) -> StreamBuilder:
    """Give the first rows of each key and window when the window is over.

    Raises:
        SqlError: the windows are of processing time.
    """
    windowing = plan.input.schema[plan.bounds[0]].windowing
    assert windowing is not None and plan.last is not None
    if not windowing.is_event_time:
        remedy = "use windows of a column with a WATERMARK: by the clock it is not known when all rows are there"
        raise SqlError("ROW_NUMBER() in windows of processing time", remedy, "", plan.place)
    time_type = DataTypes.TIMESTAMP_LTZ(3) if windowing.by_local_time else DataTypes.TIMESTAMP(3)
    window = attached_windows(plan.bounds, windowing, time_type, translation.session.zone)
    order = all_of(plan.input, (index for index, _, _ in plan.keys))
    identity = f"{rows_of(plan.input, plan.partition)}, ordered by {order}"
    row = row_type(plan.input)
    ranking = Ranking(row, plan.others, plan.keys, plan.first, plan.last, window, plan.newest_first, identity)
    return _top_rows(translation, plan, ranking, Factory(window_rank, ranking, window, arrow_schema(plan.schema)))


def _top_rows(translation: Translation, plan: Rank, ranking: Ranking, factory: Factory) -> StreamBuilder:
    """Add the steps that leave out rows of great numbers before the rows are partitioned, and behind."""
    name, line = type(plan).__name__, plan.explain_line()
    local = translation.stream(plan.input).add_operator(f"Local{name}", Factory(local_rank, ranking))
    partitioned = hash_partition(local.set_description(line), ranking.key_names)
    return add_keyed_operator(partitioned, name, factory, ranking.key_names, ranking.state_identity).set_description(
        line
    )


def _unsupported_rank(plan: Rank) -> SqlError:
    """Return the error for row numbers of all rows of a stream, which are never final."""
    remedy = "say how many rows are wanted, as in WHERE rn <= 3 around the query, or run it in batch mode"
    return SqlError("ROW_NUMBER() of all rows of a stream", remedy, "", plan.place)


__all__ = ["translate_rank", "translate_sort", "translate_window_rank"]
