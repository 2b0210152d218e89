"""Windowed streams: records of one key, or all records, grouped by windows, waiting for their function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from rayflink.common.functions.function_classes import AggregateFunction, NullByteKeySelector
from rayflink.common.functions.type_variables import Key, Record, Result, Whole, Window
from rayflink.common.time import Length
from rayflink.operators.factory import Factory
from rayflink.operators.windows.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from rayflink.operators.windows.count_windows import CountTumblingWindowAssigner, GlobalWindows
from rayflink.operators.windows.evictors import CountEvictor
from rayflink.operators.windows.triggers import CountTrigger
from rayflink.operators.windows.window_functions import WithoutKey, aggregating, collecting
from rayflink.user_types import TypeHint, UserAccumulator, UserCode

from ..time_characteristic import TimeCharacteristic
from .stream import DataStream
from .windowing import Windowing

if TYPE_CHECKING:
    from .function_types import AllWindowForm, FoldForm, ReduceForm, WindowForm

W = TypeVar("W", bound=Windowing[Any, Any, Any])


class WindowedStream(Windowing[Record, Key, Window], Generic[Record, Key, Window]):
    """A keyed stream grouped by windows.

    Of type checkers `WindowedStream[Click, str, TimeWindow]`, of records, keys and windows.

    Args:
        keyed_stream: the stream.
        window_assigner: places each record into windows.

    Raises:
        TypeError: the assigner is none.
    """

    @overload
    def reduce(
        self, reduce_function: ReduceForm[Record], window_function: None = None, output_type: None = None
    ) -> DataStream[Record]: ...
    @overload
    def reduce(self, reduce_function: ReduceForm[Record], *, output_type: TypeHint) -> DataStream: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceForm[Record],
        window_function: WindowForm[Record, Result, Key, Window],
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceForm[Record],
        window_function: WindowForm[Record, Any, Key, Window],
        output_type: TypeHint,
    ) -> DataStream: ...

    def reduce(
        self, reduce_function: UserCode, window_function: UserCode = None, output_type: TypeHint = None
    ) -> DataStream[Any]:
        """Reduce the records of each key and window to one, passed to `window_function` where there is one.

        Args:
            reduce_function: combines two records.
            window_function: a ProcessWindowFunction or a WindowFunction, called with the one reduced record.
            output_type: what every result must be; None: what the records are, or anything behind a window function.
        """
        return self._reduced(reduce_function, window_function, output_type)

    @overload
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: None = None,
        output_type: None = None,
    ) -> DataStream[Whole]: ...
    @overload
    def fold(
        self, initial_value: Whole, fold_function: FoldForm[Record, Whole], *, output_type: TypeHint
    ) -> DataStream: ...
    @overload
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: WindowForm[Whole, Result, Key, Window],
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: WindowForm[Whole, Any, Key, Window],
        output_type: TypeHint,
    ) -> DataStream: ...

    def fold(
        self,
        initial_value: UserAccumulator,
        fold_function: UserCode,
        window_function: UserCode = None,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Fold the records of each key and window to one value, passed to `window_function` if any; of Flink 1.x.

        Flink 2.x has `aggregate` instead, which also works where windows merge.

        Args:
            initial_value: what the first record of a key and window is combined with; each has a copy.
            fold_function: a FoldFunction, or a callable of the value so far and a record.
            window_function: a ProcessWindowFunction or a WindowFunction, called with the one folded value.
            output_type: what every result must be, and is made where it can be; None: anything.

        Raises:
            PlanError: the windows merge.

        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> words = env.from_collection(["to", "be", "or"]).key_by(len)
        >>> list(words.count_window(3).fold("", lambda text, word: text + word).execute_and_collect())
        ['tobeor']
        """
        return self._folded(initial_value, fold_function, window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Result],
        window_function: None = None,
        accumulator_type: TypeHint = None,
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Any],
        *,
        accumulator_type: TypeHint = None,
        output_type: TypeHint,
    ) -> DataStream: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: WindowForm[Whole, Result, Key, Window],
        accumulator_type: TypeHint = None,
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: WindowForm[Whole, Any, Key, Window],
        accumulator_type: TypeHint,
        output_type: TypeHint,
    ) -> DataStream: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: WindowForm[Whole, Any, Key, Window],
        accumulator_type: TypeHint = None,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    def aggregate(
        self,
        aggregate_function: UserCode,
        window_function: UserCode = None,
        accumulator_type: TypeHint = None,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Aggregate the records of each key and window to one result, passed to `window_function` where there is one.

        Args:
            aggregate_function: an AggregateFunction.
            window_function: a ProcessWindowFunction or a WindowFunction, called with the one aggregate.
            accumulator_type: accepted for PyFlink's sake.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(aggregating, aggregate_function), window_function, output_type)

    @overload
    def apply(
        self, window_function: WindowForm[Record, Result, Key, Window], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def apply(self, window_function: WindowForm[Record, Any, Key, Window], output_type: TypeHint) -> DataStream: ...

    def apply(self, window_function: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a WindowFunction, or a callable of key, window and records.

        Args:
            window_function: called once a key and window, each time it fires.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(collecting), window_function, output_type)

    @overload
    def process(
        self, process_window_function: WindowForm[Record, Result, Key, Window], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(
        self, process_window_function: WindowForm[Record, Any, Key, Window], output_type: TypeHint
    ) -> DataStream: ...

    def process(self, process_window_function: Any, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a ProcessWindowFunction, which sees the window, the clocks and state.

        Args:
            process_window_function: called once a key and window, each time it fires.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(collecting), process_window_function, output_type)


class AllWindowedStream(WindowedStream[Record, int, Window], Generic[Record, Window]):
    """A stream without keys grouped by windows; one subtask processes it.

    Of type checkers `AllWindowedStream[Click, TimeWindow]`, of records and windows.

    Args:
        data_stream: whose records are grouped.
        window_assigner: places each record into windows.

    Raises:
        TypeError: the assigner is none.
    """

    def __init__(self, data_stream: DataStream[Record], window_assigner: WindowAssigner[Any, Window]) -> None:
        super().__init__(data_stream.key_by(NullByteKeySelector()), window_assigner)

    @overload  # type: ignore[override]
    def reduce(
        self, reduce_function: ReduceForm[Record], window_function: None = None, output_type: None = None
    ) -> DataStream[Record]: ...
    @overload
    def reduce(self, reduce_function: ReduceForm[Record], *, output_type: TypeHint) -> DataStream: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceForm[Record],
        window_function: AllWindowForm[Record, Result, Window],
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def reduce(
        self,
        reduce_function: ReduceForm[Record],
        window_function: AllWindowForm[Record, Any, Window],
        output_type: TypeHint,
    ) -> DataStream: ...

    def reduce(
        self, reduce_function: UserCode, window_function: UserCode = None, output_type: TypeHint = None
    ) -> DataStream[Any]:
        """Reduce the records of each window to one, passed to `window_function` where there is one.

        Args:
            reduce_function: combines two records.
            window_function: a ProcessAllWindowFunction or an AllWindowFunction, called with the one reduced record.
            output_type: what every result must be; None: what the records are, or anything behind a window function.
        """
        return self._reduced(reduce_function, window_function, output_type)

    @overload  # type: ignore[override]
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: None = None,
        output_type: None = None,
    ) -> DataStream[Whole]: ...
    @overload
    def fold(
        self, initial_value: Whole, fold_function: FoldForm[Record, Whole], *, output_type: TypeHint
    ) -> DataStream: ...
    @overload
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: AllWindowForm[Whole, Result, Window],
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def fold(
        self,
        initial_value: Whole,
        fold_function: FoldForm[Record, Whole],
        window_function: AllWindowForm[Whole, Any, Window],
        output_type: TypeHint,
    ) -> DataStream: ...

    def fold(
        self,
        initial_value: UserAccumulator,
        fold_function: UserCode,
        window_function: UserCode = None,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Fold the records of each window to one value, passed to `window_function` where there is one; of Flink 1.x.

        Flink 2.x has `aggregate` instead, which also works where windows merge.

        Args:
            initial_value: what the first record of a window is combined with; each has a copy.
            fold_function: a FoldFunction, or a callable of the value so far and a record.
            window_function: a ProcessAllWindowFunction or an AllWindowFunction, called with the one folded value.
            output_type: what every result must be, and is made where it can be; None: anything.

        Raises:
            PlanError: the windows merge.
        """
        return self._folded(initial_value, fold_function, window_function, output_type)

    @overload  # type: ignore[override]
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Result],
        window_function: None = None,
        accumulator_type: TypeHint = None,
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Any],
        *,
        accumulator_type: TypeHint = None,
        output_type: TypeHint,
    ) -> DataStream: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: AllWindowForm[Whole, Result, Window],
        accumulator_type: TypeHint = None,
        output_type: None = None,
    ) -> DataStream[Result]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: AllWindowForm[Whole, Any, Window],
        accumulator_type: TypeHint,
        output_type: TypeHint,
    ) -> DataStream: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[Record, Any, Whole],
        window_function: AllWindowForm[Whole, Any, Window],
        accumulator_type: TypeHint = None,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    def aggregate(
        self,
        aggregate_function: UserCode,
        window_function: UserCode = None,
        accumulator_type: TypeHint = None,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Aggregate the records of each window to one result, passed to `window_function` where there is one.

        Args:
            aggregate_function: an AggregateFunction.
            window_function: a ProcessAllWindowFunction or an AllWindowFunction, called with the one aggregate.
            accumulator_type: accepted for PyFlink's sake.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(aggregating, aggregate_function), window_function, output_type)

    @overload  # type: ignore[override]
    def apply(
        self, window_function: AllWindowForm[Record, Result, Window], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def apply(self, window_function: AllWindowForm[Record, Any, Window], output_type: TypeHint) -> DataStream: ...

    def apply(self, window_function: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply an AllWindowFunction, or a callable of window and records.

        Args:
            window_function: called once a window, each time it fires.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(collecting), window_function, output_type)

    @overload  # type: ignore[override]
    def process(
        self, process_window_function: AllWindowForm[Record, Result, Window], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(
        self, process_window_function: AllWindowForm[Record, Any, Window], output_type: TypeHint
    ) -> DataStream: ...

    def process(self, process_window_function: Any, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a ProcessAllWindowFunction, which sees the window, the clocks and state.

        Args:
            process_window_function: called once a window, each time it fires.
            output_type: what every result must be, and is made where it can be: a tuple declared as ROW becomes a Row;
                None: anything.
        """
        return self._applied(Factory(collecting), process_window_function, output_type)

    def _applied(self, contents: Factory, function: UserCode, output_type: TypeHint) -> DataStream:
        adapted = function if function is None else WithoutKey(function)
        return super()._applied(contents, adapted, output_type).force_non_parallel()


def windows_of_counts(window: Callable[[WindowAssigner[Any, Any]], W], size: int, slide: int) -> W:
    """Return the stream grouped by windows of counts; `window` groups it by an assigner.

    `count_window` and `count_window_all` call it.

    Raises:
        ValueError: the size is below 1, or the slide below 0.
    """
    if slide == 0:
        return window(CountTumblingWindowAssigner.of(size))
    if size < 1 or slide < 0:
        raise ValueError(
            f"count windows need a size and a slide of at least 1 record, found size {size}, slide {slide}"
        )
    return window(GlobalWindows.create()).trigger(CountTrigger.of(slide)).evictor(CountEvictor.of(size))


def windows_of_time(
    window: Callable[[WindowAssigner[Any, Any]], W], time: TimeCharacteristic, size: Length, slide: Length | None
) -> W:
    """Return the stream grouped by windows of time; `window` groups it by an assigner.

    `time_window` and `time_window_all` call it.
    """
    in_processing_time = time is TimeCharacteristic.ProcessingTime
    if slide is None:
        return window((TumblingProcessingTimeWindows if in_processing_time else TumblingEventTimeWindows).of(size))
    return window((SlidingProcessingTimeWindows if in_processing_time else SlidingEventTimeWindows).of(size, slide))


__all__ = ["AllWindowedStream", "WindowedStream"]
