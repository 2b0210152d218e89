"""Constraints of a table on the rows written to it: NOT NULL, and the length of strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.user_function import UserCode

from ..plan.typed import RowError

if TYPE_CHECKING:
    import pyarrow

DROPPED = "numNullRecordsDropped"
"""The metric of rows that were left out."""


@dataclass(frozen=True)
class Length:
    """The length of a column's strings or bytes.

    Args:
        column: its number.
        most: characters or bytes at most.
        is_fixed: this many, neither more nor fewer.
        mends: others are cut and filled up; else they are an error.
    """

    column: int
    most: int
    is_fixed: bool
    mends: bool


class ConstraintOperator(Operator):
    """Lets rows through that a table takes.

    Args:
        table: its name, for messages.
        names: of the columns.
        not_null: numbers of those that have no NULL.
        drops: rows that have are left out and counted; else they are an error.
        lengths: of columns that have one.
    """

    def __init__(
        self, table: str, names: Sequence[str], not_null: Sequence[int], drops: bool, lengths: Sequence[Length]
    ) -> None:
        self._table, self._names, self._drops = table, tuple(names), drops
        self._not_null, self._lengths = tuple(not_null), tuple(lengths)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._dropped = None if ctx.metrics is None else ctx.metrics.counter(DROPPED)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        with UserCode(self.ctx, "the query"):
            data = self._without_nulls(batch.data)
            for length in self._lengths:
                data = self._of_length(data, length)
        if data.num_rows:
            yield ArrowBatch(data)

    def _without_nulls(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import pyarrow.compute as pc

        with_nulls = [index for index in self._not_null if data.column(index).null_count]
        if not with_nulls:
            return data
        if not self._drops:
            problem = f"column {self._names[with_nulls[0]]!r} of {self._table} is NOT NULL, and a row has NULL there"
            raise RowError(problem, "leave such rows out, or set table.exec.sink.not-null-enforcer to DROP")
        mask: Any = pc.is_valid(data.column(with_nulls[0]))
        for index in with_nulls[1:]:
            mask = pc.and_(mask, pc.is_valid(data.column(index)))
        if self._dropped is not None:
            self._dropped.inc(data.num_rows - mask.true_count)
        return data.filter(mask)

    def _of_length(self, data: pyarrow.RecordBatch, length: Length) -> pyarrow.RecordBatch:
        import pyarrow.compute as pc
        from pyarrow import types

        column: Any = data.column(length.column)
        is_text = types.is_string(column.type)
        sizes = pc.utf8_length(column) if is_text else pc.binary_length(column)
        wrong = pc.fill_null((pc.not_equal if length.is_fixed else pc.greater)(sizes, length.most), False)
        if not pc.any(wrong).as_py():
            return data
        name = self._names[length.column]
        if not length.mends:
            value = column.filter(wrong)[0].as_py()
            problem = f"{value!r} is of length {len(value)}, and column {name!r} of {self._table} takes {length.most}"
            raise RowError(problem, "cut it, or set table.exec.sink.type-length-enforcer to TRIM_PAD")
        filler: Any = " " * length.most if is_text else bytes(length.most)
        if length.is_fixed:
            column = pc.binary_join_element_wise(column, filler, filler[:0])
        cut = pc.utf8_slice_codeunits if is_text else pc.binary_slice
        return data.set_column(length.column, data.schema.field(length.column), cut(column, 0, length.most))


__all__ = ["DROPPED", "ConstraintOperator", "Length"]
