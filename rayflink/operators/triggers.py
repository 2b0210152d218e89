"""When a window is evaluated and when its contents are dropped, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any


class TriggerResult(Enum):
    """What to do with a window: (evaluate it, drop its contents)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated and its results emitted."""
        return bool(self.value[0])

    def is_purge(self) -> bool:
        """Whether the contents are dropped, after the evaluation."""
        return bool(self.value[1])


class TriggerContext(ABC):
    """Clocks, timers and state of the key and window a trigger is called for."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """Epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """Epoch milliseconds of event time."""

    @abstractmethod
    def get_metric_group(self) -> Any:
        """Metric group of the operator."""

    @abstractmethod
    def register_processing_time_timer(self, time: int) -> None:
        """Call `on_processing_time` when the millisecond `time` of the wall clock has passed."""

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
        """State of this key and window; `clear` it in `Trigger.clear`."""


class Trigger(ABC):
    """Decides for each record and each timer of a window what is done with it."""

    @abstractmethod
    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """A record was added to the window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """A processing-time timer fired."""

    @abstractmethod
    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        """An event-time timer fired."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge."""
        return False

    @abstractmethod
    def clear(self, window: Any, ctx: TriggerContext) -> None:
        """The window is over: delete its timers and state."""

    def __repr__(self) -> str:
        return type(self).__name__


class EventTimeTrigger(Trigger):
    """Fires when the watermark reaches the window's last timestamp, and for each later record at once."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger):
    """Fires when the window's last millisecond of the wall clock has passed."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: Any, ctx: TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def clear(self, window: Any, ctx: TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())
