"""Runs a BroadcastProcessFunction: a broadcast stream writes state, and a stream without keys reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rayflink.common.functions.broadcast_functions import BroadcastProcessFunction, as_broadcast_process
from rayflink.common.functions.function_classes import TimerService
from rayflink.common.records.batches import Batch, Element
from rayflink.state.descriptors import MapStateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.operator_state import BroadcastState, OperatorStateStore, ReadOnlyBroadcastState

from .base import OperatorContext, OperatorSnapshot
from .capabilities import BroadcastInput
from .process import ProcessingOperator

BROADCAST_INPUT = BroadcastInput.broadcast_input


class UndeclaredStateError(StateError):
    """Broadcast state was asked for that the program did not declare.

    Args:
        name: of the state, or what was given instead of a descriptor.
        known: the declared names.
    """

    def __init__(self, name: str, known: str) -> None:
        super().__init__(name, known)
        self.name, self.known = name, known

    def __str__(self) -> str:
        return (
            f"get_broadcast_state was given {self.name}, but the stream was broadcast with {self.known}; give "
            "broadcast(...) a descriptor of each state, and use the same names"
        )


class BroadcastStates:
    """The broadcast states of one subtask, by the descriptors that the program gave to `broadcast`.

    Args:
        descriptors: as given.
        store: where the states are kept.
    """

    def __init__(self, descriptors: Sequence[MapStateDescriptor], store: OperatorStateStore) -> None:
        self._written = {each.name: store.get_broadcast_state(each) for each in descriptors}
        self._read = {name: state.read_only(name) for name, state in self._written.items()}

    def writable(self, descriptor: Any) -> BroadcastState[Any, Any]:
        """Return the state, for the broadcast side."""
        return self._written[self._name(descriptor)]

    def readable(self, descriptor: Any) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the state, for the other side."""
        return self._read[self._name(descriptor)]

    def _name(self, descriptor: Any) -> str:
        if not isinstance(descriptor, MapStateDescriptor):
            raise UndeclaredStateError(f"{descriptor!r:.100}, which is no MapStateDescriptor", self._known())
        if descriptor.name not in self._written:
            raise UndeclaredStateError(repr(descriptor.name), self._known())
        return descriptor.name

    def _known(self) -> str:
        return ", ".join(map(repr, self._written))


class BroadcastProcessOperator(ProcessingOperator, BroadcastInput):
    """Calls `process_element` for records of the first input, `process_broadcast_element` for broadcast ones.

    A result takes the timestamp of the record it was made for. `yield tag, value` goes to the side output of that tag.

    Args:
        function: a BroadcastProcessFunction, or a pair of callables of record and context.
        descriptors: MapStateDescriptors of the broadcast states.
    """

    def __init__(self, function: Any, *descriptors: MapStateDescriptor) -> None:
        self._function = as_broadcast_process(function)
        self._descriptors = descriptors
        super().__init__(self._function)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._contexts = _ReadOnlyContext(self._timers), _Context(self._timers)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        states = BroadcastStates(self._descriptors, self.function_state.store)
        for context in self._contexts:
            context.states = states

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        context = self._contexts[input_index]
        if input_index == BROADCAST_INPUT:
            return self.call_with_records(self._function.call2, batch, "process_broadcast_element", context)
        return self.call_with_records(self._function.call1, batch, "process_element", context)


class _Timed:
    states: BroadcastStates

    def __init__(self, timers: TimerService) -> None:
        self._timers = timers
        self.stamp: int | None = None

    def timestamp(self) -> int | None:
        return self.stamp

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark()


class _Context(_Timed, BroadcastProcessFunction.Context):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self.states.writable(state_descriptor)


class _ReadOnlyContext(_Timed, BroadcastProcessFunction.ReadOnlyContext):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        return self.states.readable(state_descriptor)


__all__ = ["BROADCAST_INPUT", "BroadcastProcessOperator", "BroadcastStates", "UndeclaredStateError"]
