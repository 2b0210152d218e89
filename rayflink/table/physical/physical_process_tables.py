"""The steps that call process table functions."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import ChangelogMode
from ..plan.logical import Relation
from ..plan.process_tables import ProcessTable, TableArgument
from ..runtime.key_columns import columns_key
from ..runtime.processing.process_operators import ProcessRowOperator, ProcessSetOperator
from ..runtime.processing.process_spec import ProcessSpec
from ..types import DataType, DataTypes
from ..user_functions.process.kernels import ProcessKernel
from .time_sort import time_sort
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl


def translate_process_table(translation: Translation, plan: ProcessTable) -> StreamBuilder:
    """Call a process table function for rows, or for the rows of partitions.

    Raises:
        SqlError: another call has the same uid.
    """
    spec, identity = _spec(translation, plan), f"process table function {plan.uid}"
    if not plan.is_set:
        [below] = plan.relations
        rows = translation.stream(below)
        step = rows.add_operator("ProcessTableFunction", Factory(ProcessRowOperator, spec), identity=identity)
        return translation.keep_order(below, rows, step.set_description(plan.explain_line()))
    _ensure_own_uid(translation, plan)
    names = [[below.names[column] for column in table.partition]
             for below, table in zip(plan.relations, plan.tables, strict=True)]  # fmt: skip
    first, *others = (
        _partitioned(translation, below, table, columns, f"{plan.uid} {table.name}")
        for below, table, columns in zip(plan.relations, plan.tables, names, strict=True)
    )
    factory = Factory(ProcessSetOperator, spec)
    if others:
        keys = [columns_key(columns) for columns in names]
        step = first.add_multiple_input_operator(others, "ProcessTableFunction", factory, keys, identity)
        step = step if names[0] else step.set_parallelism(1)
    else:
        step = add_keyed_operator(first, "ProcessTableFunction", factory, names[0], identity)
    waits_for_ttl = any(state.ttl_ms is None for state in spec.kernel.declaration.states)
    return step.set_description(line_with_ttl(plan.explain_line(), spec.ttl_ms if waits_for_ttl else 0))


def _spec(translation: Translation, plan: ProcessTable) -> ProcessSpec:
    kernel = plan.function.kernel
    assert isinstance(kernel, ProcessKernel), f"found {kernel!r}"
    modes = [
        ChangelogMode(translation.changes(below), table.wants_before)
        for below, table in zip(plan.relations, plan.tables, strict=True)
    ]
    return ProcessSpec(
        kernel, plan.tables, tuple(map(_row_type, plan.relations)), tuple(modes), plan.scalars,
        arrow_schema(plan.schema), plan.mode, translation.session, translation.settings.state_ttl_ms,
    )  # fmt: skip


def _row_type(relation: Relation) -> DataType:
    return DataTypes.ROW([DataTypes.FIELD(column.name, column.type) for column in relation.schema])


def _partitioned(
    translation: Translation, below: Relation, table: TableArgument, names: list[str], identity: str
) -> StreamBuilder:
    """Return the rows of a table by partition, put into the order of their times where ORDER BY says so."""
    rows = translation.stream(below)
    if not table.order:
        return hash_partition(rows, names)
    return time_sort(rows, below, table.partition, table.order, identity)


def _ensure_own_uid(translation: Translation, plan: ProcessTable) -> None:
    """Check that no other call has the state of this one.

    Raises:
        SqlError: one has.
    """
    if translation.uids.setdefault(plan.uid, plan) is not plan:
        problem = f"two calls of process table functions have the uid {plan.uid!r}, which identifies their state"
        raise SqlError(problem, "give each another one: f(..., uid => 'name')", "", plan.place)


__all__ = ["translate_process_table"]
