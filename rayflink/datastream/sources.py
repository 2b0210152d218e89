"""The methods of an environment that create streams from sources."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast, overload

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.source import Source
from rayflink.common.errors import shorten
from rayflink.common.functions.callables import ensure_takes
from rayflink.common.functions.function_classes import SourceFunction
from rayflink.common.functions.type_variables import Result
from rayflink.common.watermarks import WatermarkStrategy, ensure_strategy
from rayflink.connectors.collection import CollectionSource, check_elements
from rayflink.connectors.formats.text_files import TextFileSource
from rayflink.connectors.frames.spark_frames import source_of
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.iteration import IteratorSource
from rayflink.graph import transformations as graph
from rayflink.operators.factory import SourceFactory
from rayflink.user_types import TypeHint

from .launcher import launcher
from .streams.step import as_type
from .streams.stream import DataStream
from .time_characteristic import TimeCharacteristic

if TYPE_CHECKING:
    from .environment import StreamExecutionEnvironment
    from .streams.function_types import RunForm


class Sources:
    """The part of `StreamExecutionEnvironment` about sources."""

    _configuration: Configuration
    _time_characteristic: TimeCharacteristic

    @overload
    def from_source(
        self,
        source: Source[Result],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Custom Source",
        type_info: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def from_source(
        self, source: Source, watermark_strategy: WatermarkStrategy | None, source_name: str, type_info: TypeHint
    ) -> DataStream: ...
    @overload
    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Custom Source",
        *,
        type_info: TypeHint,
    ) -> DataStream: ...

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Custom Source",
        type_info: TypeHint = None,
    ) -> DataStream[Any]:
        """Return a stream of what a `Source` reads, with timestamps and watermarks by the strategy.

        Args:
            source: what to read.
            watermark_strategy: None: no timestamps but the source's own, and no watermarks but these; ingestion time
                where `set_stream_time_characteristic` chose it.
            source_name: shown as "Source: name".
            type_info: the declared type of the records: a TypeInformation, a type hint or a class. None: that of the
                source, such as `Types.STRING()` of text files, else any.

        Raises:
            InvalidTypesError: `type_info` is no type.
            TypeError: `source` is no `rayflink.common.connector_base.source.Source`, or the strategy is none.
        """
        if not isinstance(source, Source):
            raise TypeError(f"from_source needs a Source, found {type(source).__name__}; use from_collection for lists")
        if watermark_strategy is not None:
            ensure_strategy(watermark_strategy)
        elif self._time_characteristic is TimeCharacteristic.IngestionTime:
            watermark_strategy = WatermarkStrategy.for_ingestion_time()
        factory = SourceFactory(source, watermark_strategy)
        if not isinstance(source, CollectionSource):  # its elements, which may be many, have been looked at
            factory()  # what cannot travel is refused here, in the user's line
        declared = source.produced_type if type_info is None else as_type(type_info)
        environment = cast("StreamExecutionEnvironment", self)
        step = graph.Source(factory, name=f"Source: {source_name}", output_type=declared)
        stream: DataStream = DataStream(environment, step)
        widest = source.max_parallelism
        return stream if widest is None else stream.set_parallelism(widest)

    def create_input(self, input_format: Source[Result]) -> DataStream[Result]:
        """Return a stream of the records of an `AvroInputFormat`, or of another source, without event times.

        Raises:
            TypeError: `input_format` is no source.
        """
        return self.from_source(input_format, None, type(input_format).__name__)

    @overload
    def from_collection(self, collection: Iterable[Result], type_info: None = None) -> DataStream[Result]: ...
    @overload
    def from_collection(self, collection: Iterable[Any], type_info: TypeHint) -> DataStream: ...

    def from_collection(self, collection: Iterable[Any], type_info: TypeHint = None) -> DataStream[Any]:
        """Return a stream of the elements, in order, read by one subtask.

        Args:
            type_info: type of all elements, which then have its form: a tuple declared as ROW becomes a Row.

        Raises:
            TypeMismatch: an element is not of the type.
            NotSerializable: an element cannot be sent to a task.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> env.from_collection([1, 2]).map(lambda x: x + 1).execute_and_collect(limit=10)
        [2, 3]
        """
        declared = as_type(type_info)
        if not hasattr(collection, "__iter__") and not hasattr(collection, "__getitem__"):
            actual = f"{type(collection).__name__} {shorten(collection, 80)}"
            raise TypeError(f"from_collection needs an iterable, found {actual}; give a list of the records")
        values = list(collection)
        if declared is not None:
            values = list(declared.convert_batch(values, "element of the collection", graph.call_site()))
        check_elements(values)
        return self.from_source(CollectionSource(values), None, "Collection Source", declared)

    @overload
    def add_source(
        self, source_func: RunForm[Result], source_name: str = "Custom Source", type_info: None = None
    ) -> DataStream[Result]: ...
    @overload
    def add_source(self, source_func: RunForm[Any], source_name: str, type_info: TypeHint) -> DataStream: ...
    @overload
    def add_source(
        self, source_func: RunForm[Any], source_name: str = "Custom Source", *, type_info: TypeHint
    ) -> DataStream: ...

    def add_source(
        self, source_func: RunForm[Any], source_name: str = "Custom Source", type_info: TypeHint = None
    ) -> DataStream[Any]:
        """Return a stream of what a generator function, or `SourceFunction.run`, yields; one subtask runs it.

        A `Source` is taken as by `from_source`, without a watermark strategy.

        Args:
            source_func: called without arguments once the job runs; an async generator function serves as well.
            source_name: shown as "Source: name".
            type_info: the declared type of the records: a TypeInformation, a type hint or a class; None: any.

        Raises:
            InvalidTypesError: `type_info` is no type.
        """
        if isinstance(source_func, Source):
            return self.from_source(source_func, None, source_name, type_info)
        if isinstance(source_func, SourceFunction):
            ensure_takes(0, source_func.run, "add_source: run, which yields the records,")
        elif callable(source_func):
            ensure_takes(0, source_func, "add_source")
        return self.from_source(IteratorSource(source_func), None, source_name, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream[int]:
        """Return the numbers start to end, both included, divided among all subtasks."""
        return self.from_source(NumberSequenceSource(start, end), None, "Sequence Source")

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream[str]:
        """Return the lines of a file, without their ends; large files are read in parallel.

        Args:
            file_path: a path that every node sees; a relative one begins at the program's working directory.
            charset_name: the encoding of the text.
        """
        source = TextFileSource(file_path, encoding=charset_name)
        return self.from_source(source, None, f"Text File Source ({os.path.basename(file_path)})")

    def from_spark(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Spark",
        path: str | None = None,
    ) -> DataStream:
        """Return a bounded stream of a Spark DataFrame's rows, which Spark computes now.

        They stay columns: Spark's workers put record batches where the stream reads them, with the schema's types and
        nulls. On Ray that is the object store of each node, which spills to disk what does not fit. The rows stay
        there as long as this program or a job that began to read them lives, also when Spark has ended; but they are
        lost with their node. With `path` they go to Parquet files instead, which a job finds again in a new cluster.

        A partition is a split: its rows keep their order. Functions on records see `Row` objects.

        Args:
            df: a `pyspark.sql.DataFrame`.
            watermark_strategy: as in `from_source`; a column with the time is named by `with_timestamp_column`.
            source_name: shown as "Source: name".
            path: a new folder that Spark and all nodes see.

        Raises:
            TypeMismatch: it is no DataFrame, or Arrow has no type for one of its columns.
            SparkFailed: Spark could not compute it.
        """

        source = source_of(df, path, lambda: launcher().frame_store(self._configuration))
        return self.from_source(source, watermark_strategy, source_name)

    def from_ray_dataset(
        self, dataset: Any, watermark_strategy: WatermarkStrategy | None = None, source_name: str = "Ray Data"
    ) -> DataStream:
        """Return a bounded stream of the rows of a Dataset of Ray Data, which is computed now.

        Its blocks go to the object store as columns, and stay there as those of `from_spark` do. A block is a split;
        blocks are distributed in their order. Functions on records see `Row` objects.

        Args:
            dataset: a `ray.data.Dataset`.
            watermark_strategy: as in `from_source`; a column with the time is named by `with_timestamp_column`.
            source_name: shown as "Source: name".

        Raises:
            TypeMismatch: it is none.
            ray.exceptions.RayError: Ray Data could not compute it.
        """
        source = launcher().dataset_source(dataset, self._configuration)
        return self.from_source(source, watermark_strategy, source_name)


__all__ = ["Sources"]
