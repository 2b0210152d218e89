"""Keyed streams: each record sees only the state of its own key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rayflink.common.functions import FilterFunction, FlatMapFunction, MapFunction
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory
from rayflink.operators.keyed import KeyedReduceOperator, keyed_aggregation
from rayflink.operators.keyed_functions import keyed_filter, keyed_flat_map, keyed_map
from rayflink.operators.keyed_process import KeyedProcessOperator

from .fields import check_fields
from .streams import SAME_RECORDS, SAME_TYPE, DataStream, ensure_stream

if TYPE_CHECKING:
    from rayflink.operators.assigners import WindowAssigner

    from .environment import StreamExecutionEnvironment
    from .interval_joined import IntervalJoin
    from .windowed import WindowedStream


class KeyedStream(DataStream):
    """A stream whose records are dealt by key.

    Args:
        key_selector: record -> key; called each time the key is needed, so it must give the same key again.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: graph.Partition, key_selector: Any) -> None:
        super().__init__(env, transformation)
        self.key_selector = key_selector
        self._behind = transformation.input

    # record by record, with the state of the key

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        """One result for each record, as of `DataStream.map`; a MapFunction may use the state of the record's key."""
        if isinstance(func, MapFunction):
            return self._keyed("Map", Factory(keyed_map, self.key_selector, func), output_type)
        return super().map(func, output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        """Any number of results for each record; a FlatMapFunction may use the state of the record's key.

        Args:
            func, output_type: as of `DataStream.flat_map`.
        """
        if isinstance(func, FlatMapFunction):
            return self._keyed("Flat Map", Factory(keyed_flat_map, self.key_selector, func), output_type)
        return super().flat_map(func, output_type)

    def filter(self, func: Any) -> DataStream:
        """The records for which `func` is true; a FilterFunction may use the state of the record's key."""
        if isinstance(func, FilterFunction):
            return self._keyed("Filter", Factory(keyed_filter, self.key_selector, func), SAME_RECORDS)
        return super().filter(func)

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        """Any number of results for each record and timer, with keyed state and side outputs.

        Args:
            func: a KeyedProcessFunction.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._keyed("KEYED PROCESS", Factory(KeyedProcessOperator, self.key_selector, func), output_type)

    # rolling aggregates

    def reduce(self, func: Any) -> DataStream:
        """The reduction of all records of a key so far, for each record.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> stream = env.from_collection([("a", 1), ("b", 5), ("a", 2)])
        >>> list(stream.key_by(0).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect())
        [('a', 1), ('b', 5), ('a', 3)]
        """
        declared = self._transformation.declared_type()
        return self._keyed("Keyed Reduce", Factory(KeyedReduceOperator, self.key_selector, func), declared)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The rolling sum of a field, for each record; other fields are those of the key's first record."""
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """The rolling minimum of a field; other fields are those of the key's first record."""
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """The rolling maximum of a field; other fields are those of the key's first record."""
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """The record with the rolling minimum of a field."""
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """The record with the rolling maximum of a field."""
        return self._aggregated("max_by", position_to_max_by)

    # windows and other keys

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """Group each key's records by windows."""
        from .windowed import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Group each key's records by windows of `size` records, one after the other, or beginning every `slide`.

        A window is evaluated when it is full, and only then, as in PyFlink. Flink's countWindow(size, slide) fires at
        every `slide` records with the newest `size` there are; that is `window(GlobalWindows.create())` with the
        trigger `CountTrigger.of(slide)` and the evictor `CountEvictor.of(size)`.

        Raises:
            ValueError: the size is below 1, or the slide below 0.
        """
        from rayflink.operators.count_windows import count_windows

        return self.window(count_windows(size, slide))

    def interval_join(self, other: KeyedStream) -> IntervalJoin:
        """Join with the records of another keyed stream that have the same key and are near in time.

        Write `a.interval_join(b).between(lower, upper).process(function)`.

        Raises:
            PlanError: the other stream is not keyed, or of another environment.
        """
        from .interval_joined import IntervalJoin
        from .unfinished import ensure_one_environment

        ensure_stream(other, "interval_join")
        if not isinstance(other, KeyedStream):
            problem = "interval_join was given a stream without keys"
            raise PlanError(problem, "call key_by(...) on it too", graph.call_site())
        ensure_one_environment(self, other, "interval_join")
        return IntervalJoin(self, other)

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        """Deal the records by another key."""
        return DataStream(self._env, self._behind).key_by(key_selector, key_type)

    def cache(self) -> NoReturn:
        """Raises: PlanError: always: a keyed stream has no operator whose result could be kept."""
        remedy = "call cache() on the stream before key_by"
        raise PlanError("cache() was called on a keyed stream", remedy, graph.call_site())

    def _aggregated(self, kind: str, position: int | str) -> DataStream:
        check_fields(kind, position, self._transformation.declared_type())
        factory = Factory(keyed_aggregation, self.key_selector, kind, position)
        return self._keyed("Keyed Aggregation", factory, SAME_TYPE)

    def _keyed(self, name: str, factory: Factory, output_type: Any = None) -> DataStream:
        return self._one_input(name, factory, output_type, self.key_selector)

    def _partitioned(self, strategy: partitioners.Partitioner) -> DataStream:
        problem = f"Cannot override partitioning for KeyedStream, found {str(strategy).lower()} behind key_by"
        raise PlanError(problem, "leave one of the two out", graph.call_site())
