"""The steps that write tables, and the constraints of their columns."""

from __future__ import annotations

from rayflink.common.errors import assert_never
from rayflink.common.options.registry import NotNullEnforcer, SinkKeyedShuffle, TypeLengthEnforcer
from rayflink.datastream.streams.step import Step
from rayflink.datastream.streams.stream_builder import StreamBuilder, keep_parallelism, set_sink_identity
from rayflink.operators.factory import Factory

from ..errors import SqlError
from ..plan.logical import Sink
from ..runtime.constraints import ConstraintOperator, Length
from ..types import MOST_LENGTH, Root
from .planner_settings import PlannerSettings
from .translation import Translation, hash_partition


def write_table(translation: Translation, plan: Sink) -> Step:
    """Write the rows of a query into a table, and return the last step.

    Raises:
        SqlError: rows change, and the sink would change their order.
    """
    if plan.sink.loses_order and translation.is_order_kept(plan.input):
        problem = f"{'.'.join(plan.path)} has 'sink.parallelism' and no PRIMARY KEY, and the rows of the query change: "
        problem += "the changes of a row could overtake each other"
        raise SqlError(problem, "leave the option out, or declare a PRIMARY KEY, by which changes are distributed")
    rows = _constrained(translation, plan, translation.stream(plan.input))
    step: Step = plan.sink.attach(_partitioned_by_key(translation, plan, rows).stream, f"Sink: {plan.path[-1]}")
    if translation.is_order_kept(plan.input):
        keep_parallelism(step, rows)
    set_sink_identity(step, f"into {'.'.join(plan.path)}")
    return step


def is_shuffled(strategy: SinkKeyedShuffle, writers: int, senders: int) -> bool:
    """Return whether rows are partitioned by the key of the table before they are written.

    Args:
        writers: subtasks that write.
        senders: subtasks from which the rows come.

    Source: apache/flink CommonExecSink.

    >>> is_shuffled(SinkKeyedShuffle.AUTO, 3, 2), is_shuffled(SinkKeyedShuffle.AUTO, 3, 3)
    (True, False)
    """
    match strategy:
        case SinkKeyedShuffle.NONE:
            return False
        case SinkKeyedShuffle.AUTO:
            return writers not in (1, senders)
        case SinkKeyedShuffle.FORCE:
            return writers != 1
        case _:
            assert_never(strategy)


def _partitioned_by_key(translation: Translation, plan: Sink, rows: StreamBuilder) -> StreamBuilder:
    """Partition rows by the key of the table, so that those of a key stay in order, where the settings say so."""
    key, senders = plan.sink.row_key, rows.parallelism or translation.env.get_parallelism()
    writers = plan.sink.parallelism or senders
    if not key or not is_shuffled(translation.settings.keyed_shuffle, writers, senders):
        return rows
    return hash_partition(rows, key)


def _constrained(translation: Translation, plan: Sink, rows: StreamBuilder) -> StreamBuilder:
    """Apply the constraints of the table to the rows."""
    not_null, lengths = _not_null(plan), _lengths(plan, translation.settings)
    if not (not_null or lengths):
        return rows
    names = plan.input.names
    drops = translation.settings.not_null is NotNullEnforcer.DROP
    factory = Factory(ConstraintOperator, ".".join(plan.path), names, not_null, drops, lengths)
    line = f"ConstraintEnforcer(NotNull=[{', '.join(names[index] for index in not_null)}])"
    step = rows.add_operator("ConstraintEnforcer", factory).set_description(line)
    return translation.keep_order(plan.input, rows, step)


def _not_null(plan: Sink) -> list[int]:
    """Return the numbers of the columns that may be NULL in the query and must not be in the table."""
    pairs = enumerate(zip(plan.declared, plan.input.schema, strict=True)) if plan.declared else ()
    return [index for index, (declared, column) in pairs if column.type.is_nullable and not declared.is_nullable]


def _lengths(plan: Sink, settings: PlannerSettings) -> list[Length]:
    """Return the lengths of strings and bytes that the table's types allow, where they are enforced."""
    if settings.type_length is TypeLengthEnforcer.IGNORE:
        return []
    pads = settings.type_length is TypeLengthEnforcer.TRIM_PAD
    return [
        Length(index, declared.length, declared.root in (Root.CHAR, Root.BINARY), pads)
        for index, declared in enumerate(plan.declared)
        if (declared.is_text or declared.is_bytes) and declared.length < MOST_LENGTH
    ]


__all__ = ["is_shuffled", "write_table"]
