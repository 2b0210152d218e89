"""Keyed streams: each record sees only the state of its own key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayflink.graph import transformations as graph
from rayflink.operators.keyed import KeyedProcessOperator, KeyedReduceOperator, keyed_aggregation

from .streams import DataStream, Factory

if TYPE_CHECKING:
    from rayflink.operators.assigners import WindowAssigner

    from .environment import StreamExecutionEnvironment
    from .windowed import WindowedStream


class KeyedStream(DataStream):
    """A stream whose records are dealt by key.

    Args:
        key_selector: record -> key; called each time the key is needed, so it must give the same key again.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: graph.Partition, key_selector: Any) -> None:
        super().__init__(env, transformation)
        self._key_selector = key_selector

    def reduce(self, func: Any) -> DataStream:
        """The reduction of all records of a key so far, for each record.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment({"execution.target": "local"})
        >>> stream = env.from_collection([("a", 1), ("b", 5), ("a", 2)])
        >>> stream.key_by(0).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect()
        [('a', 1), ('b', 5), ('a', 3)]
        """
        return self._keyed("Keyed Reduce", Factory(KeyedReduceOperator, self._key_selector, func))

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """The rolling sum of a field, for each record."""
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

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        """A KeyedProcessFunction: keyed state, timers, side outputs."""
        return self._keyed("KEYED PROCESS", Factory(KeyedProcessOperator, self._key_selector, func), output_type)

    def window(self, window_assigner: WindowAssigner) -> WindowedStream:
        """Group each key's records by windows."""
        from .windowed import WindowedStream

        return WindowedStream(self, window_assigner)

    def _aggregated(self, kind: str, position: int | str) -> DataStream:
        return self._keyed("Keyed Aggregation", Factory(keyed_aggregation, self._key_selector, kind, position))

    def _keyed(self, name: str, factory: Factory, output_type: Any = None) -> DataStream:
        return self._one_input(name, factory, output_type, self._key_selector)
