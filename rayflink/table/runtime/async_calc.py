"""A filter and a projection whose functions are awaited: many rows under way at once, which leave as they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.records.batches import ArrowBatch, Batch, Element, Watermark
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.operators.async_io.async_operator import AsyncOperator
from rayflink.operators.async_io.request_queue import Request
from rayflink.operators.base import OperatorContext, shortened
from rayflink.operators.user_function import UserCode
from rayflink.user_types import UserValue

from ..conversion.pickled_values import python_values
from ..plan.async_steps import AsyncCall, AsyncSteps
from ..plan.typed import Evaluation, Session
from ..user_functions.async_kernels import AsyncKernel
from ..user_functions.function_classes import FunctionContext
from .async_answers import AsyncAnswers, AsyncCallSettings, CallFailure, WantedCalls
from .calc import evaluated
from .function_calls import OwnFunctions

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDS = 2
"""Rows under way, in calls that are made at a time: while the slowest of some are awaited, others begin."""


@dataclass(frozen=True)
class _Rows:
    """Rows whose calls are under way.

    Args:
        columns: of the input, and of the stages that are done.
        kinds: int8[n]; None: all come.
        stage: number of the stage whose calls are made.
    """

    columns: tuple[pa.Array, ...]
    count: int
    kinds: NDArray[np.int8] | None
    stage: int = 0

    def evaluation(self, session: Session) -> Evaluation:
        """Return the evaluation of expressions over them."""
        return Evaluation(self.columns, self.count, session)


@dataclass(frozen=True)
class _Asked:
    """The answers to the calls of a stage.

    Args:
        masks: for each call the rows that it was made for, bool[n]; None: for all.
        answers: the results of each call, or why there are none.
    """

    rows: _Rows
    masks: tuple[NDArray[np.bool_] | None, ...]
    answers: list[list[UserValue]] | CallFailure


Ask: TypeAlias = "Callable[[], Coroutine[None, None, _Asked]]"
_Coroutine: TypeAlias = Coroutine[None, None, None]


class AsyncCalcOperator(AsyncOperator):
    """Gives the wanted columns of the rows for which a condition is true; functions in both are awaited.

    A batch is cut into pieces of as many rows as there may be calls at a time. The calls of a piece are made at once,
    and those of later stages with the results of earlier ones. Rows leave in the order in which they came. Rows under
    way are in the snapshot, and their calls are made again after a restore.

    Args:
        steps: what is computed.
        schema: of the result.
        session: what evaluation depends on in addition to rows.
        scalars: settings of functions that give a value.
        tables: settings of functions that give rows.
    """

    def __init__(self, steps: AsyncSteps, schema: pa.Schema, session: Session, scalars: AsyncCallSettings,
                 tables: AsyncCallSettings) -> None:  # fmt: skip
        self._piece = max(scalars.most_calls, tables.most_calls)
        super().__init__(ROUNDS * self._piece, ordered=True)
        self._steps, self._schema, self._settings = steps, schema, (scalars, tables)
        self._kernels = tuple({id(kernel): kernel for kernel in map(_kernel_of, steps.calls())}.values())
        self._functions = OwnFunctions(tuple(steps.sync_exprs()))
        self._at_arrival = self._at_emission = session
        self._arrived: int | None = None
        self._emitted: int | None = None
        self._rows_under_way = 0
        self._opened: list[AsyncKernel] = []

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        session = self._functions.set_up(ctx, self._at_arrival)
        self._at_arrival = replace(session, watermark=lambda: self._arrived)
        self._at_emission = replace(session, watermark=lambda: self._emitted)

    def open(self) -> None:
        self._answers = AsyncAnswers(self._kernels, *self._settings, self.ctx.metrics)
        self._functions.open()
        super().open()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._functions.close()

    def life_cycle(self) -> tuple[Callable[[RuntimeContext], _Coroutine], Callable[[], _Coroutine]]:
        return self._open_functions, self._close_functions

    async def _open_functions(self, context: RuntimeContext) -> None:
        for kernel in self._kernels:
            await kernel.start(FunctionContext(context))
            self._opened.append(kernel)

    async def _close_functions(self) -> None:
        async with AsyncExitStack() as each:  # also those behind one that raises
            while self._opened:
                each.push_async_callback(self._opened.pop(0).stop)

    def stored(self, element: Element) -> Element:
        if not isinstance(element, ArrowBatch):
            return element
        return ArrowBatch(element.data.take(pa.array(range(len(element)))))  # a slice is pickled with its whole batch

    # what comes

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._arrived = watermark.timestamp
        return super().process_watermark(watermark)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        data = batch.data
        if self._steps.first is not None and data.num_rows:
            with UserCode(self.ctx, "the query"):
                data = evaluated(data, self._steps.first, (), self._schema, self._at_arrival)
        return self.take([ArrowBatch(data)]) if data.num_rows else ()

    def begin(self, waiting: deque[Element]) -> tuple[Batch, Ask] | None:
        batch = waiting[0]
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if self._rows_under_way >= ROUNDS * self._piece:
            return None
        if len(batch) <= self._piece:
            waiting.popleft()
        else:
            waiting[0], batch = batch.slice(self._piece, len(batch)), batch.slice(0, self._piece)
        self._rows_under_way += len(batch)
        columns = tuple(batch.data.columns[: self._steps.width])
        return batch, self._asking(_Rows(columns, len(batch), kinds_of(batch.data)))

    def _asking(self, rows: _Rows) -> Ask:
        """Return what makes the calls of the next stage."""
        evaluation = rows.evaluation(self._at_emission)
        with UserCode(self.ctx, "the query"):
            calls = [_wanted(call, evaluation) for call in self._steps.stages[rows.stage].calls]
        return partial(self._ask, rows, tuple(mask for _, mask in calls), [wanted for wanted, _ in calls])

    async def _ask(
        self, rows: _Rows, masks: tuple[NDArray[np.bool_] | None, ...], wanted: list[WantedCalls]
    ) -> _Asked:
        return _Asked(rows, masks, await self._answers.answers(wanted))

    # what comes back

    def next_step(self, answer: _Asked) -> tuple[_Rows, Ask | None]:
        rows = self._rows_with(answer)
        return rows, self._asking(rows) if rows.count and rows.stage < len(self._steps.stages) else None

    def _rows_with(self, asked: _Asked) -> _Rows:
        """Return the rows with the columns of the stage, those for which its condition is true."""
        rows, answers = asked.rows, asked.answers
        if isinstance(answers, CallFailure):
            raise self.failure(f"function {answers.function}", shortened(answers.args)) from answers.error
        stage = self._steps.stages[rows.stage]
        with UserCode(self.ctx, "the query"):
            columns = [
                _kernel_of(call).column(_for_all(results, mask, rows.count), call.call.type)
                for call, mask, results in zip(stage.calls, asked.masks, answers, strict=True)
            ]
            rows = _Rows((*rows.columns, *columns), rows.count, rows.kinds, rows.stage + 1)
            if stage.condition is None:
                return rows
            mask = rows.evaluation(self._at_emission).column(stage.condition).fill_null(False)
        if mask.true_count == rows.count:
            return rows
        kinds = None if rows.kinds is None else rows.kinds[mask.to_numpy(zero_copy_only=False)]
        return _Rows(tuple(column.filter(mask) for column in rows.columns), mask.true_count, kinds, rows.stage)

    def elements_of(self, answered: list[Request]) -> Iterable[Element]:
        for request in answered:
            self._rows_under_way -= len(request.payload)
            rows: _Rows = request.answer
            if rows.count:
                names = list(map(str, range(len(rows.columns))))
                data = pa.RecordBatch.from_arrays(list(rows.columns), names=names)
                data = data if rows.kinds is None else with_kinds(data, rows.kinds)
                with UserCode(self.ctx, "the query"):
                    yield ArrowBatch(evaluated(data, None, self._steps.exprs, self._schema, self._at_emission))

    def take_completed(self) -> Iterable[Element]:
        elements = super().take_completed()
        if self._runner is not None:
            self._begin()  # what has left makes room
        return elements

    def note_event(self, event: Element) -> None:
        if isinstance(event, Watermark):
            self._emitted = event.timestamp


def _kernel_of(call: AsyncCall) -> AsyncKernel:
    kernel = call.call.function.kernel
    assert isinstance(kernel, AsyncKernel), call
    return kernel


def _wanted(call: AsyncCall, evaluation: Evaluation) -> tuple[WantedCalls, NDArray[np.bool_] | None]:
    """Return the calls for the rows that need them, and which those are; None: all."""
    mask: NDArray[np.bool_] | None = None
    if call.guard is not None:
        is_needed = evaluation.column(call.guard).fill_null(False)
        if is_needed.true_count < evaluation.rows:
            mask, evaluation = is_needed.to_numpy(zero_copy_only=False), evaluation.among(is_needed)
    args = call.call.args
    kinds = _kernel_of(call).argument_types([arg.type for arg in args])
    columns = [python_values(evaluation.column(arg), kind) for arg, kind in zip(args, kinds, strict=True)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * evaluation.rows
    return WantedCalls(_kernel_of(call), rows), mask


def _for_all(results: list[UserValue], mask: NDArray[np.bool_] | None, count: int) -> list[UserValue]:
    """Return a result for each row, None for those that the call was not made for."""
    if mask is None:
        return results
    values: list[UserValue] = [None] * count
    for row, result in zip(np.flatnonzero(mask).tolist(), results, strict=True):
        values[row] = result
    return values


__all__ = ["AsyncCalcOperator"]
