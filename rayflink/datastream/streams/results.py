"""A bounded stream's whole result as one table: Arrow's, Spark's or Ray Data's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.typeinfo import RowTypeInfo
from rayflink.connectors.frames import spark_results
from rayflink.connectors.frames.frame_writing import Frame, FrameOperator, frame_of
from rayflink.graph import transformations as graph
from rayflink.graph.checks import endless_source
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory

from ..launcher import launcher
from .step import transformation_of
from .stream import DataStream
from .stream_builder import StreamBuilder

if TYPE_CHECKING:
    import pyarrow


def to_spark(stream: DataStream, spark: Any, schema: Any, job_name: str | None) -> Any:
    """Put the stream's records into a Spark DataFrame; see `DataStream.to_spark`."""
    spark_results.ensure_session(spark)
    wanted = spark_results.wanted_schema(schema)
    return spark_results.dataframe(spark, _frame(stream, "to_spark", wanted, job_name, False))


def to_ray_dataset(stream: DataStream, schema: Any, job_name: str | None) -> Any:
    """Put the stream's records into a Dataset of Ray Data; see `DataStream.to_ray_dataset`."""
    wanted = None if schema is None else to_arrow_schema(schema)
    frame = _frame(stream, "to_ray_dataset", wanted, job_name, True)
    return launcher().ray_dataset(frame)


def columns_of(stream: DataStream, schema: pyarrow.Schema, job_name: str | None = None) -> pyarrow.Table:
    """Run the program and return all records of a bounded stream as columns, one subtask's after another's.

    Args:
        schema: of the columns.
        job_name: of the job; None: the option `pipeline.name`.
    """
    import pyarrow

    if not launcher().reaches_frames(stream.get_execution_environment().get_configuration()):
        rows = list(stream.execute_and_collect(job_name))
        return pyarrow.Table.from_batches([rows_to_arrow(rows, schema)] if rows else [], schema)
    frame = _frame(stream, "to_arrow", schema, job_name, False)
    try:
        blocks = [frame.block(part, number) for part in frame.parts for number in range(part.blocks)]
    finally:
        frame.store.leave()
    return pyarrow.Table.from_batches(blocks, schema)


def _frame(stream: DataStream, call: str, schema: pyarrow.Schema | None, job_name: str | None, on_ray: bool) -> Frame:
    """Run the program and put the stream's records into a store."""
    env, line, transformation = stream.get_execution_environment(), graph.call_site(), transformation_of(stream)
    endless = endless_source([transformation])
    if endless is not None:
        problem = f"{call}() needs a stream that ends, and {endless.name!r} does not"
        remedy = "write files with a FileSink, which are read while the stream runs"
        raise PlanError(problem, remedy, line)
    if schema is None:
        schema = _declared(transformation)
    store = launcher().frame_store(env.get_configuration(), on_ray)
    try:
        columns = StreamBuilder(stream).add_operator("Columns", Factory(FrameOperator, store, schema)).stream
        columns.uid("rayflink columns")
        if transformation.parallelism is not None:
            columns.set_parallelism(transformation.parallelism)  # so that records of a task stay together
        return frame_of(store, list(columns.execute_and_collect(job_name)), line)
    except BaseException:
        store.leave()
        raise


def _declared(transformation: graph.Transformation) -> pyarrow.Schema | None:
    """Return the columns of the type that the records were declared to have; None where Arrow has not all of them."""
    declared = transformation.declared_type()
    if not isinstance(declared, RowTypeInfo):
        return None
    try:
        return to_arrow_schema(declared)
    except InvalidTypesError:
        return None  # the values say what they are


__all__ = ["columns_of", "to_ray_dataset", "to_spark"]
