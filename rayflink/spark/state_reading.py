"""A state of a savepoint or checkpoint as a DataFrame: each task of Spark reads a share of it from the storage."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from rayflink.connectors.frames.spark_frames import SparkFailed, reason_of
from rayflink.connectors.frames.spark_results import ensure_session, wanted_schema
from rayflink.state.snapshots import size_of
from rayflink.state.storage.storage_schemes import from_root
from rayflink.state_processor import Savepoint
from rayflink.state_processor.columns import REPR
from rayflink.state_processor.shares import StateShare, shares_of
from rayflink.state_processor.states import joined_schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_BYTES = 32 << 20
"""Bytes that one task reads, as they are stored, unless a key group is larger."""
LEAST_BYTES = 1 << 20
"""Bytes that justify a task of their own."""
BATCH_ROWS = 10_000
_TASKS_A_CORE = 4
_SHARES = "number int, share binary"


def read_state(
    spark: SparkSession,
    path: str | PathLike[str],
    operator: str,
    state: str,
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return one state of a savepoint or checkpoint, with the columns that `SavedState.to_arrow()` has.

    A row is read when an action asks for it, and again by each action that does; `cache()` prevents that. A task holds
    one key group of the operator at a time. Without a schema all tasks read the state once here, to know its types.

    >>> from rayflink.spark import read_state
    >>> totals = read_state(spark, "savepoints/first", "totals", "total")                       # doctest: +SKIP
    >>> totals.groupBy().sum("value").collect()                                                 # doctest: +SKIP
    [Row(sum(value)=1000)]

    Args:
        spark: the session.
        path: folder of the savepoint or checkpoint, or its `_metadata` file: a path or the URL of a storage that all
            executors reach.
        operator: uid, id or name of the operator.
        state: its name; of timers that of their queue, such as "user-timers/event".
        schema: the columns that are wanted and their types, as DDL or a `StructType`. None: all columns. Where their
            values have no type in common, or one that Spark lacks, a column is the text of `repr` of each.
        options: Flink's `s3.` options by name, as strings.

    Raises:
        NoCheckpointError, NotInSavepointError: there is no such savepoint, operator or state.
        StorageError, DamagedFileError, VersionMismatch: the savepoint cannot be read.
        TypeMismatch: Spark has ended, `schema` is none, or Arrow has no type for one of its columns.
        SparkFailed: Spark cannot read the state; an action of the DataFrame raises Spark's own error.
    """
    ensure_session(spark)
    savepoint = Savepoint.load(from_root(os.fspath(path)), options)
    known = savepoint.operator(operator)
    cores = spark.sparkContext.defaultParallelism
    state_bytes = sum(map(size_of, known.manifest.blobs))
    shares = shares_of(
        known, state, savepoint.base, min(MOST_BYTES, max(LEAST_BYTES, state_bytes // (_TASKS_A_CORE * cores)))
    )
    storage_options = dict(options or {})
    columns = wanted_schema(schema) or _seen(spark, shares, storage_options, (known.uid or known.name, state))
    read = partial(_rows, schema=columns.serialize().to_pybytes(), options=storage_options)
    return _frame_of(spark, shares).mapInArrow(read, _spark_types(columns))


def _frame_of(spark: SparkSession, shares: list[StateShare]) -> DataFrame:
    """Return a share in each partition."""
    rows = [(number, bytearray(pickle.dumps(share))) for number, share in enumerate(shares)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, len(rows)), _SHARES)


def _seen(
    spark: SparkSession, shares: list[StateShare], options: dict[str, str], named: tuple[str, str]
) -> pyarrow.Schema:
    """Return the columns of all shares, each looked at by a task; what Spark has no type for is text."""
    import pyarrow as pa

    try:
        answers = _frame_of(spark, shares).mapInArrow(partial(_schemas, options=options), _SHARES).collect()
    except Exception as error:  # of a class of Spark's own
        raise SparkFailed(f"read from state {named[1]!r} of operator {named[0]!r}", reason_of(error)) from error
    parts = (pa.ipc.read_schema(pa.py_buffer(bytes(row.share))) for row in sorted(answers, key=lambda row: row.number))
    return pa.schema([field if _has_type(field) else pa.field(field.name, pa.string(), metadata=REPR)
                      for field in joined_schema(parts)])  # fmt: skip


def _has_type(field: pyarrow.Field) -> bool:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        from_arrow_type(field.type, True)
    except Exception:  # of a class of Spark's own, which its releases have changed
        return False
    return True


def _spark_types(schema: pyarrow.Schema) -> StructType:
    """Return the columns as Spark's; a text of `repr` says so in its metadata."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    metadata = {key.decode(): text.decode() for key, text in REPR.items()}
    return StructType([
        StructField(field.name, from_arrow_type(field.type, True), True, metadata if field.metadata == REPR else None)
        for field in schema
    ])  # fmt: skip


def _each(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[tuple[int, StateShare]]:
    for batch in batches:
        for number, share in zip(batch["number"].to_pylist(), batch["share"].to_pylist(), strict=True):
            yield number, pickle.loads(share)


def _schemas(batches: Iterator[pyarrow.RecordBatch], options: dict[str, str]) -> Iterator[pyarrow.RecordBatch]:
    """Return the schemas that a task reports of its shares."""
    import pyarrow as pa

    for number, share in _each(batches):
        schema = share.read(options).schema.serialize().to_pybytes()
        columns = [pa.array([number], pa.int32()), pa.array([schema], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["number", "share"])


def _rows(
    batches: Iterator[pyarrow.RecordBatch], schema: bytes, options: dict[str, str]
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of the shares of a task."""
    import pyarrow as pa

    columns = pa.ipc.read_schema(pa.py_buffer(schema))
    for _, share in _each(batches):
        yield from share.read(options).batches(columns, BATCH_ROWS)


__all__ = ["read_state"]
