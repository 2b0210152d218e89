"""Two keyed streams joined by time: each record with those of the other in an interval around its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, overload

from rayflink.common.functions.type_variables import Record, Record2, Result
from rayflink.common.output_tag import OutputTag
from rayflink.common.time import Length, to_millis
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory
from rayflink.operators.windows.interval_join import Interval, IntervalJoinOperator
from rayflink.user_types import TypeHint

from .keyed import KeyedStream
from .recording import record_two_inputs
from .step import transformation_of
from .stream import DataStream
from .unfinished import Unfinished, tag_of

if TYPE_CHECKING:
    from .function_types import AnyJoinForm, FlatJoinForm, JoinForm, ProcessJoinForm


_ORDER = "an interval join is written a.interval_join(b).between(lower, upper).process(function)"


class IntervalJoin(Unfinished, Generic[Record, Record2]):
    """Two keyed streams to be joined by time; `between` says how far apart.

    Args:
        stream1, stream2: of one environment.
    """

    _next = "between"
    _order = _ORDER

    def __init__(self, stream1: KeyedStream[Record, Any], stream2: KeyedStream[Record2, Any]) -> None:
        self._streams = stream1, stream2

    def in_event_time(self) -> IntervalJoin[Record, Record2]:
        """Join by the records' timestamps, as it is without this call."""
        return self

    def in_processing_time(self) -> NoReturn:
        """Refuse processing time, as interval joins use event time.

        Raises: PlanError: always: interval joins use event time.
        """
        problem = "Time-bounded stream joins are only supported in event time"
        remedy = "leave in_processing_time() out, and give both streams timestamps and watermarks"
        raise PlanError(problem, remedy, graph.call_site())

    def between(self, lower_bound: Length, upper_bound: Length) -> IntervalJoined[Record, Record2]:
        """Join records where lower <= time of the second - time of the first <= upper.

        Args:
            lower_bound, upper_bound: milliseconds, or a Duration, Time or timedelta; may be negative.

        Raises:
            PlanError: the lower bound is above the upper one.
            TypeError: one is no length of time.
        """
        return IntervalJoined(*self._streams, to_millis(lower_bound), to_millis(upper_bound))


class IntervalJoined(Unfinished, Generic[Record, Record2]):
    """Two keyed streams and the interval in which their records match.

    Args:
        stream1, stream2: of one environment.
        lower_ms, upper_ms: least and greatest time of the second record minus that of the first.
    """

    _next = "process"
    _order = _ORDER

    def __init__(self, stream1: KeyedStream, stream2: KeyedStream, lower_ms: int, upper_ms: int) -> None:
        self._streams = stream1, stream2
        self._bounds = lower_ms, upper_ms
        self._open_ends = [0, 0]
        self._late_tags: list[str | None] = [None, None]
        self._interval()

    def lower_bound_exclusive(self) -> IntervalJoined[Record, Record2]:
        """Leave out pairs of records that are exactly the lower bound apart.

        Raises:
            PlanError: nothing is left of the interval.
        """
        self._open_ends[0] = 1
        self._interval()
        return self

    def upper_bound_exclusive(self) -> IntervalJoined[Record, Record2]:
        """Leave out pairs of records that are exactly the upper bound apart.

        Raises:
            PlanError: nothing is left of the interval.
        """
        self._open_ends[1] = 1
        self._interval()
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined[Record, Record2]:
        """Send late records of the first stream to a side output instead of dropping them."""
        self._late_tags[0] = tag_of("side_output_left_late_data", output_tag).tag_id
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined[Record, Record2]:
        """Send late records of the second stream to a side output instead of dropping them."""
        self._late_tags[1] = tag_of("side_output_right_late_data", output_tag).tag_id
        return self

    @overload
    def process(
        self, process_join_function: FlatJoinForm[Record, Record2, Result], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(
        self, process_join_function: ProcessJoinForm[Record, Record2, Result], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(
        self, process_join_function: JoinForm[Record, Record2, Result], output_type: None = None
    ) -> DataStream[Result]: ...
    @overload
    def process(self, process_join_function: AnyJoinForm[Record, Record2], output_type: TypeHint) -> DataStream: ...

    def process(self, process_join_function: Any, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply the function to each pair; results have the greater of both timestamps.

        Args:
            process_join_function: a ProcessJoinFunction, or a callable of two records and the context that returns or
                yields results; or, without a context, what `JoinedStreams` takes.
            output_type: what every result must be, and is made where it can be; None: anything.

        >>> from rayflink.common.watermarks import WatermarkStrategy
        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record, _: record[1])
        >>> def stream(*records): return env.from_collection(records).assign_timestamps_and_watermarks(timed).key_by(0)
        >>> near = stream(("a", 0), ("a", 50)).interval_join(stream(("a", 4), ("a", 60))).between(-5, 5)
        >>> list(near.process(lambda left, right: (left, right)).execute_and_collect())
        [(('a', 0), ('a', 4))]
        """
        keys = self._streams[0].key_selector, self._streams[1].key_selector
        factory = Factory(IntervalJoinOperator, *keys, process_join_function, self._interval())
        first, second = self._streams
        env, steps = first.get_execution_environment(), (transformation_of(first), transformation_of(second))
        return DataStream(env, record_two_inputs(env, steps, "Interval Join", factory, output_type, keys))

    def _interval(self) -> Interval:
        (lower, upper), (above, below) = self._bounds, self._open_ends
        if lower + above > upper - below:
            brackets = "(" if above else "[", ")" if below else "]"
            problem = f"no record lies in the interval {brackets[0]}{lower} ms, {upper} ms{brackets[1]}"
            raise PlanError(problem, "give a lower bound that is below the upper bound", graph.call_site())
        return Interval(lower + above, upper - below, (self._late_tags[0], self._late_tags[1]))


__all__ = ["IntervalJoin", "IntervalJoined"]
