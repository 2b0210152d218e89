"""Partial rows as bytes for each key group: Arrow's stream format, written when a snapshot is stored.

The columns of a snapshot are shared with the state, which never changes a column, so that taking it is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.keys.key_columns import hash_columns
from rayflink.state.keys.key_groups import key_group_range, key_groups_of

from ..aggregates.reductions import combine_chunks

STATE = "window-aggregates"
_PROGRESS = b"rayflink.progress"
ABOUT = b"rayflink.about"
"""Where a schema says what its rows are of: state of anything else is refused."""


class FrozenFrames(Mapping[int, bytes]):
    """Key group -> its rows, as bytes that are made when they are first asked for.

    Args:
        frames: (how far time has come for its rows, what gives a frame whenever it is called).
        width: how many columns are the key, the first ones.
        max_parallelism: key groups in all.
    """

    def __init__(
        self, frames: Sequence[tuple[int, Callable[[], pa.RecordBatch]]], width: int, max_parallelism: int
    ) -> None:
        self._frames, self._width, self._max_parallelism = list(frames), width, max_parallelism
        self._made: dict[int, bytes] | None = None

    @property
    def _groups(self) -> dict[int, bytes]:
        if self._made is None:
            groups: dict[int, bytes] = {}
            for progress, frame in self._frames:
                for group, data in self._written(frame(), progress):
                    groups[group] = groups.get(group, b"") + data
            self._made = groups
            self._frames.clear()
        return self._made

    def _written(self, frame: pa.RecordBatch, progress: int) -> Iterator[tuple[int, bytes]]:
        about = {**(frame.schema.metadata or {}), _PROGRESS: str(progress).encode()}
        schema = frame.schema.with_metadata(about)
        frame = frame.replace_schema_metadata(schema.metadata)
        groups = key_groups_of_rows(frame.columns[: self._width], frame.num_rows, self._max_parallelism)
        order = np.argsort(groups, kind="stable")
        frame, groups = frame.take(pa.array(order)), groups[order]
        bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
        for first, stop in zip(bounds, bounds[1:], strict=False):
            if first < stop:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, schema) as writer:
                    writer.write_batch(frame.slice(first, stop - first))
                yield int(groups[first]), sink.getvalue().to_pybytes()

    def __getitem__(self, group: int) -> bytes:
        return self._groups[group]

    def __iter__(self) -> Iterator[int]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


def key_groups_of_rows(keys: Sequence[pa.Array], rows: int, max_parallelism: int) -> Any:
    """Return the key group of each row, int16[n], as the exchange deals them; without a key all are of the first."""
    if not keys:
        return np.zeros(rows, dtype=np.int16)
    return key_groups_of(hash_columns(keys), max_parallelism)


def restored_frames(
    snapshots: Iterable[OperatorSnapshot], schema: pa.Schema, ctx: OperatorContext
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(how far time had come, rows) of the key groups that the subtask owns.

    Raises:
        SnapshotMismatch: they have other columns, or are of something else.
    """
    return ((progress, batch) for _, progress, batch in restored_sides(snapshots, [schema], ctx))


def restored_sides(
    snapshots: Iterable[OperatorSnapshot], schemas: Sequence[pa.Schema], ctx: OperatorContext
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yield the same of rows of several schemas: (number of the schema, how far time had come, rows).

    Raises:
        SnapshotMismatch: they have other columns, or are of something else.
    """
    owned = key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
    batches_of: dict[tuple[int, int], list[pa.RecordBatch]] = {}
    for snapshot in snapshots:
        for group in snapshot.raw_keyed:
            if group in owned:
                for side, progress, batch in _read(snapshot.raw_keyed[group], schemas, ctx):
                    batches_of.setdefault((progress, side), []).append(batch)
    for (progress, side), batches in sorted(batches_of.items()):
        yield side, progress, one_batch(batches)


def _read(data: bytes, schemas: Sequence[pa.Schema], ctx: OperatorContext) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    source = pa.BufferReader(data)
    while source.tell() < source.size():
        with pa.ipc.open_stream(source) as reader:
            written = reader.schema
            side = next((number for number, schema in enumerate(schemas) if _is_of(written, schema)), None)
            if side is None:
                raise SnapshotMismatch(
                    STATE, ctx.label, describe_schema(written), " and ".join(map(describe_schema, schemas)),
                    "other windows, aggregates or keys; keep the query, or start without this state",
                )  # fmt: skip
            for batch in reader:
                yield side, int(written.metadata[_PROGRESS]), batch


def _is_of(written: pa.Schema, schema: pa.Schema) -> bool:
    return bool(written.equals(schema) and written.metadata[ABOUT] == schema.metadata[ABOUT])


def describe_schema(schema: pa.Schema) -> str:
    """Return what the rows belong to, with the names and types of their columns."""
    return f"{schema.metadata[ABOUT].decode()} as {', '.join(f'{field.name} {field.type}' for field in schema)}"


def frame_of(columns: Sequence[pa.Array] | None, schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as a frame; None stands for no rows."""
    if columns is None:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.RecordBatch.from_arrays(list(columns), schema=schema)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches)
    return pa.RecordBatch.from_arrays([combine_chunks(column) for column in table.columns], schema=table.schema)


__all__ = [
    "ABOUT", "STATE", "FrozenFrames", "frame_of", "key_groups_of_rows", "one_batch", "restored_frames",
    "restored_sides",
]  # fmt: skip
