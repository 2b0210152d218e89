"""Triggers: when a window is evaluated, and when its contents are dropped, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from operator import add
from typing import Any, Generic

from rayflink.common.functions.type_variables import Input, WindowType
from rayflink.state.descriptors import ReducingStateDescriptor


class TriggerResult(Enum):
    """A trigger's decision about a window: (evaluate it, drop its contents)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Return whether the window is evaluated and its results emitted."""
        return bool(self.value[0])

    def is_purge(self) -> bool:
        """Return whether the contents are dropped, after the evaluation."""
        return bool(self.value[1])


class TriggerContext(ABC):
    """Clocks, timers and state of the key and window a trigger is called for."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Return the epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Return the epoch milliseconds of event time."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Return the metric group of the operator."""

    @abstractmethod
    def register_processing_time_timer(self, time: int) -> None:
        """Call `on_processing_time` when the wall clock reads `time + 1` or later: as a window ends, behind its
        `max_timestamp`.
        """

    @abstractmethod
    def register_event_time_timer(self, time: int) -> None:
        """Call `on_event_time` when the watermark reaches `time`."""

    @abstractmethod
    def delete_processing_time_timer(self, time: int) -> None:
        """Forget the processing-time timer at `time`."""

    @abstractmethod
    def delete_event_time_timer(self, time: int) -> None:
        """Forget the event-time timer at `time`."""

    @abstractmethod
    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        """Return the state of this key and window; `clear` it in `Trigger.clear`."""


class OnMergeContext(TriggerContext):
    """The context of `Trigger.on_merge`, which can also merge the state of the windows that became one."""

    @abstractmethod
    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        """Move the state of the merged windows into that of the new one.

        Value state cannot be merged, and stays with its window: store a single value that is to be merged as reducing
        state whose function chooses one of two, such as `min`. It must not depend on the order of the windows.

        Args:
            state_descriptor: of list, reducing or aggregating state.

        Raises:
            TypeError: the state is of another kind.
        """


_Context = TriggerContext
_OnMerge = OnMergeContext


class Trigger(ABC, Generic[Input, WindowType]):
    """Decides for each record and each timer of a window what is done with it."""

    TriggerContext = TriggerContext
    OnMergeContext = OnMergeContext

    @abstractmethod
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide what to do after a record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide what to do when a processing-time timer fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        """Decide what to do when an event-time timer fires."""

    def can_merge(self) -> bool:
        """Return whether the trigger works with windows that merge; it then needs `on_merge`."""
        return False

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Set the timers and merge the state of `window`, which replaces one or more windows.

        Called before `on_element` of the record that caused the merge; that record is not counted yet. Then `clear` is
        called for each replaced window, whose merged state is empty by then. So store the time of a timer that `clear`
        has to delete in value state too; a timer that is left behind does nothing, but stays in state until its time.

        Raises:
            NotImplementedError: the trigger does not work with windows that merge.
        """
        raise NotImplementedError(f"{type(self).__name__} does not work with windows that merge")

    @abstractmethod
    def clear(self, window: Any, ctx: _Context) -> None:
        """Delete the timers and the state of a window that is over."""

    def __repr__(self) -> str:
        return type(self).__name__


class EventTimeTrigger(Trigger[Input, Any]):
    """Fires when the watermark reaches the window's last timestamp, and for each later record at once."""

    @staticmethod
    def create() -> EventTimeTrigger[Any]:
        """Return the trigger."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: _Context) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[Input, Any]):
    """Fires when the window's last millisecond of the wall clock has passed."""

    @staticmethod
    def create() -> ProcessingTimeTrigger[Any]:
        """Return the trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        if window.max_timestamp() >= ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Any, ctx: _Context) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class CountTrigger(Trigger[Input, Any]):
    """Fires at every n-th record of a window, and keeps the records.

    Args:
        window_size: number of records from one firing to the next, at least 1.

    Raises:
        ValueError: the number is below 1.
    """

    def __init__(self, window_size: int) -> None:
        if window_size < 1:
            raise ValueError(f"CountTrigger fires after 1 record or more, found {window_size}")
        self._window_size = window_size
        self._count = ReducingStateDescriptor("count", add)

    @staticmethod
    def of(window_size: int) -> CountTrigger[Any]:
        """Return a trigger that fires at every `window_size` records."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self._window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: Any, ctx: _Context) -> None:
        ctx.get_partitioned_state(self._count).clear()

    def __repr__(self) -> str:
        return f"CountTrigger({self._window_size})"


class PurgingTrigger(Trigger[Input, Any]):
    """Fires like another trigger, and drops the contents of the window after each firing.

    Args:
        nested_trigger: the other trigger.
    """

    def __init__(self, nested_trigger: Trigger[Any, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger[Any]:
        """Return `nested_trigger` with every firing followed by a purge."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        return _purged(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return _purged(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return _purged(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Any, ctx: _Context) -> None:
        self.nested_trigger.clear(window, ctx)

    def __repr__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger!r})"


def _purged(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


class NeverTrigger(Trigger[Input, Any]):
    """Never fires; the default of `GlobalWindows`."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: _Context) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Any, ctx: _OnMerge) -> None:
        """Do nothing: there is no state to merge."""

    def clear(self, window: Any, ctx: _Context) -> None:
        """Do nothing: there is no state."""
