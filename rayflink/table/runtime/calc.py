"""A filter and a projection in one step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rayflink.common.records.batches import ArrowBatch, Batch, Element, Watermark
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.user_function import UserCode

from ..plan.typed import Evaluation, Expr, Session, with_common_parts
from .function_calls import OwnFunctions

if TYPE_CHECKING:
    import pyarrow


def evaluated(batch: pyarrow.RecordBatch, condition: Expr | None, exprs: Sequence[Expr], schema: pyarrow.Schema,
              session: Session) -> pyarrow.RecordBatch:  # fmt: skip
    """Return the wanted columns of the rows for which the condition is true; rows keep their kinds.

    Raises:
        RowError: a row is an error.
    """
    import pyarrow

    evaluation = Evaluation(batch.columns, batch.num_rows, session)
    kinds = kinds_of(batch)
    if condition is not None:
        mask = evaluation.column(condition)
        count = mask.true_count
        if not count and exprs:  # a constant that is an error is none without a row
            return pyarrow.RecordBatch.from_pylist([], schema=schema)
        if not exprs:
            return batch if count == batch.num_rows else batch.filter(mask)
        if count < batch.num_rows:
            evaluation = evaluation.among(mask)
            kinds = None if kinds is None else kinds[mask.fill_null(False).to_numpy(zero_copy_only=False)]
    columns = [_of_type(evaluation.column(expr), field.type) for expr, field in zip(exprs, schema, strict=True)]
    result = pyarrow.RecordBatch.from_arrays(columns, schema=schema)
    return result if kinds is None else with_kinds(result, kinds)


def _of_type(column: pyarrow.Array, wanted: pyarrow.DataType) -> pyarrow.Array:
    """Return the column in the type that it was said to have; differs where text is kept in another form."""
    return column if column.type == wanted else column.cast(wanted, safe=False)


class CalcOperator(Operator):
    """Gives the wanted columns of the rows for which a condition is true.

    Args:
        condition: None: of all rows.
        exprs: of the result, over the columns of the input; none: the columns as they are.
        schema: of the result.
        session: what evaluation depends on in addition to rows.
    """

    def __init__(self, condition: Expr | None, exprs: Sequence[Expr], schema: pyarrow.Schema, session: Session) -> None:
        shared = with_common_parts([*exprs, *([] if condition is None else [condition])])
        self._condition = None if condition is None else shared[-1]
        self._exprs, self._schema, self._session = tuple(shared[: len(exprs)]), schema, session
        self._watermark: int | None = None
        self._functions = OwnFunctions(shared)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._session = replace(self._functions.set_up(ctx, self._session), watermark=lambda: self._watermark)

    def open(self) -> None:
        self._functions.open()

    def close(self) -> None:
        self._functions.close()

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._watermark = watermark.timestamp
        return (watermark,)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if not len(batch):
            return ()
        with UserCode(self.ctx, "the query"):
            result = evaluated(batch.data, self._condition, self._exprs, self._schema, self._session)
        return (ArrowBatch(result),) if result.num_rows else ()
