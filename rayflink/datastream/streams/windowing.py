"""The methods that streams grouped by windows have in common: triggers, evictors, lateness, built-in aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rayflink.common.functions.type_variables import Key, Record, Window
from rayflink.common.output_tag import OutputTag
from rayflink.common.time import Length, to_millis
from rayflink.graph.errors import PlanError
from rayflink.graph.transformations import call_site
from rayflink.operators.factory import Factory
from rayflink.operators.windows.assigners import WindowAssigner
from rayflink.operators.windows.evictors import Evictor
from rayflink.operators.windows.folding import folding
from rayflink.operators.windows.session_windows import MergingWindowAssigner
from rayflink.operators.windows.triggers import Trigger
from rayflink.operators.windows.window_factory import needs_no_trigger, window_operator_of
from rayflink.operators.windows.window_functions import built_in, reducing
from rayflink.user_types import TypeHint, UserAccumulator, UserCode

from .fields import check_fields
from .keyed import KeyedStream
from .recording import SAME_TYPE
from .step import transformation_of
from .stream import DataStream

if TYPE_CHECKING:
    from ..environment import StreamExecutionEnvironment

W = TypeVar("W", bound="Windowing[Any, Any, Any]")


class Windowing(Generic[Record, Key, Window]):
    """A stream grouped by windows, whether by key or not.

    Args:
        keyed_stream: the stream.
        window_assigner: places each record into windows.

    Raises:
        TypeError: the assigner is none.
    """

    _operator_of = staticmethod(window_operator_of)

    def __init__(self, keyed_stream: KeyedStream[Record, Key], window_assigner: WindowAssigner[Any, Window]) -> None:
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(
                f"a window assigner is wanted, found {window_assigner!r:.100}; "
                "write for example TumblingEventTimeWindows.of(Duration.of_minutes(1))"
            )
        self._keyed = keyed_stream
        self._assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._lateness_ms = 0
        self._late_tag: OutputTag | None = None
        self._evictor: Evictor[Any, Any] | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment the stream belongs to."""
        return self._keyed.get_execution_environment()

    def get_input_type(self) -> Any:
        """Return the declared type of the records; `Types.PICKLED_BYTE_ARRAY()` where none was."""
        return self._keyed.get_type()

    def trigger(self: W, trigger: Trigger[Any, Any]) -> W:
        """Fire windows by this trigger instead of the assigner's default one.

        Raises:
            TypeError: it is no trigger.
            PlanError: windows merge, and the trigger does not work with that.
        """
        if not isinstance(trigger, Trigger):
            raise TypeError(f"a Trigger is wanted, found {trigger!r:.100}")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            problem = "A merging window assigner cannot be used with a trigger that does not support merging"
            remedy = "give it on_merge() and let can_merge() return True, or use one that merges, such as CountTrigger"
            raise PlanError(f"{problem}: {self._assigner} with {trigger}", remedy, call_site())
        self._trigger = trigger
        return self

    def evictor(self: W, evictor: Evictor[Any, Any]) -> W:
        """Let an evictor take records out of each window that fires. The window then keeps all its records in state.

        Raises:
            TypeError: it is no evictor.
        """
        if not isinstance(evictor, Evictor):
            raise TypeError(f"an Evictor is wanted, found {evictor!r:.100}; write for example CountEvictor.of(100)")
        self._evictor = evictor
        return self

    def allowed_lateness(self: W, time_ms: Length) -> W:
        """Keep windows for this time after they fired: each later record fires its window again.

        The time is milliseconds or a duration.

        Raises:
            PlanError: it is negative.
        """
        lateness_ms = to_millis(time_ms)
        if lateness_ms < 0:
            raise PlanError(f"The allowed lateness cannot be negative: {lateness_ms} ms", "give 0 or more")
        self._lateness_ms = lateness_ms
        return self

    def side_output_late_data(self: W, output_tag: OutputTag) -> W:
        """Send records whose windows are over to a side output instead of dropping them.

        Raises:
            TypeError: it is no OutputTag.
        """
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"an OutputTag is wanted, found {output_tag!r:.100}; write for example OutputTag('late')")
        self._late_tag = output_tag
        return self

    def sum(self, position_to_sum: int | str = 0) -> DataStream[Record]:
        """Give the sum of a field a key and window; other fields are those of the first record."""
        return self._aggregated("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream[Record]:
        """Give the minimum of a field a key and window; other fields are those of the first record."""
        return self._aggregated("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream[Record]:
        """Give the maximum of a field a key and window; other fields are those of the first record."""
        return self._aggregated("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream[Record]:
        """Give the record with the minimum of a field a key and window."""
        return self._aggregated("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream[Record]:
        """Give the record with the maximum of a field a key and window."""
        return self._aggregated("max_by", position_to_max_by)

    def _reduced(self, reduce_function: UserCode, window_function: UserCode, output_type: TypeHint) -> DataStream:
        same = output_type is None and window_function is None
        declared = transformation_of(self._keyed).declared_type() if same else output_type
        return self._applied(Factory(reducing, reduce_function), window_function, declared)

    def _folded(
        self, initial_value: UserAccumulator, fold_function: UserCode, window_function: UserCode, output_type: TypeHint
    ) -> DataStream:
        if isinstance(self._assigner, MergingWindowAssigner):
            problem = f"Fold cannot be used with a merging WindowAssigner, found {self._assigner}"
            raise PlanError(problem, "use aggregate(...), whose function says how to merge", call_site())
        return self._applied(Factory(folding, initial_value, fold_function), window_function, output_type)

    def _aggregated(self, kind: str, position: int | str) -> DataStream:
        check_fields(kind, position, transformation_of(self._keyed).declared_type())
        return self._applied(Factory(built_in, kind, position), None, SAME_TYPE)

    def _applied(self, contents: Factory, function: UserCode, output_type: TypeHint) -> DataStream:
        late = None if self._late_tag is None else self._late_tag.tag_id
        trigger = self._trigger
        if trigger is None and not needs_no_trigger(self._assigner):
            trigger = self._assigner.get_default_trigger(self.get_execution_environment())
            if not isinstance(trigger, Trigger):
                problem = f"get_default_trigger of {self._assigner!r:.100} gave {trigger!r:.100}, wanted a Trigger"
                raise PlanError(problem, "give one there, or call trigger(...) on the windowed stream", call_site())
        settings = (self._assigner, trigger, self._lateness_ms, late, self._evictor)
        factory = Factory(self._operator_of, self._keyed.key_selector, contents, function, *settings)
        return self._keyed._keyed(factory().name, factory, output_type)


__all__ = ["Windowing"]
