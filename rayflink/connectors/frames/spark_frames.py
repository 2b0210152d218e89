"""A DataFrame of Spark as blocks of columns: Spark's own Python workers put what they compute where a job reads it.

Spark gives its Python workers record batches, and these go into the store as they are: no row is made of them.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from rayflink.common.connector_base.source import Source
from rayflink.common.errors import RayflinkError, TypeMismatch, shorten
from rayflink.common.user_code.call_sites import call_site
from rayflink.state.storage.storage_schemes import from_root

from ..files.file_source import FileSource
from ..formats.parquet_files import ParquetFormat
from .frame_source import FramePart, FrameSource, FrameStore, SentStore

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

ArrowWork: TypeAlias = "Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]"
BLOCK_BYTES = 8 << 20
"""About the size of one block."""
BLOCK_ROWS = 1 << 18
"""Rows of one block at most."""
_PARQUET = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Moments with their zone, which INT96 lacks as it lacks those after 2262; days before 1582 as Arrow counts them."""
_TRACEBACK = "Traceback (most recent call last)"
_WORKER_ENDED = "Python worker exited unexpectedly"
_PARTS = "partition long, attempt long, place string, blocks long, rows long, size long"


class SparkFailed(RayflinkError):
    """Spark could not compute a DataFrame.

    Args:
        what: was to be done with it.
        reason: the first line of what Spark says.
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        remedy = "Spark's own error is above; df.count() computes the DataFrame alone"
        return f"Spark could not compute the DataFrame that was to be {self.what}: {self.reason}; {remedy}"


def source_of(df: DataFrame, path: str | os.PathLike[str] | None, make_store: Callable[[], FrameStore]) -> Source:
    """Let Spark compute a DataFrame to where a stream reads it.

    Args:
        df: a `pyspark.sql.DataFrame`.
        path: a new folder for Parquet files; None: a store.
        make_store: makes the store.

    Raises:
        TypeMismatch: it is no DataFrame, or Arrow has no type for one of its columns.
        SparkFailed: Spark could not compute it.
    """
    schema = arrow_schema(df)
    return _filed(df, path, schema) if path is not None else _written(df, schema, make_store())


def _written(df: DataFrame, schema: pyarrow.Schema, store: FrameStore) -> FrameSource:
    try:
        parts = [FramePart(*row) for row in in_arrow(df, _putting(store), _PARTS).collect()]
        store.keep(parts)
    except BaseException as error:
        store.leave()
        if not isinstance(error, Exception) or isinstance(error, RayflinkError):
            raise
        raise SparkFailed("read as a stream", reason_of(error)) from error  # it is of a class of Spark's own
    source = FrameSource(store, parts, schema)
    weakref.finalize(source, store.leave)
    return source


def _filed(df: DataFrame, path: str | os.PathLike[str], schema: pyarrow.Schema) -> FileSource:
    path = from_root(os.fspath(path))  # Spark's processes and those of the job have other working directories
    try:
        with _configured(df.sparkSession.conf, _PARQUET):
            df.write.parquet(path)
    except Exception as error:  # of a class of Spark's own
        raise SparkFailed(f"written to {path}", reason_of(error)) from error
    return FileSource.for_bulk_file_format(ParquetFormat(schema), path).build()


@contextmanager
def _configured(conf: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Apply these settings to Spark within the block."""
    before = {name: conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                conf.unset(name)
            else:
                conf.set(name, value)


def arrow_schema(df: DataFrame, what: str = "the table for a stream") -> pyarrow.Schema:
    """Return the columns of a DataFrame.

    Args:
        what: it is, for the error.

    Raises:
        TypeMismatch: it is no DataFrame, its Spark has ended, or Arrow has no type for one of its columns.
    """
    frames = sys.modules.get("pyspark.sql")
    if frames is None or not isinstance(df, frames.DataFrame):
        actual = f"{type(df).__name__} {shorten(df, 80)}"
        remedy = "give what spark.read, spark.sql or spark.createDataFrame returns"
        raise TypeMismatch(what, "", actual, "a pyspark.sql.DataFrame", remedy, call_site())
    if not spark_runs(df.sparkSession):
        actual, wanted = "a DataFrame whose SparkSession has ended", "one of a Spark that runs"
        raise TypeMismatch(what, "", actual, wanted, "use it before its session ends", call_site())
    from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

    if df.isStreaming:
        actual = "a streaming DataFrame, which has no end"
        remedy = "read its source by spark.read, or by a source of the stream's own"
        raise TypeMismatch(what, "", actual, "a DataFrame that ends", remedy, call_site())
    twice = sorted(name for name, count in Counter(df.columns).items() if count > 1)
    if twice or not df.columns:
        actual = f"several columns {twice[0]!r}" if twice else "none"
        remedy = "rename them, say by df.toDF(...)" if twice else "select one"
        raise TypeMismatch("columns of the DataFrame", "", actual, "columns of different names", remedy, call_site())
    for field in df.schema:
        try:
            to_arrow_type(field.dataType)
        except Exception as error:  # of a class of Spark's own, which its releases have changed
            remedy = f"cast it before, say df.withColumn({field.name!r}, col({field.name!r}).cast('string'))"
            where, actual = f"column {field.name!r} of the DataFrame", field.dataType.simpleString()
            raise TypeMismatch(where, "", actual, "a type that Arrow has", remedy, call_site()) from error
    return to_arrow_schema(df.schema)


def spark_runs(spark: SparkSession) -> bool:
    """Return whether a SparkSession has not been stopped."""
    return getattr(spark.sparkContext, "_jsc", None) is not None


class _Named:
    """Work on batches whose columns have come under other names; a class of a module, which pickles as its name."""

    def __init__(self, work: ArrowWork, names: Sequence[str]) -> None:
        self._work, self._names = work, tuple(names)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        return self._work(renamed(batches, self._names))


def in_arrow(df: Any, work: ArrowWork, schema: str) -> Any:
    """Return `df.mapInArrow(work, schema)` for columns of any name.

    PySpark 3.5 looks each of them up by its name, and so finds none with a dot or a backtick in it, and two where names
    differ in case alone.
    """
    by_number = df.toDF(*(f"c{number}" for number in range(len(df.columns))))
    return by_number.mapInArrow(_Named(work, df.columns), schema)


def renamed(batches: Iterator[pyarrow.RecordBatch], names: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
    """Yield batches with other names for their columns."""
    import pyarrow

    for batch in batches:
        fields = [field.with_name(name) for field, name in zip(batch.schema, names, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=pyarrow.schema(fields))


def reason_of(error: Exception) -> str:
    """Return Spark's reason for a failure, without the stacks of the JVM.

    >>> reason_of(ValueError("a\\nb"))
    'ValueError: a'
    """
    lines = str(error).strip().splitlines()
    stripped = [line.strip() for line in lines]
    if any(_WORKER_ENDED in line for line in stripped):  # the last cause is then that nothing more was read
        return f"{_WORKER_ENDED}: a function has ended the process, or the node has no memory left"
    python = [index for index, line in enumerate(stripped) if _TRACEBACK in line]
    if python:  # all that is no error is further to the right
        ends = [line for line in lines[python[0] + 1 :] if line.strip() and not line[0].isspace()]
        if ends:
            return ends[0].rstrip()
    causes = [line for line in stripped if line.startswith("Caused by: ")] or stripped[:1]
    return f"{type(error).__name__}: {causes[-1].removeprefix('Caused by: ')}" if causes else type(error).__name__


def _putting(store: FrameStore) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Return the function that each task of Spark applies to its partition: it reports where it has put each block."""
    sent = SentStore(store)

    def put(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        there, task = sent.open(), TaskContext.get()
        assert task is not None, "Spark's tasks have a context"
        partition, attempt = task.partitionId(), task.taskAttemptId()
        place, rows, size, number = "", 0, 0, 0
        for block in blocks_of(batches):
            place = there.append(partition, attempt, number, block)
            number, rows, size = number + 1, rows + block.num_rows, size + block.nbytes
        values = [partition, attempt, place, number, rows, size]
        names = [column.split()[0] for column in _PARTS.split(", ")]
        yield pyarrow.RecordBatch.from_pydict({name: [value] for name, value in zip(names, values, strict=True)})

    return put


def blocks_of(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Combine batches to about `BLOCK_BYTES`, and at most `BLOCK_ROWS` rows where they come in smaller ones."""
    import pyarrow

    pending: list[pyarrow.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if pending and (size + batch.nbytes > BLOCK_BYTES or rows + batch.num_rows > BLOCK_ROWS):
            yield pyarrow.concat_batches(pending)
            pending, size, rows = [], 0, 0
        pending.append(batch)
        size, rows = size + batch.nbytes, rows + batch.num_rows
    if pending:
        yield pyarrow.concat_batches(pending)


__all__ = ["SparkFailed", "arrow_schema", "blocks_of", "in_arrow", "reason_of", "renamed", "source_of"]
