"""The functions that apply a broadcast stream (rules, rates) to another stream, with PyFlink's names.

A plain pair of callables does as well: one of a record and its context for each side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from rayflink.state.descriptors import MapStateDescriptor, StateDescriptor
from rayflink.state.operator_state import BroadcastState, ReadOnlyBroadcastState
from rayflink.user_types import UserCode

from ..output_tag import OutputTag
from .callables import UserFunctionPair, as_pair
from .function_classes import Function, TimeDomain, TimerService
from .type_variables import ContextKey, Input1, Input2, KeyInput, Output, StateInput

K = TypeVar("K")
V = TypeVar("V")


class BaseBroadcastProcessFunction(Function):
    """The common base of both kinds of broadcast process function."""

    class BaseContext(ABC):
        """The context of a call; valid only during the call it was given to."""

        @abstractmethod
        def timestamp(self) -> Any:
            """Return the epoch milliseconds of the record or the firing timer; None where no timestamps were set."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the epoch milliseconds of the task's wall clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the epoch milliseconds of event time."""

    class Context(BaseContext):
        """The context of the broadcast side: state may be written."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
            """Return the broadcast state of a descriptor that was given to `broadcast`.

            Raises:
                StateError: no descriptor of this name was.
            """

    class ReadOnlyContext(BaseContext):
        """The context of the other side: state may only be read."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> ReadOnlyBroadcastState[K, V]:
            """Return the broadcast state of a descriptor that was given to `broadcast`, for reading.

            Raises:
                StateError: no descriptor of this name was.
            """


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[Input1, Input2, Output]):
    """Applies broadcast records to a stream without keys."""

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of the side that is not broadcast."""

    @abstractmethod
    def process_element(
        self, value: Input1, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the stream that is not broadcast; `yield tag, record` for a side output."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Input2, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the broadcast stream, from each subtask; all must write the same state."""


class KeyedStateFunction(ABC, Generic[KeyInput, StateInput]):
    """A function that `apply_to_keyed_state` calls for each key; a callable of key and state does as well."""

    @abstractmethod
    def process(self, key: KeyInput, state: StateInput) -> None:
        """Read or change the state of one key."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KeyInput, Input1, Input2, Output]):
    """Applies broadcast records to a keyed stream, with keyed state and timers."""

    class Context(BaseBroadcastProcessFunction.Context, Generic[ContextKey]):
        """The context of the broadcast side, which has no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self,
            state_descriptor: StateDescriptor,
            function: KeyedStateFunction[ContextKey, Any] | Callable[[ContextKey, Any], Any],
        ) -> None:
            """Call a function with each key of this subtask that has the state, and with the state of that key.

            The keys come in no order that can be relied on; all of them are held in memory meanwhile.

            Args:
                state_descriptor: of a keyed state.
                function: takes the key, and the handle that the runtime context gives for the descriptor.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, Generic[ContextKey]):
        """The context of the keyed side."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that reads clocks and sets timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> ContextKey:
            """Return the key of the record or of the firing timer."""

    class OnTimerContext(ReadOnlyContext[ContextKey]):
        """The context of a firing timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return which clock fired."""

    @abstractmethod
    def process_element(
        self, value: Input1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the keyed stream; `yield tag, record` for a side output."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Input2, ctx: KeyedBroadcastProcessFunction.Context[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the broadcast stream, from each subtask; all must write the same state."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for the timer that fires at `timestamp`, in epoch milliseconds."""


def as_broadcast_process(function: UserCode) -> UserFunctionPair:
    """Return `(value, context) -> iterable or None` for each side, from a broadcast function or a pair."""
    methods = ("process_element", "process_broadcast_element")
    return as_pair(function, methods, "a (Keyed)BroadcastProcessFunction", "process", 2)


__all__ = [
    "BaseBroadcastProcessFunction", "BroadcastProcessFunction", "KeyedBroadcastProcessFunction", "KeyedStateFunction",
    "as_broadcast_process",
]  # fmt: skip
