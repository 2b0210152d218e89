"""The result of a stream as a DataFrame of Spark: its Python workers read the blocks from where the stream put them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import TypeMismatch, shorten
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.user_code.call_sites import call_site

from .frame_source import SentStore
from .frame_writing import Frame
from .spark_frames import spark_runs

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

WHERE = "the columns for a DataFrame"


def ensure_session(spark: SparkSession) -> None:
    """Check that Spark runs.

    Raises:
        TypeMismatch: it is no SparkSession, or one that has ended.
    """
    from pyspark.sql import SparkSession

    remedy = "give what rayflink.spark.spark_session() or SparkSession.builder.getOrCreate() gives"
    if not isinstance(spark, SparkSession):
        actual = f"{type(spark).__name__} {shorten(spark, 80)}"
        raise TypeMismatch("the Spark for a DataFrame", "", actual, "a pyspark.sql.SparkSession", remedy, call_site())
    if not spark_runs(spark):
        actual = "a SparkSession that has ended"
        raise TypeMismatch("the Spark for a DataFrame", "", actual, "one that runs", remedy, call_site())


def wanted_schema(schema: object) -> pyarrow.Schema | None:
    """Convert a schema, Spark's or another, to Arrow's.

    Args:
        schema: a StructType or a text like "id long, word string", a RowTypeInfo or a pyarrow Schema; None stays so.

    Raises:
        TypeMismatch: it is none, or Arrow has no type for one of its columns.
        InvalidTypesError: it is a row type with a field that Arrow has no type for.
    """
    import pyarrow
    from pyspark.sql.pandas import types
    from pyspark.sql.types import StructType, _parse_datatype_string

    if schema is None or isinstance(schema, (pyarrow.Schema, TypeInformation)):
        return None if schema is None else to_arrow_schema(schema)
    if not isinstance(schema, (str, StructType)):
        wanted = "a StructType, a text like 'id long, word string', a pyarrow Schema or a RowTypeInfo"
        raise TypeMismatch(WHERE, "", f"{type(schema).__name__} {shorten(schema, 80)}", wanted, "give one", call_site())
    try:
        kind = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        return types.to_arrow_schema(kind if isinstance(kind, StructType) else StructType().add("value", kind))
    except Exception as error:  # of a class of Spark's own
        said = str(error).strip().splitlines() or [type(error).__name__]
        remedy = "mend the schema"
        raise TypeMismatch(WHERE, "", f"{shorten(schema, 80)} ({said[0]})", "a schema", remedy, call_site()) from error


def spark_schema(schema: pyarrow.Schema) -> Any:
    """Convert columns of Arrow to a `pyspark.sql.types.StructType`; times without a zone stay so.

    Raises:
        TypeMismatch: Spark has no type for one of them.
    """
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in schema:
        try:
            kind = from_arrow_type(plain_type(field.type), prefer_timestamp_ntz=True)
            to_arrow_type(kind)  # decimals of more than 38 digits have no way there
        except Exception as error:  # of a class of Spark's own
            remedy = "make another of it in the stream, or give a schema with the type that it shall have"
            actual = str(field.type)
            raise TypeMismatch(
                WHERE, f" .{field.name}", actual, "a type that Spark has", remedy, call_site()
            ) from error
        fields.append(StructField(field.name, kind, field.nullable))
    return StructType(fields)


def plain_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return a type without a dictionary and without long offsets, whose values are the same."""
    import pyarrow

    types = pyarrow.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pyarrow.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return pyarrow.binary()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pyarrow.list_(plain_type(kind.value_type))
    if types.is_map(kind):
        return pyarrow.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if types.is_struct(kind):
        return pyarrow.struct([field.with_type(plain_type(field.type)) for field in kind])
    return kind


def dataframe(spark: Any, frame: Frame) -> Any:
    """Convert a frame to a `pyspark.sql.DataFrame`, whose blocks stay until Spark ends.

    Raises:
        TypeMismatch: Spark has no type for one of its columns; the blocks are given up.
    """
    from pyspark.sql.pandas.types import to_arrow_schema as arrow_of

    try:
        schema = spark_schema(frame.schema)
    except TypeMismatch:
        frame.store.leave()
        raise
    context, groups = spark.sparkContext, frame.groups()
    if not groups:
        frame.store.leave()
        return spark.createDataFrame([], schema)
    as_spark_has_them = Frame(frame.store, frame.parts, arrow_of(schema))
    frame.store.need_while(lambda: spark_runs(spark))
    weakref.finalize(context, frame.store.leave)
    numbers = spark.range(0, len(groups), 1, len(groups))
    return numbers.mapInArrow(_reading(as_spark_has_them), schema)


def _reading(frame: Frame) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Return the function that each task of Spark applies to the number of a group: it yields the rows of that
    group.
    """
    groups, parts, schema, sent = frame.groups(), frame.parts, frame.schema, SentStore(frame.store)

    def read(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        there = Frame(sent.open(), parts, schema)
        for batch in batches:
            for group in batch.column(0).to_pylist():
                for part in groups[group]:
                    for number in range(part.blocks):
                        yield there.block(part, number)

    return read


__all__ = ["dataframe", "ensure_session", "plain_type", "spark_schema", "wanted_schema"]
