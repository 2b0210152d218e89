"""Converts between Ray Data and streams: a Dataset becomes the input of a stream, a stream's result a Dataset."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import ray
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from rayflink.common.errors import TypeMismatch, shorten
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.call_sites import call_site
from rayflink.connectors.formats.inferred_columns import joined
from rayflink.connectors.frames.frame_source import FramePart, FrameSource, FrameStore
from rayflink.connectors.frames.frame_writing import Frame
from rayflink.connectors.frames.spark_frames import blocks_of

if TYPE_CHECKING:
    import pyarrow

log = get_logger(__name__)
WAITS_S = 5.0
"""Seconds that Ray Data may wait for a CPU before a warning, and between two warnings."""


def ensure_dataset(dataset: Any) -> None:
    """Check the type of a Dataset, or raise TypeMismatch."""
    if not isinstance(dataset, ray.data.Dataset):
        actual = f"{type(dataset).__name__} {shorten(dataset, 80)}"
        remedy = "give what ray.data.read_parquet, ray.data.from_arrow and the like return"
        raise TypeMismatch("the table for a stream", "", actual, "a ray.data.Dataset", remedy, call_site())


def written(dataset: Any, store: FrameStore) -> FrameSource:
    """Let Ray Data compute a Dataset into a store; its blocks follow one another as in the Dataset.

    Raises:
        ray.exceptions.RayError: it could not be computed.
    """
    try:
        putting = dataset.map_batches(_Putting(store), batch_size=None, batch_format="pyarrow", zero_copy_batch=True)
        with _in_order(putting.context.execution_options), _warnings_without_cpu():
            part_rows = putting.take_all()
        parts = [FramePart(*(row[name] for name in _PART)) for row in part_rows]
        store.keep(parts)
        schema = _schema_of(part_rows)
    except BaseException:
        store.leave()
        raise
    source = FrameSource(store, parts, schema, in_order=True)
    weakref.finalize(source, store.leave)
    return source


@contextmanager
def _in_order(options: Any) -> Iterator[None]:
    """Let Datasets of these options keep their order within the block; derived Datasets share the options."""
    before, options.preserve_order = options.preserve_order, True
    try:
        yield
    finally:
        options.preserve_order = before


@contextmanager
def _warnings_without_cpu() -> Iterator[None]:
    """Log, again and again within the block, when no CPU is free for the tasks of Ray Data."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(WAITS_S):
            free: Mapping[str, float] = ray.available_resources()  # type: ignore[no-untyped-call]
            if free.get("CPU", 0) < 1 and not ended.is_set():
                remedy = "end what holds the CPUs (`ray status` shows it), or leave one free for it"
                log.warning("Ray Data waits for a free CPU to compute the Dataset: %s", remedy)

    watching = threading.Thread(target=look, name="Ray Data waits", daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


_PART = ("partition", "attempt", "place", "blocks", "rows", "size")


class _Putting:
    """Stores a block within a task of Ray Data, and returns where it is.

    Args:
        store: where to.
    """

    def __init__(self, store: FrameStore) -> None:
        self._store = store
        self.__name__ = "put"

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        partition, place, blocks, rows, size = int.from_bytes(os.urandom(7), "big"), "", 0, 0, 0
        for block in blocks_of(iter(table.to_batches())):
            place = self._store.append(partition, 0, blocks, block)
            blocks, rows, size = blocks + 1, rows + block.num_rows, size + block.nbytes
        values = (partition, 0, place, blocks, rows, size)
        columns = {name: [value] for name, value in zip(_PART, values, strict=True)}
        return pyarrow.table({**columns, "schema": [table.schema.serialize().to_pybytes()]})


def _schema_of(part_rows: list[dict[str, Any]]) -> pyarrow.Schema:
    """Return the schema of all blocks; that of the first where they have none in common, which a stream accepts."""
    import pyarrow

    schemas = [pyarrow.ipc.read_schema(pyarrow.py_buffer(row["schema"])) for row in part_rows]
    try:
        return joined(schemas, is_open=True) if schemas else pyarrow.schema([])
    except (TypeError, ValueError):
        return schemas[0]


class FrameDatasource(Datasource):
    """Reads a stream's result, block by block, as often as Ray Data asks.

    A Dataset and all that is derived from it refer to it, and the blocks stay as long.

    Args:
        frame: the result.
    """

    def __init__(self, frame: Frame) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._frame = frame

    def get_name(self) -> str:
        """Return the name shown for the reading tasks."""
        return "Stream"

    def estimate_inmemory_data_size(self) -> int:
        """Return the bytes of all blocks."""
        return sum(part.size for part in self._frame.parts)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return one reading task for each block."""
        del parallelism, data_context  # blocks are as large as they are
        tasks = []
        for part in self._frame.parts:
            rows = part.rows if part.blocks == 1 else None  # Ray Data counts by it, and reads where it does not know
            metadata = BlockMetadata(rows, part.size // part.blocks, None, None)
            for number in range(part.blocks):
                read = partial(_tables, self._frame, part, number)
                tasks.append(ReadTask(read, metadata, self._frame.schema, per_task_row_limit))
        return tasks


def _tables(frame: Frame, part: FramePart, number: int) -> Iterator[pyarrow.Table]:
    import pyarrow

    yield pyarrow.Table.from_batches([frame.block(part, number)])


def dataset(frame: Frame) -> Any:
    """Return a frame as a `ray.data.Dataset`; its blocks stay as long as that, or one derived from it."""
    if not frame.parts:
        frame.store.leave()
        return ray.data.from_arrow(frame.schema.empty_table())
    source = FrameDatasource(frame)
    weakref.finalize(source, frame.store.leave)
    return ray.data.read_datasource(source)


__all__ = ["FrameDatasource", "dataset", "ensure_dataset", "written"]
