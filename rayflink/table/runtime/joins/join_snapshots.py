"""Snapshots of joins: the rows of both sides by key group, and the progress of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ..keyed_state.frame_memory import Columns
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, frame_of, restored_sides
from ..progress import progress_entry
from .join_rows import JoinSide, JoinSpec

Frame = Callable[[], Columns | None]
"""Returns the rows of a side as they were when it was made; None where there are none."""


class JoinSnapshots:
    """Writes the rows of both sides to snapshots, and reads them back.

    Args:
        spec: of the join.
        about: what the state belongs to: a snapshot of anything else is refused.
        fields: columns of the state behind those of a side's rows.
    """

    def __init__(self, spec: JoinSpec, about: str, fields: Sequence[pa.Field]) -> None:
        self._width = len(spec.left.partition_columns)
        self._schemas = [
            pa.schema([*_fields(side), *fields], {ABOUT: f"{name} side of {about}: {side.state_identity}".encode()})
            for side, name in zip(spec.sides, ("left", "right"), strict=True)
        ]

    def snapshot(self, frames: Sequence[Frame], progress: int, ctx: OperatorContext) -> OperatorSnapshot:
        """Return a snapshot of the frames of the left and the right side."""
        batches = [
            (progress, partial(_frame, frame, schema)) for frame, schema in zip(frames, self._schemas, strict=True)
        ]
        groups = FrozenFrames(batches, self._width, ctx.max_parallelism)
        return OperatorSnapshot(lists=progress_entry(progress, ctx), raw_keyed=groups)

    def restore(
        self, snapshots: Iterable[OperatorSnapshot], ctx: OperatorContext
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of snapshots that belong to this subtask: (number of the side, rows).

        Raises:
            SnapshotMismatch: they belong to another join.
        """
        return ((side, frame) for side, _, frame in restored_sides(snapshots, self._schemas, ctx))


def _fields(side: JoinSide) -> Iterator[pa.Field]:
    """Yield fields of the state, named by their position: names of columns may differ from those of the query."""
    for place, index in enumerate(side.state_order):
        yield pa.field(f"c{place}", side.schema.types[index])


def _frame(frame: Frame, schema: pa.Schema) -> pa.RecordBatch:
    return frame_of(frame(), schema)


__all__ = ["Frame", "JoinSnapshots"]
