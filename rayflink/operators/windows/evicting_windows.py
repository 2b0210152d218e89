"""Windows with an evictor: all records stay in state, with their timestamps, and the function works what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rayflink.common.records.batches import MIN_TIMESTAMP

from ..output_buffer import OutputBuffer
from .evictors import Evictor, TimestampedValue
from .merging_windows import MergingWindowOperator
from .triggered_windows import TriggeredWindowOperator
from .triggers import TriggerResult
from .window import AnyWindow
from .window_functions import collecting
from .window_operator import _ABSENT

_NOTHING: Any = object()


class EvictingWindowOperator(TriggeredWindowOperator):
    """Windows that do not merge.

    Args:
        evictor: called around the window's function; the last argument, behind those of `TriggeredWindowOperator`.
    """

    def __init__(self, *arguments: Any) -> None:
        *shared, evictor = arguments
        super().__init__(*shared)
        self._evictor: Evictor[Any, Any] = evictor
        self._stored = collecting()

    def _trigger_name(self) -> str:
        return f"{super()._trigger_name()}, {type(self._evictor).__name__}"

    def _accumulate_record(self, key: Any, state_window: Any, value: Any, stamp: int) -> None:
        self._table.append(key, (value, None if stamp == MIN_TIMESTAMP else stamp), state_window)

    def _apply_result(
        self, result: TriggerResult, key: Any, window: AnyWindow, state_window: Any, out: OutputBuffer
    ) -> Iterator[None]:
        if result.is_fire():
            stored = self._table.get(key, state_window, _ABSENT)
            if stored is not _ABSENT:
                yield from self._evict_and_evaluate(key, window, state_window, stored, out)
                self.context.key, self.context.namespace = key, window
        if result.is_purge():
            self._table.remove(key, state_window)

    def _evict_and_evaluate(
        self, key: Any, window: AnyWindow, state_window: Any, stored: list[Any], out: OutputBuffer
    ) -> Iterator[None]:
        elements, size = [TimestampedValue(value, stamp) for value, stamp in stored], len(stored)
        self._evict(self._evictor.evict_before, elements, size, key, window)
        accumulator = self._contents_of(key, [element.value for element in elements])
        if accumulator is not _NOTHING:
            yield from self.evaluation_calls(key, window, accumulator, out, True)
        self._evict(self._evictor.evict_after, elements, size, key, window)
        if len(elements) == size:
            return
        self._table.remove(key, state_window)
        for element in elements:
            self._table.append(key, (element.value, element.timestamp), state_window)

    def _evict(self, evict: Any, elements: list[TimestampedValue[Any]], size: int, key: Any, window: AnyWindow) -> None:
        self.context.key, self.context.namespace = key, window
        try:
            evict(elements, size, window, self._trigger_context)
        except Exception as error:
            raise self._window_failure(evict.__name__, key, window) from error

    def _contents_of(self, key: Any, values: list[Any]) -> Any:
        """Return the input of the window's function: the records, or the one result of them if there are any."""
        if self._contents.kind == "list":
            return values
        accumulator = _NOTHING
        for value in values:
            accumulator = self.accumulate(key, value, accumulator, accumulator is not _NOTHING)
        return accumulator


class EvictingMergingWindowOperator(EvictingWindowOperator, MergingWindowOperator):
    """Windows that merge. Arguments as for `EvictingWindowOperator`."""


__all__ = ["EvictingMergingWindowOperator", "EvictingWindowOperator"]
