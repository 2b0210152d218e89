"""Two streams joined by key and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from rayflink.common.functions.function_classes import KeyBy, as_key_selector
from rayflink.common.functions.type_variables import First, Key, Next, Record, Record2, Result, Second, Selected
from rayflink.common.output_tag import OutputTag
from rayflink.common.time import Length
from rayflink.graph import partitioners
from rayflink.graph import transformations as graph
from rayflink.graph.errors import PlanError
from rayflink.operators.factory import Factory
from rayflink.operators.windows.co_group_windows import (
    CoGroupedRecords,
    JoinedRecords,
    SideKeySelector,
    TagOperator,
    co_group_window_operator,
)
from rayflink.user_types import TypeHint, UserCode

from .fields import check_fields
from .keyed import KeyedStream, step_before_partition
from .selectors import field_selector
from .step import as_type, transformation_of
from .stream import DataStream, ensure_stream
from .unfinished import Unfinished, ensure_one_environment, tag_of
from .windowed import WindowedStream

if TYPE_CHECKING:
    from rayflink.operators.windows.assigners import WindowAssigner
    from rayflink.operators.windows.evictors import Evictor
    from rayflink.operators.windows.triggers import Trigger

    from .function_types import CoGroupForm, FieldForm, FlatJoinForm, JoinForm, KeyForm

W = TypeVar("W", bound="CoGroupedStreams.WithWindow[Any, Any]")


class CoGroupedStreams(Unfinished, Generic[Record, Record2]):
    """Two streams whose records of equal keys and one window are processed together.

    Args:
        stream1, stream2: of one environment.

    Raises:
        PlanError: they are of two environments.
        TypeError: one is no stream.
    """

    _step = "co_group"

    def __init__(self, stream1: DataStream[Record], stream2: DataStream[Record2]) -> None:
        ensure_stream(stream2, self._step)
        ensure_one_environment(stream1, stream2, self._step)
        self._streams = stream1, stream2

    @overload
    def where(
        self, key_selector: FieldForm, key_type: TypeHint = None
    ) -> CoGroupedStreams.Where[Record2, CoGroupedStreams.WithWindow[Record, Record2], Any]: ...
    @overload
    def where(
        self, key_selector: KeyForm[Record, Selected], key_type: TypeHint = None
    ) -> CoGroupedStreams.Where[Record2, CoGroupedStreams.WithWindow[Record, Record2], Selected]: ...

    def where(self, key_selector: UserCode, key_type: TypeHint = None) -> CoGroupedStreams.Where[Any, Any, Any]:
        """Set the key of the first stream's records.

        Args:
            key_selector, key_type: as of `DataStream.key_by`.
        """
        return CoGroupedStreams.Where(self, _key_by("where", self._streams[0], key_selector, key_type))

    class Where(Unfinished, Generic[Second, Next, Key]):
        """Two streams, and the key of the first."""

        _next = "equal_to"

        def __init__(self, grouped: CoGroupedStreams[Any, Second], key: KeyBy) -> None:
            self._grouped, self._key = grouped, key

        def equal_to(
            self, key_selector: FieldForm | KeyForm[Second, Key], key_type: TypeHint = None
        ) -> CoGroupedStreams.EqualTo[Next]:
            """Set the key of the second stream's records.

            Args:
                key_selector, key_type: as of `DataStream.key_by`.

            Raises:
                PlanError: the keys of the two streams are declared to be of different types.
            """
            key = _key_by("equal_to", self._grouped._streams[1], key_selector, key_type)
            first_type, second_type = self._key.key_type, key.key_type
            if first_type is not None and second_type is not None and first_type != second_type:
                problem = (
                    f"The keys for the two inputs are not equal: first key = {first_type}, second key = {second_type}"
                )
                raise PlanError(problem, "give both streams keys of one type", graph.call_site())
            return CoGroupedStreams.EqualTo(self._grouped, self._key, key)

    class EqualTo(Unfinished, Generic[Next]):
        """Two streams and their keys."""

        _next = "window"

        def __init__(self, grouped: CoGroupedStreams, key1: KeyBy, key2: KeyBy) -> None:
            self._grouped, self._keys = grouped, (key1, key2)

        def window(self, window_assigner: WindowAssigner[Any, Any]) -> Next:
            """Group the records of each key by windows.

            A custom assigner, trigger or evictor sees pairs (side, record), with side 0 for the first stream.

            Raises:
                TypeError: it is no window assigner.
            """
            return cast("Next", self._grouped.WithWindow(_TaggedWindows(self._tagged(), window_assigner)))

        def _tagged(self) -> KeyedStream:
            first, second = self._keys
            env = self._grouped._streams[0].get_execution_environment()
            tagged = [_tagged(stream, side) for side, stream in enumerate(self._grouped._streams)]
            key_type = first.key_type or second.key_type
            selector = KeyBy(SideKeySelector(first, second), first.call_site, key_type, "where and equal_to")
            partitioned = graph.Partition(graph.Union(tuple(tagged)), partitioners.KeyGroup(selector))
            return KeyedStream(env, partitioned, selector)

    class WithWindow(Unfinished, Generic[First, Second]):
        """Two streams grouped by key and window, waiting for the function to process them."""

        _next = "apply"

        def __init__(self, windowed: WindowedStream) -> None:
            self._windowed = windowed

        def trigger(self: W, trigger: Trigger[Any, Any]) -> W:
            """Fire windows by this trigger instead of the assigner's default one; see `WindowedStream.trigger`."""
            self._windowed.trigger(trigger)
            return self

        def evictor(self: W, evictor: Evictor[Any, Any]) -> W:
            """Let an evictor take records out of each window that fires; see `WindowedStream.evictor`."""
            self._windowed.evictor(evictor)
            return self

        def allowed_lateness(self: W, time_ms: Length) -> W:
            """Keep windows for this time after they fired: each later record fires its window again, with all records.

            Raises:
                PlanError: it is negative.
            """
            self._windowed.allowed_lateness(time_ms)
            return self

        def side_output_late_data(self: W, output_tag: OutputTag) -> W:
            """Send records of both streams whose windows are over to a side output instead of dropping them.

            Raises:
                TypeError: it is no tag.
            """
            self._windowed.side_output_late_data(tag_of("side_output_late_data", output_tag))
            return self

        @overload
        def apply(
            self, function: CoGroupForm[First, Second, Result], output_type: None = None
        ) -> DataStream[Result]: ...
        @overload
        def apply(self, function: CoGroupForm[First, Second, Any], output_type: TypeHint) -> DataStream: ...

        def apply(self, function: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
            """Apply the function to the records of both streams of each key and window.

            Args:
                function: a CoGroupFunction, or a callable of two lists that returns or yields results. It is called
                    where one of the lists is empty too.
                output_type: what every result must be, and is made where it can be; None: anything.

            >>> from rayflink.datastream import StreamExecutionEnvironment
            >>> from rayflink.datastream.window import CountTumblingWindowAssigner
            >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
            >>> ages, towns = env.from_collection([("ann", 41)]), env.from_collection([("ann", "Ulm"), ("ann", "Bonn")])
            >>> grouped = ages.co_group(towns).where(0).equal_to(0).window(CountTumblingWindowAssigner.of(3))
            >>> list(grouped.apply(lambda ages, towns: [(len(ages), len(towns))]).execute_and_collect())
            [(1, 2)]
            """
            records: Any = CoGroupedRecords(function)
            return _Joined(self._windowed.apply(records, output_type))


class JoinedStreams(CoGroupedStreams[Record, Record2]):
    """Two streams of whose records each pair of equal keys and one window is joined.

    Args:
        stream1, stream2: of one environment.

    Raises:
        PlanError: they are of two environments.
        TypeError: one is no stream.
    """

    _step = "join"

    @overload
    def where(
        self, key_selector: FieldForm, key_type: TypeHint = None
    ) -> CoGroupedStreams.Where[Record2, JoinedStreams.WithWindow[Record, Record2], Any]: ...
    @overload
    def where(
        self, key_selector: KeyForm[Record, Selected], key_type: TypeHint = None
    ) -> CoGroupedStreams.Where[Record2, JoinedStreams.WithWindow[Record, Record2], Selected]: ...

    def where(self, key_selector: UserCode, key_type: TypeHint = None) -> CoGroupedStreams.Where[Any, Any, Any]:
        """Set the key of the first stream's records, as `CoGroupedStreams.where` does."""
        return super().where(key_selector, key_type)

    class WithWindow(CoGroupedStreams.WithWindow[First, Second]):
        """Two streams joined by key and window, waiting for the function to process each pair."""

        @overload  # type: ignore[override]
        def apply(
            self, function: FlatJoinForm[First, Second, Result], output_type: None = None
        ) -> DataStream[Result]: ...
        @overload
        def apply(self, function: JoinForm[First, Second, Result], output_type: None = None) -> DataStream[Result]: ...
        @overload
        def apply(
            self, function: JoinForm[First, Second, Any] | FlatJoinForm[First, Second, Any], output_type: TypeHint
        ) -> DataStream: ...

        def apply(self, function: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
            """Apply the function to each pair of records of one key and window; a record without a partner is left out.

            Args:
                function: a JoinFunction, or a callable of two records that returns the result of the pair; a
                    FlatJoinFunction, or a generator function, for any number of results.
                output_type: what every result must be, and is made where it can be; None: anything.

            >>> from rayflink.datastream import StreamExecutionEnvironment
            >>> from rayflink.datastream.window import CountTumblingWindowAssigner
            >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
            >>> ages, towns = env.from_collection([("ann", 41)]), env.from_collection([("ann", "Ulm"), ("ann", "Bonn")])
            >>> joined = ages.join(towns).where(0).equal_to(0).window(CountTumblingWindowAssigner.of(3))
            >>> sorted(joined.apply(lambda age, town: (*age, town[1])).execute_and_collect())
            [('ann', 41, 'Bonn'), ('ann', 41, 'Ulm')]
            """
            records: Any = JoinedRecords(function)
            return super().apply(records, output_type)


class _Joined(DataStream):
    """The result of a join."""

    def __init__(self, applied: DataStream) -> None:
        super().__init__(applied.get_execution_environment(), transformation_of(applied))

    def uid(self, uid: str) -> _Joined:
        """Give the join an identity; the steps that tag its inputs have no call of their own for that."""
        super().uid(uid)
        [partitioned] = self._transformation.inputs
        [union] = partitioned.inputs
        for tag in union.inputs:
            tag.uid = f"{uid}: {tag.name}"
        return self


class _TaggedWindows(WindowedStream):
    _operator_of = staticmethod(co_group_window_operator)


def _key_by(step: str, stream: DataStream, key_selector: UserCode, key_type: TypeHint) -> KeyBy:
    check_fields(step, key_selector, transformation_of(stream).declared_type())
    key = KeyBy(field_selector(key_selector), graph.call_site(), as_type(key_type), step)
    as_key_selector(key)  # refuses what is no key selector here, in the user's line
    return key


def _tagged(stream: DataStream, side: int) -> graph.Transformation:
    """Return the stream's records with their side, in as many subtasks as the stream has."""
    step = step_before_partition(stream)
    made_by = step
    while isinstance(made_by, graph.Partition | graph.SideOutput):
        made_by = made_by.input
    name = f"Tag {'Left' if side == 0 else 'Right'}"
    return graph.OneInput(step, Factory(TagOperator, side), None, name=name, parallelism=made_by.parallelism)


__all__ = ["CoGroupedStreams", "JoinedStreams"]
