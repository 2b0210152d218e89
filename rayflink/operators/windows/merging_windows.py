"""Windows that merge: sessions, and whatever else a MergingWindowAssigner says.

Each record comes with a window of its own, which becomes one with those in flight that the assigner says. What the
windows hold becomes one too: their contents, their trigger's state, and one timer instead of several.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from rayflink.common.records.batches import Element
from rayflink.state.descriptors import MapStateDescriptor

from ..base import UserCodeError, shortened
from .merging_window_set import MergingWindowSet, UnknownWindow
from .session_windows import MergingWindowAssigner
from .triggered_windows import TriggeredWindowOperator
from .window import AnyWindow
from .window_operator import _ABSENT


class MergingWindowOperator(TriggeredWindowOperator):
    """Windows of one key that may become one. Arguments as for `TriggeredWindowOperator`."""

    _assigner: MergingWindowAssigner[Any, Any]

    def declare_state(self) -> None:
        super().declare_state()
        table = self.backend.map_table(MapStateDescriptor("merging-window-set"))
        self._in_flight = MergingWindowSet(self._assigner, table)

    def end_of_keys(self) -> Iterable[Element]:
        yield from super().end_of_keys()
        self._in_flight.forget()

    def evaluation_state(self) -> Any:
        return NO_WINDOW_STATE

    def _open_window(self, key: Any, window: AnyWindow, value: Any) -> Any:
        try:
            actual = self._in_flight.add(key, window, lambda *merge: self._merge_windows(key, *merge))
            if self.is_late(actual):
                self._in_flight.retire(key, actual)
                return None
            if self._in_flight.state_window(key, actual) is None:
                raise UnknownWindow(repr(actual))
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure("merge_windows", shortened(value)) from error
        return actual

    def _state_window(self, key: Any, window: AnyWindow) -> Any:
        return self._in_flight.state_window(key, window)

    def _merge_windows(self, key: Any, result: Any, parts: list[Any], target: Any, others: list[Any]) -> None:
        """Merge the windows `parts` into `result`.

        `target` and `others` are the state windows of the parts (see `MergingWindowSet`): the contents of the others
        are added to those of the target.
        """
        self._ensure_not_over(result)
        context, trigger_context = self.context, self._trigger_context
        context.namespace, trigger_context.merged = result, parts
        try:
            self._trigger.on_merge(result, trigger_context)
        except Exception as error:
            raise self._window_failure("on_merge", key, result) from error
        timers = self._window_timers
        for part in parts:
            context.namespace = part
            try:
                self._trigger.clear(part, trigger_context)
            except Exception as error:
                raise self._window_failure("clear of the trigger", key, part) from error
            timers.delete(self.cleanup_time(part), key, part)
        for other in others:
            self._merge_contents(key, result, target, other)

    def _merge_contents(self, key: Any, window: AnyWindow, target: Any, other: Any) -> None:
        """Add the contents of the state window `other` to those of `target`."""
        table = self._table
        added = table.get(key, other, _ABSENT)
        if added is _ABSENT:
            return
        table.remove(key, other)
        present = table.get(key, target, _ABSENT)
        if present is not _ABSENT:
            try:
                added = self._stored.merge(present, added)
            except Exception as error:
                raise self._window_failure("merge", key, window) from error
        table.put(key, added, target)

    def _ensure_not_over(self, window: AnyWindow) -> None:
        if self._event_time and self.cleanup_time(window) <= self.watermark:
            raise ValueError(
                "The end timestamp of an event-time window cannot become earlier than the current watermark by "
                f"merging. Current watermark: {self.watermark} window: {window}"
            )
        now_ms = int(self.ctx.clock.now_ms())
        if not self._event_time and window.max_timestamp() < now_ms:
            raise ValueError(
                "The end timestamp of a processing-time window cannot become earlier than the current processing time "
                f"by merging. Current processing time: {now_ms} window: {window}"
            )

    def _clean(self, key: Any, window: AnyWindow, state_window: Any) -> None:
        super()._clean(key, window, state_window)
        self._in_flight.retire(key, window)


class _NoWindowState:
    """The store that refuses state of a window that may merge."""

    def _refuse(self, state_descriptor: Any) -> NoReturn:
        raise RuntimeError(
            "Per-window state is not allowed when using merging windows; found a request for state "
            f"{getattr(state_descriptor, 'name', state_descriptor)!r}: use global_state(), which belongs to the key"
        )

    get_state = get_list_state = get_map_state = get_reducing_state = get_aggregating_state = _refuse


NO_WINDOW_STATE = _NoWindowState()

__all__ = ["NO_WINDOW_STATE", "MergingWindowOperator"]
