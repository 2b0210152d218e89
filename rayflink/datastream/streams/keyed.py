"""Keyed streams: each record sees only the state of its own key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, overload

from rayflink.common.functions.function_classes import FilterFunction, FlatMapFunction, MapFunction
from rayflink.common.functions.type_variables import Key, Record, Result, Selected, Whole
from rayflink.common.time import Length
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory
from rayflink.operators.keyed.keyed_functions import keyed_filter, keyed_flat_map, keyed_map
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator, keyed_aggregation
from rayflink.operators.windows.folding import KeyedFoldOperator
from rayflink.user_types import TypeHint, UserAccumulator, UserCode

from .fields import check_fields
from .recording import SAME_RECORDS, SAME_TYPE
from .step import transformation_of
from .stream import DataStream, ensure_stream
from .unfinished import ensure_one_environment

if TYPE_CHECKING:
    from rayflink.operators.windows.assigners import WindowAssigner

    from ..environment import StreamExecutionEnvironment
    from .broadcast import BroadcastConnectedStream, BroadcastStream
    from .connected import ConnectedStreams
    from .function_types import (
        FieldForm,
        FilterForm,
        FlatMapForm,
        FoldForm,
        KeyedProcessForm,
        KeyForm,
        MapForm,
        ReduceForm,
    )
    from .interval_joined import IntervalJoin
    from .windowed import WindowedStream


# Windowed streams and interval joins are built of KeyedStream: methods that return one import them when called.
class KeyedStream(DataStream[Record], Generic[Record, Key]):
    """A stream whose records are partitioned by key; of type checkers `KeyedStream[Click, str]`, of records and keys.

    Args:
        key_selector: record -> key; called each time the key is needed, so it must give the same key again.
    """

    def __init__(
        self, env: StreamExecutionEnvironment, transformation: graph.Partition, key_selector: UserCode
    ) -> None:
        super().__init__(env, transformation)
        self.key_selector = key_selector
        self._before = transformation.input

    # record by record, with the state of the key

    @overload
    def map(self, func: MapForm[Record, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def map(self, func: MapForm[Record, Any], output_type: TypeHint) -> DataStream: ...

    def map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function with one result to each record; a MapFunction may use the state of the record's key."""
        if isinstance(func, MapFunction):
            return self._keyed("Map", Factory(keyed_map, self.key_selector, func), output_type)
        return super().map(func, output_type)

    @overload
    def flat_map(self, func: FlatMapForm[Record, Result], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def flat_map(self, func: FlatMapForm[Record, Any], output_type: TypeHint) -> DataStream: ...

    def flat_map(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function with any number of results to each record; a FlatMapFunction may use the state of its key.

        Args:
            func, output_type: as of `DataStream.flat_map`.
        """
        if isinstance(func, FlatMapFunction):
            return self._keyed("Flat Map", Factory(keyed_flat_map, self.key_selector, func), output_type)
        return super().flat_map(func, output_type)

    def filter(self, func: FilterForm[Record]) -> DataStream[Record]:
        """Keep the records for which `func` is true; a FilterFunction may use the state of the record's key."""
        if isinstance(func, FilterFunction):
            return self._keyed("Filter", Factory(keyed_filter, self.key_selector, func), SAME_RECORDS)
        return super().filter(func)

    @overload
    def process(self, func: KeyedProcessForm[Record, Result, Key], output_type: None = None) -> DataStream[Result]: ...
    @overload
    def process(self, func: KeyedProcessForm[Record, Any, Key], output_type: TypeHint) -> DataStream: ...

    def process(self, func: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function with any number of results to each record and timer, with keyed state and side outputs.

        Args:
            func: a KeyedProcessFunction.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._keyed("KEYED PROCESS", Factory(KeyedProcessOperator, self.key_selector, func), output_type)

    # rolling aggregates

    def reduce(self, func: ReduceForm[Record]) -> DataStream[Record]:
        """Give the reduction of all records of a key so far, for each record.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> stream = env.from_collection([("a", 1), ("b", 5), ("a", 2)])
        >>> list(stream.key_by(0).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect())
        [('a', 1), ('b', 5), ('a', 3)]
        """
        declared = self._transformation.declared_type()
        return self._keyed("Keyed Reduce", Factory(KeyedReduceOperator, self.key_selector, func), declared)

    @overload
    def fold(
        self, initial_value: Whole, fold_function: FoldForm[Record, Whole], output_type: None = None
    ) -> DataStream[Whole]: ...
    @overload
    def fold(
        self, initial_value: Whole, fold_function: FoldForm[Record, Whole], output_type: TypeHint
    ) -> DataStream: ...

    def fold(
        self, initial_value: UserAccumulator, fold_function: UserCode, output_type: TypeHint = None
    ) -> DataStream[Any]:
        """Give the fold of all records of a key so far, for each record; of Flink 1.x.

        Args:
            initial_value: what a key's first record is combined with; each key has a copy.
            fold_function: a FoldFunction, which may use the state of the record's key, or a callable of the value so
                far and the record.
            output_type: what every result must be, and is made where it can be; None: anything.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> stream = env.from_collection([("a", 1), ("b", 5), ("a", 2)])
        >>> list(stream.key_by(0).fold("start", lambda text, pair: f"{text}-{pair[1]}").execute_and_collect())
        ['start-1', 'start-5', 'start-1-2']
        """
        factory = Factory(KeyedFoldOperator, self.key_selector, initial_value, fold_function)
        return self._keyed("Keyed Fold", factory, output_type)

    def sum(self, position_to_sum: int | str = 0) -> DataStream[Record]:
        """Give the rolling sum of a field, for each record; other fields are those of the key's first record."""
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream[Record]:
        """Give the rolling minimum of a field; other fields are those of the key's first record."""
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream[Record]:
        """Give the rolling maximum of a field; other fields are those of the key's first record."""
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream[Record]:
        """Give the record with the rolling minimum of a field."""
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream[Record]:
        """Give the record with the rolling maximum of a field."""
        return self._aggregated("max_by", position_to_max_by)

    # windows and other keys

    def window(self, window_assigner: WindowAssigner[Any, Selected]) -> WindowedStream[Record, Key, Selected]:
        """Group each key's records by windows."""
        from .windowed import WindowedStream  # which imports this module

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[Record, Key]:
        """Group each key's records by windows of `size` records, one after the other; with a slide, overlapping ones.

        Without a slide a window is evaluated when it is full. With one, as in Flink, the newest `size` records are
        evaluated at every `slide`-th record of a key, also before there are `size` of them: the window is the
        `GlobalWindow`, with the trigger `CountTrigger.of(slide)` and the evictor `CountEvictor.of(size)`. (PyFlink
        evaluates full windows only, as `window(CountSlidingWindowAssigner.of(size, slide))` does here.)

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> numbers = env.from_collection([2, 5, 7, 9, 4, 2]).key_by(lambda n: 0)
        >>> list(numbers.count_window(4, 2).sum().execute_and_collect())
        [7, 23, 22]

        Args:
            size: records in a window, at least 1.
            slide: records between two evaluations, at least 1; 0: `size`, in windows that do not overlap.

        Raises:
            ValueError: the size is below 1, or the slide below 0.
        """
        from .windowed import windows_of_counts  # which imports this module

        return windows_of_counts(self.window, size, slide)

    def time_window(self, size: Length, slide: Length | None = None) -> WindowedStream[Record, Key]:
        """Group each key's records by windows of time, tumbling or, with a slide, sliding; of Flink 1.x.

        The windows use processing time where `env.set_stream_time_characteristic` chose that, else event time, as the
        characteristic is when this is called. Flink 2.x has `window` with an assigner that says which.

        Args:
            size, slide: lengths of time; an int is milliseconds.

        Raises:
            ValueError: one of them is not above 0.
        """
        from .windowed import windows_of_time  # which imports this module

        return windows_of_time(self.window, self._env.get_stream_time_characteristic(), size, slide)

    def interval_join(self, other: KeyedStream[Result, Key]) -> IntervalJoin[Record, Result]:
        """Join with the records of another keyed stream that have the same key and are near in time.

        Write `a.interval_join(b).between(lower, upper).process(function)`.

        Raises:
            PlanError: the other stream is not keyed, or of another environment.
        """
        from .interval_joined import IntervalJoin  # which imports this module

        ensure_stream(other, "interval_join")
        if not isinstance(other, KeyedStream):
            problem = "interval_join was given a stream without keys"
            raise PlanError(problem, "call key_by(...) on it too", graph.call_site())
        ensure_one_environment(self, other, "interval_join")
        return IntervalJoin(self, other)

    @overload  # type: ignore[override]
    def connect(self, ds: KeyedStream[Result, Selected]) -> ConnectedStreams[Record, Result, Key]: ...
    @overload
    def connect(self, ds: DataStream[Result]) -> ConnectedStreams[Record, Result]: ...
    @overload
    def connect(self, ds: BroadcastStream[Result]) -> BroadcastConnectedStream[Record, Result, Key]: ...

    def connect(self, ds: Any) -> Any:
        """Connect this stream with another of any type; keyed state needs the other to be keyed too."""
        return super().connect(ds)

    @overload
    def key_by(self, key_selector: FieldForm, key_type: TypeHint = None) -> KeyedStream[Record, Any]: ...
    @overload
    def key_by(
        self, key_selector: KeyForm[Record, Selected], key_type: TypeHint = None
    ) -> KeyedStream[Record, Selected]: ...

    def key_by(self, key_selector: UserCode, key_type: TypeHint = None) -> KeyedStream[Record, Any]:
        """Partition the records by another key."""
        return DataStream(self._env, self._before).key_by(key_selector, key_type)

    def cache(self) -> NoReturn:
        """Refuse, as only the result of an operator is cached.

        Raises: PlanError: always: a keyed stream has no operator whose result could be kept.
        """
        remedy = "call cache() on the stream before key_by"
        raise PlanError("cache() was called on a keyed stream", remedy, graph.call_site())

    def _aggregated(self, kind: str, position: int | str) -> DataStream:
        check_fields(kind, position, self._transformation.declared_type())
        factory = Factory(keyed_aggregation, self.key_selector, kind, position)
        return self._keyed("Keyed Aggregation", factory, SAME_TYPE)

    def _keyed(self, name: str, factory: Factory, output_type: TypeHint = None) -> DataStream:
        return self._add_operator(name, factory, output_type, self.key_selector)

    def _partitioned(self, strategy: partitioners.Partitioner) -> DataStream[Record]:
        problem = f"Cannot override partitioning for KeyedStream, found {str(strategy).lower()} behind key_by"
        raise PlanError(problem, "leave one of the two out", graph.call_site())


def step_before_partition(stream: DataStream[Any]) -> graph.Transformation:
    """Return the step whose records a stream has; of a keyed stream the one in front of its partitioning."""
    return stream._before if isinstance(stream, KeyedStream) else transformation_of(stream)
