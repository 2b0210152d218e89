"""Windows over all records of a stream, whatever their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, cast

from rayflink.common.functions.type_variables import Record, Selected
from rayflink.common.time import Length

from .step import Step

if TYPE_CHECKING:
    from rayflink.operators.windows.assigners import WindowAssigner

    from .stream import DataStream
    from .windowed import AllWindowedStream


# Windowed streams are built of DataStream, which has these methods: they import them when they are called.
class WindowsOfAll(Step, Generic[Record]):
    """The methods of a stream that group all its records by windows, in one subtask."""

    def window_all(self, window_assigner: WindowAssigner[Any, Selected]) -> AllWindowedStream[Record, Selected]:
        """Group all records by windows, in one subtask."""
        from .windowed import AllWindowedStream  # which imports this module

        return AllWindowedStream(cast("DataStream[Record]", self), window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[Record]:
        """Group all records by windows of `size` records, as `KeyedStream.count_window` does those of a key.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> list(env.from_collection([1, 2, 3, 4, 5]).count_window_all(2).sum().execute_and_collect())
        [3, 7]

        Raises:
            ValueError: the size is below 1, or the slide below 0.
        """
        from .windowed import windows_of_counts  # which imports this module

        return windows_of_counts(self.window_all, size, slide)

    def time_window_all(self, size: Length, slide: Length | None = None) -> AllWindowedStream[Record]:
        """Group all records by windows of time, as `KeyedStream.time_window` does those of a key."""
        from .windowed import windows_of_time  # which imports this module

        return windows_of_time(self.window_all, self._env.get_stream_time_characteristic(), size, slide)


__all__ = ["WindowsOfAll"]
