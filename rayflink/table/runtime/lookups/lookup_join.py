"""The operator of a lookup join: a request for the keys of each batch, and the rows that they find beside its rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.records.batches import ArrowBatch, Batch, Element, EndOfData
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.operators.async_io.async_operator import AsyncOperator
from rayflink.operators.async_io.request_queue import Request
from rayflink.operators.base import OperatorContext
from rayflink.operators.user_function import UserCode

from ...plan.typed import Evaluation, Expr
from ..aggregates.grouping import grouped
from ..function_calls import OwnFunctions
from ..joins.join_pairs import Matches
from ..joins.join_rows import JoinRows, JoinSpec
from .found_rows import FoundRows
from .lookup_calls import LookupCalls, LookupSettings
from .lookup_function import TableLookup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..joins.join_pairs import Rows

MOST_ROWS = 1 << 18
"""Rows whose answers are awaited, about: no further batch is taken meanwhile."""


@dataclass(frozen=True)
class LookupSpec:
    """Specification of a lookup join.

    Args:
        table: its name, for messages.
        lookup: how its rows are found.
        settings: how it is asked.
        keys: schema of the key columns of the table.
        values: of the keys, over the columns of the input.
        rows: schema of the columns of the table that are asked for.
        where: condition over them; None: there is none.
        exprs: over them: the columns of the right side.
        join: the kind, condition and schemas of both sides and of the result.
    """

    table: str
    lookup: TableLookup
    settings: LookupSettings
    keys: pa.Schema
    values: tuple[Expr, ...]
    rows: pa.Schema
    where: Expr | None
    exprs: tuple[Expr, ...]
    join: JoinSpec


@dataclass(frozen=True)
class _Asked:
    """The answer to the request of a batch.

    Args:
        has_key: bool[n]: the rows whose keys have no null.
        codes: intp[m]: the number of the key of each of these rows.
        by_key: the rows by key, or why there are none.
    """

    has_key: NDArray[np.bool_]
    codes: Rows
    by_key: FoundRows | Exception
    keys: list[pa.Array]


class LookupJoinOperator(AsyncOperator):
    """Joins each row with the rows of a table that its key has when it comes.

    Distinct keys of a batch are asked for at once. Batches whose answers have not come are in the snapshot, and are
    asked for again after a restore.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: LookupSpec) -> None:
        super().__init__(spec.settings.capacity, spec.settings.is_ordered)
        self._spec = spec
        self._pairs = JoinRows(spec.join)
        conditions = () if spec.where is None else (spec.where,)
        self._functions = OwnFunctions([*spec.values, *spec.exprs, *conditions])
        self._session = spec.join.session
        self._rows_under_way = 0

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._session = self._functions.set_up(ctx, self._spec.join.session)
        self._pairs.setup(ctx)

    def open(self) -> None:
        spec, ctx = self._spec, self.ctx
        in_thread = ctx.wake is not None
        self._calls = LookupCalls(spec.table, spec.lookup, spec.keys, spec.rows, spec.settings, in_thread)
        self._functions.open()
        self._pairs.open()
        super().open()

    def close(self) -> None:
        super().close()
        self._functions.close()
        self._pairs.close()

    def life_cycle(self) -> tuple[Callable[..., Any], Callable[[], Any]]:
        return self._open_calls, self._calls.close

    def _open_calls(self, context: RuntimeContext) -> None:
        self._spec.lookup.function.configure(self.ctx.config)
        self._calls.open(context, lambda: int(self.ctx.clock.now_ms()))

    # what comes

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return self.take([batch]) if len(batch) else ()

    def accepts(self, element: Element) -> bool:
        has_room = isinstance(element, EndOfData) or self._rows_under_way < MOST_ROWS
        return has_room and super().accepts(element)

    def begin(self, waiting: deque[Element]) -> tuple[Batch, Callable[[], Coroutine[Any, Any, _Asked]]]:
        batch = waiting.popleft()
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        self._rows_under_way += len(batch)
        has_key, values = self._keys_of(batch.data)
        groups = grouped(values, len(values[0]))
        return batch, partial(self._ask, has_key, groups.codes, groups.keys)

    def _keys_of(self, data: pa.RecordBatch) -> tuple[NDArray[np.bool_], list[pa.Array]]:
        """Return which rows have keys without nulls, bool[n], and the columns of these keys."""
        evaluation = Evaluation(data.columns, data.num_rows, self._session)
        with UserCode(self.ctx, "the query"):
            columns = [_of_type(evaluation.column(value), kind)
                       for value, kind in zip(self._spec.values, self._spec.keys.types, strict=True)]  # fmt: skip
        has_key = np.ones(data.num_rows, dtype=np.bool_)
        for column in columns:
            if column.null_count:
                has_key &= column.is_valid().to_numpy(zero_copy_only=False)
        return has_key, columns if has_key.all() else [column.filter(pa.array(has_key)) for column in columns]

    async def _ask(self, has_key: NDArray[np.bool_], codes: Rows, keys: list[pa.Array]) -> _Asked:
        by_key: FoundRows | Exception
        try:
            by_key = await self._calls.find(keys) if len(codes) else FoundRows.nothing(self._spec.rows.types, 0)
        except Exception as error:  # it is the answer, which fails the job in the thread of the task
            by_key = error
        return _Asked(has_key, codes, by_key, keys)

    # what comes back

    def check_answer(self, request: Request) -> None:
        asked: _Asked = request.answer
        if isinstance(asked.by_key, Exception):
            names = self._spec.keys.names
            key = ", ".join(f"{name}={column[0].as_py()!r}" for name, column in zip(names, asked.keys, strict=True))
            count = len(asked.keys[0])
            shown = key if count == 1 else f"{key}, the first of {count} keys"
            raise self.failure(f"the lookup in {self._spec.table}", shown) from asked.by_key

    def elements_of(self, answered: list[Request]) -> Iterable[Element]:
        for request in answered:
            self._rows_under_way -= len(request.payload)
            yield from self._joined(request.payload.data, request.answer)

    def _joined(self, data: pa.RecordBatch, asked: _Asked) -> Iterator[ArrowBatch]:
        spec = self._spec.join
        assert isinstance(asked.by_key, FoundRows)
        by_key = self._right_side(asked.by_key)
        firsts, counts = (np.zeros(data.num_rows, dtype=np.int64) for _ in range(2))
        if len(asked.codes):
            firsts[asked.has_key], counts[asked.has_key] = by_key.firsts[asked.codes], by_key.counts[asked.codes]
        left = [_of_type(column, kind) for column, kind in zip(data.columns, spec.left.schema.types, strict=False)]
        kinds = kinds_of(data)
        for left_rows, right_rows in self._in_order(left, by_key.columns, firsts, counts):
            result = self._pairs.pairs(left, by_key.columns, (left_rows, right_rows))
            yield result if kinds is None else ArrowBatch(with_kinds(result.data, kinds[left_rows]))

    def _right_side(self, by_key: FoundRows) -> FoundRows:
        """Return the columns of the right side, of the rows for which the condition on the table is true."""
        spec = self._spec
        count = len(by_key.columns[0])
        evaluation = Evaluation(by_key.columns, count, self._session)
        mask = np.ones(count, dtype=np.bool_)
        with UserCode(self.ctx, "the query"):
            if spec.where is not None and count:
                is_true = evaluation.column(spec.where)
                mask = is_true.fill_null(False).to_numpy(zero_copy_only=False)
                evaluation = evaluation if mask.all() else evaluation.among(is_true)
            kinds = spec.join.right.schema.types
            columns = [pa.array([], kind) if not mask.any() else _of_type(evaluation.column(expr), kind)
                       for expr, kind in zip(spec.exprs, kinds, strict=True)]  # fmt: skip
        return by_key.among(mask, columns)

    def _in_order(
        self, left: Sequence[pa.Array], right: Sequence[pa.Array], firsts: Rows, counts: Rows
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield the pairs of the result in the order of the left rows; -1 stands for a partner that is missing."""
        keeps_left = self._spec.join.kind.keeps_left
        has_partner = np.zeros(len(counts), dtype=np.bool_)
        done = 0
        for pairs in Matches(np.arange(int((firsts + counts).max(initial=0))), firsts, counts).pairs():
            last = int(pairs[0][-1])  # the next block may go on with it
            left_rows, right_rows = self._pairs.matching(left, right, pairs)
            if keeps_left:
                has_partner[left_rows] = True
                alone = done + np.flatnonzero(~has_partner[done:last])
                left_rows, right_rows = _with_alone(left_rows, right_rows, alone)
                done = last
            if len(left_rows):
                yield left_rows, right_rows
        alone = done + np.flatnonzero(~has_partner[done:])
        if keeps_left and len(alone):
            yield alone, np.full(len(alone), -1)


def _with_alone(left: Rows, right: Rows, alone: Rows) -> tuple[Rows, Rows]:
    """Return pairs with the rows that have no partner at their place among them."""
    if not len(alone):
        return left, right
    rows = np.concatenate([left, alone])
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate([right, np.full(len(alone), -1)])[order]


def _of_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted, safe=False)


__all__ = ["LookupJoinOperator", "LookupSpec"]
