"""Runs a KeyedBroadcastProcessFunction: a keyed stream with state and timers, and a broadcast one that steers it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rayflink.common.functions.broadcast_functions import KeyedBroadcastProcessFunction, as_broadcast_process
from rayflink.common.functions.function_classes import TimeDomain
from rayflink.common.records.batches import Batch, Element
from rayflink.state.backend import NO_KEY
from rayflink.state.descriptors import MapStateDescriptor, StateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.operator_state import BroadcastState, ReadOnlyBroadcastState

from ..base import OperatorSnapshot
from ..broadcast import BROADCAST_INPUT, BroadcastStates
from ..capabilities import BroadcastInput
from ..process import call_for_each
from .keyed_process import KeyedContext, KeyedProcessOperator, KeyedTimerContext


class KeyedBroadcastProcessOperator(KeyedProcessOperator, BroadcastInput):
    """Calls `process_element` and `on_timer` with a current key, `process_broadcast_element` without one.

    Args:
        key_selector: of the first input: a KeySelector or a callable.
        function: a KeyedBroadcastProcessFunction, or a pair of callables of record and context.
        descriptors: MapStateDescriptors of the broadcast states.
    """

    def __init__(self, key_selector: Any, function: Any, *descriptors: MapStateDescriptor) -> None:
        pair = as_broadcast_process(function)
        super().__init__(key_selector, _KeyedSide(function, pair.call1, pair.open, pair.close))
        self._broadcast_call = pair.call2
        self._descriptors = descriptors

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        self.states = BroadcastStates(self._descriptors, self.function_state.store)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        return self._broadcast(batch) if input_index == BROADCAST_INPUT else super().process(batch, input_index)

    def read_ahead(self, batch: Batch, input_index: int) -> None:
        if input_index != BROADCAST_INPUT:
            super().read_ahead(batch, input_index)

    def record_context(self) -> KeyedContext:
        return _ReadOnlyContext(self)

    def timer_context(self, domain: TimeDomain) -> KeyedTimerContext:
        return _OnTimerContext(self, domain)

    def _broadcast(self, batch: Batch) -> Iterator[Element]:
        return call_for_each(self, self._broadcast_call, batch, _Context(self), "process_broadcast_element")

    def apply_to_keys(self, descriptor: StateDescriptor, call: Callable[[Any, Any], Any]) -> None:
        """Call a function with each key that has the state, and the state's handle, which is then that of the key."""
        handle = self._handle(descriptor)
        walk, has_state = self._keys_of(descriptor)
        keys = {key: None for key, namespace in walk if namespace is None}
        try:
            for key in keys:
                if has_state(key):  # a walk may give what has gone
                    self.context.key = key
                    call(key, handle)
        finally:
            self.context.key = NO_KEY

    def _keys_of(self, descriptor: StateDescriptor) -> tuple[Iterator[tuple[Any, Any]], Callable[[Any], bool]]:
        """Return the positions of a state's entries, and whether a key has it."""
        if descriptor.kind == "map":
            maps = self.backend.map_table(descriptor)
            return maps.walk(), lambda key: bool(maps.items(key))
        table = self.backend.table(descriptor)
        return table.walk(), lambda key: table.get(key, None, NO_KEY) is not NO_KEY

    def _handle(self, descriptor: Any) -> Any:
        getter = _GETTERS.get(getattr(descriptor, "kind", ""))
        if getter is None or not isinstance(descriptor, StateDescriptor):
            problem = f"apply_to_keyed_state was given {descriptor!r:.100}, wanted a state descriptor"
            raise StateError(f"{problem}; give the one that open() gives the runtime context")
        assert self.keyed_state is not None, "the operator has no state yet"
        return getattr(self.keyed_state, getter)(descriptor)


_GETTERS = {
    "value": "get_state", "list": "get_list_state", "map": "get_map_state", "reducing": "get_reducing_state",
    "aggregating": "get_aggregating_state",
}  # fmt: skip


class _KeyedSide:
    """The function for the keyed side, in the form of a process function."""

    def __init__(self, function: Any, call: Callable[..., Any], open: Any, close: Any) -> None:
        self.process_element, self.open, self.close = call, open, close
        self.wrapped_functions = (function,)
        on_timer = getattr(function, "on_timer", None)
        if on_timer is not None:
            self.on_timer = on_timer


class _ReadOnlyContext(KeyedContext, KeyedBroadcastProcessFunction.ReadOnlyContext):
    _operator: KeyedBroadcastProcessOperator

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self._operator.states.readable(state_descriptor)


class _OnTimerContext(KeyedTimerContext, _ReadOnlyContext, KeyedBroadcastProcessFunction.OnTimerContext):
    pass


class _Context(KeyedBroadcastProcessFunction.Context):
    def __init__(self, operator: KeyedBroadcastProcessOperator) -> None:
        self._operator = operator
        self.stamp: int | None = None

    def timestamp(self) -> int | None:
        return self.stamp

    def current_processing_time(self) -> int:
        return int(self._operator.ctx.clock.now_ms())

    def current_watermark(self) -> int:
        return self._operator.watermark

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._operator.states.writable(state_descriptor)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Any) -> None:
        self._operator.apply_to_keys(state_descriptor, getattr(function, "process", function))


__all__ = ["KeyedBroadcastProcessOperator"]
