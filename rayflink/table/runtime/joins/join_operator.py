"""The common part of join operators: the condition, the form of rows in state, and snapshots of two sides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.user_function import UserCode

from ...plan.typed import Evaluation
from ..function_calls import OwnFunctions
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, restored_sides
from ..progress import progress_entry, restored_progress
from .join_rows import JoinRows, JoinSide, JoinSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

Frame = Callable[[], pa.RecordBatch]


class OfRows(Operator):
    """Evaluates the condition of a join, and makes its rows.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec
        self._functions = OwnFunctions(() if spec.condition is None else (spec.condition,))
        self.memory: FrameMemory | None = None

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self.memory = FrameMemory(ctx)
        spec = replace(self.spec, session=self._functions.set_up(ctx, self.spec.session))
        self.rows = JoinRows(spec, None if spec.condition is None else self._evaluated)

    def open(self) -> None:
        self._functions.open()

    def _evaluated(self, pairs: Evaluation) -> pa.Array:
        assert self.spec.condition is not None
        with UserCode(self.ctx, "the condition of the join"):
            return pairs.column(self.spec.condition)

    def close(self) -> None:
        if self.memory is not None:
            self.memory.release()
        self._functions.close()

    def held_columns(self, batch: Batch, side: int) -> Columns:
        """Return the columns of a batch as the state has them."""
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        schema = self.spec.sides[side].schema
        columns = [one if one.type == kind else one.cast(kind) for one, kind in zip(batch.data.columns, schema.types,
                                                                                    strict=True)]  # fmt: skip
        return self.spec.sides[side].in_order(columns)


class JoinOperator(OfRows):
    """Keeps rows of two sides; a subclass says for how long.

    Args:
        spec: of the join.
        about: what the state is of: a snapshot of anything else is refused.
        fields: columns of the state behind those of a side's rows.
    """

    def __init__(self, spec: JoinSpec, about: str, fields: Sequence[pa.Field]) -> None:
        super().__init__(spec)
        self.progress = MIN_TIMESTAMP
        """The watermark, or the last millisecond of processing time that is over."""
        self._state_schemas = [
            pa.schema([*_in_order(side), *fields], {ABOUT: f"{name} side of {about}: {side.state_identity}".encode()})
            for side, name in zip(spec.sides, ("left", "right"), strict=True)
        ]

    @abstractmethod
    def frame(self, side: int) -> Frame:
        """Gives the rows of a side as they are now, when it is called later."""

    @abstractmethod
    def take_frame(self, side: int, frame: pa.RecordBatch) -> None:
        """Add rows of a snapshot to the state of a side."""

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.progress = restored_progress(snapshots, self.ctx)
        for side, _, frame in restored_sides(snapshots, self._state_schemas, self.ctx):
            self.take_frame(side, frame)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames = [(self.progress, self.frame(side)) for side in (0, 1)]
        groups = FrozenFrames(frames, len(self.spec.left.partition_columns), self.ctx.max_parallelism)
        return OperatorSnapshot(lists=progress_entry(self.progress, self.ctx), raw_keyed=groups)

    # rows

    def count_late(self, rows: int) -> None:
        """Count rows that are dropped because they are late."""
        if self._late is not None and rows:
            self._late.inc(rows)


def _in_order(side: JoinSide) -> Iterator[pa.Field]:
    """Yield fields for the state by position: names of columns may differ from those of the query."""
    for number, at in enumerate(side.order):
        yield pa.field(f"c{number}", side.schema.types[at])


def rows_of_columns(columns: Iterable[pa.Array]) -> int:
    """Return the number of rows in columns."""
    return len(next(iter(columns)))


__all__ = ["Frame", "JoinOperator", "OfRows", "rows_of_columns"]
